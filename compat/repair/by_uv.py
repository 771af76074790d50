"""Releases from uv for a problem that the search did not solve in time: fewer errors, but not proven to be few changes.

Each requirement is a lower bound at the current release, that of a package with an error one at its nearest fixed release, and
uv takes the lowest releases that go together. If there are none, what no error is about may also move down.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from time import monotonic

from compat.model import EMPTY, Finding
from compat.records import record
from compat.repair.candidates import Release, Universe
from compat.repair.problem import Problem
from compat.repair.relaxation import Forbidden
from compat.repair.resolved import Resolved
from compat.repair.rules import MOVES
from compat.repair.target import Need
from compat.repair.verify import Question

_ROUNDS = 3
"""Maximum number of times that what uv chose is checked and its new errors are excluded."""


@record(frozen=True)
class Asking:
    """What is asked, and of whom: ``resolve`` runs uv, ``judge`` returns the errors of a set of releases.

    ``forbidden`` are combinations known to be bad; nothing is asked after the ``deadline`` (monotonic seconds). ``serves`` is
    whether there is a wheel of a release, without which uv does not choose it.
    """

    resolve: Callable[[Question], Resolved]
    judge: Callable[[Mapping[str, Release]], tuple[Finding, ...]]
    universe: Universe
    forbidden: tuple[Forbidden, ...]
    deadline: float
    serves: Callable[[Release], bool | None]


def chosen_by_uv(
    problem: Problem, errors: tuple[Finding, ...], asking: Asking, fewer_than: int
) -> Mapping[str, Release] | None:  # fmt: skip
    """The releases that uv finds until the deadline with the fewest errors, and fewer than that; ``None`` if there are none.

    ``errors`` are those of the current releases.
    """
    best: tuple[int, Mapping[str, Release] | None] = fewer_than, None
    there = problem.current
    needs: dict[str, list[Need]] = {}
    left = errors
    for _ in range(_ROUNDS):
        for need in _fixing(problem, {*problem.current, *there}, left):
            if need not in needs.setdefault(need.name, []):
                needs[need.name].append(need)
        bounds = {name: _nearest(problem, name, found, asking) for name, found in needs.items()}
        chosen = _resolved(problem, {name: text for name, text in bounds.items() if text}, asking)
        if chosen is None:
            break
        there, left = chosen, asking.judge(chosen)
        best = min(best, (len(left), chosen), key=lambda each: each[0])
        if not left or monotonic() > asking.deadline:
            break
    return best[1]


def _fixing(problem: Problem, known: Collection[str], errors: Iterable[Finding]) -> Iterator[Need]:
    """What the first fix of each error requires of ``known`` packages."""
    for error in errors:
        recommended = (each.alternatives for each in problem.recommended if each.statement == error.rule)
        moves = (fix for fix in error.fixes if fix.kind in MOVES and fix.package and fix.spec)
        alternatives = [*chain.from_iterable(recommended), *((Need(str(fix.package), str(fix.spec), ()),) for fix in moves)]
        yield from next((needs for needs in alternatives if all(need.name in known for need in needs)), ())


def _nearest(problem: Problem, name: str, needs: Iterable[Need], asking: Asking) -> str:
    """The bound for some requirements: from the next candidate on that meets them, else the last one before the current
    release; "" if there is none."""
    current = problem.current.get(name)
    if current is None:
        return ",".join(dict.fromkeys(need.specifier for need in needs))
    bad = frozenset[str]().union(*(dict(each.together)[name] for each in asking.forbidden if _is_about(each, name)))
    fitting = [
        each for each in problem.candidates(name, asking.universe.releases([name])[name] or ())
        if each.plain and each.version not in bad and all(each.meets(need.specifier) for need in needs)
    ]  # fmt: skip
    later = [each for each in fitting if each.key >= current.key]
    return f">={later[0].public}" if later else f"=={fitting[-1].public}" if fitting else ""


def _is_about(each: Forbidden, name: str) -> bool:
    return not each.unless and [other for other, _ in each.together] == [name]


def _resolved(problem: Problem, bounds: Mapping[str, str], asking: Asking) -> Mapping[str, Release] | None:
    """The releases that uv resolves: moved up as little as possible, else near the current ones."""
    current = problem.current
    without = problem.given | problem.fixed
    free = without | (problem.unnamed - bounds.keys())
    asked = {need.name: need for need in problem.asked}

    def lines(*, up: bool) -> Iterator[str]:
        for name, release in current.items():
            if name not in free:
                need = asked.get(name, Need(name, "", ()))
                bound = bounds.get(name, "") if up else bounds.get(name, "").replace(">=", "==")
                least = f">={release.public}" if up else ""
                stated = ",".join(filter(None, (need.specifier, least)))  # the package to fix leaves the stated range
                yield need._replace(specifier=bound or stated).text
        yield from (need.text for need in problem.asked if need.name not in current)
        yield from (f"{name}{bound}" for name, bound in bounds.items() if name not in current)
        yield from (need.text for need in problem.keep)

    near = {name: release.public for name, release in current.items() if name not in without}
    for up in (True, False) if current else (False,):  # if nothing is there yet, the newest is wanted
        requires = tuple(lines(up=up))
        found = asking.resolve(Question(EMPTY, without=without, requires=requires, lowest=up, near=EMPTY if up else near))
        if found.releases is not None:
            return _releases(problem, found.releases, bounds, asking)
        if not found.refused or monotonic() > asking.deadline:
            break
    return None


def _releases(
    problem: Problem, versions: Mapping[str, str], bounds: Collection[str], asking: Asking
) -> Mapping[str, Release]:  # fmt: skip
    """The releases of some versions; those of listed packages as on their index, with their files.

    A package without a bound stays where uv moves it for want of a wheel, or to what is no candidate: the only wheel of
    deepspeed is years old.
    """
    current = problem.current
    kept = {
        name: release for name, release in current.items()
        if (release.public == versions.get(name, "")) or (name not in versions and name not in problem.unnamed)
    }  # fmt: skip
    moved = {name: version for name, version in versions.items() if name not in kept}
    listed = [name for name in moved if name in current and name not in problem.unnamed]
    known: dict[tuple[str, str], Release] = {}
    for name, found in asking.universe.releases(listed).items():
        known.update(((name, each.version), each) for each in found or ())
        able = {each.version for each in problem.candidates(name, found or ())}
        if name not in bounds and (moved[name] not in able or asking.serves(current[name]) is False):
            kept[name] = current[name]
    return {**{name: known.get((name, version), Release(name, version)) for name, version in moved.items()}, **kept}
