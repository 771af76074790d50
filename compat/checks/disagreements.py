"""Listed releases that cannot be installed together: they require releases of another package that is not listed.

vllm 0.11.0 pins compressed-tensors 0.11.0, and llmcompressor 0.8.0 pins 0.12.1: whichever is installed, one of them runs with
a release that it does not accept. What a listed release pins counts with its own requirements.
"""

from __future__ import annotations

from compat.checks.requirements import SPECIFICATION, applies
from compat.model import Distribution, Environment, Finding, Fix, is_release
from compat.records import record
from compat.versions import Ranges, contains, intersect, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from compat.tables.declared import Declared


_MOST_DAYS = 365
"""The maximum number of days between a release and the one proposed in its place."""


@record(frozen=True)
class Wanted:
    """What a release requires of a package; ``by`` is the listed release, itself or the one that pins it."""

    by: Distribution
    asking: str
    specifier: str
    ranges: Ranges


def judge(
    environment: Environment, pinned: Iterable[tuple[str, Distribution]], found: Collection[Finding], declared: Declared
) -> Iterator[Finding]:
    """Yield a finding for each two listed releases that require different releases of a package that is not listed.

    ``pinned`` are the releases that listed ones pin, each with the name of the listed one. Two packages of which ``found`` says
    already that they do not go together are left out.
    """
    listed = {copy.name: copy for copy in environment.distributions or ()}
    asking = [(copy, copy) for copy in listed.values() if copy.version is not None and is_release(copy) and not _given(copy)]
    asking += [(listed[root], copy) for root, copy in pinned if root in listed and not _given(listed[root])]
    wanted: dict[str, list[Wanted]] = {}
    for by, copy in asking:
        for name, each in _required(by, copy, environment, declared):
            if name not in listed or (listed[name].version is None and listed[name].source is None):
                wanted.setdefault(name, []).append(each)
    reported = [each.packages.keys() for each in found if each.verdict == "hit"]
    for name, every in wanted.items():
        pair = _disagreeing(name, every, declared)
        names = {each.by.name for each in pair or ()}
        if pair is not None and not any(names <= each for each in reported):
            reported.append(dict.fromkeys(names).keys())
            yield _finding(name, *pair, declared)


def _given(copy: Distribution) -> bool:
    """Whether it comes with what it requires, or states requirements of its own."""
    return copy.source is not None and copy.source.kind in ("conda", "image")


def _required(
    by: Distribution, copy: Distribution, environment: Environment, declared: Declared
) -> Iterator[tuple[str, Wanted]]:
    package = declared.package(copy.name)
    place = None if package is None else package.place(copy.version or "")
    if package is None or place is None:
        return
    extras = copy.extra.get("extras", ())
    for name in package.asks:
        for specifier, ranges, marker, extra in package.requirements(place, name):
            if (extra is None or extra in extras) and applies((specifier, ranges, marker, extra), environment):
                yield name, Wanted(by, _shown(copy), specifier, ranges)


def _disagreeing(name: str, every: list[Wanted], declared: Declared) -> tuple[Wanted, Wanted] | None:
    """The first two requirements of different listed releases that no published release satisfies."""
    for position, one in enumerate(every):
        for other in every[:position]:
            if other.by.name != one.by.name and not _satisfiable(name, intersect(other.ranges, one.ranges), declared):
                return other, one
    return None


def _satisfiable(name: str, ranges: Ranges, declared: Declared) -> bool:
    """Whether a release may be in the ranges: a published one, one newer than the tables, or a pre-release that is pinned."""
    package = declared.package(name)
    if package is None or not ranges:
        return bool(ranges)
    newest = key_of(package.versions[-1])
    open_ = any(low is not None and (low == high or low > newest) for low, _, high, _ in ranges)
    return open_ or any(contains(ranges, key_of(version)) for version in package.versions)


def _finding(name: str, one: Wanted, other: Wanted, declared: Declared) -> Finding:
    title = f"{_told(one)} requires {name}{one.specifier}, and {_told(other)} requires {name}{other.specifier}"
    return Finding(
        rule=f"disagree-{one.by.name}-{other.by.name}", origin="metadata", severity="warning", effect="install", title=title,
        why=f"No release of {name} satisfies both: whichever is installed, one of them runs with a release it does not accept.",
        packages={one.by.name: one.by.version, other.by.name: other.by.version, name: None},
        fixes=tuple(_fixes(name, one, other, declared)), evidence=(SPECIFICATION,),
        here=f"{_shown(one.by)}, {_shown(other.by)}",
    )  # fmt: skip


def _told(wanted: Wanted) -> str:
    by = _shown(wanted.by)
    return by if wanted.asking == by else f"{wanted.asking} (which {by} requires)"


def _shown(copy: Distribution) -> str:
    return f"{copy.name} {copy.version}"


def _fixes(name: str, one: Wanted, other: Wanted, declared: Declared) -> list[Fix]:
    """The nearest release of each of the two that accepts what the other requires, the one nearer in time first."""
    found: list[tuple[int, Fix]] = []
    for mine, theirs in ((one, other), (other, one)):
        package, copy = declared.package(mine.by.name), mine.by
        place = None if package is None else package.place(copy.version or "")
        if package is None or place is None or mine.asking != _shown(copy):
            continue

        def accepts(ranges: Ranges, wanted: Ranges = theirs.ranges) -> bool:
            return _satisfiable(name, intersect(ranges, wanted), declared)

        nearest = package.accepting(place, name, None, accepts)
        days = 0 if nearest is None else package.day(nearest) - package.day(copy.version or "")
        if nearest is not None and abs(days) <= _MOST_DAYS:
            newer = key_of(nearest) > key_of(copy.version or "0")
            text = f"the nearest release that goes with {_shown(theirs.by)}"
            command = f'pip install "{copy.name}=={nearest}"'
            spec = f">={nearest}" if newer else f"<={nearest}"
            found.append((abs(days), Fix("upgrade" if newer else "downgrade", copy.name, spec, text, command)))
    return [fix for _, fix in sorted(found, key=lambda each: each[0])]
