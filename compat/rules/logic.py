"""Three-valued logic: ``True``, ``False``, or ``None`` if the known facts do not decide it.

Conditions and conjunctions are evaluated with Kleene's logic. This is exact as long as a rule uses no unknown fact twice; if it
does, the possible values of that fact are enumerated (``compat.rules.unknown``).
"""

from __future__ import annotations

from compat.model import Accelerator, Distribution, Source
from compat.records import cached
from compat.rules.facts import ABSENT, IMPLIED, SAME_CLASSES, SHARDING, Facts, family_of, has_more, number_key
from compat.rules.rule import (
    OF_PACKAGES,
    AnyOf,
    Condition,
    HasCode,
    HasDevices,
    HasFeature,
    HasPackage,
    HasVariable,
    InRange,
    InstalledFrom,
    IsOneOf,
    kinds_of,
)
from compat.versions import EVERY, Ranges, contains, intersect, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any


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


def holds(condition: Condition, facts: Facts) -> bool | None:
    return _FORMS[type(condition)](condition, facts)


def paths(condition: Condition, facts: Facts) -> tuple[str, ...]:
    """The facts that would decide an undecided condition, as paths in the described environment."""
    if isinstance(condition, AnyOf):
        return tuple(path for each in condition.conditions if holds(each, facts) is None for path in paths(each, facts))
    if isinstance(condition, HasFeature):
        return (f"workload.features.{condition.name}",)
    if isinstance(condition, (InstalledFrom, HasCode)):
        return (f"distributions.{condition.name}.source",)
    return (_root(condition),)


def asked_twice(conditions: Iterable[Condition]) -> bool:
    """Whether two of these conditions may depend on the same fact; only then is Kleene's logic inexact."""
    seen: set[str] = set()
    for condition in conditions:
        facts = {_single(each) for each in (condition.conditions if isinstance(condition, AnyOf) else (condition,))}
        if not facts.isdisjoint(seen):
            return True
        seen |= facts
    return False


def _single(condition: Condition) -> str:
    """Like :func:`_root`, but distinguishes features that neither imply nor exclude others."""
    if isinstance(condition, HasFeature) and condition.name not in _RELATED:
        return f"workload.features.{condition.name}"
    return _root(condition)


_RELATED = frozenset((*SHARDING, *(name for names in IMPLIED.values() for name in names)))


def by_root(conditions: Iterable[Condition]) -> dict[str, list[Condition]]:
    """Group conditions by the fact that decides them; a distribution's presence, version, source and code are one fact."""
    asked: dict[str, list[Condition]] = {}
    for condition in conditions:
        if isinstance(condition, AnyOf):
            for root, found in by_root(condition.conditions).items():
                asked.setdefault(root, []).extend(found)
        else:
            asked.setdefault(_root(condition), []).append(condition)
    return asked


def _root(condition: Condition) -> str:
    if isinstance(condition, OF_PACKAGES):
        return f"distributions.{condition.name}"
    if isinstance(condition, (IsOneOf, InRange)):
        return condition.path
    if isinstance(condition, HasVariable):
        return f"variables.{condition.name}"
    return "workload.features" if isinstance(condition, HasFeature) else "accelerators"


def _is_one_of(condition: IsOneOf, facts: Facts) -> bool | None:
    value = facts.value(condition.path)
    if value is None:
        return None
    if value in condition.words:
        return True
    if condition.path == "workload.task":
        return not kinds_of(value).isdisjoint(condition.words)
    if condition.path != "workload.model":
        return False
    family = family_of(facts.workload.model_type or value)
    if family is None:
        # the family of an unrecognized model is unknown, but its name is not one that the rule lists in full
        return False if all("/" in word for word in condition.words) else None
    return family in condition.words or SAME_CLASSES.get(family) in condition.words


def _in_ranges(condition: InRange, facts: Facts) -> bool | None:
    value = facts.value(condition.path)
    if value is None:
        return True if condition.ranges == EVERY else None
    found = contains(condition.ranges, key_from(value))
    if condition.path == "python" and isinstance(value, str) and value.count(".") == 1:
        # "3.10" is any of its patch releases
        return found if contains(condition.ranges, key_of(f"{value}.99")) is found else None
    return found


def key_from(value: Any) -> Any:
    """The comparison key of a version or a number; representative values (``unknown.completions``) already are keys."""
    if isinstance(value, str):
        return key_of(value)
    return number_key(value) if isinstance(value, int) else value


def _has_feature(condition: HasFeature, facts: Facts) -> bool | None:
    known = facts.feature(condition.name)
    return None if known is None else known is condition.on


def _has_variable(condition: HasVariable, facts: Facts) -> bool | None:
    known, value = facts.variable(condition.name)
    if not known:
        return None
    if condition.how in ("set", "unset"):
        return (value is not None) == (condition.how == "set")
    if value is None:
        return False
    return any(word in value for word in condition.values) if condition.how == "contains" else value in condition.values


def _has_package(condition: HasPackage, facts: Facts) -> bool | None:
    found = facts.package(condition.name)
    if found is None:
        return None
    if found == ABSENT:
        return condition.how == "absent"
    if condition.how != "in":
        return condition.how == "present"
    return _agreed(_copy_in_range(copy, condition.ranges) for copy in found)


def _copy_in_range(copy: Any, ranges: Ranges) -> bool | None:
    if copy.version is not None:
        return contains(ranges, key_from(copy.version))
    if ranges == EVERY:
        return True
    return None if copy.specifier is None else _within(copy.specifier, ranges)


@cached
def _within(specifier: str, ranges: Ranges) -> bool | None:
    """``True`` if every release that a specifier allows lies in ``ranges``, ``False`` if none does, else ``None``."""
    try:
        asked = ranges_of(specifier)
    except ValueError:
        return None  # a local version, or not a valid specifier set
    both = intersect(asked, ranges)
    return False if not both else True if both == asked else None


def _agreed(values: Iterable[bool | None]) -> bool | None:
    """The value on which all copies agree, else ``None``; with two installed versions, the imported one is unknown."""
    agreed: bool | None = None
    for value in values:
        if value is None or (agreed is not None and value is not agreed):
            return None
        agreed = value
    return agreed


def _installed_from(condition: InstalledFrom, facts: Facts) -> bool | None:
    found = facts.package(condition.name)
    if not isinstance(found, list):
        return None if found is None else False
    return _agreed(_is_from(copy, condition.kinds) for copy in found)


def _is_from(copy: Distribution, kinds: tuple[str, ...]) -> bool | None:
    """A release with a local label (``2.1.0+cu118``) is from an index of its project: the public index takes none."""
    if copy.source is None:
        return None
    if copy.source.kind == "index" and copy.version is not None and "+" in copy.version:
        return False
    return copy.source.kind in kinds or any(_may_be_of_channel(copy.source, kind) for kind in kinds if ":" in kind)


def _may_be_of_channel(source: Source, kind: str) -> bool:
    """Whether this is ``conda:pytorch``, or conda without its channel; that channel names its builds ``py3.…``."""
    word, _, channel = kind.partition(":")
    stated, build = str(source.details.get("channel") or ""), str(source.details.get("build") or "")
    if source.kind in (kind, word) and build and "*" not in build:
        return build.startswith("py3.") is (channel == "pytorch")
    return source.kind in (kind, word) and stated.rpartition("/")[2] in ("", channel)


def _has_code(condition: HasCode, facts: Facts) -> bool | None:
    found = facts.package(condition.name)
    if not isinstance(found, list):
        return None if found is None else False
    return _agreed(_contains_code(copy, condition) for copy in found)


def _contains_code(copy: Distribution, condition: HasCode) -> bool | None:
    """Whether a copy contains the code: by the text in its installed file, else its commit; index releases never do."""
    if copy.source is None:
        return None
    read = copy.source.details.get("contains")
    if isinstance(read, dict) and condition.detector in read:
        return bool(read[condition.detector])
    commit = copy.source.details.get("commit")
    if isinstance(commit, str) and len(commit) >= 7:
        if any(known.startswith(commit.lower()) or commit.lower().startswith(known) for known in condition.commits):
            return True
        url = copy.source.details.get("url")
        upstream = not isinstance(url, str) or condition.repository in url.lower().removesuffix(".git")
        return False if upstream else None
    return False if copy.source.kind in ("index", "conda") else None


def _has_devices(condition: HasDevices, facts: Facts) -> bool | None:
    wanted, known = condition.count, facts.accelerators()
    if known is None:
        return True if _covers(wanted, 0, None) else None
    matches = [_device_matches(accelerator, condition) for accelerator in known]
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


def _device_matches(accelerator: Accelerator, wanted: HasDevices) -> bool | None:
    vendors, capability, names, gfx, memory = wanted.vendors, wanted.capability, wanted.names, wanted.gfx, wanted.memory_mib
    vendor = accelerator.vendor
    checks: list[bool | None] = []
    if vendors is not None:
        checks.append(None if vendor is None else vendor in vendors)
    if capability is not None:
        checks.append(_nvidia_only(vendor, accelerator.compute_capability, lambda v: contains(capability, key_from(v))))
    if names is not None:
        checks.append(None if accelerator.name is None else any(_is_named(accelerator.name.lower(), n.lower()) for n in names))
    if gfx is not None:
        known = accelerator.gfx
        checks.append(known in gfx if known is not None else (None if vendor in (None, "amd") else False))
    if memory is not None:
        size = accelerator.memory_mib
        checks.append(None if size is None else contains(memory, key_from(size)))
    return conjunction(checks)


def _is_named(name: str, wanted: str) -> bool:
    """Return whether a word in a device's name begins so; one word that ends in a digit is the whole: A100 is no A10."""
    at, whole = name.find(wanted), " " not in wanted and wanted[-1].isdecimal()
    while at >= 0:
        if not name[:at][-1:].isalnum() and not (whole and name[at + len(wanted) :][:1].isdecimal()):
            return True
        at = name.find(wanted, at + 1)
    return False


def _nvidia_only(vendor: str | None, capability: Any, test: Callable[[Any], bool]) -> bool | None:
    """Test a compute capability; only NVIDIA devices have one."""
    if vendor not in (None, "nvidia"):
        return False
    return None if capability is None else test(capability)


def _any_of(condition: AnyOf, facts: Facts) -> bool | None:
    return disjunction(holds(each, facts) for each in condition.conditions)


_FORMS: dict[type, Callable[[Any, Facts], bool | None]] = {
    IsOneOf: _is_one_of,
    InRange: _in_ranges,
    HasFeature: _has_feature,
    HasVariable: _has_variable,
    HasDevices: _has_devices,
    HasPackage: _has_package,
    InstalledFrom: _installed_from,
    HasCode: _has_code,
    AnyOf: _any_of,
}
