"""Shell scripts: what they install, and the job they start."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.listing import Listing
from compat.formats.registry import read_listings
from compat.formats.scripts import ShellScript
from compat.model import Workload
from tests.formats.listings import lines, pins


def read(folder: Path, text: str, name: str = "run.sh") -> Listing:
    (folder / ".git").mkdir(exist_ok=True)
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    (found,) = ShellScript().read(str(path), text)
    assert not found.complete
    return found


def workload(listing: Listing) -> Workload:
    assert listing.context.workload is not None
    return listing.context.workload


def test_installs_and_the_lines_they_stand_on(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '#!/bin/bash\nset -e\nTORCH=2.6.0\npip install "torch==$TORCH" \\\n    trl==0.15.2 \\\n    Flash_Attn==2.7.4.post1 --no-build-isolation\n\n'
        'python -m pip install "transformers>=4.51,<4.57"  # it\'s pinned\nuv pip install -q vllm==${VLLM}\nsudo -H pip3 install peft\n',
    )
    assert pins(found) == {
        "torch": "2.6.0", "trl": "0.15.2", "flash-attn": "2.7.4.post1", "transformers": ">=4.51,<4.57", "vllm": None, "peft": None,
    }  # fmt: skip
    assert lines(found) == {"torch": 4, "trl": 5, "flash-attn": 6, "transformers": 8, "vllm": 9, "peft": 10}
    assert found.kind == "shell"
    assert [note for note in found.notes if "vllm" in note] == [
        f"{tmp_path}/run.sh:9: vllm==${{VLLM}}: its version is only known at run time"
    ]


def test_commands_in_substitutions_are_read_on_their_lines(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        'LOG=$(cd app && pip install "torch==2.6.0" \\\n  trl==0.15.2 2>&1)\necho "$(pip install vllm==0.7.1)" `pip install peft`\n'
        "echo '$(pip install xformers)' $(ssh host pip install flash-attn)\n",
    )
    assert pins(found) == {"torch": "2.6.0", "trl": "0.15.2", "vllm": "0.7.1", "peft": None}
    assert lines(found) == {"torch": 1, "trl": 2, "vllm": 3, "peft": 3}


def test_the_last_statement_holds_and_what_is_uninstalled_is_gone(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "pip install trl==0.14 xformers==0.0.29 vllm\npip uninstall -y xformers vllm && pip install vllm==0.7.1\npip install trl==0.15\n",
    )
    assert pins(found) == {"vllm": "0.7.1", "trl": "0.15"}


@pytest.mark.parametrize(
    "text",
    [
        'if [ "$1" = a ]; then\n  pip install torch==2.6\nelse\n  pip install torch==2.7\nfi\n',
        "if x; then pip install torch==2.6; else pip install torch==2.7; fi\n",
        "if x\nthen\n  :\nelif y; then pip install torch==2.6; fi\n",
        "pip install torch==2.5\n[[ -n $GPU ]] && pip install torch==2.6\n",
        "foo || pip install torch==2.6\n",
        "case $1 in\n  a|b) pip install torch==2.6 ;;\n  *)\n    pip install torch==2.7\n    ;;\nesac\n",
        'case "$1" in a) pip install torch==2.6;; esac\n',
        "[ -d x ] && {\n  pip install torch==2.6\n}\n",
        "[ -d x ] && (cd x && pip install torch==2.6)\n",
        "command -v uv && pip install torch==2.6\n",
        "if x; then\n  if y; then\n    pip install torch==2.6\n  fi\nfi\n",
        "V=2.6\ncase $1 in\n  cu118) V=2.5 ;;\nesac\npip install torch==$V\n",
        "if x; then export V=2.6; fi\npip install torch==$V\n",
        "pip install torch==2.5\ncase $1 in\n  (a | b) foo ;;\n  c) pip install torch==2.6 ;;\nesac\n",
        "pip install torch==2.5\n[ -d x ] &&\n  pip install torch==2.6\n",
        "pip install torch==2.5\n( test -d x ) && pip install torch==2.6\n",
    ],
)
def test_what_depends_on_a_condition_is_not_known(text: str, tmp_path: Path) -> None:
    found = read(tmp_path, text)
    assert pins(found) == {"torch": None}
    assert len(found.notes) == 1


@pytest.mark.parametrize(
    "text",
    [
        "if x; then pip install torch==2.6; else pip install -U torch==2.6; fi\n",
        "case $1 in\n  a) pip install torch==2.6 ;;\n  *) pip install torch==2.6 ;;\nesac\n",
        "if x; then pip install torch==2.5; fi\npip install torch==2.6\n",
        "for i in 1 2; do pip install torch==2.6; done\n",
        "setup() {\n  pip install torch==2.6\n}\nsetup\n",
        "(pip install torch==2.6)\n",
        "cd /x && pip install torch==2.6\n",
        "pip install torch==2.6 || exit 1\n",
        "{ pip install torch==2.6; } > log\n",
        "srun --ntasks=1 bash -lc '\n  pip install torch==2.6\n'\n",
        'echo "a\n pip install torch==2.5\n"\npip install torch==2.6\n',
        "cat <<EOF > setup.txt\npip install torch==2.5\nEOF\npip install torch==2.6\n",
        "x=$((1<<2))\npip install torch==2.6\n",
        "V=2.6\nif x; then W=1; fi\npip install torch==$V\n",
        "pip install torch==2.6\n# pip install \\\n#   torch==2.5\n",
        "# foo \\\npip install torch==2.6\n",
        "case $1 in\n  a) pip install torch==2.6 ;;\n  b | *) pip install torch==2.6 ;;\nesac\n",
        "names=(\n  a # it's\n  train.py\n)\npip install torch==2.6\n",
        "[[ -n $GPU && ( $X == a || $Y == b ) ]]\npip install torch==2.6\n",
        "if (( N > 1 )); then foo; fi\npip install torch==2.6 2>&1 | tee log\n",
    ],
)
def test_what_is_certain_stays_certain(text: str, tmp_path: Path) -> None:
    found = read(tmp_path, text)
    assert pins(found) == {"torch": "2.6"}
    assert found.notes == ()


def test_each_command_of_a_chain_has_its_own_line(tmp_path: Path) -> None:
    found = read(tmp_path, "cd x && \\\n  pip install -r a.txt && \\\n  pip install torch==2.6 && \\\n  python train.py\n")
    assert lines(found) == {"torch": 3}
    assert f"{tmp_path}/run.sh:2: -r a.txt was not read: it is not in the project" in found.notes
    assert workload(found).origins["launcher"] == f"{tmp_path}/run.sh:4"


def test_what_may_be_uninstalled_is_not_listed(tmp_path: Path) -> None:
    found = read(tmp_path, "pip install xformers==0.0.29\nif x; then\n  pip uninstall -y xformers\nfi\n")
    assert found.entries == ()
    assert found.notes == (
        f"{tmp_path}/run.sh: xformers: what is installed depends on a condition (line 1): its version is not known",
    )


def test_files_and_projects_are_read_where_the_script_would_find_them(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch\ntrl==0.15\n")
    (tmp_path / "constraints.txt").write_text("torch==2.6.0\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\ndependencies = ["peft==0.14"]\n')
    found = read(
        tmp_path,
        "pip install -r requirements.txt -c constraints.txt\npip install -e .\npip install -r missing.txt\n",
        "scripts/run.sh",
    )
    assert pins(found) == {"torch": "2.6.0", "trl": "0.15", "peft": "0.14"}
    assert {Path(e.file or "").resolve().name: e.line for e in found.entries} == {"requirements.txt": 2, "pyproject.toml": 4}
    assert found.unread == ()
    assert [note.partition(": ")[2] for note in found.notes] == ["-r missing.txt was not read: it is not in the project"]


def test_a_lock_file_that_is_installed(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(
        'version = 1\nrequires-python = ">=3.10"\n\n[[package]]\nname = "app"\nversion = "0"\nsource = { virtual = "." }\n'
        'dependencies = [{ name = "torch" }, { name = "trl" }]\n\n'
        '[[package]]\nname = "torch"\nversion = "2.6.0"\nsource = { registry = "https://index.example/simple" }\n\n'
        '[[package]]\nname = "trl"\nversion = "0.15.2"\nsource = { registry = "https://index.example/simple" }\n'
    )
    found = read(tmp_path, "uv sync\nuv pip install trl==0.16 torch\n")
    assert {name: version for name, version in pins(found).items() if name != "app"} == {"torch": "2.6.0", "trl": "0.16"}
    assert found.edges is not None
    without = read(tmp_path, "uv sync --no-install-package torch\nuv sync --no-install-package torch\n")
    assert without.unread == ()
    installed = {child for _, child, _, _ in without.edges or ()}
    assert [e.distribution.name for at, e in enumerate(without.entries) if at in installed] == ["app", "trl"]


def test_what_is_there_and_cannot_be_read_is_unread(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("torch==\n")
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "link.txt").symlink_to("/etc/passwd")
    found = read(
        tmp_path, "pip install -r bad.txt\npip install -r pipe.txt\npip install -r link.txt\npip install -r /etc/passwd\n"
    )
    assert found.entries == ()
    assert len(found.unread) == 3
    assert any("bad.txt:1" in each for each in found.unread)
    assert any("pipe.txt was not read: it is not a regular file" in each for each in found.unread)
    assert any("link.txt was not read: it is outside" in each for each in found.unread)
    assert any("/etc/passwd was not read: it is not in the project" in each for each in found.notes)


def test_the_job_and_the_files_it_names(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "from trl import GRPOTrainer, GRPOConfig\nGRPOTrainer(model='m', args=GRPOConfig(use_vllm=True))\n"
    )
    (tmp_path / "zero3.yaml").write_text("distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config:\n  zero_stage: 3\n")
    found = read(
        tmp_path,
        "export NCCL_DEBUG=INFO\nexport HF_TOKEN=hf_abc\nexport WORLD=${WORLD_SIZE}\nmodule load gcc cuda/12.4\nconda activate x\n"
        "accelerate launch --config_file zero3.yaml \\\n  train.py --per_device_train_batch_size 2\n",
        "jobs/run.sh",
    )
    work = workload(found)
    assert (work.launcher, work.processes, work.task, work.trainer, work.batch_size) == (
        "accelerate",
        8,
        "grpo",
        "GRPOTrainer",
        2,
    )
    assert {"zero-3", "deepspeed", "vllm"} <= set(work.features or ())
    assert work.origins["launcher"] == f"{tmp_path}/jobs/run.sh:6"
    assert found.context.cuda_toolkit == "12.4"
    assert found.context.variables == {"NCCL_DEBUG": "INFO"}
    assert found.notes == ()


def test_a_batch_script(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n#SBATCH --gres=gpu:a100:4\nsrun python train.py --bf16 true\n",
        "train.slurm",
    )
    work = workload(found)
    assert (work.launcher, work.processes, work.precision) == ("slurm", 8, "bf16")
    assert [device.name for device in found.context.accelerators or ()] == ["a100"] * 4
    assert any("train.py was not read: it is not in the project" in note for note in found.notes)


@pytest.mark.parametrize(
    ("directive", "names"),
    [
        ("--gpus-per-node=8", [None] * 8), ("--gpus-per-node=h100:2", ["h100"] * 2), ("--gres=gpu:1", [None]),
        ("--gres=gpu:0", None), ("--gres=lscratch:8", None), ("--gres=gpu:99999", None),
    ],
)  # fmt: skip
def test_devices_a_batch_script_asks_for(directive: str, names: list[str | None] | None, tmp_path: Path) -> None:
    found = read(tmp_path, f"#!/bin/bash\n#SBATCH {directive}\n").context.accelerators
    assert (None if found is None else [device.name for device in found]) == names


def test_a_missing_configuration_leaves_the_rest_known(tmp_path: Path) -> None:
    found = read(tmp_path, "accelerate launch --config_file=recipes/zero3.yaml train.py --task x\n")
    assert (workload(found).launcher, workload(found).processes, workload(found).script) == ("accelerate", None, None)
    assert [note.partition(": ")[2] for note in found.notes] == [
        "recipes/zero3.yaml was not read: it is not in the project",
        "train.py was not read: it is not in the project",
    ]
    inner = read(
        tmp_path, 'CMD="accelerate launch --config_file recipes/zero3.yaml train.py"\nsrun --ntasks=1 bash -c "$CMD"\n'
    )
    assert workload(inner).launcher == "accelerate"


def test_a_script_that_is_no_python_is_unread_and_the_launcher_is_told(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print 'old'\n")
    found = read(tmp_path, "torchrun --nproc_per_node 4 train.py\n")
    assert (workload(found).launcher, workload(found).processes) == ("torchrun", 4)
    assert len(found.unread) == 1
    assert "train.py:1: is not Python" in found.unread[0]


def test_no_file_outside_of_the_project_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    project.mkdir()
    secret = tmp_path / "secret.py"
    secret.write_text("from trl import SFTTrainer\nSFTTrainer()\n")
    home = tmp_path / "home" / "accelerate"
    home.mkdir(parents=True)
    (home / "default_config.yaml").write_text("distributed_type: FSDP\nnum_processes: 3\n")
    (project / "link.py").symlink_to(secret)
    (project / "package").mkdir()
    (project / "package" / "__main__.py").symlink_to(secret)
    (project / "inner.py").write_text(
        f"from transformers import TrainingArguments\nTrainingArguments(deepspeed={str(tmp_path / 'ds.json')!r})\n"
    )
    (tmp_path / "ds.json").write_text('{"zero_optimization": {"stage": 3}}')
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    opened: list[str] = []
    real = os.path.realpath
    import builtins

    plain = builtins.open
    monkeypatch.setattr(builtins, "open", lambda file, *rest, **named: opened.append(str(file)) or plain(file, *rest, **named))
    for command in (
        f"python {secret}", "python ../secret.py", "python link.py", "python package", "python -m package", "python inner.py",
        f"export HF_HOME={tmp_path}/home\naccelerate launch inner.py", "accelerate launch inner.py",
        f"accelerate launch --config_file {home}/default_config.yaml inner.py", f"python inner.py --config {home}/default_config.yaml",
        f"torchrun inner.py --deepspeed {tmp_path}/ds.json", "llamafactory-cli train ../home/accelerate/default_config.yaml",
        "cd ..\npython secret.py", f"cd {tmp_path}\npython secret.py", f"pip install -r {secret}", "conda env create -f ../ds.json",
    ):  # fmt: skip
        found = read(project, f"{command}\n")
        work = found.context.workload
        assert work is None or (work.task, work.processes in (1, None)) == (None, True), command
        assert work is None or "zero-3" not in (work.features or ()), command
    inside = str(project) + os.sep
    assert [each for each in opened if not each.isdigit() and not real(each).startswith((inside, "/dev/null", "/proc"))] == []
    assert any(each.endswith("inner.py") for each in opened)


def test_a_fifo_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "train.py")
    assert workload(read(tmp_path, "python train.py\n")).script is None


def test_other_jobs_are_named(tmp_path: Path) -> None:
    found = read(tmp_path, "trl vllm-serve --model m &\npython a.py\n")
    assert any("run.sh:1: trl vllm-serve --model m is not checked" in note for note in found.notes)


def test_the_python_an_environment_is_made_with(tmp_path: Path) -> None:
    assert read(tmp_path, "conda create -n x python=3.10 -y\n").requires_python == "==3.10.*"
    assert read(tmp_path, "uv venv --python 3.11.9\n").context.python == "3.11.9"
    assert read(tmp_path, "if x; then uv venv --python 3.11; else uv venv --python 3.12; fi\n").requires_python is None


def test_two_toolkits_are_none(tmp_path: Path) -> None:
    assert read(tmp_path, "module load cuda/12.4\nmodule load cuda/11.8\n").context.cuda_toolkit is None
    assert read(tmp_path, "module load cuda\nmodule unload cuda/12.4\n").context.cuda_toolkit is None


def test_windows_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    assert lines(read(tmp_path, "\ufeffpip install a==1 \\\r\n  b==2\r\n")) == {"a": 1, "b": 2}


def test_what_is_no_script(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run\.sh:2: has an unresolved merge conflict"):
        read(tmp_path, "ls\n<<<<<<< HEAD\nls\n")
    with pytest.raises(InputError, match="larger than 1 MiB"):
        read(tmp_path, "#" * (1 << 20) + "#")


def test_what_is_too_long_is_unread(tmp_path: Path) -> None:
    assert "run.sh:4001: only 4000 lines" in read(tmp_path, "ls\n" * 4000 + "pip install a\n").unread[0]
    assert "run.sh:2: the command is too long" in read(tmp_path, "ls\npip install " + "a " * 10000 + "\n").unread[0]
    assert read(tmp_path, "ls\n" * 5000).unread == ()


def test_a_batch_script_that_is_submitted(tmp_path: Path) -> None:
    (tmp_path / "job.slurm").write_text("#!/bin/bash\n#SBATCH --ntasks=4\nsrun python train.py --bf16 True\n")
    (tmp_path / "train.py").write_text("from trl import SFTTrainer\nSFTTrainer(model='x').train()\n")
    found = workload(read(tmp_path, "sbatch job.slurm\n", "submit.sh"))
    assert (found.task, found.launcher, found.processes, found.precision) == ("sft", "slurm", 4, "bf16")
    missing = read(tmp_path, "pip install trl==0.17.0\nsbatch other.slurm\n", "submit.sh")
    assert pins(missing) == {"trl": "0.17.0"}
    assert missing.unread == ()
    assert any("other.slurm was not read" in note for note in missing.notes)


@pytest.mark.parametrize(
    ("directives", "name", "count", "processes"),
    [
        ("--nodes=4 --gres=gpu:h100:8 --ntasks-per-node=1", "h100", 8, 32),
        ("-N 2 --gpus=16 --ntasks-per-node=8", None, 8, 16),
        ("-N 1 -G a100:4", "a100", 4, 4),
        ("--nodes=2 --gpus-per-task=1 --ntasks-per-node=4", None, 4, 8),
        ("--nodes=2 --ntasks=2 --gpus-per-task=8", None, 8, 16),
        ("--nodes=1 --gres=gpu", None, 1, 1),
        ("--nodes=1 --gres=gpu:a100:2,nvme:1", "a100", 2, 2),
    ],
)
def test_gpus_and_nodes_of_a_batch_script(
    tmp_path: Path, directives: str, name: str | None, count: int, processes: int
) -> None:
    lines = "".join(f"#SBATCH {each}\n" for each in re.sub(r"(-[NG]) ", r"\1=", directives).split())
    command = "torchrun --nnodes $SLURM_NNODES --nproc_per_node $SLURM_GPUS_ON_NODE train.py --bf16 true"
    path = tmp_path / "job.slurm"
    path.write_text(f"#!/bin/bash\n{lines}pip install torch==2.5.1\nsrun {command}\n", encoding="utf-8")
    (listing,) = read_listings(str(path))
    assert [each.name for each in listing.context.accelerators or ()] == [name] * count
    assert listing.context.workload is not None
    assert (listing.context.workload.launcher, listing.context.workload.processes) == ("torchrun", processes)
    assert listing.context.variables is None


def test_gpus_of_a_whole_job_on_nobody_knows_how_many_nodes(tmp_path: Path) -> None:
    path = tmp_path / "job.slurm"
    path.write_text("#!/bin/bash\n#SBATCH --gpus=8\npip install torch==2.5.1\n", encoding="utf-8")
    (listing,) = read_listings(str(path))
    assert listing.context.accelerators is None


def test_what_is_appended_to_a_file_of_the_project_is_only_its_end(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.6.0\n")
    install = "pip install -r requirements.txt\n"
    found = read(tmp_path, f"echo trl==0.17.0 >> requirements.txt\necho peft >> requirements.txt\n{install}")
    assert pins(found) == {"torch": "2.6.0", "trl": "0.17.0", "peft": None}
    assert pins(read(tmp_path, f"echo trl==0.17.0 > requirements.txt\necho peft >> requirements.txt\n{install}")) == {
        "trl": "0.17.0", "peft": None,
    }  # fmt: skip
    assert pins(read(tmp_path, "echo trl==0.17.0 >> new.txt\npip install -r new.txt\n")) == {"trl": "0.17.0"}
