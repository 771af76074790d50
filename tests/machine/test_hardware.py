"""The order of sources, in trees built like real machines: bare ones, containers, WSL, Jetson, mixed makes, broken drivers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compat.machine import hardware
from compat.machine.hardware import parse_information, parse_module_version, read_hardware
from compat.machine.system import Hardware, merge_hardware
from compat.model import Accelerator

ON_DISK = "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw\n"
MODULE = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version:  gcc 12.3.0\n"
INFORMATION = "Model: \t\t NVIDIA A100-SXM4-80GB\nIRQ:   \t\t 16\nGPU UUID: \t %s\nVideo BIOS: \t 92\nDevice Minor: \t %d\nGPU Excluded:\t No\n"
NVIDIA_ON_BUS = "0100\t10de20b2\t10\t0\n0008\t80860d57\t0\t0\n"
OTHERS_ON_BUS = "0008\t80860d57\t0\t0\n0010\t1af41042\t0\t0\n"

KFD = "cpu_cores_count 0\nsimd_count 1216\ngfx_target_version %d\n"
TABLE = "| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4 |\n"

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="trees of Linux machines")
pytestmark = linux_only


class Tree:
    """A fake root; ``machine`` is one with disk and bus, ``container`` the inside of a container."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str = "", mode: int = 0o644) -> Tree:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return self

    def machine(self, bus: str = OTHERS_ON_BUS) -> Tree:
        return self.write("/proc/self/mountinfo", ON_DISK).write("/proc/bus/pci/devices", bus)

    def container(self) -> Tree:
        return self.machine().write("/.dockerenv")

    def module(self, devices: int = 1) -> Tree:
        self.write("/proc/driver/nvidia/version", MODULE)
        for number in range(devices):
            self.write(f"/proc/driver/nvidia/gpus/0000:0{number}:00.0/information", INFORMATION % (f"GPU-{number}", number))
        return self

    def library(self, version: str = "550.54.15", folder: str = "/usr/lib/x86_64-linux-gnu") -> Tree:
        self.write(f"{folder}/libnvidia-ml.so.{version}")
        (self.root / folder.lstrip("/") / "libnvidia-ml.so.1").symlink_to(f"libnvidia-ml.so.{version}")
        return self

    def amd(self, number: int, target: int) -> Tree:
        return self.write(f"/sys/class/kfd/kfd/topology/nodes/{number}/properties", KFD % target)

    def read(self, nvml: Any = None, **variables: str) -> Hardware:
        return read_hardware(variables, str(self.root), bindings=None if nvml is None else lambda: nvml)


class NvmlError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"error {value}")
        self.value = value


class Bindings:
    """Stand-in for ``pynvml``: devices by name and capability, or the error its start ends with."""

    NVMLError = NvmlError

    def __init__(self, *devices: tuple[str, int, int], init: int = 0, driver: str = "550.54.15", cuda: int = 12040) -> None:
        self.devices, self.init = devices, init
        self.nvmlSystemGetDriverVersion = lambda: driver
        self.nvmlSystemGetCudaDriverVersion_v2 = lambda: cuda
        self.nvmlDeviceGetCount = lambda: len(devices)
        self.nvmlDeviceGetHandleByIndex = devices.__getitem__
        self.nvmlDeviceGetName = lambda device: device[0]
        self.nvmlDeviceGetCudaComputeCapability = lambda device: device[1:]

    def nvmlInit(self) -> None:  # noqa: N802
        if self.init:
            raise NvmlError(self.init)

    def nvmlShutdown(self) -> None: ...  # noqa: N802


A100 = ("NVIDIA A100-SXM4-80GB", 8, 0)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_a_machine_without_a_gpu_certainly_has_none(tree: Tree) -> None:
    assert tree.machine().read() == Hardware(accelerators=())


def test_a_container_without_a_gpu_may_be_a_build(tree: Tree) -> None:
    found = tree.container().read()
    assert found.accelerators is None
    assert "--gpu" in found.notes[0]


def test_where_a_container_cannot_be_ruled_out_none_is_not_certain(tree: Tree) -> None:
    assert tree.read().accelerators is None


def test_a_gpu_without_its_driver_is_named(tree: Tree) -> None:
    tree.machine(NVIDIA_ON_BUS).write("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
    found = tree.read()
    assert found.accelerators is None
    assert "an NVIDIA GPU" in found.notes[0]


def test_a_switch_of_nvidia_is_no_gpu(tree: Tree) -> None:
    tree.machine(NVIDIA_ON_BUS).write("/sys/bus/pci/devices/0000:01:00.0/class", "0x068000\n")
    assert tree.read() == Hardware(accelerators=())


def test_nvml_comes_first(tree: Tree) -> None:
    tree.machine(NVIDIA_ON_BUS).module(2).library().write("/dev/nvidiactl")
    tree.write("/usr/bin/nvidia-smi", "#!/bin/sh\nexit 99\n", 0o755)
    found = tree.read(Bindings(A100, A100), PATH="/usr/bin")
    assert (found.driver, found.driver_cuda, found.notes) == ("550.54.15", "12.4", ())
    assert found.accelerators is not None
    assert [device.compute_capability for device in found.accelerators] == ["8.0", "8.0"]


def test_nvml_is_not_asked_without_a_sign_of_the_driver(tree: Tree) -> None:
    def never() -> None:
        raise AssertionError("NVML was asked")

    assert read_hardware({"PATH": "/usr/bin"}, str(tree.machine().root), bindings=never).accelerators == ()


@pytest.mark.parametrize(
    "sign",
    [
        "/dev/nvidiactl",
        "/proc/driver/nvidia/version",
        "/etc/nv_tegra_release",
        "/usr/lib64/libnvidia-ml.so.1",
        "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
    ],
)
def test_each_sign_of_the_driver_is_enough(tree: Tree, sign: str) -> None:
    assert tree.machine().write(sign).read(Bindings(A100)).driver == "550.54.15"


def test_wsl_needs_device_and_library(tree: Tree) -> None:
    tree.machine().write("/dev/dxg")
    assert tree.read(Bindings(A100)).driver is None
    tree.write("/usr/lib/wsl/lib/libnvidia-ml.so.1")
    assert tree.read(Bindings(A100, driver="572.42", cuda=12080)).driver == "572.42"


def test_then_nvidia_smi(tree: Tree) -> None:
    table = tree.root / "table"
    table.write_text(TABLE)
    script = f'#!/bin/sh\ncase "$1" in --query*) echo "0, Tesla T4, 7.5, 15360 MiB, 550.54.15, GPU-1";; *) cat {table};; esac\n'
    tree.machine().write("/usr/bin/nvidia-smi", script, 0o755)
    found = tree.read(Bindings(init=12), PATH="/bin:/usr/bin")
    assert found.accelerators == (Accelerator("nvidia", "Tesla T4", "7.5", 15360, extra={"uuid": "GPU-1"}),)
    assert (found.driver, found.driver_cuda, found.notes) == ("550.54.15", "12.4", ())


def test_then_what_the_kernel_lists(tree: Tree) -> None:
    found = tree.machine().module(2).read(Bindings(init=12))
    assert found.driver == "550.54.15"
    assert found.accelerators == tuple(
        Accelerator("nvidia", "NVIDIA A100-SXM4-80GB", extra={"uuid": f"GPU-{number}"}) for number in range(2)
    )


def test_a_container_sees_the_hosts_devices_but_has_only_its_own(tree: Tree) -> None:
    tree.container().module(3)
    found = tree.read()
    assert found.accelerators is None
    assert found.driver == "550.54.15"
    assert "3 × NVIDIA A100-SXM4-80GB" in found.notes[0]
    tree.write("/dev/nvidiactl").write("/dev/nvidia2")
    assert tree.read().accelerators == (Accelerator("nvidia", "NVIDIA A100-SXM4-80GB", extra={"uuid": "GPU-2"}),)


def test_a_mismatched_driver_is_named_with_both_versions(tree: Tree) -> None:
    found = tree.machine(NVIDIA_ON_BUS).module().library("550.90.07").read(Bindings(init=18))
    assert (found.driver_state, found.driver) == ("mismatched", "550.54.15")
    assert found.accelerators is not None  # the kernel still lists them
    assert "550.54.15" in found.notes[-1]
    assert "550.90.07" in found.notes[-1]


def test_a_driver_that_is_not_loaded_has_the_version_of_its_library(tree: Tree) -> None:
    found = tree.machine(NVIDIA_ON_BUS).library("535.129.03").read(Bindings(init=9))
    assert (found.driver_state, found.driver, found.accelerators) == ("not-loaded", "535.129.03", None)
    assert "not loaded" in found.notes[-1]


def test_a_driver_on_a_machine_without_its_device_is_no_fault(tree: Tree) -> None:
    found = tree.machine(OTHERS_ON_BUS).library().read(Bindings(init=9))
    assert (found.driver_state, found.accelerators) == (None, ())
    assert found.notes


def test_an_image_with_the_library_but_no_gpu_is_no_fault_either(tree: Tree) -> None:
    found = tree.container().library().read(Bindings(init=9))
    assert (found.driver_state, found.accelerators) == (None, None)
    assert "--gpu" in found.notes[-1]


def test_nvidia_smi_tells_the_state_where_nvml_cannot(tree: Tree) -> None:
    tree.machine(NVIDIA_ON_BUS).write(
        "/usr/bin/nvidia-smi", "#!/bin/sh\necho 'Failed: Driver/library version mismatch'\n", 0o755
    )
    found = tree.module().read(Bindings(init=12), PATH="/usr/bin")
    assert (found.driver_state, found.driver) == ("mismatched", "550.54.15")


def test_a_jetson_without_nvml_is_named_by_its_board(tree: Tree) -> None:
    tree.machine().write("/proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0")
    assert tree.read().accelerators == (Accelerator("nvidia", "NVIDIA Jetson AGX Orin Developer Kit"),)
    found = tree.read(Bindings(("Orin (nvgpu)", 8, 7), driver="540.4.0", cuda=12060))
    assert found.accelerators == (Accelerator("nvidia", "NVIDIA Jetson AGX Orin Developer Kit", "8.7"),)
    assert (found.driver, found.driver_cuda) == ("540.4.0", "12.6")


def test_another_makers_board_is_no_sign(tree: Tree) -> None:
    assert tree.machine().write("/proc/device-tree/model", "Raspberry Pi 5 Model B\0").read().accelerators == ()


def test_amd_devices(tree: Tree) -> None:
    found = tree.machine().amd(1, 90402).amd(2, 90402).read()
    assert found.accelerators is not None
    assert [device.gfx for device in found.accelerators] == ["gfx942", "gfx942"]


def test_amd_devices_of_the_host_are_not_the_containers(tree: Tree) -> None:
    found = tree.container().amd(1, 90402).read()
    assert found.accelerators is None
    assert "gfx942" in found.notes[0]
    assert len(tree.write("/dev/kfd").read().accelerators or ()) == 1


def test_graphics_of_the_processor_do_not_count_beside_nvidia(tree: Tree) -> None:
    found = tree.machine().module().amd(1, 100306).read(Bindings(A100))
    assert found.accelerators is not None
    assert [device.vendor for device in found.accelerators] == ["nvidia"]
    assert any("gfx1036" in note for note in found.notes)


def test_the_toolkit_is_read_beside_everything_else(tree: Tree) -> None:
    tree.machine().write("/usr/local/cuda/version.txt", "CUDA Version 11.8.89\n")
    assert tree.read() == Hardware(accelerators=(), cuda_toolkit="11.8")
    found = tree.read(CUDA_HOME="/gone")
    assert found.cuda_toolkit is None
    assert "CUDA_HOME" in found.notes[0]


def test_without_bindings_the_other_sources_are_asked(tree: Tree) -> None:
    found = read_hardware({}, str(tree.machine().module().root), bindings=lambda: None)
    assert len(found.accelerators or ()) == 1
    assert found.notes == ()
    (tree.root / "proc/driver/nvidia/version").unlink()
    found = read_hardware({}, str(tree.write("/dev/nvidiactl").root / "absent"), bindings=lambda: None)
    assert found.accelerators is None


def test_apple(monkeypatch: pytest.MonkeyPatch) -> None:
    class Uname:
        machine = "arm64"

    monkeypatch.setattr(hardware.sys, "platform", "darwin")
    monkeypatch.setattr(hardware.os, "uname", Uname)
    assert read_hardware({}).accelerators == (Accelerator(vendor="apple"),)
    Uname.machine = "x86_64"
    assert read_hardware({}).accelerators is None


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (MODULE, "550.54.15"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  610.43.02  Release Build  (dvs@u22)  Tue\n", "610.43.02"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release Build\n", "540.4.0"),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  455.23  Sep\n", "455.23"),
        ("GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)\n", None),
        ("", None),
    ],
)
def test_the_version_of_the_kernel_module(text: str, version: str | None) -> None:
    assert parse_module_version(text) == version


def test_a_model_the_module_does_not_know_is_left_out() -> None:
    assert parse_information("Model: \t\t Unknown\nGPU UUID: \t GPU-????????\n") is None
    assert parse_information(INFORMATION % ("GPU-????????-????", 0)) == Accelerator("nvidia", "NVIDIA A100-SXM4-80GB")


@given(st.text())
def test_any_text_may_stand_in_the_kernels_files(text: str) -> None:
    version = parse_module_version(text)
    assert version is None or version in text
    device = parse_information(text)
    assert device is None or device.name


@given(st.text())
def test_any_text_may_stand_on_the_bus(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "proc/bus/pci/devices"
        file.parent.mkdir(parents=True)
        file.write_text(text, "utf-8")
        for vendor, place in hardware._pci(folder):
            assert len(vendor) <= 4
            assert place.startswith("0000:")


def test_the_first_reading_wins_and_notes_are_said_once() -> None:
    first = Hardware(driver="1", notes=("a", "b"))
    second = Hardware(accelerators=(), driver="2", driver_cuda="12.4", notes=("b", "c"))
    assert merge_hardware(first, second) == Hardware(accelerators=(), driver="1", driver_cuda="12.4", notes=("a", "b", "c"))


def test_a_machine_without_a_gpu_is_read_with_few_calls(tree: Tree) -> None:
    tree.machine()
    variables = {"PATH": ":".join(f"/srv/{number}/bin" for number in range(12))}
    calls: list[str] = []
    listening = True
    sys.addaudithook(lambda event, _: calls.append(event) if listening else None)
    read_hardware(variables, str(tree.root))
    listening = False
    assert len(calls) < 20, calls
    assert not [event for event in calls if event.startswith(("subprocess", "ctypes", "socket", "os.posix_spawn", "import"))]


def test_reading_without_a_gpu_imports_nothing_heavy() -> None:
    heavy = ["json", "dataclasses", "inspect", "subprocess", "pathlib", "ctypes", "pynvml", "platform", "email"]
    code = (
        "import sys, os; before = set(sys.modules); import compat.machine.hardware as h, compat.machine.system as s;"
        "h.read_hardware({'PATH': '/nowhere'}, '/nowhere'); s.read_system();"
        f"print([name for name in {heavy} if name in sys.modules and name not in before])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": ""}
    )
    assert done.stdout == "[]\n"
