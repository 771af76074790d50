"""Which of the releases that meet a script's needs are also compatible: can be installed and imported together.

A release of one package is excluded if it is compatible with no remaining release of another package that the script uses,
because of an import at import time or a declared requirement of either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from compat.interfaces.at_once import importable
from compat.interfaces.code.releases import Range
from compat.records import record, replace
from compat.versions import contains, key_of

if TYPE_CHECKING:
    from compat.interfaces.rows import Rows
    from compat.tables.declared import Declared


if TYPE_CHECKING:
    Said: TypeAlias = tuple[str, Collection[str], Collection[str], "Apart"]
    """Another package, releases that do not go with those of it, these, and what says so."""
    Refused: TypeAlias = dict[str, dict[str, "Apart"]]
    """Release of one package → the releases of another that do not go with it, each with the first thing that says so."""


@record(frozen=True)
class Apart:
    """Why two releases are incompatible: ``place`` in package ``by`` imports or requires ``what``."""

    by: str
    place: str
    what: str
    text: str


def narrowed(ranges: tuple[Range, ...], certain: frozenset[str], rows: Rows, declared: Declared) -> tuple[Range, ...]:
    """Return the ranges without releases that are incompatible with all remaining releases of another package.

    ``certain``: the packages that are installed whenever the code runs. If no release of a package would remain, the ranges are
    returned unchanged, so that the needs of the code itself are reported.
    """
    given = {each.package: each for each in ranges if each.allowed and each.package in certain}
    refused = _refused(given, rows, declared)
    left = {package: set(each.allowed) for package, each in given.items()}
    changed = True
    while changed:
        changed = False
        for (one, other), apart in refused.items():
            alone = {version for version in left[one] if left[other] <= apart.get(version, {}).keys()}
            left[one] -= alone
            changed = changed or bool(alone)
    if not all(left.values()):
        return ranges
    return tuple(_less(each, left, refused) if each.package in left else each for each in ranges)


def _less(range_: Range, left: Mapping[str, set[str]], refused: Mapping[tuple[str, str], Refused]) -> Range:
    """Return a range reduced to its remaining releases, with a reason for each removed one."""
    mine, why = range_.package, dict(range_.why)
    for version in range_.allowed - left[mine]:
        for (one, other), apart in refused.items():
            if one == mine and left[other] <= apart.get(version, {}).keys():
                why[version] = (_told(apart[version][max(left[other], key=key_of)], mine, other),)
                break
    return replace(range_, allowed=frozenset(left[mine]), why=why)


def _told(said: Apart, mine: str, other: str) -> Apart:
    end = f"and no remaining {other} has it" if said.by == mine else f"as by every remaining {other}"
    return replace(said, text=f"{said.text}, {end}")


def _refused(given: Mapping[str, Range], rows: Rows, declared: Declared) -> dict[tuple[str, str], Refused]:
    """Return the incompatible releases of each pair of packages, in both directions."""
    found: dict[tuple[str, str], Refused] = {}
    for one in given.values():
        for other, versions, bad, apart in (*_by_import(one, given, rows), *_by_declaration(one, given, declared)):
            for mine, theirs, pair in ((versions, bad, (one.package, other)), (bad, versions, (other, one.package))):
                of_pair = found.setdefault(pair, {})
                for version in mine:
                    of_pair.setdefault(version, {}).update({each: apart for each in theirs if each not in of_pair[version]})
    return found


def _by_import(one: Range, given: Mapping[str, Range], rows: Rows) -> Iterator[Said]:
    here = importable(given)
    for versions, row in rows.all_of(one.package, tier="E1"):
        if row.package in given and row.package != one.package and here.issuperset(row.asks):
            place = f"{one.package} {row.path}:{row.line}"
            yield row.package, versions, row.bad, Apart(one.package, place, row.what, "imported there")


def _by_declaration(one: Range, given: Mapping[str, Range], declared: Declared) -> Iterator[Said]:
    package = declared.package(one.package)
    if package is None:
        return
    for other in sorted(given.keys() & set(package.asks) - {one.package}):
        keys = {version: key_of(version) for version in given[other].versions}
        for version in one.versions:
            place = package.place(version)
            for specifier, ranges, marker, extra in () if place is None else package.requirements(place, other):
                if marker is None and extra is None:
                    bad = [each for each, key in keys.items() if not contains(ranges, key)]
                    asked = f"{other}{specifier}"
                    yield other, (version,), bad, Apart(one.package, f"{one.package} {version}", asked, "required by the code")
