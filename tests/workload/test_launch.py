"""Launch commands: python and what stands in front of it, options, shell scripts, and what cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.model import Workload
from compat.records import replace
from compat.workload.command import from_command
from tests.workload.launching import SCRIPT, known, read

# --- commands: python and what stands in front of it ---------------------------------------------------------------------


def test_plain_python(job: Path) -> None:
    found = read("python train.py", job)
    assert known(found.workload, "launcher", "processes", "task", "trainer", "batch_size", "precision") == (
        "python", 1, "sft", "SFTTrainer", 2, "bf16",
    )  # fmt: skip
    assert found.script == found.workload.script == "train.py"
    assert found.workload.origins["launcher"] == "the command"
    assert found.workload.origins["task"] == "train.py:5"


@pytest.mark.parametrize("line", [
    "python3 -u -W ignore -X dev train.py", "/usr/bin/python3.11 -Xfaulthandler train.py", "python -i train.py", "./train.py",
    "python -m pdb -c continue train.py", "python -m cProfile -o out.prof train.py", "py -3.11 train.py", "python -m train",
    "nohup python train.py", "time -p python train.py", "timeout -k 5 10m python train.py", "nice -n 5 python train.py",
    "uv run train.py", "uv run --with trl --python 3.11 python train.py", "uv run -m train", "poetry run python train.py",
    "conda run -n llm --no-capture-output python train.py", "env python train.py", "stdbuf -oL -eL python train.py",
    "numactl --cpunodebind=0 --membind 0 python train.py", "taskset -c 0-7 python train.py", "sudo -E python train.py",
    "bash -c 'python train.py'", "bash -lc 'cd . && python train.py | tee log'", "hatch run gpu:python train.py",
    "singularity exec --nv image.sif python train.py", "nsys profile -o out -t cuda python train.py",
])  # fmt: skip
def test_what_stands_in_front_of_a_script(line: str, job: Path) -> None:
    found = read(line, job)
    assert known(found.workload, "launcher", "processes", "task") == ("python", 1, "sft")


@pytest.mark.parametrize(("line", "on"), [
    ("uv run train.py", True), ("A=1 uv run --with trl python train.py", True), ("uv run bash -c 'python train.py'", True),
    ("python train.py", False), ("poetry run python train.py", False),
])  # fmt: skip
def test_whether_uv_runs_the_job(line: str, on: bool, job: Path) -> None:
    assert ("uv-run" in (read(line, job).workload.features or ())) is on


def test_assignments_in_front_are_told(job: Path) -> None:
    found = read("CUDA_VISIBLE_DEVICES=0,1 env -u CUDA_VISIBLE_DEVICES NCCL_DEBUG=INFO python train.py", job)
    assert found.variables == {"NCCL_DEBUG": "INFO"}
    found = read("CUDA_VISIBLE_DEVICES= env NCCL_DEBUG=INFO python train.py", job)
    assert found.variables == {"CUDA_VISIBLE_DEVICES": "", "NCCL_DEBUG": "INFO"}


def test_secrets_are_not_told(job: Path) -> None:
    found = read("HF_TOKEN=a WANDB_API_KEY=b TOKENIZERS_PARALLELISM=false python train.py", job)
    assert found.variables == {"TOKENIZERS_PARALLELISM": "false"}


def test_variables_the_script_sets_are_told(job: Path) -> None:
    (job / "one.py").write_text('import os\nos.environ["CUDA_VISIBLE_DEVICES"] = "0"\n')
    assert read("CUDA_VISIBLE_DEVICES=0,1 python one.py", job).variables == {"CUDA_VISIBLE_DEVICES": "0"}


def test_a_module_in_the_folder_is_a_script(job: Path) -> None:
    (job / "pkg").mkdir()
    (job / "pkg" / "__main__.py").write_text(SCRIPT)
    assert read("python -m pkg", job).script == "pkg/__main__.py"
    assert read("python pkg", job).workload.task == "sft"


def test_a_module_elsewhere_is_not_followed(job: Path) -> None:
    found = read("python -m somewhere.train --use_vllm", job)
    assert known(found.workload, "launcher", "task", "features") == ("python", None, ("vllm",))
    assert found.script is None
    assert any("somewhere.train" in note for note in found.notes)


def test_another_folder_is_where_files_are_looked_for(job: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "only_there.py").write_text(SCRIPT)
    found = from_command(["python", "only_there.py"], str(other), {})
    assert found.script == str(other / "only_there.py")
    assert found.workload.task == "sft"


# --- options of the script -----------------------------------------------------------------------------------------------


def test_the_command_line_wins_over_the_script(job: Path) -> None:
    found = read("python train.py --per_device_train_batch_size 8 --bf16 False --fp16", job)
    assert known(found.workload, "batch_size", "precision") == (8, "fp16")
    assert found.workload.origins["batch_size"] == "the command"


@pytest.mark.parametrize("option", [
    "--use_vllm", "--use_vllm true", "--use_vllm=True", "--use-vllm yes", "--use_vllm --seed 1", "--use_vllm 1",
])  # fmt: skip
def test_a_switch_that_is_on(option: str, job: Path) -> None:
    assert read(f"python train.py {option}", job).workload.features == ("vllm", "model-by-name")


@pytest.mark.parametrize("option", ["--use_vllm false", "--use_vllm=0", "--no_use_vllm", "--no-use-vllm"])
def test_a_switch_that_is_off(option: str, job: Path) -> None:
    found = read(f"python train.py {option}", job).workload
    assert (found.features, found.features_absent) == (("model-by-name",), ("vllm", "unsloth"))


def test_the_options_of_example_scripts(job: Path) -> None:
    (job / "empty.py").write_text("")
    found = read(
        "python empty.py --model_name_or_path mistralai/Mistral-7B-v0.1 --load_in_4bit --use_peft --gradient_checkpointing "
        "--gradient_accumulation_steps 8 --use_liger_kernel --packing --torch_compile --fsdp 'full_shard auto_wrap' "
        "--resume_from_checkpoint out/checkpoint-10 --lora_target_modules q_proj v_proj",
        job,
    ).workload
    assert known(found, "model", "quantization") == ("mistralai/Mistral-7B-v0.1", "4bit")
    assert set(found.features or ()) == {
        "peft", "gradient-checkpointing", "gradient-accumulation", "liger", "packing", "torch-compile", "fsdp", "resume",
    }  # fmt: skip


def test_what_a_shell_would_fill_in_stays_unknown(job: Path) -> None:
    (job / "empty.py").write_text("")
    found = read("python empty.py --per_device_train_batch_size '$BATCH' --use_vllm '$VLLM' --model_name_or_path '$M'", job)
    bare = Workload(launcher="python", processes=1, script="empty.py", origins=found.workload.origins)
    assert replace(found.workload, options=None) == bare


def test_an_argument_file(job: Path) -> None:
    (job / "empty.py").write_text("")
    (job / "args.yaml").write_text("use_vllm: true\nper_device_train_batch_size: 4\nenv:\n  CUDA_VISIBLE_DEVICES: 1\n")
    found = read("python empty.py --config args.yaml --per_device_train_batch_size 8", job)
    assert known(found.workload, "batch_size", "features") == (8, ("vllm",))
    assert found.workload.origins["features.vllm"] == "args.yaml:1"
    assert found.variables == {"CUDA_VISIBLE_DEVICES": "1"}
    (job / "args.json").write_text('{\n "use_vllm": false\n}')
    assert read("python empty.py args.json", job).workload.features_absent == ("vllm",)


def test_a_data_file_is_no_argument_file(job: Path) -> None:
    (job / "empty.py").write_text("")
    (job / "data.json").write_text("[1, 2]")
    found = read("python empty.py data.json", job)
    assert found.workload.features is None
    assert any("data.json" in note for note in found.notes)


# --- shell scripts -------------------------------------------------------------------------------------------------------


def test_the_last_command_of_a_shell_script_that_starts_a_job(job: Path) -> None:
    (job / "run.sh").write_text(
        "#!/bin/bash\nset -e\nexport CUDA_VISIBLE_DEVICES=0,1\nGPUS=2\npip install trl\npython -m pip install x\n"
        "accelerate launch --num_processes $GPUS \\\n  train.py --per_device_train_batch_size ${BATCH:-16} $@ 2>&1 | tee log.txt\necho done\n"
    )
    found = read("bash run.sh --packing", job)
    assert known(found.workload, "launcher", "processes", "batch_size", "features") == (
        "accelerate",
        2,
        16,
        ("packing", "model-by-name"),
    )
    assert found.variables == {"CUDA_VISIBLE_DEVICES": "0,1"}
    assert read("./run.sh", job).workload.processes == 2


def test_a_batch_script(job: Path) -> None:
    (job / "job.sbatch").write_text("#!/bin/bash\n#SBATCH --ntasks-per-node=4 --nodes=2 # two\nsrun python train.py\n")
    assert known(read("sbatch --account x job.sbatch", job).workload, "launcher", "processes") == ("slurm", 8)
    assert known(read("sbatch -n 3 --wrap 'srun python train.py'", job).workload, "launcher", "processes") == ("slurm", 3)


def test_a_shell_script_may_rest_on_what_is_not_here(job: Path) -> None:
    (job / "run.sh").write_text("cd /elsewhere\npython other.py --deepspeed none.json\n")
    found = read("sh run.sh", job)
    assert known(found.workload, "launcher", "features") == ("python", ("deepspeed",))
    assert len(found.notes) == 2


# --- what cannot be read -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("line", "said"), [
    ("make train", "'make'"), ("docker run image python train.py", "'docker'"), ("python", "without a script"),
    ("python -c 'import trl'", "python -c"), ("accelerate config", "starts no job"), ("uv pip install trl", "'uv'"), ("A=B", "no program"),
    ("bash", "interactive shell"), ("bash -c 'echo hi'", "no command"), ("ray start --head", "starts no job"), ("python '$SCRIPT'", "$SCRIPT"), ("uv run https://example.org/train.py", "not on this machine"),
    ("accelerate launch --config_file '$CONFIG' train.py", "$CONFIG"), ("trl env", "trl env"), ("vllm bench", "vllm bench"),
])  # fmt: skip
def test_what_could_not_be_told_is_said(line: str, said: str, job: Path) -> None:
    assert any(said in note for note in read(line, job).notes)


@pytest.mark.parametrize(("line", "message"), [
    ("python missing.py", "missing.py: no such file: expected the script that the command starts"),
    ("accelerate launch --config_file missing.yaml train.py", "missing.yaml: cannot be read: No such file or directory"),
    ("python train.py --deepspeed missing.json", "missing.json: cannot be read: No such file or directory"),
    ("torchrun --nproc_per_node four train.py", "--nproc_per_node: expected a whole number, not 'four'"),
    ("accelerate launch --num_processes 4", "the command names no script for accelerate launch to start"),
    ("bash missing.sh", "missing.sh: cannot be read: No such file or directory"),
    ("bash .", ".: is not a regular file"),
    ("bash -c 'echo \"'", "no command"),
    ("trl sft --accelerate_config zero9", "--accelerate_config: 'zero9' is neither a file nor a configuration that trl ships"),
])  # fmt: skip
def test_bad_input_is_one_line(line: str, message: str, job: Path) -> None:
    if message == "no command":
        assert any(message in note for note in read(line, job).notes)
        return
    with pytest.raises(InputError) as problem:
        read(line, job)
    assert str(problem.value) == message


@pytest.mark.parametrize(
    "words", [[], [""], ["  ", ""], ["python", "a\0b.py"], ["env"] * 40, ["bash", "-c", "bash -c " * 3 + "'"]]
)
def test_words_that_are_no_command(words: list[str], job: Path) -> None:
    try:
        assert from_command(words, str(job), {}).notes
    except InputError as problem:
        assert "\n" not in str(problem)
