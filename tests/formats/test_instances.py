"""The GPUs of cloud instance types, and the job files that name one."""

import pytest

from compat.formats.cloud import SkyPilot, gpus_of_instance
from compat.formats.kubernetes import Kubernetes
from compat.formats.listing import Listing
from compat.machine.gpu_names import lookup
from compat.tables.hardware import open_gpus


@pytest.mark.parametrize(
    ("name", "gpu", "capability", "count"),
    [
        ("p3.16xlarge", "V100-16GB", "7.0", 8), ("p4d.24xlarge", "A100-40GB", "8.0", 8), ("ml.p5.48xlarge", "H100", "9.0", 8),
        ("g4dn.xlarge", "T4", "7.5", 1), ("g5.12xlarge", "A10G", "8.6", 4), ("g6e.48xlarge", "L40S", "8.9", 8),
        ("p6-b200.48xlarge", "B200", "10.0", 8), ("a2-highgpu-4g", "A100-40GB", "8.0", 4), ("a3-megagpu-8g", "H100", "9.0", 8),
        ("g2-standard-24", "L4", "8.9", 2), ("Standard_NC24ads_A100_v4", "A100-80GB", "8.0", 1),
        ("Standard_NC40ads_H100_v5", "H100 NVL", "9.0", 1), ("Standard_ND96isr_MI300X_v5", "MI300X", None, 8),
    ],
)  # fmt: skip
def test_known_types_have_a_gpu_of_the_table(name: str, gpu: str, capability: str | None, count: int) -> None:
    assert gpus_of_instance(name) == (gpu, count)
    assert lookup(open_gpus(), gpu).compute_capability == capability


@pytest.mark.parametrize(
    "name",
    [None, "", "m5.xlarge", "g5.metal", "p4d", "a2-highgpu", "a2-highgpu-8", "n1-standard-8", "g6f.large", "a3-highgpu-3g"],
)
def test_other_types_say_nothing(name: str | None) -> None:
    assert gpus_of_instance(name) is None


def names(listings: tuple[Listing, ...]) -> list[str | None] | None:
    found = listings[0].context.accelerators
    return None if found is None else [each.name for each in found]


SKY = "resources:\n  {}\nsetup: pip install torch==2.5.1\nrun: python train.py\n"


def test_a_task_of_skypilot() -> None:
    assert names(SkyPilot().read("task.yaml", SKY.format("instance_type: g5.12xlarge"))) == ["A10G"] * 4
    assert names(SkyPilot().read("task.yaml", SKY.format("instance_type: m5.xlarge"))) is None
    both = "instance_type: p4d.24xlarge\n  accelerators: A100:4"
    assert names(SkyPilot().read("task.yaml", SKY.format(both))) == ["A100"] * 4


POD = """apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  nodeSelector: {node.kubernetes.io/instance-type: p4d.24xlarge}
  containers:
    - name: train
      image: pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime
      resources: {limits: {nvidia.com/gpu: 2}}
"""


def test_the_nodes_of_a_pod_are_of_one_type_and_the_container_states_the_number() -> None:
    assert names(Kubernetes().read("pod.yaml", POD)) == ["A100-40GB"] * 2
    assert names(Kubernetes().read("pod.yaml", POD.replace("p4d.24xlarge", "custom"))) == [None] * 2
