"""What a launcher's variables say of a job, and how several accounts of one are merged."""

from __future__ import annotations

import pytest

from compat.model import Workload
from compat.workload.launch import from_variables, merge_workloads
from tests.workload.launching import known

TORCHRUN = {"LOCAL_RANK": "1", "RANK": "5", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4", "TORCHELASTIC_RUN_ID": "none"}


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
    both = merge_workloads(a, b)
    assert known(both, "task", "batch_size") == ("grpo", 4)
    assert both.features == ("vllm", "peft")
    assert both.features_absent == ("packing", "liger")
    assert both.origins == {
        "task": "a", "batch_size": "b", "features.vllm": "a", "features.peft": "b", "features.liger": "b",
    }  # fmt: skip


def test_merging_nothing_changes_nothing() -> None:
    full = Workload(task="sft", trainer="SFTTrainer", processes=2, features=(), features_absent=("vllm",), extra={"x": 1})
    assert merge_workloads(full, Workload()) == full == merge_workloads(Workload(), full)


@pytest.mark.parametrize(("a", "b"), [("zero-3", "zero-2"), ("fsdp", "zero-3"), ("zero-1", "fsdp2")])
def test_a_job_shards_in_one_way(a: str, b: str) -> None:
    assert merge_workloads(Workload(features=(a,)), Workload(features=(b,))).features == (a,)


def test_a_complete_list_of_features_takes_no_more() -> None:
    both = merge_workloads(Workload(features=("peft",), features_complete=True), Workload(features=("vllm",)))
    assert (both.features, both.features_complete) == (("peft",), True)


def test_a_trainer_goes_with_its_task() -> None:
    assert merge_workloads(Workload(task="dpo"), Workload(task="sft", trainer="SFTTrainer")).trainer is None
    assert merge_workloads(Workload(task="sft"), Workload(task="sft", trainer="SFTTrainer")).trainer == "SFTTrainer"


def test_reading_the_machine_looks_for_every_variable_that_names_a_launcher() -> None:
    from compat.api.machine import _LAUNCHER_VARIABLES
    from compat.workload.launch import _ACCELERATE, _RAY, _SIZES

    assert {*_ACCELERATE, *_RAY, *(size for size, _ in _SIZES), "TORCHELASTIC_RUN_ID"} <= set(_LAUNCHER_VARIABLES)


def test_the_type_of_a_model_goes_with_the_model() -> None:
    command = Workload(model="./run12", model_type="qwen3_vl")
    assert merge_workloads(Workload(model="mistral"), command) == Workload(model="mistral")
    assert merge_workloads(Workload(task="sft"), command) == Workload(task="sft", model="./run12", model_type="qwen3_vl")
