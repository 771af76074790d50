"""AMD devices as the kernel's compute driver lists them (``/sys/class/kfd``), without ROCm's libraries or tools."""

from __future__ import annotations

import os

from compat.machine.system import first_text, under
from compat.model import Accelerator

_NODES = "/sys/class/kfd/kfd/topology/nodes"
_SHARED_MEMORY = (
    "gfx902", "gfx909", "gfx90c", "gfx1033", "gfx1035", "gfx1036", "gfx1037", "gfx1103",
    "gfx1150", "gfx1151", "gfx1152", "gfx1153",
)  # fmt: skip
"""Processors with graphics: what their memory banks show is a carve-out, not what a job can use."""
_LOCAL_HEAPS = ("1", "2")
"""``heap_type`` of memory on the device, visible and not visible to the CPU (linux/kfd_topology)."""


def read_amd(root: str = "/") -> tuple[Accelerator, ...]:
    """Every AMD device that can compute, in the kernel's order; empty where there is none or no such driver."""
    folder = under(root, _NODES)
    try:
        nodes = sorted(os.listdir(folder), key=lambda name: (len(name), name))
    except OSError:
        return ()
    found = (_device(root, f"{folder}/{node}") for node in nodes)
    return tuple(device for device in found if device is not None)


def _device(root: str, node: str) -> Accelerator | None:
    properties = parse_properties(first_text(f"{node}/properties"))
    gfx = gfx_of(properties.get("gfx_target_version", "0"))
    if gfx is None:
        return None  # a node that is only a processor
    minor = properties.get("drm_render_minor", "")
    place = under(root, f"/sys/class/drm/renderD{minor}/device/product_name")
    name = first_text(place, 256).strip() if minor.isdecimal() else ""
    memory = None if gfx in _SHARED_MEMORY else _memory(node)
    return Accelerator(vendor="amd", name=name or f"AMD {gfx}", gfx=gfx, memory_mib=memory)


def parse_properties(text: str) -> dict[str, str]:
    """The lines ``name value`` of a topology file."""
    return {fields[0]: fields[1] for fields in map(str.split, text.splitlines()) if len(fields) == 2}


def gfx_of(target: str) -> str | None:
    """``gfx_target_version`` as LLVM names the target: 90402 → gfx942, 110501 → gfx1151; ``None`` for 0 and for no number."""
    if not (target.isascii() and target.isdigit() and len(target) < 10) or int(target) == 0:
        return None
    major, minor, stepping = int(target) // 10000, int(target) // 100 % 100, int(target) % 100
    return f"gfx{major}{minor:x}{stepping:x}"


def _memory(node: str) -> int | None:
    """MiB of the device's own memory, ``None`` where its banks are not listed."""
    banks = f"{node}/mem_banks"
    try:
        names = os.listdir(banks)
    except OSError:
        return None
    total = 0
    for name in names:
        bank = parse_properties(first_text(f"{banks}/{name}/properties"))
        size = bank.get("size_in_bytes", "")
        if bank.get("heap_type") in _LOCAL_HEAPS and size.isascii() and size.isdigit() and len(size) < 20:
            total += int(size)
    return total >> 20 or None
