"""NVML through stand-ins for its bindings: every answer NVIDIA's library gives, and every way it refuses one."""

from __future__ import annotations

from typing import Any

import pytest

from compat.machine.nvml import load, read_nvml
from compat.model import Accelerator

NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, NOT_LOADED, NO_LIBRARY, LOST, MISMATCH, UNKNOWN = 3, 4, 6, 9, 12, 15, 18, 999
WORDS = {4: "Insufficient Permissions", 15: "GPU is lost", 999: "Unknown Error"}


class NvmlError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(WORDS.get(value, f"error {value}"))
        self.value = value


class Memory:
    def __init__(self, total: int) -> None:
        self.total = total


class Bindings:
    """What ``pynvml`` offers; a device is a dict of answers, and an error in place of one is raised."""

    NVMLError = NvmlError

    def __init__(
        self, *devices: Any, init: int = 0, driver: Any = "550.54.15", cuda: Any = 12040, count: int | None = None
    ) -> None:
        self.devices, self.init, self.driver, self.cuda = devices, init, driver, cuda
        self.count = len(devices) if count is None else count
        self.open = False

    def nvmlInit(self) -> None:  # noqa: N802
        if self.init:
            raise NvmlError(self.init)
        self.open = True

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open = False

    def __getattr__(self, name: str) -> Any:
        answers = {
            "nvmlSystemGetDriverVersion": lambda: self.driver,
            "nvmlSystemGetCudaDriverVersion_v2": lambda: self.cuda,
            "nvmlDeviceGetCount": lambda: answered(self.count),
            "nvmlDeviceGetHandleByIndex": lambda index: answered(self.devices[index]),
            "nvmlDeviceGetName": lambda device: answered(device.get("name", NvmlError(NOT_SUPPORTED))),
            "nvmlDeviceGetUUID": lambda device: answered(device.get("uuid", NvmlError(NOT_SUPPORTED))),
            "nvmlDeviceGetCudaComputeCapability": lambda device: answered(device.get("capability", NvmlError(NOT_SUPPORTED))),
            "nvmlDeviceGetMemoryInfo": lambda device: answered(device.get("memory", NvmlError(NOT_SUPPORTED))),
            "nvmlDeviceGetMigMode": lambda device: answered(device.get("mode", NvmlError(NOT_SUPPORTED))),
            "nvmlDeviceGetMaxMigDeviceCount": lambda device: answered(device.get("slots", 0)),
            "nvmlDeviceGetMigDeviceHandleByIndex": lambda device, index: answered(
                device["instances"].get(index, NvmlError(NOT_FOUND))
            ),
        }
        if name not in answers:
            raise AttributeError(name)
        return answers[name]


def answered(value: Any) -> Any:
    if isinstance(value, NvmlError):
        raise value
    return value


def a100(uuid: str = "GPU-1") -> dict[str, Any]:
    return {"name": "NVIDIA A100-SXM4-80GB", "uuid": uuid, "capability": (8, 0), "memory": Memory(85899345920), "mode": [0, 0]}


def test_driver_cuda_and_every_device() -> None:
    nvml = Bindings(a100("GPU-1"), a100("GPU-2"))
    found = read_nvml(nvml)
    assert (found.driver, found.driver_cuda, found.driver_state, found.notes) == ("550.54.15", "12.4", None, ())
    assert found.accelerators == tuple(
        Accelerator("nvidia", "NVIDIA A100-SXM4-80GB", "8.0", 81920, extra={"uuid": uuid}) for uuid in ("GPU-1", "GPU-2")
    )
    assert not nvml.open


def test_old_bindings_answer_bytes_and_pairs_as_lists() -> None:
    device = {"name": b"Tesla T4", "uuid": b"GPU-9", "capability": [7, 5], "memory": Memory(15 << 30)}
    found = read_nvml(Bindings(device, driver=b"470.82.01"))
    assert found.driver == "470.82.01"
    assert found.accelerators == (Accelerator("nvidia", "Tesla T4", "7.5", 15 * 1024, extra={"uuid": "GPU-9"}),)


def test_a_name_that_is_no_utf8_is_still_a_device() -> None:
    found = read_nvml(Bindings({"name": b"Tesla \xff", "capability": (7, 0)}))
    assert found.accelerators is not None
    assert found.accelerators[0].compute_capability == "7.0"


@pytest.mark.parametrize("memory", [NvmlError(NOT_SUPPORTED), Memory(0)])
def test_unified_memory_is_unknown_and_no_error(memory: Any) -> None:
    found = read_nvml(Bindings({"name": "NVIDIA GB10", "capability": (12, 1), "memory": memory}))
    assert found.accelerators == (Accelerator("nvidia", "NVIDIA GB10", "12.1", None),)
    assert found.notes == ()


@pytest.mark.parametrize(
    ("error", "words"), [(LOST, "GPU is lost"), (NO_PERMISSION, "Insufficient Permissions"), (UNKNOWN, "Unknown")]
)
def test_a_device_without_a_handle_hides_no_other(error: int, words: str) -> None:
    found = read_nvml(Bindings(a100("GPU-1"), NvmlError(error), a100("GPU-3")))
    assert found.accelerators is not None
    assert [device.extra["uuid"] for device in found.accelerators] == ["GPU-1", "GPU-3"]
    assert len(found.notes) == 1
    assert "device 1" in found.notes[0]
    assert words in found.notes[0]


def test_a_device_that_answers_nothing_is_a_device_of_which_nothing_is_known() -> None:
    assert read_nvml(Bindings({})).accelerators == (Accelerator("nvidia"),)


def test_mig_instances_have_their_own_memory_and_the_capability_of_the_whole() -> None:
    instances = {
        0: {"name": "NVIDIA A100-SXM4-80GB MIG 3g.40gb", "uuid": "MIG-1", "memory": Memory(40192 << 20)},
        3: {"name": "NVIDIA A100-SXM4-80GB MIG 1g.10gb", "uuid": "MIG-2", "memory": Memory(9728 << 20)},
    }
    divided = {**a100("GPU-1"), "mode": [1, 1], "slots": 7, "instances": instances}
    found = read_nvml(Bindings(divided, a100("GPU-2")))
    assert found.accelerators is not None
    assert [(each.memory_mib, each.compute_capability, each.extra.get("mig")) for each in found.accelerators] == [
        (40192, "8.0", True), (9728, "8.0", True), (81920, "8.0", None),
    ]  # fmt: skip
    assert found.accelerators[0].extra == {"mig": True, "uuid": "MIG-1", "parent": "GPU-1"}
    assert any("MIG" in note and "2 instances" in note for note in found.notes)


def test_mig_without_an_instance_leaves_nothing_to_use() -> None:
    found = read_nvml(Bindings({**a100(), "mode": [1, 1], "slots": 7, "instances": {}}))
    assert found.accelerators == ()
    assert "no instance" in found.notes[0]


def test_mig_that_is_only_pending_changes_nothing() -> None:
    found = read_nvml(Bindings({**a100(), "mode": [0, 1]}))
    assert found.accelerators is not None
    assert found.accelerators[0].memory_mib == 81920


def test_no_device_is_certain_where_the_driver_says_so() -> None:
    found = read_nvml(Bindings())
    assert found.accelerators == ()
    assert found.driver == "550.54.15"
    assert found.notes


@pytest.mark.parametrize(
    ("error", "state"), [(NOT_LOADED, "not-loaded"), (MISMATCH, "mismatched"), (NO_PERMISSION, None), (NO_LIBRARY, None)]
)
def test_why_nvml_cannot_be_used(error: int, state: str | None) -> None:
    found = read_nvml(Bindings(init=error))
    assert found.accelerators is None
    assert found.driver_state == state
    assert bool(found.notes) == (state is None)


def test_a_driver_that_does_not_tell_its_count() -> None:
    found = read_nvml(Bindings(count=NvmlError(UNKNOWN)))
    assert found.accelerators is None
    assert found.notes


@pytest.mark.parametrize(("cuda", "expected"), [(13030, "13.3"), (11080, "11.8"), (0, None), ("12.4", None), (None, None)])
def test_the_highest_cuda_of_the_driver(cuda: Any, expected: str | None) -> None:
    assert read_nvml(Bindings(a100(), cuda=cuda)).driver_cuda == expected


def test_the_real_bindings_load_and_say_why_they_cannot_be_used() -> None:
    nvml = load()
    assert nvml is not None  # nvidia-ml-py is a dependency
    found = read_nvml(nvml)
    assert found.accelerators is not None or found.notes or found.driver_state
