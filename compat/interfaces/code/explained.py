"""A script's version ranges: narrowed to releases that go together, and explained.

A release of one package is excluded if it is compatible with no remaining release of another package that the script uses,
because of an import at import time or a declared requirement of either. Each bound is explained with the line that sets it
and the name in the excluded release.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

from compat.interfaces.at_once import importable
from compat.interfaces.code.needs import Bound, CodeNeed, CodeNeeds, follows, named
from compat.interfaces.code.releases import Apart, Range, Releases, Reverse
from compat.interfaces.code.renamed import Renamed, in_other_release, nearest
from compat.interfaces.needs import Need, verdict_on
from compat.records import record, replace
from compat.versions import contains, key_of

if TYPE_CHECKING:
    from compat.interfaces.rows import Rows
    from compat.tables.declared import Declared

    Said: TypeAlias = tuple[str, Collection[str], Collection[str], "Apart"]
    """Another package, releases incompatible with it, its own releases, and the reason."""
    Refused: TypeAlias = dict[str, dict[str, "Apart"]]
    """Release of one package → the incompatible releases of another, each with the first reason."""


def drop_incompatible_releases(
    ranges: tuple[Range, ...], certain: frozenset[str], rows: Rows, declared: Declared
) -> tuple[Range, ...]:
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
                reason = apart[version][max(left[other], key=key_of)]
                end = f"and no remaining {other} has it" if reason.by == mine else f"as by every remaining {other}"
                why[version] = (replace(reason, text=f"{reason.text}, {end}"),)
                break
    return replace(range_, allowed=frozenset(left[mine]), why=why)


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


@record(frozen=True)
class Reason:
    """Why a release is excluded: what the code uses at ``place``, and the explanation.

    ``stated``: ``renamed`` is stated by the package or is the same name in another module, otherwise it is only similar.
    ``left``: the need is deferred to a base class in another package.
    """

    place: str
    what: str
    text: str
    renamed: str | None = None
    stated: bool = False
    left: bool = False

    def to_json(self) -> dict[str, object]:
        return {"place": self.place, "uses": self.what, "why": self.text, "renamed": self.renamed}


@record(frozen=True)
class Explained:
    """The releases of one package: ``first`` to ``last`` without ``holes``; ``None`` if no release is suitable.

    ``below`` and ``above`` are the adjacent releases with the reasons that exclude them. ``with_others`` describes the releases
    of other packages that are required.
    """

    package: str
    range: Range
    first: str | None = None
    last: str | None = None
    below: tuple[str, tuple[Reason, ...]] | None = None
    above: tuple[str, tuple[Reason, ...]] | None = None
    holes: Mapping[str, tuple[Reason, ...]] = {}
    conflict: tuple[Reason, ...] = ()
    with_others: tuple[str, ...] = ()

    @property
    def specifier(self) -> str:
        """The releases as a specifier set; empty for all known releases."""
        versions = self.range.versions
        parts = []
        if self.first is not None and self.first != versions[0]:
            parts.append(f">={self.first}")
        if self.last is not None and self.last != versions[-1]:
            parts.append(f"<={self.last}")
        parts += [f"!={version}" for version in self.holes]
        return ",".join(parts)


@record(frozen=True)
class Nowhere:
    """A name or keyword missing from every known release, with the most similar existing name."""

    package: str
    place: str
    what: str
    nearest: str | None


def explain_ranges(ranges: tuple[Range, ...], reverse: Reverse, releases: Releases) -> tuple[Explained, ...]:
    return tuple(_one(each, ranges, reverse, releases) for each in ranges)


def absent_everywhere(reverse: Reverse, releases: Releases, wanted: CodeNeeds) -> tuple[Nowhere, ...]:
    """Return what no release has; names are included only if they resemble a known one."""
    found = []
    for each in reverse.hopeless:
        if each.need.kind == "complete":
            continue  # the call is wrong with every release
        package = wanted.packages_of(each)[0]
        near = nearest(releases, package, each.need)
        found.append(Nowhere(package, each.place, each.what, near))
    for each in wanted.all:
        package = wanted.packages_of(each)[0]
        table = releases.table(package)
        world = None if table is None else releases.world(package, table.versions[-1])
        if world is None or each.need.kind not in ("import", "attribute"):
            continue
        kind, target, name, *_ = each.need
        meaning = world.imported(target, name) if kind == "import" else world.find(target)
        if meaning.kind == "never" and (near := nearest(releases, package, each.need)) is not None:
            found.append(Nowhere(package, each.place, each.what, near))
    return tuple(found)


def _one(each: Range, ranges: tuple[Range, ...], reverse: Reverse, releases: Releases) -> Explained:
    good = [at for at, version in enumerate(each.versions) if version in each.allowed]
    if not good:
        return Explained(each.package, each, conflict=_conflict(each, releases))
    first, last = good[0], good[-1]
    versions = each.versions

    def reasons_at(at: int, inside: int) -> tuple[str, tuple[Reason, ...]]:
        why = each.why.get(versions[at], ())
        return versions[at], _reasons(each.package, why, versions[inside], versions[at], releases, newer=at > inside)

    holes = {
        versions[at]: reasons_at(at, max(ok for ok in good if ok < at))[1]
        for at in range(first, last) if versions[at] not in each.allowed
    }  # fmt: skip
    return Explained(
        each.package, each, versions[first], versions[last], reasons_at(first - 1, first) if first else None,
        reasons_at(last + 1, last) if last + 1 < len(versions) else None, holes, (), _with_others(each, ranges, reverse),
    )  # fmt: skip


def _with_others(each: Range, ranges: tuple[Range, ...], reverse: Reverse) -> tuple[str, ...]:
    """Describe which releases of the packages they depend on the oldest and the newest release of a range require."""
    found: list[str] = []
    good = [version for version in each.versions if version in each.allowed]
    for other in ranges:
        if not any(lean == other.package for version in good for _, lean in each.leaning.get(version, ())):
            continue
        partners_of = {version: reverse.partners(each, version, other) for version in good}
        if all(partners == other.allowed for partners in partners_of.values()):
            continue
        for version in dict.fromkeys((good[0], good[-1])):
            partners = [one for one in other.versions if one in partners_of[version]]
            found.append(f"{version} with {other.package} {_span(partners, other)}")
    return tuple(found)


def _span(partners: list[str], other: Range) -> str:
    if partners[-1] == other.versions[-1]:
        return f"{partners[0]} and later"
    if partners[0] == other.versions[0]:
        return f"up to {partners[-1]}"
    return partners[0] if len(partners) == 1 else f"{partners[0]} – {partners[-1]}"


def _reasons(
    package: str, why: tuple[CodeNeed | Bound | Apart, ...], has: str, lacks: str, releases: Releases, *, newer: bool
) -> tuple[Reason, ...]:
    gone = [name for each in why if isinstance(each, CodeNeed) and (name := named(each.need))]
    own = [each for each in why if not (isinstance(each, CodeNeed) and follows(each.need, gone))]
    return tuple(_reason(package, each, has, lacks, releases, newer=newer) for each in own)


def _reason(package: str, each: CodeNeed | Bound | Apart, has: str, lacks: str, releases: Releases, *, newer: bool) -> Reason:
    if isinstance(each, Apart):
        return Reason(each.place, each.what, each.text)
    if not isinstance(each, CodeNeed):
        return Reason(f"{each.path}:{each.line}", f"{package}{each.specifier}", "required by the code")
    need = each.need
    lean = releases.answer(package, lacks, need).lean
    if lean is not None:  # the other package decides
        return Reason(
            each.place, each.what, f"no remaining release of {lean.package} provides it for {package} {lacks}", left=True
        )
    if need.kind == "override":
        world = releases.world(package, lacks)
        verdict = None if world is None else verdict_on(world, need)
        how = "more arguments than it accepts"
        if verdict is not None and verdict.kind == "override-keyword":
            how = f"{verdict.missing}=, which it does not accept"
        return Reason(each.place, each.what, f"{lacks} calls it with {how}")
    found = in_other_release(releases, package, need, has, lacks)
    text = _text(need, lacks, found, newer=newer)
    return Reason(each.place, each.what, text, *(() if found is None else (found.name, found.stated)))


def _text(need: Need, lacks: str, found: Renamed | None, *, newer: bool) -> str:
    if need.kind in ("import", "attribute"):
        text = f"removed in {lacks}" if newer else f"not yet in {lacks}"
        if found is not None and found.stated:
            return f"{text}, where it is {found.name}"
        return f"{text}; {found.name} exists" if found is not None else text
    if need.keywords:
        text = f"not accepted by {lacks}" if newer else f"not yet accepted by {lacks}"
        if found is None:
            return text
        if not found.stated:
            return f"{text}; {found.name}= is similar"
        return f"renamed {found.name} in {lacks}" if newer else f"{text}, which calls it {found.name}"
    if need.positional:
        return f"{lacks} accepts fewer positional arguments"
    return f"removed in {lacks}" if newer else f"not yet in {lacks}"


def _conflict(each: Range, releases: Releases) -> tuple[Reason, ...]:
    """Return the conflicting needs, each with the releases that meet it, rarest first."""
    lacking: dict[int, CodeNeed | Bound | Apart] = {}
    for why in each.why.values():
        lacking.update((id(one), one) for one in why)
    found = []
    for one in lacking.values():
        have = [version for version in each.versions if all(one is not other for other in each.why.get(version, ()))]
        where = f"only in {have[0]}" + (f" – {have[-1]}" if len(have) > 1 else "") if have else "in no release"
        if isinstance(one, Apart):
            continue
        if isinstance(one, CodeNeed):
            near = nearest(releases, each.package, one.need) if have and have[-1] != each.versions[-1] else None
            hint = f"; {near} is similar" if near else ""
            found.append((len(have), Reason(one.place, one.what, where + hint, near)))
        else:
            found.append(
                (len(have), Reason(f"{one.path}:{one.line}", f"{each.package}{one.specifier}", "required by the code"))
            )
    return tuple(reason for _, reason in sorted(found, key=lambda pair: pair[0]))
