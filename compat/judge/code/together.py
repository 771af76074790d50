"""Which releases that have all a script uses can also be had together: installed, and imported beside each other.

Of two packages that a script uses, a release of one is out where no release left of the other goes with it: what one of
them imports as soon as it is imported, or what it declares, rules all of those out.
"""

from __future__ import annotations

from compat.judge.code.releases import Range
from compat.matrix.surface.at_once import importable
from compat.records import record, replace
from compat.versions import contains, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from compat.matrix.declared import Declared
    from compat.matrix.surface.rows import Rows


@record(frozen=True)
class Apart:
    """Why a release goes with none that is left of ``other``: ``place`` says it, of ``what``."""

    other: str
    place: str
    what: str
    text: str


Refused = dict[str, dict[str, Apart]]
"""Release of one package → the releases of another that do not go with it, each with the first thing that says so."""


def narrowed(ranges: tuple[Range, ...], certain: frozenset[str], rows: Rows, declared: Declared) -> tuple[Range, ...]:
    """The ranges without releases that go with none of what is left of another package.

    ``certain``: the packages that are there whenever the code runs. Where nothing would be left the ranges stay as they are:
    what the code asks for is then what there is to tell.
    """
    left = {each.package: each for each in ranges if each.allowed and each.package in certain}
    refused = {
        (one, other): found
        for one in left for other in left
        if one != other and (found := _refused(left[one], left[other], frozenset(left), rows, declared))
    }  # fmt: skip
    changed = True
    while changed:
        changed = False
        for (one, other), apart in refused.items():
            for narrower, why in (_without_partner(left[one], left[other], apart), _left_over(left[one], left[other], apart)):
                if why:
                    left[narrower.package] = _less(narrower, why)
                    changed = True
        if not all(each.allowed for each in left.values()):
            return ranges
    return tuple(left.get(each.package, each) for each in ranges)


def _without_partner(one: Range, other: Range, apart: Refused) -> tuple[Range, dict[str, Apart]]:
    """The releases that refuse all that is left of the other."""
    end = f", and no {other.package} that is left has it"
    newest = max(other.allowed, key=key_of, default="")
    alone = [version for version in one.allowed & apart.keys() if newest and other.allowed <= apart[version].keys()]
    return one, {version: _ending(apart[version][newest], other.package, end) for version in alone}


def _left_over(one: Range, other: Range, apart: Refused) -> tuple[Range, dict[str, Apart]]:
    """The releases of the other that all that is left refuses."""
    if not one.allowed or not one.allowed <= apart.keys():
        return other, {}
    by_all = other.allowed.intersection(*(apart[version] for version in one.allowed))
    said = apart[max(one.allowed, key=key_of)]
    end = f", as by every {one.package} that is left"
    return other, {version: _ending(said[version], one.package, end) for version in by_all}


def _ending(said: Apart, other: str, text: str) -> Apart:
    return replace(said, other=other, text=said.text + text)


def _less(range_: Range, why: Mapping[str, Apart]) -> Range:
    told = {version: (each,) for version, each in why.items()}
    return replace(range_, allowed=range_.allowed - why.keys(), why={**range_.why, **told})


def _refused(one: Range, other: Range, there: frozenset[str], rows: Rows, declared: Declared) -> Refused:
    found: Refused = {}
    for versions, bad, apart in (*_by_import(one, other, there, rows), *_by_declaration(one, other, declared)):
        for version in versions:
            found[version] = dict.fromkeys(bad, apart) | found.get(version, {})
    return found


def _by_import(
    one: Range, other: Range, there: frozenset[str], rows: Rows
) -> Iterator[tuple[tuple[str, ...], frozenset[str], Apart]]:
    here = importable(there)
    for versions, row in rows.all_of(one.package, tier="E1"):
        if row.package == other.package and here.issuperset(row.asks):
            place = f"{one.package} {row.path}:{row.line}"
            yield versions, frozenset(row.bad), Apart(other.package, place, row.what, "imported there")


def _by_declaration(one: Range, other: Range, declared: Declared) -> Iterator[tuple[tuple[str, ...], frozenset[str], Apart]]:
    package = declared.package(one.package)
    if package is None or other.package not in package.asks:
        return
    keys = {version: key_of(version) for version in other.versions}
    for version in one.versions:
        place = package.place(version)
        for specifier, ranges, marker, extra in () if place is None else package.requirements(place, other.package):
            if marker is None and extra is None:
                bad = frozenset(each for each, key in keys.items() if not contains(ranges, key))
                asked = f"{other.package}{specifier}"
                yield (version,), bad, Apart(other.package, f"{one.package} {version}", asked, "asked for")
