"""The accelerators that several places in one text name → those of the environment."""

from __future__ import annotations

from compat.environment import EMPTY, Accelerator
from compat.read.pasted.findings import PHYSICAL, VISIBLE, Devices, Findings
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST = 1024
"""Devices of one machine; a larger number is no count."""


def merged_devices(found: Findings, *, visible: bool, notes: list[str]) -> tuple[Accelerator, ...] | None:
    """The devices, ``None`` where nothing is known or the places contradict each other.

    ``visible``: a variable that says which devices the job sees is known, so all of the machine's are wanted.
    """
    seen = found.devices
    if not seen:
        counts = {count for count in found.device_counts if 0 < count <= _MOST}
        return (Accelerator(),) * counts.pop() if len(counts) == 1 else None
    counted = [each for each in seen if each.counted]
    chosen = _counted(counted, visible=visible, notes=notes) if counted else _of_one_kind(seen, found.device_counts, notes)
    if chosen is None:
        return None
    others = [each for each in seen if each.devices != chosen]
    for each in sorted(others, key=lambda sighting: sighting.rank):
        chosen = _filled(chosen, each)
    return chosen


def _counted(seen: Sequence[Devices], *, visible: bool, notes: list[str]) -> tuple[Accelerator, ...] | None:
    physical = [each for each in seen if each.rank == PHYSICAL]
    inside = [each for each in seen if each.rank == VISIBLE]
    if physical and inside and not visible:
        least = min(inside, key=lambda each: len(each.devices))
        if 0 < len(least.devices) < min(len(each.devices) for each in physical):
            notes.append(f"the job sees {len(least.devices)} of the machine's GPUs")
            return least.devices
    best = min(each.rank for each in seen)
    candidates = [each.devices for each in seen if each.rank == best]
    first = max(candidates, key=_said)
    if all(_same(first, each) for each in candidates):
        return first
    told = " and ".join(dict.fromkeys(_written(each) for each in candidates))
    notes.append(f"two answers for the GPUs, neither is used: {told}")
    return None


def _said(devices: tuple[Accelerator, ...]) -> tuple[bool, int]:
    """What is told more exactly counts more: whole names before cut ones, then how many facts there are."""
    whole = not any((device.name or "").endswith("...") for device in devices)
    return whole, sum(value is not None for device in devices for value in (device.name, device.memory_mib, device.gfx))


def _of_one_kind(seen: Sequence[Devices], counts: Sequence[int], notes: list[str]) -> tuple[Accelerator, ...] | None:
    """Places that name a kind of device without saying how many there are: at least one, as far as no count is given."""
    best = min(each.rank for each in seen)
    candidates = [each.devices for each in seen if each.rank == best]
    if not all(_same(candidates[0], each) for each in candidates):
        told = " and ".join(dict.fromkeys(_written(each) for each in candidates))
        notes.append(f"two answers for the GPUs, neither is used: {told}")
        return None
    kind = candidates[0]
    if len(set(counts)) == 1 and counts[0] <= _MOST:
        if len(kind) == 1:
            return kind * counts[0]
        if len(kind) == counts[0]:
            return kind
    if kind:
        notes.append(f"how many GPUs there are is not said: at least {_written(kind)}")
    return tuple(replace(device, extra={**device.extra, "more": True}) for device in kind)


def _same(left: tuple[Accelerator, ...], right: tuple[Accelerator, ...]) -> bool:
    return len(left) == len(right) and all(_fits(a, b) for a, b in zip(left, right, strict=True))


def _fits(left: Accelerator, right: Accelerator) -> bool:
    """Whether two descriptions may be of one device: names alike, one perhaps cut, and no fact that differs."""
    for field in ("compute_capability", "gfx"):
        one, other = getattr(left, field), getattr(right, field)
        if one is not None and other is not None and one != other:
            return False
    if left.name is None or right.name is None:
        return True
    one, other = _plain(left.name), _plain(right.name)
    return one.startswith(other) or other.startswith(one) or set(one.split()) <= set(other.split()) or (
        set(other.split()) <= set(one.split())
    )  # fmt: skip


def _plain(name: str) -> str:
    words = name.lower().replace("-", " ").replace("...", " ").split()
    return " ".join(word for word in words if word not in ("nvidia", "geforce", "amd", "tesla", "gpu", "(r)"))


def _filled(devices: tuple[Accelerator, ...], other: Devices) -> tuple[Accelerator, ...]:
    """The devices with what another place tells of them: memory, capability, identifiers."""
    if len(other.devices) == len(devices):
        return tuple(_with(a, b) if _fits(a, b) else a for a, b in zip(devices, other.devices, strict=True))
    if len({(each.name, each.compute_capability) for each in other.devices}) == 1:
        one = replace(other.devices[0], extra=EMPTY)
        return tuple(_with(each, one) if _fits(each, one) else each for each in devices)
    return devices


def _with(device: Accelerator, other: Accelerator) -> Accelerator:
    return replace(
        device,
        vendor=device.vendor or other.vendor,
        name=device.name or other.name,
        compute_capability=device.compute_capability or other.compute_capability,
        memory_mib=device.memory_mib or other.memory_mib,
        gfx=device.gfx or other.gfx,
        extra={**other.extra, **device.extra},
    )


def _written(devices: tuple[Accelerator, ...]) -> str:
    names = list(dict.fromkeys(device.name or "a GPU" for device in devices))
    return f"{len(devices)} × {', '.join(names[:3])}" if devices else "none"
