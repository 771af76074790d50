"""Listed releases that cannot be installed, alone or together: they pin what has no file for the target, or require releases of
another package that is not listed.

vllm 0.11.0 pins compressed-tensors 0.11.0, and llmcompressor 0.8.0 pins 0.12.1: whichever is installed, one of them runs with
a release that it does not accept. What a listed release pins counts with its own requirements.
"""

from __future__ import annotations

from compat.checks.fix_commands import moved_to, upgrade_to
from compat.checks.implied_releases import WITH_REQUIREMENTS, pinned_by
from compat.checks.requirements import SPECIFICATION, asked_of
from compat.model import Distribution, Environment, Finding, Fix, is_release
from compat.records import record, replace
from compat.rules.facts import Facts
from compat.versions import Ranges, contains, intersect, is_final, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from compat.checks.implied_releases import Implied
    from compat.tables.declared import Declared


_MOST_DAYS = 365
"""The maximum number of days between a release and the one proposed in its place."""


_WITHOUT_FILE = ("wheels-", "python-")
"""How the rules begin that say that a release has no file for a Python or a system."""


@record(frozen=True)
class Wanted:
    """What a release requires of a package; ``by`` is the listed release, itself or the one that pins it."""

    by: Distribution
    asking: str
    specifier: str
    ranges: Ranges


def judge(
    environment: Environment, pinned: Mapping[str, Implied], found: Collection[Finding], declared: Declared
) -> Iterator[Finding]:
    """Yield a finding for each two listed releases that require different releases of a package that is not listed.

    ``pinned`` are the releases that listed ones pin. Two packages of which ``found`` says already that they do not go together
    are left out.
    """
    listed = {copy.name: copy for copy in environment.distributions or ()}
    asking = [(copy, copy) for copy in listed.values() if copy.version is not None and is_release(copy) and not _given(copy)]
    asking += [
        (listed[each.root], Distribution(each.name, each.version)) for each in pinned.values()
        if each.root in listed and not _given(listed[each.root])
    ]  # fmt: skip
    wanted: dict[str, list[Wanted]] = {}
    for by, copy in asking:
        for name, specifier, ranges, _ in asked_of(copy, None, environment, declared):
            open_ = name not in listed or (listed[name].version is None and listed[name].source is None)
            if open_ and ranges is not None:
                wanted.setdefault(name, []).append(Wanted(by, _shown(copy), specifier, ranges))
    reported = [each.packages.keys() for each in found if each.verdict == "hit"]
    for name, every in wanted.items():
        pair = _disagreeing(name, every, declared)
        names = {each.by.name for each in pair or ()}
        if pair is not None and not any(names <= each for each in reported):
            reported.append(dict.fromkeys(names).keys())
            yield _finding(name, *pair, declared)


def _given(copy: Distribution) -> bool:
    """Whether it comes with what it requires, or states requirements of its own."""
    return copy.source is not None and copy.source.kind in WITH_REQUIREMENTS


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
            text = f"the nearest release that goes with {_shown(theirs.by)}"
            found.append((abs(days), moved_to(copy.name, copy.version or "0", nearest, text)))
    return [fix for _, fix in sorted(found, key=lambda each: each[0])]


def without_files(
    environment: Environment, pinned: Mapping[str, Implied], found: Collection[Finding], declared: Declared
) -> Iterator[Finding]:
    """Yield the pins of listed releases to releases without a file for this Python and system.

    Those that have none themselves, by ``found``, are left out.
    """
    from compat.checks.installation import judge_releases

    listed = {copy.name: copy for copy in environment.distributions or ()}
    reported = {name for each in found if each.rule.startswith(_WITHOUT_FILE) for name in each.packages}
    for each in pinned.values():
        root = listed.get(each.root)
        if root is None or _given(root) or each.root in reported:
            continue
        alone = replace(environment, distributions=(Distribution(each.name, each.version),))
        for finding in judge_releases(Facts(alone), declared):
            if finding.rule.startswith(_WITHOUT_FILE):
                reported.add(each.root)
                fixes = (*_with_files(root, each, alone, declared), *(fix for fix in finding.fixes if fix.package is None))
                yield replace(
                    finding, packages={root.name: root.version, each.name: None}, fixes=fixes,
                    here=f"{each.name} {each.version}, which {root.name} {root.version} requires",
                )  # fmt: skip


def _with_files(root: Distribution, pin: Implied, alone: Environment, declared: Declared) -> Iterator[Fix]:
    """Yield the next release of a listed distribution whose pin of another one has a file for this Python and system."""
    package, pinned = declared.package(root.name), declared.package(pin.name)
    place = None if package is None else package.place(root.version or "")
    if package is None or pinned is None or place is None:
        return
    for version in package.versions[place + 1 :]:
        if not is_final(key_of(version)):
            continue
        wanted = next((each for each in pinned_by(root.name, version, alone, declared) if each.name == pin.name), None)
        release = None if wanted is None else pinned.published(wanted.version)
        offered = package.published(version)
        if offered is None or release is None or not (offered.is_offered(alone.python) and release.supports(alone.python)):
            continue
        if release.has_files_for(alone.os, alone.python, alone.machine):
            yield upgrade_to(root.name, version, f"the next release, whose {pin.name} has a wheel for it")
            return
