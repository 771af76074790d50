"""The order of fixes: those that leave the fewest errors come first.

The author of a rule orders its fixes without knowing what else is installed. Here every fix that changes releases is tried on
the environment: a release that another installed package refuses, or that another rule is about, moves behind one that works,
and one that fixes several findings moves to the front. Fixes that are equally good keep the order of the rule.

The command of the best fix gets bounds for what an installer moves beside it. pip takes into account what it is asked for and
what that requires. If the new releases require more than is installed, it takes the newest release of that, whatever other
installed packages require of it: ``datasets>=4.4`` brings huggingface-hub 2, which transformers 4 refuses. With
``"huggingface-hub<1.0"`` in the command it takes a release of datasets that goes with both.
"""

from __future__ import annotations

from compat.checks import builds, guards, installation, interfaces, requirements
from compat.checks.fix_commands import by_pip
from compat.model import Distribution, is_release
from compat.records import replace
from compat.rules.evaluate import Answers, errors_about
from compat.rules.facts import Facts, seen_by_torch, visible, with_distributions
from compat.tables.declared import open_declared
from compat.versions import EVERY, contains, intersect, is_version, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from compat.model import Environment, Finding, Fix
    from compat.rules.compiled import Matrix
    from compat.versions import Ranges

_MOST_TRIALS = 24
"""Environments checked for one report; the findings are sorted worst first, so the errors get theirs."""
_MOST_SHARED_TRIALS = 100
_COMPILED = builds.NAMES | {"numpy"}
"""The distributions on which findings about builds depend."""
_OF_RELEASES = ("upgrade", "downgrade", "pin")
_MOVING = ("upgrade", "downgrade")
"""Kinds of fixes that are bounded: what is missing is installed by one command for all findings, which asks for more."""


class Shared:
    """What many similar environments share, so that each costs only what is new in it: results of rules, and orders of fixes.

    The fixes of a rule that several environments break have the order of the first of them. ``trials`` are left for all
    environments together: with the most common ones first, these decide the orders.
    """

    def __init__(self) -> None:
        self.answers = Answers()
        self.trials = _MOST_SHARED_TRIALS
        self.orders: dict[tuple[str, tuple[Fix, ...]], tuple[Fix, ...]] = {}


def with_best_fixes(
    findings: Sequence[Finding], environment: Environment, matrix: Matrix, shared: Shared | None = None
) -> tuple[Finding, ...]:
    """The findings with their fixes in the order of what they leave, and the bounds in the command of the first one."""
    return tuple(
        replace(each, fixes=(bounded(accompanied(each.fixes[0], environment), environment), *each.fixes[1:]))
        if each.verdict == "hit" and each.fixes and each.fixes[0].kind in _MOVING else each
        for each in with_ranked_fixes(findings, environment, matrix, shared)
    )  # fmt: skip


def with_ranked_fixes(
    findings: Sequence[Finding], environment: Environment, matrix: Matrix, shared: Shared | None = None
) -> tuple[Finding, ...]:
    """The findings, each with the fixes that change releases in the order of how many errors they leave.

    ``environment`` is the one that the findings are about. A fix that changes no release (a launcher, a variable) keeps its
    place.
    """
    shared = shared or Shared()
    trials = _Trials(environment, matrix, shared)
    return tuple(_ranked(finding, trials, shared.orders) for finding in findings)


def _ranked(finding: Finding, trials: _Trials, orders: dict[tuple[str, tuple[Fix, ...]], tuple[Fix, ...]]) -> Finding:
    if finding.verdict != "hit" or sum(fix.kind in _OF_RELEASES for fix in finding.fixes) < 2:
        return finding
    key = finding.rule, finding.fixes
    if key not in orders:
        known = {place: ends for place, fix in enumerate(finding.fixes) if (ends := trials.ends(fix))}
        left = {place: trials.after(ends) for place, ends in known.items()} if len(known) > 1 else {}
        fixes = list(finding.fixes)
        for place, better in zip(left, sorted(left, key=left.__getitem__)):
            fixes[place] = finding.fixes[better]
        orders[key] = tuple(fixes)
    return replace(finding, fixes=orders[key])


def following(findings: Sequence[Finding], commands: Sequence[str]) -> tuple[Finding, ...]:
    """The findings with the fix first that is part of commands for all of them, or at least goes together with them.

    Otherwise two findings about one package may begin with ``A<2`` and ``A>=3``.
    """
    wanted = {name: spec for command in commands for name, spec in requirements_in(command)}
    return tuple(_following(finding, wanted) for finding in findings)


def _following(finding: Finding, wanted: Mapping[str, str]) -> Finding:
    asked = [wanted_by(fix) for fix in finding.fixes]
    if finding.verdict != "hit" or not asked or not asked[0] or not apart(asked[0], wanted):
        return finding
    going = [place for place, each in enumerate(asked) if each and not apart(each, wanted)]
    if not going:  # another finding's fix ends this one as well
        name = next((each for each in finding.packages if each in wanted), None)
        text = "what the other findings ask for, which fixes this as well"
        return finding if name is None else replace(finding, fixes=(by_pip("pin", name, wanted[name], text), *finding.fixes))
    place = next((place for place in going if asked[place].keys() <= wanted.keys()), going[0] if going else 0)
    fixes = finding.fixes
    return replace(finding, fixes=(fixes[place], *fixes[:place], *fixes[place + 1 :])) if place else finding


def wanted_by(fix: Fix) -> dict[str, str]:
    """The specifiers of what a fix installs; empty if it does something else."""
    return {} if fix.command is None or fix.kind not in _OF_RELEASES else dict(requirements_in(fix.command))


def apart(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two fixes ask for releases of a package that are never the same."""
    return any(name in other and not satisfiable(f"{spec},{other[name]}") for name, spec in one.items())


def satisfiable(specifier: str) -> bool:
    """Whether a release satisfies a specifier set, which may pin a build (``==2.10.0+cu129``); ranges know releases only."""
    parts = [part.partition("+") for part in specifier.split(",")]
    labels = {label for _, _, label in parts if label}
    try:
        return len(labels) < 2 and bool(ranges_of(",".join(public for public, _, _ in parts)))
    except ValueError:
        return False


def tightest(parts: list[str]) -> list[str]:
    """The parts of a specifier set, of several lower bounds only the highest, and of several upper ones the lowest."""
    exact = [each for each in parts if each.startswith("==") and "*" not in each]
    if exact:
        return [max(exact, key=lambda each: "+" in each)]  # 2.10.0+cu129 also meets ==2.10.0
    lower = [each for each in parts if each.startswith(">=")]
    upper = [each for each in parts if each.startswith("<") and not each.startswith("<=")]
    dropped = {*lower, *upper}
    if lower:
        dropped.discard(max(lower, key=lambda each: key_of(each[2:])))
    if upper:
        dropped.discard(min(upper, key=lambda each: key_of(each[1:])))
    return [each for each in parts if each not in dropped]


class _Trials:
    """One environment with other releases: by how many each trial changes the number of errors.

    Only findings about the distributions that change are looked for, before and after: a whole check takes many times longer.
    """

    def __init__(self, environment: Environment, matrix: Matrix, shared: Shared) -> None:
        self._environment = environment
        self._matrix = matrix
        self._shared = shared
        self._changes: dict[tuple[tuple[str, str], ...], int] = {}
        self._before: dict[frozenset[str], int] = {}
        self._here: Facts | None = None
        self._installed: dict[str, str] = {}

    def ends(self, fix: Fix) -> dict[str, tuple[str, ...]]:
        """The oldest and the newest release of each distribution that a fix allows; empty if it changes no known release."""
        if fix.command is None or fix.kind not in _OF_RELEASES:
            return {}
        allowed = {name: self._ends(name, spec) for name, spec in requirements_in(fix.command)}
        return allowed if fix.package in allowed and all(allowed.values()) else {}

    def after(self, ends: Mapping[str, tuple[str, ...]]) -> int:
        """By how many errors more the better end of the allowed releases leaves."""
        return min(self._change({name: each[end] for name, each in ends.items()}) for end in (0, -1))

    def _change(self, releases: dict[str, str]) -> int:
        """The change by these releases and by what an installer moves along: their own requirements; 0 after the last trial."""
        key = tuple(sorted(releases.items()))
        if key not in self._changes:
            if len(self._changes) >= _MOST_TRIALS or self._shared.trials <= 0:
                return 0
            self._shared.trials -= 1
            facts = self._with(releases)
            # the errors are counted once it is known what moves along
            along = {
                name: ends[-1] for name, spec in requirements.moved_along(releases, facts, open_declared())
                if name not in releases and (ends := self._ends(name, spec))
            }  # fmt: skip
            about = frozenset((*releases, *along))
            if about not in self._before:
                self._before[about] = self._errors({}, self._with({}), about)
            if along:
                releases = {**releases, **along}
                facts = self._with(releases)
            self._changes[key] = self._errors(releases, facts, about) - self._before[about]
        return self._changes[key]

    def _with(self, releases: Mapping[str, str]) -> Facts:
        """The facts with these releases, as what runs in the environment sees it."""
        if self._here is None:
            environment = visible(with_distributions(self._environment, {}))
            self._here, self._installed = Facts(environment), interfaces.releases_in(environment)
        return self._here.with_releases(releases) if releases else self._here

    def _errors(self, releases: Mapping[str, str], facts: Facts, about: frozenset[str]) -> int:
        """The number of errors about some distributions, in the environment with other releases.

        An import that fails is counted from the index of the rows, which takes less than to open them; whether a module of an
        application that fails is reached is not looked up.
        """
        environment = facts.environment
        copies = [copy for name in about if isinstance(each := facts.package(name), list) for copy in each]
        found = [
            *requirements.judge(facts, open_declared(), about, requirements.MAY_BE_ERRORS), *installation.uncompiled(copies),
            *(builds.judge(facts) if about & _COMPILED else ()),
        ]  # fmt: skip
        seen = seen_by_torch(environment)
        errors = errors_about(about, facts if seen is environment else Facts(seen), self._matrix)
        errors += [frozenset(each.packages) for each in found if each.verdict == "hit" and each.severity == "error"]
        # a guard and an import that fails often have the cause of another error
        also = [*guards.errors_about(about, facts), *interfaces.failing_pairs({**self._installed, **releases}, about)]
        return len(errors) + sum(not any(each >= names for each in errors) for names in also)

    def _ends(self, name: str, spec: str) -> tuple[str, ...]:
        """The oldest and the newest recorded release in a range, for this Python; the release of an exact pin."""
        exact = spec.removeprefix("==")
        if exact != spec and is_version(exact):
            return (exact,)
        return ends_of(name, ranges_of(spec), self._environment.python)


def ends_of(name: str, ranges: Ranges, python: str | None) -> tuple[str, ...]:
    """The oldest and the newest recorded release in ranges that installers take for this Python (``None``: any)."""
    package = open_declared().package(name)
    if package is None:
        return ()

    def is_offered(version: str) -> bool:
        each = package.published(version)
        return each is not None and each.is_offered(python)

    within = package.within(ranges)
    oldest, newest = next(filter(is_offered, within), None), next(filter(is_offered, reversed(within)), None)
    return () if oldest is None or newest is None else (oldest, newest)


def requirements_in(command: str) -> Iterator[tuple[str, str]]:
    """The names and specifiers of the quoted requirements of an install command."""
    for word in command.split('"')[1::2]:
        end = next((place for place, letter in enumerate(word) if letter in "=<>!~"), len(word))
        name = word[:end].partition("[")[0].strip()
        if name and "@" not in word and end < len(word):
            yield name.lower().replace("_", "-"), word[end:]


# --- What goes along with a fix, and bounds for what an installer moves beside it, which it does not look for itself.


def accompanied(fix: Fix, environment: Environment) -> Fix:
    """A fix with the nearest releases that accept it of the other packages whose installed releases refuse it.

    An installer that is only asked for ``torch>=2.8`` leaves a vllm in place that requires torch 2.4. The fix stays as it is if
    one of them has no such release, or does not come from an index, and is no requirement of another one that moves.
    """
    wanted = {name: ranges_of(spec) for name, spec in wanted_by(fix).items() if "+" not in spec}
    copies = {copy.name: copy for copy in environment.distributions or ()}
    along: dict[str, str] = {}
    stuck = set()
    for each in requirements.requires_among(environment, copies, wanted):
        allowed = wanted[each.asked]
        if each.met is not True or each.asking in wanted or intersect(ranges_of(each.specifier), allowed):
            continue
        copy, package = copies[each.asking], open_declared().package(each.asking)
        place = None if package is None or not is_release(copy) else package.place(copy.version or "")
        nearest = None
        if package is not None and place is not None:
            nearest = package.accepting(place, each.asked, each.extra, lambda ranges: bool(intersect(ranges, allowed)))  # noqa: B023
        if nearest is None or (fix.kind == "upgrade" and key_of(nearest) < key_of(copy.version or "0")):
            stuck.add(each.asking)  # releases from before it had an upper bound accept anything
        else:
            along[each.asking] = max(nearest, along.get(each.asking, nearest), key=key_of)
    if not along or not stuck <= {name for each in along for name in open_declared().always(copies[each])}:
        return fix
    more = "".join(
        f' "{name}{">=" if key_of(version) > key_of(copies[name].version or "0") else "<="}{version}"'
        for name, version in along.items()
    )
    return replace(fix, command=f"{fix.command}{more}", text=f"{fix.text}; {', '.join(along)} must move along")


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
        met = [
            each.specifier for each in requirements.requires_among(environment, [*unseen, name], (name,)) if each.met and newest
        ]
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
    for each in requirements.requires_among(after, reached):
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
