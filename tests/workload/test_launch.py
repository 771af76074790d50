"""How a job is started: from a launcher's variables, and from command lines that are read and never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compat.errors import InputError
from compat.model import Workload
from compat.records import replace
from compat.workload.command import from_command
from compat.workload.launch import Launch, from_variables, merge
from compat.workload.wrappers import split_words

TORCHRUN = {"LOCAL_RANK": "1", "RANK": "5", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none"}
SCRIPT = """\
import os
from trl import SFTConfig, SFTTrainer

args = SFTConfig(output_dir="out", per_device_train_batch_size=2, bf16=True)
SFTTrainer(model="mistralai/Mistral-7B-v0.1", args=args).train()
"""


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a training script, which is also the current one."""
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(line: str, job: Path, **variables: str) -> Launch:
    return from_command(split_words(line), str(job), {"HOME": str(job / "home"), **variables})


def known(workload: Workload, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(workload, name) for name in names)


# --- variables ---------------------------------------------------------------------------------------------------------


def test_no_variables_say_nothing() -> None:
    assert from_variables({}) == Workload()
    assert from_variables({"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "0"}) == Workload()


def test_torchrun_leaves_rank_and_world_size() -> None:
    found = from_variables(TORCHRUN)
    assert known(found, "launcher", "processes", "rank") == ("torchrun", 8, 5)
    assert found.origins == {"launcher": "$TORCHELASTIC_RUN_ID", "processes": "$WORLD_SIZE", "rank": "$RANK"}


def test_accelerate_wins_over_the_torchrun_inside_it() -> None:
    found = from_variables({**TORCHRUN, "ACCELERATE_MIXED_PRECISION": "bf16", "ACCELERATE_DYNAMO_BACKEND": "NO"})
    assert known(found, "launcher", "processes", "precision") == ("accelerate", 8, "bf16")
    assert found.features is None


def test_accelerate_without_ranks_has_started_one_process() -> None:
    found = from_variables({"ACCELERATE_MIXED_PRECISION": "no", "ACCELERATE_DYNAMO_BACKEND": "NO"})
    assert known(found, "launcher", "processes", "precision") == ("accelerate", 1, None)


def test_accelerate_with_deepspeed() -> None:
    found = from_variables({
        **TORCHRUN, "ACCELERATE_USE_DEEPSPEED": "true", "ACCELERATE_DEEPSPEED_ZERO_STAGE": "3",
        "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE": "cpu", "ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "4",
    })  # fmt: skip
    assert found.features == ("deepspeed", "zero-3", "optimizer-offload", "gradient-accumulation")
    assert found.features_absent == ("zero-1", "zero-2")
    assert found.origins["features.zero-3"] == "$ACCELERATE_DEEPSPEED_ZERO_STAGE"


@pytest.mark.parametrize(
    ("version", "on", "off"), [("2", ("fsdp", "fsdp2"), None), ("1", ("fsdp",), ("fsdp2",)), ("", ("fsdp",), None)]
)
def test_accelerate_with_fsdp(version: str, on: tuple[str, ...], off: tuple[str, ...] | None) -> None:
    found = from_variables({**TORCHRUN, "ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": version})
    assert (found.features, found.features_absent) == (on, off)


def test_accelerate_compiles() -> None:
    found = from_variables({**TORCHRUN, "ACCELERATE_DYNAMO_BACKEND": "INDUCTOR"})
    assert found.features == ("torch-compile",)


def test_deepspeed_is_known_by_its_cross_rank() -> None:
    ranks = {"LOCAL_RANK": "0", "RANK": "0", "WORLD_SIZE": "2", "CROSS_RANK": "0", "CROSS_SIZE": "1", "LOCAL_SIZE": "2"}
    assert known(from_variables(ranks), "launcher", "processes", "rank") == ("deepspeed", 2, 0)


def test_ray() -> None:
    assert known(from_variables({"RAY_JOB_ID": "01000000", "RAY_RAYLET_PID": "7"}), "launcher", "processes") == ("ray", None)


def test_slurm_tasks() -> None:
    found = from_variables({"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_STEP_NUM_TASKS": "4"})
    assert known(found, "launcher", "processes", "rank") == ("slurm", 4, 3)


@pytest.mark.parametrize("variables", [
    {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_STEP_NUM_TASKS": "1"},
    {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_PTY_PORT": "4000"},
    {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "2"},
])  # fmt: skip
def test_a_shell_inside_slurm_is_no_launcher(variables: dict[str, str]) -> None:
    assert from_variables(variables) == Workload()


def test_mpi_gives_numbers_but_no_launcher() -> None:
    found = from_variables({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2"})
    assert known(found, "launcher", "processes", "rank") == (None, 4, 2)


def test_world_size_of_a_cluster_operator_counts_nodes() -> None:
    assert from_variables({"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "worker-0"}) == Workload()


@pytest.mark.parametrize("value", ["", "four", "-1", "0", "1e3", "²", "9" * 30])
def test_numbers_that_are_none_stay_unknown(value: str) -> None:
    assert from_variables({**TORCHRUN, "WORLD_SIZE": value}).processes is None


# --- merge -------------------------------------------------------------------------------------------------------------


def test_the_first_account_wins_and_features_unite() -> None:
    a = Workload(task="grpo", features=("vllm",), features_absent=("packing",), origins={"task": "a", "features.vllm": "a"})
    b = Workload(task="sft", batch_size=4, features=("packing", "peft"), features_absent=("vllm", "liger"),
                 origins={"task": "b", "batch_size": "b", "features.peft": "b", "features.liger": "b"})  # fmt: skip
    both = merge(a, b)
    assert known(both, "task", "batch_size") == ("grpo", 4)
    assert both.features == ("vllm", "peft")
    assert both.features_absent == ("packing", "liger")
    assert both.origins == {
        "task": "a", "batch_size": "b", "features.vllm": "a", "features.peft": "b", "features.liger": "b",
    }  # fmt: skip


def test_merging_nothing_changes_nothing() -> None:
    full = Workload(task="sft", trainer="SFTTrainer", processes=2, features=(), features_absent=("vllm",), extra={"x": 1})
    assert merge(full, Workload()) == full == merge(Workload(), full)


@pytest.mark.parametrize(("a", "b"), [("zero-3", "zero-2"), ("fsdp", "zero-3"), ("zero-1", "fsdp2")])
def test_a_job_shards_in_one_way(a: str, b: str) -> None:
    assert merge(Workload(features=(a,)), Workload(features=(b,))).features == (a,)


def test_a_complete_list_of_features_takes_no_more() -> None:
    both = merge(Workload(features=("peft",), features_complete=True), Workload(features=("vllm",)))
    assert (both.features, both.features_complete) == (("peft",), True)


def test_a_trainer_goes_with_its_task() -> None:
    assert merge(Workload(task="dpo"), Workload(task="sft", trainer="SFTTrainer")).trainer is None
    assert merge(Workload(task="sft"), Workload(task="sft", trainer="SFTTrainer")).trainer == "SFTTrainer"


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
    "--use_vllm", "--use_vllm true", "--use_vllm=True", "--use-vllm yes", "--use_vllm --report_to none", "--use_vllm 1",
])  # fmt: skip
def test_a_switch_that_is_on(option: str, job: Path) -> None:
    assert read(f"python train.py {option}", job).workload.features == ("vllm",)


@pytest.mark.parametrize("option", ["--use_vllm false", "--use_vllm=0", "--no_use_vllm", "--no-use-vllm"])
def test_a_switch_that_is_off(option: str, job: Path) -> None:
    found = read(f"python train.py {option}", job).workload
    assert (found.features, found.features_absent) == (None, ("vllm",))


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


# --- torchrun ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("line", "processes"), [
    ("torchrun train.py", 1), ("torchrun --nproc_per_node 4 train.py", 4), ("torchrun --nproc-per-node=4 train.py", 4),
    ("torchrun --standalone --nnodes=1 --nproc_per_node=8 train.py", 8), ("torchrun --nnodes 2 --nproc_per_node 8 train.py", 16),
    ("torchrun --nproc_per_node gpu train.py", None), ("torchrun --nnodes 1:4 --nproc_per_node 8 train.py", None),
    ("torchrun --nnodes 2:2 --nproc_per_node 2 train.py", 4), ("torchrun --nproc_per_node '$GPUS' train.py", None),
    ("python -m torch.distributed.run --nproc_per_node 2 train.py", 2),
    ("python3 -m torch.distributed.launch --nproc_per_node=2 --use_env train.py", 2),
    ("torchrun --nproc_per_node 2 -m train", 2), ("torchrun --nproc_per_node 2 --no-python python train.py", 2),
    ("PET_NPROC_PER_NODE=2 torchrun --rdzv_backend c10d --rdzv_endpoint host:29400 train.py", 2),
    ("torchrun --nproc_per_node 2 -- train.py --packing", 2),
])  # fmt: skip
def test_torchrun(line: str, processes: int | None, job: Path) -> None:
    found = read(line, job).workload
    if "--no-python" in line:
        assert known(found, "task", "batch_size") == ("sft", 2)
    assert known(found, "launcher", "processes", "task") == ("torchrun", processes, "sft")


# --- accelerate ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("line", "processes"), [
    ("accelerate launch train.py", None), ("accelerate launch --num_processes 4 train.py", 4),
    ("accelerate launch --num-processes=4 --multi_gpu --mixed_precision bf16 train.py", 4),
    ("accelerate launch --multi_gpu train.py", None), ("accelerate launch --num_processes 1 train.py", 1),
    ("accelerate launch --cpu --num_processes 4 train.py", 1), ("python -m accelerate.commands.launch --num_processes 2 train.py", 2),
    ("accelerate launch --num_processes 2 -m train", 2), ("accelerate-launch --num_processes 2 train.py", 2),
    ("accelerate launch --num_processes '{NUM_GPUS}' train.py", None),
])  # fmt: skip
def test_accelerate(line: str, processes: int | None, job: Path) -> None:
    assert known(read(line, job).workload, "launcher", "processes", "task") == ("accelerate", processes, "sft")


def test_accelerate_with_one_process_is_plain_python_and_says_so(job: Path) -> None:
    assert any("DataParallel" in note for note in read("accelerate launch --num_processes 1 train.py", job).notes)
    assert read("accelerate launch --num_processes 2 train.py", job).notes == ()


def test_accelerate_deepspeed_options(job: Path) -> None:
    found = read(
        "accelerate launch --use_deepspeed --zero_stage 3 --offload_optimizer_device cpu --num_processes 2 train.py", job
    )
    assert found.workload.features == ("deepspeed", "zero-3", "optimizer-offload")
    assert found.workload.features_absent == ("zero-1", "zero-2")


def test_accelerate_deepspeed_file(job: Path) -> None:
    (job / "ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    found = read("accelerate launch --use_deepspeed --deepspeed_config_file ds.json --num_processes 2 train.py", job)
    assert found.workload.features == ("deepspeed", "zero-2")
    assert found.workload.origins["features.zero-2"] == "ds.json:1"


@pytest.mark.parametrize(
    ("version", "features"), [("1", ("fsdp", "ram-efficient-loading")), ("2", ("fsdp", "fsdp2", "ram-efficient-loading"))]
)
def test_accelerate_fsdp(version: str, features: tuple[str, ...], job: Path) -> None:
    found = read(f"accelerate launch --use_fsdp --fsdp_version {version} --num_processes 2 train.py", job)
    assert found.workload.features == features


def test_accelerate_chooses_devices(job: Path) -> None:
    assert read("accelerate launch --gpu_ids 2,3 train.py", job).variables == {"CUDA_VISIBLE_DEVICES": "2,3"}
    assert read("accelerate launch --gpu_ids all train.py", job).variables == {}


def test_accelerate_configuration_is_weaker_than_script_and_command(job: Path) -> None:
    (job / "fsdp.yaml").write_text(
        "distributed_type: FSDP\nnum_processes: 8\nmixed_precision: fp16\nfsdp_config:\n  fsdp_version: 2\n"
    )
    found = read("accelerate launch --config_file fsdp.yaml train.py", job).workload
    assert known(found, "processes", "precision", "features") == (8, "bf16", ("fsdp", "fsdp2", "ram-efficient-loading"))
    assert found.origins["features.fsdp2"] == "fsdp.yaml:5"
    found = read("accelerate launch --config_file fsdp.yaml --num_processes 2 train.py --fp16 --bf16 false", job).workload
    assert known(found, "processes", "precision") == (2, "fp16")


def test_a_paradigm_on_the_command_line_replaces_the_one_of_the_file(job: Path) -> None:
    (job / "ds.yaml").write_text("distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config:\n  zero_stage: 3\n")
    found = read("accelerate launch --config_file ds.yaml --use_fsdp train.py", job).workload
    assert known(found, "processes", "features") == (8, ("fsdp", "ram-efficient-loading"))


@pytest.mark.parametrize("where", ["home", "HF_HOME", "XDG_CACHE_HOME"])
def test_the_default_configuration_is_found_where_accelerate_looks(where: str, job: Path) -> None:
    folder = {"home": job / "home/.cache/huggingface", "HF_HOME": job / "hf", "XDG_CACHE_HOME": job / "xdg/huggingface"}[where]
    (folder / "accelerate").mkdir(parents=True)
    (folder / "accelerate/default_config.yaml").write_text("distributed_type: MULTI_GPU\nnum_processes: 4\n")
    variables = {"HF_HOME": {"HF_HOME": str(job / "hf")}, "XDG_CACHE_HOME": {"XDG_CACHE_HOME": str(job / "xdg")}}.get(where, {})
    found = read("accelerate launch train.py", job, **variables)
    assert known(found.workload, "launcher", "processes") == ("accelerate", 4)
    assert any("default_config.yaml" in note for note in found.notes)
    assert read("accelerate launch --num_processes 2 train.py", job, **variables).workload.processes == 2
    assert read("accelerate launch --cpu train.py", job, **variables).workload.processes == 1


def test_a_configuration_for_no_distribution_starts_one_process(job: Path) -> None:
    (job / "no.yaml").write_text("distributed_type: NO\nnum_processes: 8\nmixed_precision: no\n")
    found = read("accelerate launch --config_file no.yaml train.py", job)
    assert known(found.workload, "launcher", "processes") == ("accelerate", 1)
    assert any("DataParallel" in note for note in found.notes)


# --- deepspeed, slurm, mpi, ray --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("line", "processes", "devices"), [
    ("deepspeed train.py", None, None), ("deepspeed --num_gpus 2 train.py", 2, None), ("deepspeed --num_gpus=4 --num_nodes 2 train.py", 8, None),
    ("deepspeed --include localhost:2,3 --master_port 29501 train.py", 2, "2,3"), ("deepspeed -i 'a:0,1@b:0,1' train.py", 4, None),
    ("deepspeed --include 'a@b' train.py", None, None),
])  # fmt: skip
def test_deepspeed(line: str, processes: int | None, devices: str | None, job: Path) -> None:
    found = read(line, job)
    assert known(found.workload, "launcher", "processes", "task") == ("deepspeed", processes, "sft")
    assert found.variables.get("CUDA_VISIBLE_DEVICES") == devices


def test_a_deepspeed_configuration_behind_the_script(job: Path) -> None:
    (job / "ds.json").write_text('{\n"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}')
    for line in (
        "deepspeed --num_gpus 2 train.py --deepspeed ds.json",
        "torchrun train.py --deepspeed --deepspeed_config ds.json",
    ):
        found = read(line, job).workload
        assert set(found.features or ()) == {"deepspeed", "zero-2", "optimizer-offload"}
        assert found.origins["features.zero-2"] == "ds.json:2"


@pytest.mark.parametrize(("line", "launcher", "processes"), [
    ("srun -n 4 python train.py", "slurm", 4), ("srun -n4 --gres gpu:4 python train.py", "slurm", 4),
    ("srun --ntasks=4 --mem 0 --unbuffered python train.py", "slurm", 4), ("srun -N 2 --ntasks-per-node=8 python train.py", "slurm", 16),
    ("srun python train.py", "slurm", None), ("srun -n 1 python train.py", "python", 1),
    ("srun -N 2 --ntasks-per-node 1 torchrun --nnodes 2 --nproc_per_node 8 train.py", "torchrun", 16),
    ("srun --pty -p gpu accelerate launch --num_processes 4 train.py", "accelerate", 4),
    ("mpirun -np 4 --allow-run-as-root python train.py", None, 4), ("ray job submit --working-dir . -- python train.py", "ray", None),
    ("ray submit cluster.yaml train.py --packing", "ray", None),
])  # fmt: skip
def test_cluster_launchers(line: str, launcher: str | None, processes: int | None, job: Path) -> None:
    assert known(read(line, job).workload, "launcher", "processes", "task") == (launcher, processes, "sft")


def test_srun_takes_the_tasks_of_its_job(job: Path) -> None:
    assert read("srun python train.py", job, SLURM_NTASKS="8").workload.processes == 8
    assert read("srun --export=ALL,CUDA_VISIBLE_DEVICES=0 -n 2 python train.py", job).variables == {"CUDA_VISIBLE_DEVICES": "0"}


def test_a_script_that_starts_its_own_workers(job: Path) -> None:
    (job / "own.py").write_text(
        "from ray.train.torch import TorchTrainer\nfrom ray.train import ScalingConfig\n"
        "TorchTrainer(f, scaling_config=ScalingConfig(num_workers=4))\n"
    )
    assert known(read("python own.py", job).workload, "launcher", "processes") == ("ray", 4)
    assert known(read("torchrun --nproc_per_node 2 own.py", job).workload, "launcher", "processes") == ("torchrun", 2)


# --- shell scripts -------------------------------------------------------------------------------------------------------


def test_the_last_command_of_a_shell_script_that_starts_a_job(job: Path) -> None:
    (job / "run.sh").write_text(
        "#!/bin/bash\nset -e\nexport CUDA_VISIBLE_DEVICES=0,1\nGPUS=2\npip install trl\npython -m pip install x\n"
        "accelerate launch --num_processes $GPUS \\\n  train.py --per_device_train_batch_size ${BATCH:-16} $@ 2>&1 | tee log.txt\necho done\n"
    )
    found = read("bash run.sh --packing", job)
    assert known(found.workload, "launcher", "processes", "batch_size", "features") == ("accelerate", 2, 16, ("packing",))
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
