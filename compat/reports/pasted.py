"""Turn text pasted into issues into an :class:`Environment`: run the readers in order and merge their findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compat.errors import InputError
from compat.machine.system import relevant_variables
from compat.model import EMPTY, Accelerator, Distribution, Environment
from compat.records import replace
from compat.reports.experiences import experiences_of
from compat.reports.fields import read_fields
from compat.reports.findings import HINTED, LISTED, PHYSICAL, VISIBLE, WRITTEN, Devices, Fact, Findings, Package
from compat.reports.hints import read_hints, read_images, read_launches
from compat.reports.lines import plain_lines
from compat.reports.log.versions import versions_in
from compat.reports.packages import read_json_lists, read_lists
from compat.reports.programs import read_accelerate, read_banner, read_devices, read_nvidia
from compat.reports.prose import of_this_environment, read_by_hand, read_variables
from compat.reports.words import MOST_DEVICES, is_tool, is_version
from compat.versions import key_of

_READERS = (
    read_nvidia,
    read_devices,
    read_banner,
    read_lists,
    read_json_lists,
    read_launches,
    read_accelerate,
    read_variables,
    read_fields,
    read_by_hand,
    read_images,
    read_hints,
)
"""Run in this order; some skip lines that earlier ones have consumed."""


def read_pasted(text: str, name: str) -> tuple[Environment, tuple[str, ...]]:
    """Return the environment that a pasted text describes, and notes on assumptions and unknown facts.

    Different versions of one distribution are kept as alternatives: several entries of its name. Other facts on which the
    text contradicts itself stay unknown. Raises :class:`InputError`, naming the text ``name``, if it describes nothing.
    """
    lines, cut = plain_lines(text)
    lines = of_this_environment(lines)
    found = Findings()
    if cut is not None:
        found.note(cut)
    for reader in _READERS:
        reader(lines, found)
    known = set(found.packages)
    for distribution, version in versions_in("\n".join(line.text for line in lines)).items():
        if distribution not in known and not is_tool(distribution):
            found.package(distribution, version, WRITTEN)
    for each in experiences_of(lines):
        if each.name not in found.packages and len(each.fails) == 1 and is_version(each.fails[0]):
            found.package(each.name, each.fails[0], HINTED)  # a report is about the release that fails
    environment, notes = merged(found)
    if len(environment.to_json()) == 1:
        raise InputError(
            "no environment found in the text; expected the output of collect_env, trl env, transformers env, pip list, "
            "nvidia-smi or similar",
            name,
        )
    return environment, notes


# --- Several statements about the same fact → one


_MOST = 8  # releases of one distribution that are considered; more are a history
_NAMES = {
    "python": "Python", "os": "operating system", "machine": "processor", "platform": "platform", "glibc": "glibc",
    "driver": "driver", "cuda_toolkit": "CUDA toolkit", "driver_state": "state of the driver",
}  # fmt: skip


def merged(found: Findings) -> tuple[Environment, tuple[str, ...]]:
    """Return the merged environment, and notes on assumptions and unknown facts."""
    notes = list(found.notes)
    values = {field: _agreed(field, facts, notes) for field, facts in found.values.items()}
    systems = {fact.value for fact in found.values.get("os", ())}
    if values.get("platform") in ("wsl1", "wsl2") and systems <= {"linux", "windows"}:
        values["os"] = "linux"  # WSL is called both
        notes = [note for note in notes if not note.startswith("two answers for the operating system")]
    for name, given in found.variables.items():
        if len(set(given)) > 1:
            notes.append(f"{name} is given with different values; none is used")
    same = {name: given[0] for name, given in found.variables.items() if len(set(given)) == 1}
    variables = {name: value for name, value in relevant_variables(same, ()).items() if value is not None}
    distributions = [each for name, mentions in found.packages.items() for each in _distributions(name, mentions, notes)]
    workload = found.workloads[0] if len({repr(each) for each in found.workloads}) == 1 else None
    if len(found.workloads) > 1 and workload is None:
        notes.append("two different accelerate configurations are given; neither is used")
    # complete: one list is whole, and no program reports anything beyond it
    listed = {name for name, mentions in found.packages.items() if any(each.rank <= LISTED for each in mentions)}
    whole = set(found.whole_lists)
    environment = Environment(
        distributions=tuple(distributions) or None,
        distributions_complete=len(whole) == 1 and listed <= found.whole_lists[0],
        accelerators=_devices(found, visible="CUDA_VISIBLE_DEVICES" in variables, notes=notes),
        variables=variables or None,
        workload=workload,
        python=values.get("python"),
        os=values.get("os"),
        machine=values.get("machine"),
        platform=values.get("platform"),
        glibc=values.get("glibc"),
        driver=values.get("driver"),
        driver_state=values.get("driver_state"),
        cuda_toolkit=values.get("cuda_toolkit"),
    )
    return environment, tuple(dict.fromkeys(notes))


def _agreed(field: str, facts: Sequence[Fact], notes: list[str]) -> str | None:
    """Return the value of the best-ranked facts if they agree, as ``3.10`` and ``3.10.12`` do."""
    best = min(fact.rank for fact in facts)
    values = list(dict.fromkeys(fact.value for fact in facts if fact.rank == best))
    longest = max(values, key=len)
    if all(longest == value or longest.startswith(f"{value}.") for value in values):
        return longest
    notes.append(f"two answers for the {_NAMES[field]}, neither is used: {' and '.join(sorted(values)[:4])}")
    return None


def _distributions(name: str, mentions: Sequence[Package], notes: list[str]) -> list[Distribution]:
    """Return the best-ranked releases: usually one, several if statements disagree."""
    telling = [each for each in mentions if each.version or each.specifier] or mentions
    least = min(each.rank for each in telling)
    best = sorted((each for each in telling if each.rank <= max(least, LISTED)), key=lambda each: each.rank)
    source = next((each.source for each in (*best, *mentions) if each.source is not None), None)
    extra = {key: value for each in mentions for key, value in each.extra.items()}

    def extra_of(version: str | None) -> Mapping[str, object]:
        """torch's CUDA is not repeated where the local label has it."""
        if version is not None and version.partition("+")[2].startswith(("cu", "rocm", "cpu", "xpu")):
            return {key: value for key, value in extra.items() if key not in ("cuda", "rocm")} or EMPTY
        return extra or EMPTY

    versions = _alternatives([each.version for each in best if each.version is not None])
    if not versions:
        specifier = next((each.specifier for each in best if each.specifier is not None), None)
        return [Distribution(name, None, source, None, specifier, extra_of(None))]
    if len(versions) > _MOST:
        notes.append(f"{name} is given in {len(versions)} versions; none is used")
        return [Distribution(name, None, source)]
    if len(versions) > 1:
        notes.append(f"{name} is given as {' and '.join(versions)}; each is considered")
    _note_contradictions(name, versions, [each for each in telling if each.rank > max(least, LISTED)], notes)
    found = []
    for version in versions:
        own = next((each.source for each in best if each.source is not None and each.version == version), None)
        own = own or (source if len(versions) == 1 else None)
        found.append(Distribution(name, version, own, None, None, extra_of(version)))
    return found


def _note_contradictions(name: str, versions: Sequence[str], others: Sequence[Package], notes: list[str]) -> None:
    keys = {key_of(version) for version in versions}
    for each in others:
        shortened = any(version.startswith(f"{each.version}.") for version in versions)  # torch 2.6 for 2.6.0
        if each.rank == WRITTEN and each.version and key_of(each.version) not in keys and not shortened:
            notes.append(f"{name} {each.version} is written by hand, {versions[0]} is what a program says and is used")


def _alternatives(versions: Sequence[str]) -> list[str]:
    """Return the distinct versions in order; of one release the most specific spelling (its local label)."""
    if len(set(versions)) < 2:
        return list(versions[:1])
    by_release: dict[object, list[str]] = {}
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


def _devices(found: Findings, *, visible: bool, notes: list[str]) -> tuple[Accelerator, ...] | None:
    """Return the accelerators; ``None`` if unknown or if statements contradict each other.

    ``visible``: CUDA_VISIBLE_DEVICES is known, so all devices of the machine are wanted.
    """
    seen = found.devices
    if not seen:
        counts = {count for count in found.device_counts if 0 < count <= MOST_DEVICES}
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
    first = max(candidates, key=_exactness)
    if all(_same(first, each) for each in candidates):
        return first
    _contradict(candidates, notes)
    return None


def _exactness(devices: tuple[Accelerator, ...]) -> tuple[bool, int]:
    """Rank a device: full names before truncated ones, then by the number of facts."""
    whole = not any((device.name or "").endswith("...") for device in devices)
    return whole, sum(value is not None for device in devices for value in (device.name, device.memory_mib, device.gfx))


def _contradict(candidates: Sequence[tuple[Accelerator, ...]], notes: list[str]) -> None:
    answers = " and ".join(dict.fromkeys(_written(each) for each in candidates))
    notes.append(f"two answers for the GPUs, neither is used: {answers}")


def _of_one_kind(seen: Sequence[Devices], counts: Sequence[int], notes: list[str]) -> tuple[Accelerator, ...] | None:
    """Return devices of one kind: as many as a count states, otherwise at least one."""
    best = min(each.rank for each in seen)
    candidates = [each.devices for each in seen if each.rank == best]
    if not all(_same(candidates[0], each) for each in candidates):
        _contradict(candidates, notes)
        return None
    kind = candidates[0]
    if len(set(counts)) == 1 and counts[0] <= MOST_DEVICES:
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
    """Whether two descriptions can mean the same device: no fact differs, and one name is a part of the other."""
    for ours, theirs in ((left.compute_capability, right.compute_capability), (left.gfx, right.gfx)):
        if ours is not None and theirs is not None and ours != theirs:
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
    """Add the facts of another statement to the devices: memory, capability, identifiers."""
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
