"""Three-valued logic: ``True``, ``False``, or ``None`` if the known facts do not decide it.

Atoms and conjunctions are evaluated with Kleene's logic. This is exact as long as a rule uses no unknown fact twice; if it
does, the possible values of that fact are enumerated (``compat.rules.unknown``).
"""

from __future__ import annotations

from compat.model import Accelerator, Distribution
from compat.rules.facts import ABSENT, IMPLIED, SHARDING, Facts, family_of, has_more, number_key
from compat.versions import EVERY, Ranges, contains, intersect, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from compat.rules.conditions import Atom


_MOST_DEVICES = 4096
"""The maximum number of device counts that are tried one by one."""


def conjunction(values: Iterable[bool | None]) -> bool | None:
    """``False`` if any is, else ``None`` if any is, else ``True``."""
    result: bool | None = True
    for value in values:
        if value is False:
            return False
        if value is None:
            result = None
    return result


def disjunction(values: Iterable[bool | None]) -> bool | None:
    """``True`` if any is, else ``None`` if any is, else ``False``."""
    result: bool | None = False
    for value in values:
        if value:
            return True
        if value is None:
            result = None
    return result


def holds(atom: Atom, facts: Facts) -> bool | None:
    """Whether one atom (see ``compat.rules.conditions``) holds."""
    return _FORMS[atom[0]](atom, facts)


def paths(atom: Atom, facts: Facts) -> tuple[str, ...]:
    """The facts that would decide an undecided atom, as paths in the described environment."""
    form = atom[0]
    if form in ("word", "range"):
        return (atom[1],)
    if form == "any":
        return tuple(path for each in atom[1] if holds(each, facts) is None for path in paths(each, facts))
    if form == "package":
        return (f"distributions.{atom[1]}",)
    if form in ("source", "code"):
        return (f"distributions.{atom[1]}.source",)
    if form == "feature":
        return (f"workload.features.{atom[1]}",)
    if form == "variable":
        return (f"variables.{atom[1]}",)
    return ("accelerators",)


def asked_twice(atoms: Iterable[Atom]) -> bool:
    """Whether two of these conditions may depend on the same fact; only then is Kleene's logic inexact."""
    seen: set[str] = set()
    for atom in atoms:
        facts = {_single(each) for each in (atom[1] if atom[0] == "any" else (atom,))}
        if not facts.isdisjoint(seen):
            return True
        seen |= facts
    return False


def _single(atom: Atom) -> str:
    """Like :func:`_root`, but distinguishes features that neither imply nor exclude others."""
    if atom[0] == "feature" and atom[1] not in _RELATED:
        return f"workload.features.{atom[1]}"
    return _root(atom)


_RELATED = frozenset((*SHARDING, *(name for names in IMPLIED.values() for name in names)))


def by_root(atoms: Iterable[Atom]) -> dict[str, list[Atom]]:
    """Group atoms by the fact that decides them; a distribution's presence, version, source and code are one fact."""
    asked: dict[str, list[Atom]] = {}
    for atom in atoms:
        if atom[0] == "any":
            for root, found in by_root(atom[1]).items():
                asked.setdefault(root, []).extend(found)
        else:
            asked.setdefault(_root(atom), []).append(atom)
    return asked


def _root(atom: Atom) -> str:
    form = atom[0]
    if form in ("package", "source", "code"):
        return f"distributions.{atom[1]}"
    if form == "feature":
        return "workload.features"
    if form == "variable":
        return f"variables.{atom[1]}"
    return "accelerators" if form == "accelerators" else str(atom[1])


def _word(atom: Atom, facts: Facts) -> bool | None:
    _, path, values = atom
    value = facts.value(path)
    if value is None:
        return None
    if path != "workload.model" or value in values:
        return value in values
    family = family_of(value)
    return None if family is None else family in values


def _range(atom: Atom, facts: Facts) -> bool | None:
    _, path, ranges = atom
    value = facts.value(path)
    if value is None:
        return True if ranges == EVERY else None
    return contains(ranges, key_from(value))


def key_from(value: Any) -> Any:
    """The comparison key of a version or a number; representative values (``unknown.completions``) already are keys."""
    if isinstance(value, str):
        return key_of(value)
    return number_key(value) if isinstance(value, int) else value


def _feature(atom: Atom, facts: Facts) -> bool | None:
    return facts.feature(atom[1])


def _variable(atom: Atom, facts: Facts) -> bool | None:
    _, name, how, values = atom
    known, value = facts.variable(name)
    if not known:
        return None
    if how in ("set", "unset"):
        return bool((value is not None) == (how == "set"))
    if value is None:
        return False
    return any(word in value for word in values) if how == "contains" else bool(value in values)


def _package(atom: Atom, facts: Facts) -> bool | None:
    _, name, how, ranges = atom
    found = facts.package(name)
    if found is None:
        return None
    if found == ABSENT:
        return bool(how == "absent")
    if how != "in":
        return bool(how == "present")
    return _agreed(_in_range(copy, ranges) for copy in found)


def _in_range(copy: Any, ranges: Ranges) -> bool | None:
    if copy.version is not None:
        return contains(ranges, key_from(copy.version))
    if ranges == EVERY:
        return True
    return None if copy.specifier is None else _within(copy.specifier, ranges)


def _within(specifier: str, ranges: Ranges) -> bool | None:
    """``True`` if every release that a specifier allows lies in ``ranges``, ``False`` if none does, else ``None``."""
    if (specifier, ranges) not in _compared:
        try:
            asked = ranges_of(specifier)
        except ValueError:
            return None  # a local version, or not a valid specifier set
        both = intersect(asked, ranges)
        _compared[specifier, ranges] = False if not both else True if both == asked else None
    return _compared[specifier, ranges]


_compared: dict[tuple[str, Ranges], bool | None] = {}


def _agreed(values: Iterable[bool | None]) -> bool | None:
    """The value on which all copies agree, else ``None``; with two installed versions, the imported one is unknown."""
    agreed: bool | None = None
    for value in values:
        if value is None or (agreed is not None and value is not agreed):
            return None
        agreed = value
    return agreed


def _source(atom: Atom, facts: Facts) -> bool | None:
    _, name, kinds = atom
    found = facts.package(name)
    if found is None or found == ABSENT:
        return None if found is None else False
    return _agreed(None if copy.source is None else copy.source.kind in kinds for copy in found)  # type: ignore[union-attr]


def _code(atom: Atom, facts: Facts) -> bool | None:
    _, name, detector, commits, repository = atom
    found = facts.package(name)
    if found is None or found == ABSENT:
        return None if found is None else False
    return _agreed(_holds_code(copy, detector, commits, repository) for copy in found)  # type: ignore[arg-type]


def _holds_code(copy: Distribution, detector: str, commits: tuple[str, ...], repository: str) -> bool | None:
    """Whether a copy contains the code: by the text in its installed file, else its commit; index releases never do."""
    if copy.source is None:
        return None
    read = copy.source.details.get("contains")
    if isinstance(read, dict) and detector in read:
        return bool(read[detector])
    commit = copy.source.details.get("commit")
    if isinstance(commit, str) and len(commit) >= 7:
        if any(known.startswith(commit.lower()) or commit.lower().startswith(known) for known in commits):
            return True
        url = copy.source.details.get("url")
        upstream = not isinstance(url, str) or repository in url.lower().removesuffix(".git")
        return False if upstream else None
    return False if copy.source.kind in ("index", "conda") else None


def _accelerators(atom: Atom, facts: Facts) -> bool | None:
    _, wanted, device = atom
    known = facts.accelerators()
    if known is None:
        return True if _covers(wanted, 0, None) else None
    matches = [_device_matches(accelerator, device) for accelerator in known]
    certain = sum(match is True for match in matches)
    if any(match is not False and has_more(accelerator) for match, accelerator in zip(matches, known)):
        return _count_from(wanted, certain)
    return _count_in(wanted, certain, certain + sum(match is None for match in matches))


def _count_in(wanted: Ranges, least: int, most: int) -> bool | None:
    return _agreed(contains(wanted, number_key(count)) for count in range(least, most + 1))


def _count_from(wanted: Ranges, least: int) -> bool | None:
    """Like :func:`_count_in`, for any number from ``least`` up; counts above the last bound are equivalent."""
    highest = max((int(key[1][0]) for interval in wanted for key in (interval[0], interval[2]) if key), default=0)
    if highest - least > _MOST_DEVICES:
        return True if _covers(wanted, least, None) else None
    return _count_in(wanted, least, max(highest, least) + 1)


def _covers(ranges: Ranges, least: int, most: int | None) -> bool:
    everything = ((number_key(least), True, None if most is None else number_key(most), most is not None),)
    return intersect(everything, ranges) == everything


def _device_matches(accelerator: Accelerator, device: tuple[Any, ...]) -> bool | None:
    vendors, capability, names, gfx, memory = device
    vendor = accelerator.vendor
    checks: list[bool | None] = []
    if vendors is not None:
        checks.append(None if vendor is None else vendor in vendors)
    if capability is not None:
        checks.append(_nvidia_only(vendor, accelerator.compute_capability, lambda v: contains(capability, key_from(v))))
    if names is not None:
        checks.append(None if accelerator.name is None else any(n.lower() in accelerator.name.lower() for n in names))
    if gfx is not None:
        known = accelerator.gfx
        checks.append(known in gfx if known is not None else (None if vendor in (None, "amd") else False))
    if memory is not None:
        size = accelerator.memory_mib
        checks.append(None if size is None else contains(memory, key_from(size)))
    return conjunction(checks)


def _nvidia_only(vendor: str | None, capability: Any, test: Callable[[Any], bool]) -> bool | None:
    """Test a compute capability; only NVIDIA devices have one."""
    if vendor not in (None, "nvidia"):
        return False
    return None if capability is None else test(capability)


def _any(atom: Atom, facts: Facts) -> bool | None:
    return disjunction(holds(each, facts) for each in atom[1])


_FORMS: dict[str, Callable[[Atom, Facts], bool | None]] = {
    "word": _word,
    "range": _range,
    "feature": _feature,
    "variable": _variable,
    "package": _package,
    "source": _source,
    "code": _code,
    "accelerators": _accelerators,
    "any": _any,
}
