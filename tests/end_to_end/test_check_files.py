"""``compat check FILE…``, ``facts FILE`` and ``init`` as people call them: a real process, real files."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.formats.described import parse_described
from tests.conftest import ROOT

Run = Callable[..., "subprocess.CompletedProcess[str]"]
HIT = "transformers-dataparallel-drops-data"
TARGET = '[[tool.compat.target]]\nname = "train"\ngpus = "A100:2"\ntask = "sft"\nlauncher = "python"\n'


def lock(transformers: str, folder: Path, name: str = "uv.lock") -> str:
    source = 'source = { registry = "https://index.example/simple" }'
    (folder / name).write_text(
        'version = 1\nrevision = 3\nrequires-python = ">=3.10"\n\n'
        '[[package]]\nname = "job"\nversion = "0.1.0"\nsource = { virtual = "." }\ndependencies = [\n    { name = "transformers" },\n]\n\n'
        f'[[package]]\nname = "transformers"\nversion = "{transformers}"\n{source}\n',
        encoding="utf-8",
    )
    return name


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "job"\nversion = "0.1.0"\n\n{TARGET}', encoding="utf-8")
    return tmp_path


def test_a_bad_lock_fails_with_file_line_and_target(compat: Run, project: Path) -> None:
    done = compat("check", lock("4.53.3", project))
    assert done.returncode == 1
    assert "uv.lock:14" in done.stdout
    assert HIT in done.stdout
    assert 'uv add "transformers>=4.57.1,<5"' in done.stdout
    assert done.stderr == ""


def test_a_good_lock_passes_and_is_quiet_if_asked(compat: Run, project: Path) -> None:
    name = lock("4.57.1", project)
    assert compat("check", name).returncode == 0
    quiet = compat("check", "--quiet", name)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


def test_without_a_target_it_is_an_open_question(compat: Run, tmp_path: Path) -> None:
    done = compat("check", lock("4.53.3", tmp_path), "--all", "--format", "json")
    assert done.returncode == 0
    report = json.loads(done.stdout)
    finding = next(each for each in report["findings"] if each["rule"] == HIT)
    assert finding["verdict"] == "possible"
    assert "accelerators" in finding["missing"]
    assert "target" not in finding
    assert report["file"] == "uv.lock"


def test_options_win_over_the_target(compat: Run, project: Path) -> None:
    name = lock("4.53.3", project)
    assert compat("check", name, "--launcher", "torchrun").returncode == 0
    assert compat("check", name, "--gpu", "A100:1").returncode == 0
    assert compat("check", name, "--", "torchrun", "--nproc-per-node", "2", "-m", "job").returncode == 0
    assert compat("check", name, "--config", "none").returncode == 0


def test_every_target_is_judged_or_those_that_are_named(compat: Run, project: Path) -> None:
    config = project / "pyproject.toml"
    config.write_text(
        config.read_text(encoding="utf-8") + '\n[[tool.compat.target]]\nname = "one"\ngpus = "A100:1"\n', encoding="utf-8"
    )
    name = lock("4.53.3", project)
    found = json.loads(compat("check", name, "--format", "json").stdout)["findings"]
    assert [each["target"] for each in found if each["rule"] == HIT] == ["train"]
    assert compat("check", name, "--target", "one").returncode == 0
    assert compat("check", name, "--target", "train,one").returncode == 1
    wrong = compat("check", name, "--target", "prod")
    assert wrong.returncode == 2
    assert wrong.stderr == "compat: unknown target 'prod': pyproject.toml declares train, one\n"


def test_a_wrong_value_in_a_target_names_its_place(compat: Run, project: Path) -> None:
    (project / "pyproject.toml").write_text(TARGET.replace("A100:2", "A1000000"), encoding="utf-8")
    done = compat("check", lock("4.53.3", project))
    assert done.returncode == 2
    assert done.stderr.startswith("compat: pyproject.toml:1: target train: --gpu: unknown GPU 'A1000000'")


def test_an_ignore_hides_until_it_expires(compat: Run, project: Path) -> None:
    name = lock("4.53.3", project)
    config = project / "pyproject.toml"
    before = config.read_text(encoding="utf-8")
    ignore = f'\n[[tool.compat.ignore]]\nrule = "{HIT}"\nreason = "one GPU in practice"\nuntil = '
    config.write_text(f"{before}{ignore}2999-01-01\n", encoding="utf-8")
    done = compat("check", name)
    assert done.returncode == 0
    assert "is ignored until 2999-01-01: one GPU in practice" in " ".join(done.stdout.split())
    config.write_text(f"{before}{ignore}2020-01-01\n", encoding="utf-8")
    done = compat("check", name)
    assert done.returncode == 1
    assert "expired on 2020-01-01 (pyproject.toml:11); it is reported again" in " ".join(done.stdout.split())


def test_one_bad_file_does_not_stop_the_others(compat: Run, project: Path) -> None:
    bad = lock("4.53.3", project)
    good = lock("4.57.1", project, "good.uv.lock")
    (project / "poetry.lock").write_text("[[package]]\n<<<<<<< HEAD\nname = 'x'\n", encoding="utf-8")
    done = compat("check", good, "poetry.lock", bad, "missing.lock")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "compat: poetry.lock:2: has an unresolved merge conflict", "compat: missing.lock: cannot be read: No such file or directory",
    ]  # fmt: skip
    assert HIT in done.stdout
    reports = json.loads(compat("check", good, "poetry.lock", bad, "--format", "json").stdout)
    assert [each["exit"] for each in reports] == [0, 2, 1]
    assert [each["file"] for each in reports] == [good, "poetry.lock", bad]


def test_a_baseline_leaves_what_is_new(compat: Run, project: Path) -> None:
    name = lock("4.53.3", project)
    (project / "baseline.json").write_text(compat("check", name, "--format", "json").stdout, encoding="utf-8")
    assert compat("check", name, "--baseline", "baseline.json").returncode == 0
    lock("4.54.0", project)  # another bad release is the same finding
    assert compat("check", name, "--baseline", "baseline.json").returncode == 0
    other = lock("4.53.3", project, "other.uv.lock")
    assert compat("check", name, other, "--baseline", "baseline.json").returncode == 1


@pytest.mark.parametrize("form", ["github", "sarif", "junit"])
def test_formats_for_ci_name_rule_file_and_line(compat: Run, project: Path, form: str) -> None:
    done = compat("check", lock("4.53.3", project), "--format", form)
    assert done.returncode == 1
    assert HIT in done.stdout
    assert "uv.lock" in done.stdout
    assert "14" in done.stdout
    if form == "github":
        assert compat("check", lock("4.57.1", project), "--format", form, "--features", "zero-3").stdout == ""


def test_a_missing_include_never_ends_well(compat: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("-r ../../../etc/passwd\ntransformers==4.57.1\n", encoding="utf-8")
    done = compat("check", "requirements.txt")
    assert done.returncode == 3
    assert "requirements.txt:1" in done.stdout
    assert "root:" not in done.stdout + done.stderr


def test_what_something_else_decides_is_a_note_unless_strict(compat: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\ndynamic = ["dependencies"]\n', encoding="utf-8")
    (tmp_path / "Dockerfile").write_text("FROM python:3.11\nCOPY r.txt .\nRUN pip install -r r.txt\n", encoding="utf-8")
    for name in ("pyproject.toml", "Dockerfile"):
        done = compat("check", name)
        assert done.returncode == 0
        assert "was not read" in done.stdout
        assert "No known problems found in what could be read." in done.stdout
        assert compat("check", "--quiet", name).stdout == ""
        assert compat("check", "--strict", name).returncode == 3


def test_facts_of_a_file_can_be_checked_again(compat: Run, project: Path) -> None:
    name = lock("4.53.3", project)
    facts = compat("facts", name)
    assert facts.returncode == 0
    document = json.loads(facts.stdout)
    environment, notes = parse_described(document, "facts")
    assert notes == ()
    assert [(each.name, each.version) for each in environment.distributions or ()] == [
        ("job", "0.1.0"),
        ("transformers", "4.53.3"),
    ]
    (project / "facts.json").write_text(facts.stdout, encoding="utf-8")
    assert compat("check", "facts.json").returncode == 1
    assert len(json.loads(compat("facts", name, name).stdout)) == 2


def test_init_writes_a_target_that_check_understands(compat: Run, tmp_path: Path) -> None:
    done = compat("init", "--target", "train", "--gpu", "A100:2", "--task", "sft", "--launcher", "python", "--driver", "550.54")
    assert done.returncode == 0, done.stderr
    assert '+gpus = "A100:2"' in done.stdout
    assert compat("check", lock("4.53.3", tmp_path)).returncode == 1
    again = compat("init", "--target", "train")
    assert again.returncode == 2
    assert again.stderr == "compat: pyproject.toml: already has a target 'train'; --target gives this one another name\n"
    (tmp_path / "pyproject.toml").write_text("[tool\n", encoding="utf-8")
    broken = compat("init")
    assert broken.returncode == 2
    assert (tmp_path / "pyproject.toml").read_text(encoding="utf-8") == "[tool\n"


def test_init_keeps_what_is_there(compat: Run, project: Path) -> None:
    config = project / "pyproject.toml"
    before = "# mine\n" + config.read_text(encoding="utf-8") + "\n[tool.other]\nx   =  1 # odd\n"
    config.write_text(before, encoding="utf-8")
    assert compat("init", "--target", "serve", "--print").stdout.startswith("[[tool.compat.target]]")
    assert config.read_text(encoding="utf-8") == before
    assert compat("init", "--target", "serve").returncode == 0
    after = config.read_text(encoding="utf-8")
    assert [line for line in before.splitlines() if line not in after.splitlines()] == []
    assert compat("check", "--target", "serve", lock("4.53.3", project)).returncode == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--python", "x"), "--python needs --installed"),
        (("README.rst",), "README.rst: unrecognized file type"),
        (("empty",), "empty: is a folder without a lock file"),
        (("--extras", "z", "uv.lock"), "uv.lock: unknown extra 'z'; it has no extras"),
        (("--baseline", "nothing.json", "uv.lock"), "nothing.json: cannot be read"),
    ],
)
def test_unusable_calls_are_one_line(compat: Run, project: Path, words: tuple[str, ...], expected: str) -> None:
    lock("4.57.1", project)
    (project / "README.rst").write_text("Title\n=====\n", encoding="utf-8")
    (project / "empty").mkdir()
    done = compat("check", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"compat: {expected}")
    assert done.stderr.count("\n") == 1


def test_what_is_installed_for_a_target_without_a_gpu(compat: Run, project: Path) -> None:
    packages = project / "venv" / "lib" / "python3.11" / "site-packages"
    for name, version in (("transformers", "4.53.3"), ("torch", "2.6.0")):
        info = packages / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    done = compat("check", "--installed", "--python", str(packages), "--target", "train")
    assert done.returncode == 1, done.stderr
    assert HIT in done.stdout
    assert "2 × A100" in done.stdout


def test_the_largest_lock_of_the_corpus(compat: Run) -> None:
    path = ROOT / ".." / "shared" / "corpus" / "files" / "uv.lock" / "NVIDIA-NeMo__RL__7571a7d5__uv.lock"
    if not path.exists():
        pytest.skip("needs the corpus")
    report = json.loads(
        compat("check", str(path), "--all", "--format", "json", "--task", "grpo", "--features", "no-cache").stdout
    )
    seen = {(each["packages"].get("transformers"), *each.get("selections", ())) for each in report["findings"]}
    assert ("5.5.4",) in seen
    assert ("5.5.0", "extra nemo-rl[automodel]") in seen
    assert ("5.6.0", "extra nemo-rl[sglang]") in seen
    assert any(version == "5.8.1" for version, *_ in seen)


def test_a_folder_and_no_operand_stand_for_the_files_there(compat: Run, project: Path) -> None:
    lock("4.57.1", project)
    (project / "Dockerfile").write_text("FROM python:3.11\nRUN pip install torch==2.6.0\n", encoding="utf-8")
    for words in ((), (".",)):
        done = compat("check", *words)
        assert [line for line in done.stdout.splitlines() if line.endswith(":") and not line.startswith(" ")] == [
            "uv.lock:", "Dockerfile:",
        ]  # fmt: skip


def codes_of(done: subprocess.CompletedProcess[str]) -> set[str]:
    """The rules of its hits."""
    return {each["rule"] for each in json.loads(done.stdout)["findings"] if each["verdict"] == "hit"}


def test_a_named_gpu_is_in_a_linux_server_unless_said_otherwise(compat: Run, tmp_path: Path) -> None:
    """Markers name other systems and Pythons; ``compat fix`` plans for that machine, so that an error there is one."""
    (tmp_path / "requirements.txt").write_text(
        'torch==2.4.0 ; python_full_version <= "3.12.0"\n'
        'nvidia-nvtx-cu12==12.1.105 ; platform_system == "Linux" and python_full_version <= "3.12.0"\n'
    )
    words = ("check", "requirements.txt", "--format", "json", "--gpu")
    done = compat(*words, "RTX 5090")
    assert done.returncode == 1
    assert "build-torch-gpu" in codes_of(done)
    assert "build-torch-gpu" not in codes_of(compat(*words, "RTX 5090", "--machine", "aarch64"))
    assert "build-torch-gpu" not in codes_of(compat(*words, "sm_121"))  # GB10, which has an Arm processor


@pytest.mark.parametrize("install", ["UV_TORCH_BACKEND=cu126 uv pip install", "uv pip install --torch-backend=cu126"])
def test_the_backend_that_uv_is_given_decides_which_torch_it_is(compat: Run, tmp_path: Path, install: str) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nRUN {install} torch==2.8.0\n")
    words = ("check", "Dockerfile", "--format", "json", "--gpu")
    assert "build-torch-gpu" in codes_of(compat(*words, "RTX 5090"))
    assert "build-torch-gpu" not in codes_of(compat(*words, "A100"))


def test_a_python_that_does_not_exist_is_refused(compat: Run, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.6.0\n")
    for version in ("3.99", "4.0", "2.6"):
        done = compat("check", "requirements.txt", "--python-version", version)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"compat: --python-version: unknown Python {version!r}; expected 2.7 or 3.4 to 3.16\n"
    assert compat("check", "requirements.txt", "--python-version", "3.13").returncode == 0


def test_pixi_resolves_packages_of_an_index_with_those_of_conda(compat: Run, tmp_path: Path) -> None:
    (tmp_path / "pixi.toml").write_text(
        '[workspace]\nchannels = ["conda-forge"]\nplatforms = ["linux-64"]\n[dependencies]\npython = "3.11.*"\n'
        'pytorch-gpu = "==2.5.1"\n[pypi-dependencies]\nvllm = "==0.10.0"\n'
    )
    done = compat("check", "pixi.toml")
    assert done.returncode == 1
    assert "✗ vllm 0.10.0 requires torch==2.7.1, but 2.5.1 is pinned" in done.stdout


def test_every_python_of_a_workflow_is_judged(compat: Run, tmp_path: Path) -> None:
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    (tmp_path / ".github" / "workflows" / "ci.yml").write_text(
        'on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    strategy:\n      matrix:\n        python: ["3.8", "3.12"]\n'
        "    steps:\n      - uses: actions/setup-python@v5\n        with:\n          python-version: ${{ matrix.python }}\n"
        "      - run: pip install torch==2.6.0\n"
    )
    done = compat("check", ".github/workflows/ci.yml")
    assert done.returncode == 1
    assert "torch 2.6.0 does not support Python 3.8" in done.stdout
    assert "with      job test, Python 3.8\n" in done.stdout
