"""The hardware tables, compiled beside the rules, and what they say about the devices of an environment."""

from __future__ import annotations

import os

from compat.errors import InputError
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.environment import Accelerator, Environment
    from compat.read.machine.cuda import DriverTable
    from compat.read.machine.gpu_names import GpuTable

FILE = os.path.join(os.path.dirname(__file__), "compiled", "hardware.bin")
_SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "matrix", "facts")


def open_gpus() -> GpuTable:
    """The table of GPU names this package ships."""
    return _open()[0]


def driver_cuda(environment: Environment) -> str | None:
    """The highest CUDA the environment's driver supports by NVIDIA's table; ``None`` where nothing tells."""
    if environment.driver is None or (environment.machine or "").startswith("aarch64"):
        return None  # Jetson's drivers count differently
    from compat.read.machine import cuda

    windows = environment.os == "windows" or bool(environment.platform)
    return cuda.driver_cuda(environment.driver, _open()[1], windows=windows)


def _open() -> tuple[GpuTable, DriverTable]:
    """Both tables; in a source tree that was never built, as its facts give them."""
    import marshal

    try:
        with open(FILE, "rb") as file:
            tables: tuple[GpuTable, DriverTable] = marshal.loads(file.read())
            return tables
    except FileNotFoundError:
        if not os.path.isdir(_SOURCES):
            raise InputError("the hardware tables are missing: reinstall compat-doctor", FILE) from None
        return tables_from(_SOURCES)


def tables_from(folder: str) -> tuple[GpuTable, DriverTable]:
    """The tables from the fact files in a folder (``gpus_nvidia.csv``, ``gpus_amd.csv``, ``cuda_driver.csv``)."""
    from compat.read.json_text import read_text
    from compat.read.machine.cuda import load_driver_table
    from compat.read.machine.gpu_names import load_table

    nvidia, amd, drivers = (
        read_text(os.path.join(folder, f"{name}.csv")) for name in ("gpus_nvidia", "gpus_amd", "cuda_driver")
    )
    return load_table(nvidia, amd), load_driver_table(drivers)


def completed(accelerators: tuple[Accelerator, ...]) -> tuple[tuple[Accelerator, ...], tuple[str, ...]]:
    """Devices with vendor and capability filled in where their name tells them, and notes where it does not."""
    if all(_complete(accelerator) for accelerator in accelerators):
        return accelerators, ()
    from compat.read.machine.gpu_names import lookup

    table = open_gpus()
    found: list[Accelerator] = []
    notes: dict[str, None] = {}
    for device in accelerators:
        if device.compute_capability is not None:
            found.append(device if device.vendor else replace(device, vendor="nvidia"))
            continue
        if device.name is None:
            found.append(device)
            continue
        match = lookup(table, device.name)
        if match.candidates:
            notes[f"{device.name}: may be {', '.join(match.candidates)}; its compute capability stays unknown"] = None
        elif match.compute_capability is None and match.gfx is None and match.vendor in (None, "nvidia"):
            notes[f"{device.name}: not in the table of GPUs; its compute capability stays unknown"] = None
        found.append(
            replace(
                device,
                vendor=device.vendor or match.vendor,
                compute_capability=match.compute_capability,
                gfx=device.gfx or match.gfx,
            )
        )
    return tuple(found), tuple(notes)


def _complete(device: Accelerator) -> bool:
    return device.vendor is not None and (device.compute_capability is not None or device.gfx is not None)
