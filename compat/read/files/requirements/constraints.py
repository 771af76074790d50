"""Constraints (``-c``): what they leave of a requirement. A constraint installs nothing by itself."""

from __future__ import annotations

from compat.read.files.listing import Entry
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from compat.environment import Distribution

_MOST = 8
"""Different constraints on one distribution that are looked at; real files have one."""


def constrained(entries: Iterable[Entry], constraints: Iterable[Entry], notes: list[str]) -> tuple[Entry, ...]:
    """The entries, narrowed by the constraints of the same name; what could not be applied is said in ``notes``.

    A pin becomes the entry's version, ranges are added up. ``extra["constraint"]`` says where the constraint stands.
    """
    by_name: dict[str, dict[object, Entry]] = {}
    for constraint in constraints:
        limit = constraint.distribution
        by_name.setdefault(limit.name, {}).setdefault((limit.version, limit.specifier, limit.marker), constraint)
    if not by_name:
        return tuple(entries)
    limits = {name: list(different.values())[:_MOST] for name, different in by_name.items()}
    return tuple(_narrowed(entry, limits.get(entry.distribution.name, []), notes) for entry in entries)


def _narrowed(entry: Entry, constraints: list[Entry], notes: list[str]) -> Entry:
    asked = entry.distribution
    for constraint in constraints:
        asked = _narrowed_by(asked, entry.line, constraint, notes)
    return entry if asked is entry.distribution else replace(entry, distribution=asked)


def _narrowed_by(asked: Distribution, line: int | None, constraint: Entry, notes: list[str]) -> Distribution:
    limit = constraint.distribution
    place = f"{constraint.file}:{constraint.line}"
    if limit.marker is not None and limit.marker != asked.marker:
        notes.append(f"{place}: the constraint on {limit.name} holds only where {limit.marker}; it is not applied")
        return asked
    extra = {**asked.extra, "constraint": place}
    direct = limit.source is not None and "url" in limit.source.details
    if asked.version is not None or (asked.source is not None and asked.source.kind not in ("index", "nightly")):
        if limit.version is not None and asked.version is not None and limit.version != asked.version:
            notes.append(f"{place}: {limit.name} {limit.version} contradicts {asked.version} (line {line})")
        return asked
    if limit.version is not None or direct:
        return replace(asked, version=limit.version, specifier=None, source=limit.source, extra=extra)
    if limit.specifier is None:
        return asked
    both = ",".join(dict.fromkeys(each for each in (asked.specifier, limit.specifier) if each))
    return replace(asked, specifier=both, extra=extra)
