"""What several places in one text say of the same thing, brought together as one :class:`Environment`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compat.machine.system import relevant
from compat.model import EMPTY, Accelerator, Distribution, Environment, Source
from compat.records import replace
from compat.reports.findings import LISTED, PHYSICAL, VISIBLE, WRITTEN, Devices, Findings, Package
from compat.versions import key_of

_MOST = 8  # releases of one distribution that may be meant; more are a history
_CALLED = {
    "python": "Python", "os": "operating system", "machine": "processor", "platform": "platform", "glibc": "glibc",
    "driver": "driver", "cuda_toolkit": "CUDA toolkit", "driver_state": "state of the driver",
}  # fmt: skip


def merged(found: Findings) -> tuple[Environment, tuple[str, ...]]:
    """The environment, and notes on what was taken for what and on what stays unknown."""
    notes = list(found.notes)
    values: dict[str, Any] = {field: _agreed(field, said, notes) for field, said in found.values.items()}
    if values.get("platform") in ("wsl1", "wsl2") and _systems(found) <= {"linux", "windows"}:
        values["os"] = "linux"  # both names are said of it
        notes = [note for note in notes if not note.startswith("two answers for the operating system")]
    variables = _variables(found, notes)
    distributions = [each for name, said in found.packages.items() for each in _distributions(name, said, notes)]
    workload = found.workloads[0] if len({repr(each) for each in found.workloads}) == 1 else None
    if len(found.workloads) > 1 and workload is None:
        notes.append("two different accelerate configurations are given; neither is used")
    environment = Environment(
        distributions=tuple(distributions) or None,
        distributions_complete=_is_complete(found),
        accelerators=merged_devices(found, visible="CUDA_VISIBLE_DEVICES" in variables, notes=notes),
        variables=variables or None,
        workload=workload,
        **{field: value for field, value in values.items() if value is not None},
    )
    return environment, tuple(dict.fromkeys(notes))


def _systems(found: Findings) -> set[str]:
    return {value for value, _ in found.values.get("os", ())}


def _agreed(field: str, said: Sequence[tuple[str, int]], notes: list[str]) -> str | None:
    """The one answer of the places that count most; ``3.10`` and ``3.10.12`` are one."""
    best = min(rank for _, rank in said)
    values = list(dict.fromkeys(value for value, rank in said if rank == best))
    longest = max(values, key=len)
    if all(longest == value or longest.startswith(f"{value}.") for value in values):
        return longest
    notes.append(f"two answers for the {_CALLED[field]}, neither is used: {' and '.join(sorted(values)[:4])}")
    return None


def _variables(found: Findings, notes: list[str]) -> Mapping[str, str]:
    variables: dict[str, str] = {}
    for name, values in found.variables.items():
        if len(set(values)) == 1:
            variables[name] = values[0]
        else:
            notes.append(f"{name} is given with different values; none is used")
    kept = relevant(variables, ())
    return {name: value for name, value in kept.items() if value is not None}


def _distributions(name: str, said: Sequence[Package], notes: list[str]) -> list[Distribution]:
    """The releases that the best places name: mostly one, several where they disagree."""
    telling = [each for each in said if each.version or each.specifier] or said
    least = min(each.rank for each in telling)
    best = sorted((each for each in telling if each.rank <= max(least, LISTED)), key=lambda each: each.rank)
    source = next((each.source for each in (*best, *said) if each.source is not None), None)
    extra = {key: value for each in said for key, value in each.extra.items()}
    versions = _alternatives([each.version for each in best if each.version is not None])
    if not versions:
        specifier = next((each.specifier for each in best if each.specifier is not None), None)
        return [Distribution(name, None, source, None, specifier, _fitting(extra, None))]
    if len(versions) > _MOST:
        notes.append(f"{name} is given in {len(versions)} versions; none is used")
        return [Distribution(name, None, source)]
    if len(versions) > 1:
        notes.append(f"{name} is given as {' and '.join(versions)}; each is considered")
    _contradictions(name, versions, [each for each in telling if each.rank > max(least, LISTED)], notes)
    return [_distribution(name, version, best, source if len(versions) == 1 else None, extra) for version in versions]


def _distribution(
    name: str, version: str, said: Sequence[Package], source: Source | None, extra: Mapping[str, Any]
) -> Distribution:
    """One release; where there are several, each keeps the source it was listed with."""
    own = next((each.source for each in said if each.source is not None and each.version == version), source)
    return Distribution(name, version, own, None, None, _fitting(extra, version))


def _fitting(extra: Mapping[str, Any], version: str | None) -> Mapping[str, Any]:
    """torch's CUDA is not repeated where the version tells it."""
    local = version.partition("+")[2] if version else ""
    if local.startswith(("cu", "rocm", "cpu", "xpu")):
        return {key: value for key, value in extra.items() if key not in ("cuda", "rocm")} or EMPTY
    return extra or EMPTY


def _alternatives(versions: Sequence[str]) -> list[str]:
    """The distinct versions in order; of one release the spelling that says most (its local label)."""
    if len(set(versions)) < 2:
        return list(versions[:1])
    by_release: dict[Any, list[str]] = {}
    for version in versions:
        by_release.setdefault(key_of(version), []).append(version)
    found: list[str] = []
    for same in by_release.values():
        labelled = sorted({version for version in same if "+" in version}, key=lambda version: (-len(version), version))
        if len(labelled) > _MOST:
            found.extend(labelled)
            continue
        kept = [
            each
            for position, each in enumerate(labelled)
            if not any(longer.partition("+")[2].startswith(each.partition("+")[2]) for longer in labelled[:position])
        ]
        found.extend(sorted(kept, key=same.index) or [max(same, key=len)])
    return found


def _contradictions(name: str, versions: Sequence[str], others: Sequence[Package], notes: list[str]) -> None:
    keys = {key_of(version) for version in versions}
    notes.extend(
        f"{name} {each.version} is written by hand, {versions[0]} is what a program says and is used"
        for each in others
        if each.rank == WRITTEN and each.version and key_of(each.version) not in keys and not _shortened(each, versions)
    )


def _shortened(package: Package, versions: Sequence[str]) -> bool:
    """``torch 2.6`` for 2.6.0 or 2.6.3."""
    return any(version.startswith(f"{package.version}.") for version in versions)


def _is_complete(found: Findings) -> bool:
    """Whether one list is whole and nothing else is said to be there."""
    if not found.whole_lists or any(each != found.whole_lists[0] for each in found.whole_lists):
        return False
    listed = {name for name, said in found.packages.items() if any(each.rank <= LISTED for each in said)}
    return listed <= found.whole_lists[0]


# --- The accelerators that several places in one text name → those of the environment.


_MERGED_DEVICES_MOST = 1024
"""Devices of one machine; a larger number is no count."""


def merged_devices(found: Findings, *, visible: bool, notes: list[str]) -> tuple[Accelerator, ...] | None:
    """The devices, ``None`` where nothing is known or the places contradict each other.

    ``visible``: a variable that says which devices the job sees is known, so all of the machine's are wanted.
    """
    seen = found.devices
    if not seen:
        counts = {count for count in found.device_counts if 0 < count <= _MERGED_DEVICES_MOST}
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
    if len(set(counts)) == 1 and counts[0] <= _MERGED_DEVICES_MOST:
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
