"""The hardware tables, compiled with the rules, and what they imply for the devices of an environment."""

from __future__ import annotations

import marshal
import os

from compat.files import DATA, read_table
from compat.model import Accelerator, Environment
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import TypeAlias

    from compat.machine.gpu_names import GpuTable

    Numbers: TypeAlias = tuple[int, ...]
    DriverTable: TypeAlias = tuple[tuple[Numbers, Numbers | None, Numbers | None], ...]


FILE = os.path.join(DATA, "hardware.bin")


def open_gpus() -> GpuTable:
    """Return the table of GPU names this package ships."""
    return _open()[0]


def driver_cuda(environment: Environment) -> str | None:
    """Return the highest CUDA the environment's driver supports by NVIDIA's table; ``None`` if unknown."""
    if environment.driver is None or not has_numbered_driver(environment):
        return None
    windows = environment.os == "windows" or bool(environment.platform)
    return newest_cuda(environment.driver, _open()[1], windows=windows)


def has_numbered_driver(environment: Environment) -> bool:
    """Whether the driver is one of NVIDIA's table; those of Jetson modules are numbered differently."""
    if environment.machine not in ("aarch64", "arm64"):
        return True
    devices = environment.accelerators or ()
    return bool(devices) and not any(_is_of(device, _JETSON) for device in devices)


_JETSON = ("jetson", "tegra", "orin", "xavier", "thor")
_ON_ARM = (*_JETSON, "gh200", "gb200", "gb300", "gb10", "grace", "spark")
"""Parts of the names of GPUs that only exist with an Arm processor, on a Jetson module or a board with NVIDIA's Grace."""


def machine_beside(accelerators: Iterable[Accelerator]) -> str | None:
    """Return the processor architecture that a GPU implies: ``aarch64`` for those that only exist with an Arm processor."""
    return "aarch64" if any(_is_of(device, _ON_ARM) for device in accelerators) else None


def _is_of(device: Accelerator, words: Sequence[str]) -> bool:
    name = (device.name or "").lower()
    return device.vendor in (None, "nvidia") and any(word in words for word in name.replace("-", " ").replace("(", " ").split())


def branch_for(cuda: str, *, windows: bool = False) -> int | None:
    """Return the branch of the first driver that supports a CUDA release (``12.4``: 550); ``None`` if unknown."""
    wanted = numbers_of(cuda)
    for release, on_linux, on_windows in _open()[1]:
        driver = on_windows or on_linux if windows else on_linux
        if release == wanted and driver:
            return driver[0]
    return None


def _open() -> tuple[GpuTable, DriverTable]:
    tables: tuple[GpuTable, DriverTable] = marshal.loads(read_table(FILE))
    return tables


def newest_cuda(driver: str, table: DriverTable, *, windows: bool = False) -> str | None:
    """Return the newest CUDA whose toolkit driver is not newer than this one; ``None`` below the table or if invalid.

    A driver given by its branch alone ("550") means the newest of the branch. Set ``windows`` for WSL as
    well, which uses the Windows driver; since 13.0, for which the vendor lists no Windows driver, the branch decides.
    """
    given = numbers_of(driver)
    if given is None:
        return None
    for cuda, on_linux, on_windows in table:
        needed = on_windows or (on_linux and on_linux[:1]) if windows else on_linux
        if needed and given >= (needed[:1] if len(given) == 1 else needed):
            return f"{cuda[0]}.{cuda[1]}"
    return None


def numbers_of(text: str) -> Numbers | None:
    """Return the numbers of a version (``12.4``); ``None`` if it has anything else."""
    parts = text.strip().split(".")
    return tuple(map(int, parts)) if all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts) else None


def completed(accelerators: tuple[Accelerator, ...]) -> tuple[tuple[Accelerator, ...], tuple[str, ...]]:
    """Return the devices with vendor and capability derived from their name, and notes about unknown names."""
    if all(_complete(accelerator) for accelerator in accelerators):
        return accelerators, ()
    from compat.machine.gpu_names import lookup

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


# --- Peak rates of each card by its vendor's figures, compiled with the hardware tables.


if TYPE_CHECKING:
    Peak: TypeAlias = tuple[str, str, int, float, float, str]
    """(card, part of the name the driver gives it, memory in GB or 0, dense TFLOP/s of 16-bit types, GB/s, source)"""


PEAK_RATES_FILE = os.path.join(DATA, "peaks.bin")


def open_peaks() -> tuple[Peak, ...]:
    """Return the rows this package ships."""
    rows: tuple[Peak, ...] = marshal.loads(read_table(PEAK_RATES_FILE))
    return rows
