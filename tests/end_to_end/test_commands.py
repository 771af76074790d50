"""The commands as a person calls them: real processes, real files, exit codes and single lines."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.api.commands import COMMANDS
from compat.probe.request import NAMES
from tests.conftest import ROOT

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., str]

AFFECTED = {"torch": "2.6.0+cu124", "transformers": "4.51.3", "trl": "0.17.0", "accelerate": "1.6.0"}
TWO = [{"name": "NVIDIA A100-SXM4-80GB"}] * 2


def site(folder: Path, packages: dict[str, str]) -> Path:
    """A virtual environment made of metadata alone."""
    path = folder / "venv" / "lib" / "python3.11" / "site-packages"
    path.mkdir(parents=True)
    (folder / "venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.9\n")
    for name, version in packages.items():
        (path / f"{name}-{version}.dist-info").mkdir()
        (path / f"{name}-{version}.dist-info" / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n"
        )
    return folder / "venv"


def test_doctor_reads_an_environment_and_the_command_to_be_run(compat_process: Run, tmp_path: Path) -> None:
    venv = site(tmp_path, AFFECTED)
    (tmp_path / "train.py").write_text(
        "from trl import SFTConfig, SFTTrainer\n"
        "trainer = SFTTrainer('m', args=SFTConfig(per_device_train_batch_size=4), train_dataset=None)\n"
        "trainer.train()\n"
    )
    done = compat_process("doctor", "--python", str(venv), "--gpu", "H100:2", "--", "python", "train.py", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "SFT crashes at the first step" in done.stdout
    assert "Only the first GPU receives data" in done.stdout
    assert "train.py:2" in done.stdout
    assert "2 errors." in done.stdout
    clear = compat_process(
        "doctor", "--python", str(venv), "--gpu", "H100:2", "--", "torchrun", "--nproc_per_node", "2", "train.py", cwd=tmp_path
    )
    assert clear.returncode == 0
    assert "No known problems found: " in clear.stdout


def test_fixes_are_for_the_environment_that_was_read(compat_process: Run, tmp_path: Path) -> None:
    venv = site(tmp_path, AFFECTED)
    (venv / "bin").mkdir()
    (venv / "bin" / "python").symlink_to("/usr/bin/python3")
    done = compat_process("doctor", "--python", "venv", "--gpu", "A100:2", "--launcher", "python", cwd=tmp_path)
    assert 'venv/bin/python -m pip install "transformers>=4.57.1,<5"' in done.stdout


def test_models_that_are_not_wrapped_and_trainers_with_their_own_loss_are_clear(compat_process: Run, tmp_path: Path) -> None:
    venv = site(tmp_path, AFFECTED)
    scripts = {
        "device_map": "from transformers import AutoModelForCausalLM, Trainer\nmodel = AutoModelForCausalLM.from_pretrained('gpt2', device_map='auto')\nTrainer(model=model).train()\n",
        "dpo": "from trl import DPOConfig, DPOTrainer\nDPOTrainer(model='m', args=DPOConfig()).train()\n",
        "one_device": "from transformers import AutoModelForCausalLM, Trainer\nmodel = AutoModelForCausalLM.from_pretrained('gpt2', device_map='cuda:0')\nTrainer(model=model).train()\n",
    }
    codes = {}
    for name, text in scripts.items():
        (tmp_path / f"{name}.py").write_text(text)
        codes[name] = compat_process(
            "doctor", "--python", "venv", "--gpu", "A100:2", "--", "python", f"{name}.py", cwd=tmp_path
        ).returncode
    assert venv.exists()
    assert codes == {"device_map": 0, "dpo": 0, "one_device": 1}


def test_a_script_without_a_trainer_is_a_question(compat_process: Run, tmp_path: Path) -> None:
    site(tmp_path, AFFECTED)
    (tmp_path / "loop.py").write_text("import torch\nfor _ in range(3):\n    torch.ones(2).sum()\n")
    command = ("doctor", "--python", "venv", "--gpu", "A100:2", "--format", "json")
    report = json.loads(compat_process(*command, "--", "python", "loop.py", cwd=tmp_path).stdout)
    assert {finding["verdict"] for finding in report["findings"]} == {"possible"}
    assert all("workload.task" in finding["unknown"] for finding in report["findings"])
    without_a_script = json.loads(compat_process(*command, "--launcher", "python", cwd=tmp_path).stdout)
    hit = next(finding for finding in without_a_script["findings"] if finding["verdict"] == "hit")
    assert "task taken as sft" in hit["here"]


def test_a_shell_script_with_several_jobs_says_which_are_not_judged(compat_process: Run, tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("pass\n")
    (tmp_path / "run.sh").write_text("python a.py --x 1\ntorchrun --nproc_per_node 2 b.py\n")
    done = compat_process("doctor", "--format", "json", "--", "bash", "run.sh", cwd=tmp_path)
    assert any("run.sh also starts python a.py --x 1: not checked" in note for note in json.loads(done.stdout)["notes"])


def test_output_that_cannot_be_written_is_an_error_and_a_reader_that_left_is_none(
    compat_process: Run, described: Write
) -> None:
    path = described(AFFECTED, accelerators=TWO, workload={"launcher": "python", "task": "sft"})
    command = f"PYTHONPATH={ROOT} {sys.executable} -m compat check --environment {path}"
    for redirection, code, message in (
        (">/dev/full", 2, "cannot write the output"),
        (">&-", 2, "cannot write|standard output is closed"),
    ):
        done = subprocess.run(["bash", "-c", f"{command} {redirection}"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr.count("\n")) == (code, 1), done.stderr
        assert any(part in done.stderr for part in message.split("|"))
    done = subprocess.run(
        ["bash", "-c", f"{command} | true; echo ${{PIPESTATUS[0]}}"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_words_are_understood_as_people_write_them_and_typos_are_refused(compat_process: Run, described: Write) -> None:
    path = described({"transformers": "4.48.1"}, workload={"task": "grpo", "processes": 2})
    for spelled in ("zero3", "ZeRO-3", "zero_3"):
        done = compat_process("check", "--environment", path, "--features", f"{spelled},gradient_checkpointing")
        assert done.returncode == 1, done.stdout
    for words in (
        ("--task", "grpoo"),
        ("--task", "banana"),
        ("--features", "vlm"),
        ("--without", "packin"),
        ("--precision", "bf61"),
        ("--model", ""),
    ):
        done = compat_process("check", "--environment", path, *words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_environments_come_through_a_pipe_and_reports_name_their_file(compat_process: Run, described: Write) -> None:
    path = described({"numpy": "2.0.0"})
    done = compat_process("check", "--environment", "-", "--format", "json", stdin=Path(path).read_text())
    assert json.loads(done.stdout)["environment"]["distributions"][0]["name"] == "numpy"
    done = compat_process("check", "--environment", "none.json", path, "--format", "json")
    entries = json.loads(done.stdout)
    assert [(entry["file"], entry["exit"]) for entry in entries] == [("none.json", 2), (path, 0)]
    assert "cannot be read" in entries[0]["error"]


def test_newer_releases_are_not_assessed_and_nothing_known_is_said(compat_process: Run, described: Write) -> None:
    done = compat_process(
        "check", "--all", "--environment", described({"transformers": "9.0.0", "trl": "1.16.0"}), "--format", "json"
    )
    assert json.loads(done.stdout)["notes"] == [
        "newer than the releases that were assessed (in parentheses): transformers 9.0.0 (5.24.0)"
    ]
    done = compat_process("check", "--environment", described(name="nothing.json"), "--format", "json")
    assert "almost nothing to check" in json.loads(done.stdout)["notes"][0]


def test_the_command_behind_the_dashes_is_not_run(compat_process: Run, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import pathlib\npathlib.Path('ran').touch()\n")
    done = compat_process("doctor", "--", "python", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()


def test_the_environment_under_inspection_is_not_started(compat_process: Run, tmp_path: Path) -> None:
    venv = site(tmp_path, AFFECTED)
    (venv / "bin").mkdir()
    python = venv / "bin" / "python"
    python.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    python.chmod(0o755)
    for startup in ("sitecustomize.py", "usercustomize.py"):
        (venv / "lib" / "python3.11" / "site-packages" / startup).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    done = compat_process("doctor", "--python", str(python))
    assert done.returncode == 0, done.stderr
    assert "transformers 4.51.3" in done.stdout
    assert not (tmp_path / "ran").exists()


def test_the_activated_environment_is_read(compat_process: Run, tmp_path: Path) -> None:
    venv = site(tmp_path, AFFECTED)
    report = json.loads(compat_process("doctor", "--format", "json", VIRTUAL_ENV=str(venv)).stdout)
    assert [d["name"] for d in report["environment"]["distributions"]] == ["accelerate", "torch", "transformers", "trl"]


def test_what_facts_prints_check_reads(compat_process: Run, tmp_path: Path) -> None:
    venv = site(tmp_path, AFFECTED)
    options = ("--gpu", "A100:2", "--launcher", "python", "--task", "sft")
    facts = compat_process("facts", "--python", str(venv), *options)
    (tmp_path / "facts.json").write_text(facts.stdout)
    checked = json.loads(compat_process("check", "--environment", str(tmp_path / "facts.json"), "--format", "json").stdout)
    doctored = json.loads(compat_process("doctor", "--python", str(venv), *options, "--format", "json").stdout)
    for finding in doctored["findings"]:
        for fix in finding["fixes"]:
            fix["command"] = fix["command"].replace("venv/bin/python -m pip ", "pip ")
    for finding in checked["findings"]:
        assert finding.pop("location") == {"file": str(tmp_path / "facts.json"), "line": None}
    assert [finding.pop("location") for finding in doctored["findings"]] == [None, None]
    assert checked["findings"] == doctored["findings"]
    assert len(checked["findings"]) == 2
    assert checked["environment"] == doctored["environment"]


def test_two_versions_in_one_folder_are_a_finding(compat_process: Run, tmp_path: Path) -> None:
    venv = site(tmp_path, {"transformers": "4.49.0", "trl": "0.17.0"})
    other = venv / "lib" / "python3.11" / "site-packages" / "transformers-4.53.3.dist-info"
    shutil.copytree(venv / "lib" / "python3.11" / "site-packages" / "transformers-4.49.0.dist-info", other)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: transformers\nVersion: 4.53.3\n\n")
    done = compat_process("doctor", "--python", str(venv), "--gpu", "A100:2", "--launcher", "python", "--format", "json")
    verdicts = {finding["rule"]: finding["verdict"] for finding in json.loads(done.stdout)["findings"]}
    assert verdicts["installed-twice"] == "hit"
    assert verdicts["transformers-dataparallel-drops-data"] == "possible"


def test_text_detectors_decide_a_source_install(compat_process: Run, tmp_path: Path) -> None:
    venv = site(tmp_path, {"trl": "0.16.0.dev0"})
    packages = venv / "lib" / "python3.11" / "site-packages"
    (packages / "trl-0.16.0.dev0.dist-info" / "direct_url.json").write_text('{"url": "file:///src/trl", "dir_info": {}}')
    trainer = packages / "trl" / "trainer" / "sft_trainer.py"
    trainer.parent.mkdir(parents=True)
    command = ("doctor", "--python", str(venv), "--task", "sft", "--launcher", "torchrun", "--format", "json")
    expected = {
        'x = self.accelerator.gather_for_metrics(inputs["attention_mask"].sum().item())\n': ["hit"],
        'x = self.accelerator.gather_for_metrics(inputs["attention_mask"]).sum().item()\n': [],
    }
    for text, verdicts in expected.items():
        trainer.write_text(text)
        assert [f["verdict"] for f in json.loads(compat_process(*command).stdout)["findings"]] == verdicts
    trainer.unlink()
    assert [f["verdict"] for f in json.loads(compat_process(*command).stdout)["findings"]] == ["possible"]


@pytest.mark.parametrize(
    ("level", "code"), [((), 1), (("--fail-on", "error"), 1), (("--fail-on", "never"), 0), (("--fail-on", "possible"), 1)]
)
def test_exit_codes_follow_the_threshold(compat_process: Run, described: Write, level: tuple[str, ...], code: int) -> None:
    path = described(AFFECTED, accelerators=TWO, workload={"launcher": "python", "task": "sft"})
    for form in ("text", "json"):
        assert compat_process("check", "--environment", path, "--format", form, *level).returncode == code


def test_a_warning_and_an_open_question_fail_only_where_asked(compat_process: Run, described: Write) -> None:
    warning = described(
        {"accelerate": "0.33.0", "transformers": "4.45.0"}, name="w.json", accelerators=TWO, distributions_complete=True
    )
    question = described(AFFECTED, name="q.json", accelerators=TWO)
    codes = {level: [compat_process("check", "--environment", path, "--fail-on", level).returncode for path in (warning, question)]
             for level in ("error", "warning", "possible")}  # fmt: skip
    assert codes == {"error": [0, 0], "warning": [1, 0], "possible": [0, 1]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("doctro",), "unknown command 'doctro'; did you mean doctor?"),
        (("doctor", "--foramt", "json"), "did you mean --format?"),
        (("doctor", "--gpu", "RTX 9090"), "unknown GPU 'RTX 9090' (nearest: "),
        (("doctor", "--gpu", "RTX 4000"), "is ambiguous"),
        (("doctor", "--gpu", "A100:x"), "expected NAME or NAME:COUNT"),
        (("doctor", "--python", "nowhere/at/all"), "no such interpreter"),
        (("doctor", "--driver", "new"), "'new' is not a version"),
        (("doctor", "--processes", "0"), "expected a whole number of at least 1"),
        (("doctor", "--launcher", "mpirun"), "is not one of python, accelerate"),
        (("doctor", "--task"), "--task needs a value"),
        (("doctor", "--deep=yes"), "--deep does not take a value"),
        (("doctor", "train.py"), "goes after '--'"),
        (("doctor", "--"), "expected a command after '--'"),
        (("doctor", "--", "python", "missing.py"), "missing.py: no such file"),
        (("doctor", "--features", "vllm", "--without", "vllm"), "both name vllm"),
        (("check",), "nothing to check"),
        (("check", "--environment", "none.json"), "none.json: cannot be read"),
        (("diagnose", "none.txt"), "none.txt: cannot be read"),
        (("rules", "shwo"), "expected 'compat rules list'"),
        (("rules", "show", "unsloth-grpo-mistral-logit"), "did you mean unsloth-grpo-mistral-logits?"),
        (("rules", "lint", "none.toml"), "none.toml: cannot be read"),
        (("completions", "tcsh"), "expected one of bash, zsh, fish"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_2(compat_process: Run, words: tuple[str, ...], message: str) -> None:
    done = compat_process(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("compat: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_other_files_of_the_same_call_are_still_judged(compat_process: Run, described: Write, tmp_path: Path) -> None:
    good = described(AFFECTED, accelerators=TWO, workload={"launcher": "python", "task": "sft"})
    (tmp_path / "bad.json").write_text('{\n"python": 3\n}')
    done = compat_process("check", "--environment", str(tmp_path / "bad.json"), good)
    assert done.returncode == 2
    assert done.stderr == f"compat: {tmp_path}/bad.json:2: python: expected a string, not the number 3\n"
    assert "2 errors" in done.stdout
    assert good in done.stdout


def test_a_rules_file_of_ones_own(compat_process: Run, described: Write, tmp_path: Path) -> None:
    rules = tmp_path / "mine.toml"
    text = (
        '[[rule]]\nid = "my-rule"\ntitle = "Ours breaks"\nseverity = "error"\neffect = "crash"\nconfidence = "confirmed"\n'
        'packages = { numpy = ">=2" }\nevidence = ["https://example.org"]\nwhy = "w"\n[[rule.fix]]\ndowngrade = { numpy = "<2" }\n'
        '[[rule.example]]\nhit = { packages = { numpy = "2.1.0" } }\n[[rule.example]]\nclear = { packages = { numpy = "1.26.4" } }\n'
    )
    rules.write_text(text)
    path = described({"numpy": "2.2.6"})
    assert compat_process("check", "--environment", path).returncode == 0
    done = compat_process("check", "--environment", path, "--rules", str(rules))
    assert (done.returncode, "Ours breaks" in done.stdout) == (1, True)
    assert compat_process("rules", "lint", str(rules)).returncode == 0
    rules.write_text(text.replace('numpy = "1.26.4"', 'numpy = "2.0.0"'))
    done = compat_process("rules", "lint", str(rules))
    assert (done.returncode, done.stderr) == (1, "mine.toml:1: rule my-rule: example 2 says clear, but it is hit\n")
    rules.write_text(text.replace('numpy = ">=2"', 'numpy = ">=two"'))
    done = compat_process("rules", "lint", str(rules))
    assert done.returncode == 2
    assert done.stderr.startswith(f"compat: {rules}:1: rule my-rule: packages.numpy: '>=two'")


def test_text_fits_eighty_columns_and_pipes(compat_process: Run, described: Write) -> None:
    path = described(AFFECTED, accelerators=TWO, driver="550.54.15", workload={"launcher": "python", "task": "sft"})
    for encoding in ("utf-8", "ascii"):
        done = compat_process("check", "--environment", path, PYTHONIOENCODING=encoding)
        lines = done.stdout.splitlines()
        long = [line for line in lines if len(line) > 80 and "http" not in line and "pip install" not in line]
        assert long == []
        assert "\x1b" not in done.stdout
        assert "?" not in done.stdout.replace("? ", "") or encoding == "utf-8"
        assert ("✗" in done.stdout) == (encoding == "utf-8")


def test_a_closed_pipe_is_no_traceback(compat_process: Run, described: Write) -> None:
    path = described(AFFECTED, accelerators=TWO, workload={"launcher": "python", "task": "sft"})
    command = f"{sys.executable} -m compat check --environment {path} | head -1"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    assert done.stderr == ""


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_help_names_every_option(compat_process: Run, command: object) -> None:
    done = compat_process(command.name, "--help")  # type: ignore[attr-defined]
    assert done.returncode == 0
    assert all(f"--{option.name}" in done.stdout for option in command.options)  # type: ignore[attr-defined]
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []


def test_overview_and_version(compat_process: Run) -> None:
    assert all(command.name in compat_process("--help").stdout for command in COMMANDS)
    assert compat_process().stdout == compat_process("--help").stdout
    assert compat_process("--version").stdout.startswith("compat 0.")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_are_scripts_of_their_shell(compat_process: Run, tmp_path: Path, shell: str) -> None:
    script = compat_process("completions", shell).stdout
    assert "doctor" in script
    assert "fail-on" in script
    program = shutil.which(shell)
    if program:
        (tmp_path / "script").write_text(script)
        subprocess.run([program, "-n", str(tmp_path / "script")], check=True)


def test_bash_completes_options_and_words(compat_process: Run, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("no bash here")
    (tmp_path / "script").write_text(compat_process("completions", "bash").stdout)
    ask = (
        "source ./script; COMP_WORDS=(compat doctor --fo); COMP_CWORD=2; _compat; echo ${COMPREPLY[@]};"
        "COMP_WORDS=(compat doctor --format j); COMP_CWORD=3; _compat; echo ${COMPREPLY[@]};"
        "COMP_WORDS=(compat do); COMP_CWORD=1; _compat; echo ${COMPREPLY[@]}"
    )
    done = subprocess.run([bash, "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["--format", "json", "doctor"]


def test_deep_asks_pip_of_the_running_environment_only(compat_process: Run, tmp_path: Path) -> None:
    venv = site(tmp_path, AFFECTED)
    done = compat_process("doctor", "--deep", "--python", str(venv))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    done = compat_process("doctor", "--deep")
    assert done.returncode == 0, done.stderr
    assert "pip lists" not in done.stdout


def test_rules_are_listed_and_shown(compat_process: Run) -> None:
    listed = compat_process("rules").stdout
    assert listed == compat_process("rules", "list").stdout
    assert "trl-sft-dataparallel-accuracy (error, reproduced)" in listed
    shown = compat_process("rules", "show", "trl-sft-gather-for-metrics-int").stdout
    for part in (
        "evidence  https://",
        "fix       upgrade trl>=0.16.0",
        "hit       trl 0.16.0.dev0",
        "TypeError",
        "taken as" not in shown and "when",
    ):
        assert str(part) in shown
    as_json = json.loads(compat_process("rules", "show", "unsloth-imported-late", "--format", "json").stdout)
    assert as_json[0]["id"] == "unsloth-imported-late"


def test_rules_lint_reads_a_file_of_the_matrix_in_place_of_its_compiled_rules(compat_process: Run) -> None:
    done = compat_process("rules", "lint", str(ROOT / "matrix" / "rules" / "peft.toml"))
    assert done.returncode == 0, done.stderr
    assert "all examples hold" in done.stdout


def test_suggest_names_the_tasks_that_it_knows(compat_process: Run) -> None:
    done = compat_process("suggest", "--task", "build")
    assert done.returncode == 2
    assert done.stderr.startswith("compat: --task: no packages are known for 'build'; pass sft, grpo, ")


def test_a_log_among_the_files_is_sent_to_diagnose(compat_process: Run, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("Traceback (most recent call last):\n", encoding="utf-8")
    done = compat_process("check", str(tmp_path / "train.log"))
    assert done.returncode == 2
    assert "compat diagnose FILE" in done.stderr


def test_the_help_of_probe_names_every_group(compat_process: Run) -> None:
    shown = compat_process("probe", "--help").stdout
    assert [group for group in NAMES if group not in shown] == []


def test_doctor_checks_the_image_that_a_container_starts(compat: Run) -> None:
    """The packages are those of the image and of what the container installs, the GPUs those of the machine."""
    words = ("docker", "run", "--gpus", "all", "vllm/vllm-openai:v0.8.5", "--model", "org/model")
    done = compat("doctor", "--gpu", "RTX 5090", "--format", "json", "--", *words)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    environment = report["environment"]
    assert {each["name"]: each["version"] for each in environment["distributions"]} == {"vllm": "0.8.5", "torch": "2.6.0"}
    assert (environment["python"], environment["workload"]["task"]) == ("3.12", "serve")
    (found,) = [each for each in report["findings"] if each["rule"] == "build-torch-gpu"]
    assert found["fixes"][0]["text"].startswith("start from vllm/vllm-openai:v0.9.0,")
    inside = (
        "podman",
        "run",
        "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-devel",
        "sh",
        "-c",
        "pip install trl==0.15.2 && python a.py",
    )
    report = json.loads(compat("doctor", "--gpu", "H100", "--format", "json", "--", *inside).stdout)
    names = [each["name"] for each in report["environment"]["distributions"]]
    assert sorted(names) == ["torch", "torchvision", "trl"]


def test_doctor_says_that_an_image_is_unknown(compat: Run) -> None:
    done = compat("doctor", "--gpu", "H100", "--", "docker", "run", "someone/trainer:1", "python", "train.py")
    assert done.returncode == 0
    assert "the contents of the image someone/trainer:1 are unknown" in done.stdout
