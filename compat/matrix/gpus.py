"""The table of GPU names, compiled beside the rules, and what it says about the devices of an environment."""

from __future__ import annotations

import os

from compat.errors import InputError
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.environment import Accelerator
    from compat.read.gpu_names import GpuTable

FILE = os.path.join(os.path.dirname(__file__), "compiled", "gpus.bin")
_SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "matrix", "facts")


def open_gpus() -> GpuTable:
    """The table this package ships; in a source tree that was never built, the one its facts give."""
    import marshal

    try:
        with open(FILE, "rb") as file:
            table: GpuTable = marshal.loads(file.read())
            return table
    except FileNotFoundError:
        if not os.path.isdir(_SOURCES):
            raise InputError("the table of GPU names is missing: reinstall compat-doctor", FILE) from None
        return table_from(_SOURCES)


def table_from(folder: str) -> GpuTable:
    """The table from the fact files in a folder (``gpus_nvidia.csv``, ``gpus_amd.csv``)."""
    from compat.read.gpu_names import load_table
    from compat.read.json_text import read_text

    return load_table(*(read_text(os.path.join(folder, f"gpus_{vendor}.csv")) for vendor in ("nvidia", "amd")))


def completed(accelerators: tuple[Accelerator, ...]) -> tuple[tuple[Accelerator, ...], tuple[str, ...]]:
    """Devices with vendor and capability filled in where their name tells them, and notes where it does not."""
    if all(_complete(accelerator) for accelerator in accelerators):
        return accelerators, ()
    from compat.read.gpu_names import lookup

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
