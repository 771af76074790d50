"""The launchers of jobs: torchrun, accelerate, deepspeed, slurm, mpi and ray."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workload.launching import known, read

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
    assert found.workload.features == ("deepspeed", "zero-3", "optimizer-offload", "model-by-name")
    assert found.workload.features_absent == ("zero-1", "zero-2", "deepspeed-auto-buckets", "unsloth")


def test_accelerate_deepspeed_file(job: Path) -> None:
    (job / "ds.json").write_text('{"zero_optimization": {"stage": 2}}')
    found = read("accelerate launch --use_deepspeed --deepspeed_config_file ds.json --num_processes 2 train.py", job)
    assert found.workload.features == ("deepspeed", "zero-2", "model-by-name")
    assert found.workload.origins["features.zero-2"] == "ds.json:1"


@pytest.mark.parametrize(
    ("version", "features"),
    [
        ("1", ("fsdp", "model-by-name", "ram-efficient-loading")),
        ("2", ("fsdp", "fsdp2", "model-by-name", "ram-efficient-loading")),
    ],
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
    assert known(found, "processes", "precision", "features") == (
        8, "bf16", ("model-by-name", "fsdp", "fsdp2", "ram-efficient-loading"),
    )  # fmt: skip
    assert found.origins["features.fsdp2"] == "fsdp.yaml:5"
    found = read("accelerate launch --config_file fsdp.yaml --num_processes 2 train.py --fp16 --bf16 false", job).workload
    assert known(found, "processes", "precision") == (2, "fp16")


def test_a_paradigm_on_the_command_line_replaces_the_one_of_the_file(job: Path) -> None:
    (job / "ds.yaml").write_text("distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config:\n  zero_stage: 3\n")
    found = read("accelerate launch --config_file ds.yaml --use_fsdp train.py", job).workload
    assert known(found, "processes", "features") == (8, ("fsdp", "model-by-name", "ram-efficient-loading"))


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
        assert set(found.features or ()) == {"deepspeed", "zero-2", "optimizer-offload", "model-by-name"}
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


@pytest.mark.parametrize(("line", "launcher", "processes"), [
    ("srun $EXTRA -l ${ARGS[@]} torchrun --nproc_per_node 8 train.py", "torchrun", 8),
    ("srun -n 4 $EXTRA python train.py", "slurm", None),  # what it holds may change the number of tasks
    ("srun -n 4 $PROGRAM train.py", None, None),
    ("torchrun ${ARGS[@]} train.py", "torchrun", None),
    ("torchrun --nproc_per_node 8 $EXTRA -m train", "torchrun", 8),
    ("torchrun --nproc_per_node 8 $SCRIPT --lr 1", "torchrun", 8),
])  # fmt: skip
def test_a_variable_may_stand_for_options(line: str, launcher: str | None, processes: int | None, job: Path) -> None:
    assert known(read(line, job).workload, "launcher", "processes") == (launcher, processes)


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
