"""Bounds for what an installer moves beside a fix, which it does not look for itself.

pip takes into account what it is asked for and what that requires. If the new releases require more than is installed, it takes
the newest release of that, whatever other installed packages require of it: ``datasets>=4.4`` brings huggingface-hub 2, which
transformers 4 refuses. With ``"huggingface-hub<1.0"`` in the command it takes a release of datasets that goes with both.
"""

from __future__ import annotations

from compat.checks.advice import ends_of, wanted_by, with_ranked_fixes
from compat.checks.missing import tightest
from compat.checks.requirements import requires_among
from compat.model import Distribution
from compat.records import replace
from compat.rules.facts import with_distributions
from compat.tables.declared import open_declared
from compat.versions import EVERY, contains, intersect, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from compat.checks.advice import Shared
    from compat.model import Environment, Finding, Fix
    from compat.rules.compiled import Matrix
    from compat.versions import Ranges


_MOVING = ("upgrade", "downgrade")
"""Kinds of fixes that are bounded: what is missing is installed by one command for all findings, which asks for more."""


def with_best_fixes(
    findings: Sequence[Finding], environment: Environment, matrix: Matrix, shared: Shared | None = None
) -> tuple[Finding, ...]:
    """The findings with their fixes in the order of what they leave, and the bounds in the command of the first one."""
    return tuple(
        replace(each, fixes=(bounded(each.fixes[0], environment), *each.fixes[1:]))
        if each.verdict == "hit" and each.fixes and each.fixes[0].kind in _MOVING else each
        for each in with_ranked_fixes(findings, environment, matrix, shared)
    )  # fmt: skip


def bounded(fix: Fix, environment: Environment) -> Fix:
    """A fix with what other installed packages require of the packages that its newest releases move."""
    wanted, python = wanted_by(fix), environment.python
    ends = {name: ends_of(name, ranges_of(spec), python) for name, spec in wanted.items() if "+" not in spec}
    if not ends or len(ends) < len(wanted) or not all(ends.values()):
        return fix
    moved, asked, reached = _asked(environment, {name: each[-1] for name, each in ends.items()})
    unseen = [copy.name for copy in environment.distributions or () if copy.name not in reached]
    least: dict[str, Ranges] | None = None
    more = ""
    for name in sorted(moved - wanted.keys()):
        newest = ends_of(name, asked[name], python)[-1:]
        met = [each.specifier for each in requires_among(environment, [*unseen, name], (name,)) if each.met and newest]
        refusing = [part for each in met for part in each.split(",") if not contains(ranges_of(part), key_of(newest[0]))]
        if refusing:
            bound = ",".join(tightest(list(dict.fromkeys(refusing))))
            if least is None:
                least = _asked(environment, {other: found[0] for other, found in ends.items()})[1]
            required = (asked[name], least.get(name, EVERY))
            if any(ends_of(name, intersect(ranges_of(bound), each), python) for each in required):
                more += f' "{name}{bound}"'
    return replace(fix, command=f"{fix.command}{more}") if more else fix


def _asked(environment: Environment, releases: Mapping[str, str]) -> tuple[set[str], dict[str, Ranges], set[str]]:
    """What must move beside these releases, what all that an installer looks at requires by name, and the names of that."""
    after = with_releases(environment, releases)
    reached = reached_from(after, releases)
    moved: set[str] = set()
    asked: dict[str, Ranges] = {}
    for each in requires_among(after, reached):
        asked[each.asked] = intersect(asked.get(each.asked, EVERY), ranges_of(each.specifier))
        moved |= {each.asked} if each.met is False else set()
    return moved, asked, reached


def with_releases(environment: Environment, releases: Mapping[str, str]) -> Environment:
    """The environment with these releases in the place of its own."""
    return with_distributions(environment, {name: Distribution(name, version) for name, version in releases.items()})


def reached_from(environment: Environment, names: Collection[str]) -> set[str]:
    """What an installer looks at that is asked for these distributions: them and what they require, and so on."""
    copies = {each.name: each for each in environment.distributions or ()}
    found: set[str] = set()
    waiting = [name for name in names if name in copies]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [each for each in open_declared().always(copies[name]) if each in copies]
    return found
