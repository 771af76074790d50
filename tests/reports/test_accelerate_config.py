"""accelerate's configuration inside a report, or as its file."""

from __future__ import annotations

from compat.model import Workload
from compat.reports.pasted import read_pasted

PRINTED = """\
- `Accelerate` version: 1.6.0
- `Accelerate` default config:
        - compute_environment: LOCAL_MACHINE
        - distributed_type: DEEPSPEED
        - mixed_precision: bf16
        - use_cpu: False
        - num_processes: 4
        - machine_rank: 0
        - num_machines: 1
        - deepspeed_config: {'gradient_accumulation_steps': 4, 'offload_optimizer_device': 'none', 'zero3_init_flag': False, 'zero_stage': 2}
        - downcast_bf16: no
        - tpu_env: []
- Datasets version: 3.0.0
"""


def workload(text: str) -> Workload | None:
    return read_pasted(text + "\ntorch 2.6.0\n", "x")[0].workload


def test_printed():
    found, notes = read_pasted(PRINTED, "x")
    assert found.workload is not None
    assert (found.workload.launcher, found.workload.processes, found.workload.precision) == ("accelerate", 4, "bf16")
    assert set(found.workload.features or ()) == {"deepspeed", "zero-2", "gradient-accumulation"}
    assert set(found.workload.features_absent or ()) == {"zero-1", "zero-3", "optimizer-offload"}
    assert {each.name for each in found.distributions or ()} == {"accelerate", "datasets"}
    assert any("accelerate" in note for note in notes)


def test_the_file():
    text = (
        "```yaml\ncompute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n"
        "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\nmixed_precision: 'no'\nnum_machines: 1\nnum_processes: 8\ngpu_ids: 0,1\n```\n"
    )
    found = read_pasted(text, "x")[0]
    assert found.workload is not None
    assert (found.workload.processes, found.workload.precision) == (8, None)
    assert set(found.workload.features or ()) == {"fsdp", "fsdp2", "ram-efficient-loading"}
    assert dict(found.variables or {}) == {"CUDA_VISIBLE_DEVICES": "0,1"}


def test_one_process():
    found = workload("compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\nnum_processes: 1\n")
    assert found is not None
    assert (found.launcher, found.processes) == ("accelerate", 1)


def test_none_or_not_accelerates():
    assert workload("- `Accelerate` default config:\n\tNot found\n") is None
    assert workload("num_processes: 4\nmixed_precision: bf16\n") is None


def test_two_that_differ():
    one = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: 2\n"
    assert workload(f"{one}\n{one}") is not None
    assert workload(f"{one}\n{one.replace('2', '4')}") is None


def test_values_of_the_wrong_type_are_left_out():
    found = workload(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\nnum_processes: many\n"
        "deepspeed_config: {'zero_stage': [1], 5: 6, 'offload_optimizer_device': {}}\nfsdp_config: {{{\nmixed_precision: 7\n"
    )
    assert found is not None
    assert (found.processes, found.precision, found.features) == (None, None, ("deepspeed",))
