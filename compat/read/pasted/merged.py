"""What several places in one text say of the same thing, brought together as one :class:`Environment`."""

from __future__ import annotations

from compat.environment import EMPTY, Distribution, Environment
from compat.read.machine.variables import relevant
from compat.read.pasted.findings import LISTED, WRITTEN, Findings, Package
from compat.read.pasted.merged_devices import merged_devices
from compat.versions import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from compat.environment import Source

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
