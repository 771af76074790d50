"""The lazy search: solve with the data read so far, read what the optimum depends on, and repeat until nothing is missing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from time import monotonic

from compat.model import normalized
from compat.records import record, replace
from compat.repair.candidates import Release, Universe
from compat.repair.engine import ERRORS, LEVELS, Model, cheapest_model
from compat.repair.problem import Problem
from compat.repair.relaxation import OTHER, Forbidden, Needs, Relaxation
from compat.repair.target import satisfies

Judge = Callable[[Mapping[str, Release], Mapping[str, tuple[Release, ...]]], Iterable[Forbidden]]
"""Returns forbidden combinations, given the chosen releases (by package) and all known ones."""
_LAST = 5.0
"""Seconds for a final plan from the data read so far, after the deadline."""
_OF_CHANGES = LEVELS.index("packages added or removed") + 1
"""Levels of the costs that tell what changes, rather than how far."""
_NEAR = 2
"""Neighbouring releases on each side whose metadata is read with a wanted one; four times as many each further time."""
_STORED = 40
"""Neighbouring releases on each side whose metadata is read with a wanted one if it is cached."""


@record(frozen=True)
class Solution:
    """``chosen`` maps the packages to their releases; ``None`` if there is no solution.

    ``optimal`` if no cheaper choice exists among the candidates; otherwise the deadline passed, and ``cost`` is that of the
    best one found so far. ``unread`` are packages and files that could not be read, and were not candidates for that reason;
    ``decided`` if they cannot make a difference to what changes.
    ``added`` are packages that uv added, if it was uv that found the releases.
    """

    chosen: Mapping[str, Release] | None
    cost: tuple[int, ...]
    optimal: bool
    relaxation: Relaxation
    unread: Mapping[str, str]
    rounds: int
    added: frozenset[str] = frozenset()
    decided: bool = True

    def left(self, level: str) -> int:
        return self.cost[LEVELS.index(level)] if self.cost else 0


class Solver:
    """Solves one problem; holds the data read for it."""

    def __init__(
        self, problem: Problem, universe: Universe, *, rules: Judge, judge: Judge, needs: Mapping[Release, Needs],
        progress: Callable[[str], None] | None = None, deadline: float | None = None,
    ) -> None:  # fmt: skip
        """``rules`` returns combinations of candidates known to be bad, ``judge`` those found by checking a whole plan.

        ``needs`` are the requirements of installed releases known without an index.
        """
        self.problem, self.universe = problem, universe
        self._rules, self._judge = rules, judge
        self.opened: dict[str, tuple[Release, ...]] = {}
        self.limited: dict[str, str] = {}
        """Packages with so many releases that not all are candidates."""
        self.needs: dict[Release, Needs] = dict(needs)
        self.learnt: dict[Forbidden, None] = {}
        self._asked: dict[str, int] = {}
        self._unreadable: set[Release] = set()
        self._strict = False
        self._progress, self._deadline = progress or (lambda text: None), deadline
        self._bound = ""

    def solve(self, seeds: Iterable[str] = ()) -> Solution:
        """The cheapest solution; ``seeds`` are packages whose releases are read first. ``TimeoutError`` if none is found."""
        self.open(name for name in seeds if name not in self.opened)
        rounds = 0
        while True:
            rounds += 1
            relaxation = self.relaxation()
            try:
                model = cheapest_model(relaxation.clauses, self._deadline)
            except TimeoutError:
                return self._of_what_was_read(relaxation, rounds)
            if model is None:
                return self._solution(None, relaxation, rounds)
            chosen = relaxation.chosen(model.true)
            if model.optimal:
                self._bound = _said(model.cost)
                self._tell()
            if self._deadline is not None and monotonic() > self._deadline:
                return self._of_what_was_read(relaxation, rounds)
            if self._read(chosen, relaxation):
                continue
            found = self._releases(chosen, relaxation)
            news = [each for each in self._judge(found, self.opened) if each not in self.learnt]
            if not news:
                return self._solution(model, relaxation, rounds)
            self.learnt.update(dict.fromkeys(news))

    def _of_what_was_read(self, relaxation: Relaxation, rounds: int) -> Solution:
        """The cheapest plan from the data read before the deadline; ``TimeoutError`` if there is none."""
        for name, atoms in relaxation.at.items():
            for what, atom in atoms.items():
                release = relaxation.release(name, what)
                if what == OTHER or (release is not None and release not in self.needs):
                    relaxation.clauses.add((-atom,))
        try:
            model = cheapest_model(relaxation.clauses, monotonic() + _LAST)
        except TimeoutError:
            model = None
        if model is None:
            bound = f"; every plan costs at least: {self._bound}" if self._bound else ""
            raise TimeoutError(f"no plan was found in time{bound}")
        return replace(self._solution(model, relaxation, rounds), optimal=False)

    def also(self, forbidden: Forbidden) -> Solver:
        """A strict solver for the same problem with an additional forbidden combination, reusing all data read."""
        other = Solver(
            self.problem, self.universe, rules=self._rules, judge=self._judge, needs=self.needs,
            progress=self._progress, deadline=self._deadline,
        )  # fmt: skip
        other.opened, other.limited, other._unreadable = dict(self.opened), dict(self.limited), set(self._unreadable)
        other.learnt = {**self.learnt, forbidden: None}
        other._strict = True
        return other

    def relaxation(self, *, strict: bool = False, unread: Collection[str] = ()) -> Relaxation:
        """The clauses of the data read so far; ``strict``: plans with errors are not allowed, whatever else they cost.

        ``unread`` are packages that may have other releases, which satisfy everything: with those it is a lower bound.
        """
        strict = strict or self._strict
        relaxation = Relaxation(self.problem, self.opened, self.needs, strict=strict, unread=unread)
        known = {name: relaxation.releases(name) for name in relaxation.at}
        current = {name: release for name, release in self.problem.current.items() if name in known}
        bad = [*self._rules(current, known), *self.learnt]
        relaxation.forbid(map(_hard, bad) if strict else bad)
        relaxation.recommend()
        relaxation.price_changes()
        return relaxation

    def open(self, names: Iterable[str]) -> None:
        """Read the releases of packages."""
        self._tell()  # before reading, too, which may take long
        wanted = [name for name in dict.fromkeys(names) if name not in self.opened]
        for name, releases in self.universe.releases(wanted).items() if wanted else ():
            found = [each for each in releases or () if each not in self._unreadable]
            candidates = self.problem.candidates(name, found)
            self.opened[name] = some = self.problem.considered(name, candidates)
            if len(some) < len(candidates):
                self.limited[name] = f"only {len(some):,} of {len(candidates):,} releases are considered"
        self._tell()

    def _tell(self) -> None:
        """Report progress: the packages read, and the proven lower bound on the cost of any plan."""
        bound = f"; any plan costs at least {self._bound}" if self._bound else ""
        self._progress(f"{len(self.opened)} packages read{bound}")

    def _read(self, chosen: Mapping[str, str], relaxation: Relaxation) -> bool:
        """Read the data that a model depends on; returns whether anything was missing."""
        unopened = [name for name, what in chosen.items() if what == OTHER]
        self.open(unopened)
        unread = [
            release for name, what in chosen.items()
            if (release := relaxation.release(name, what)) is not None and release not in self.needs
        ]  # fmt: skip
        current = self.problem.current
        # of these, the next model would otherwise choose a neighbour of the installed release, whatever it requires
        self._read_stored([current[name] for name in unopened if name in current])
        self._read_needs(unread)
        if unopened or unread:
            self._read_ahead(self._releases(chosen, relaxation), [each for each in unread if each.name in self.problem.current])
        return bool(unopened or unread)

    def _read_ahead(self, chosen: dict[str, Release], unsure: list[Release]) -> None:
        """Read what the next models will probably need, except for releases that the next model may well change."""
        while True:
            unopened, unread = follow(self.problem, chosen, self.opened, {**self.needs, **{each: {} for each in unsure}})
            if not unopened and not unread:
                return
            self.open(unopened)
            self._read_needs(unread)

    def _near(self, release: Release) -> list[Release]:
        width = _NEAR * 4 ** self._asked.get(release.name, 0)
        self._asked[release.name] = self._asked.get(release.name, 0) + 1
        return self._around(release, width)

    def _around(self, release: Release, width: int) -> list[Release]:
        """A release and its neighbours on each side."""
        releases = self.opened.get(release.name)
        if releases is None or release not in releases:
            return [release]
        plain = [each for each in releases if each.plain or each == release]  # other builds are only read on request
        place = plain.index(release)
        return [release, *plain[max(0, place - width) : place + width + 1]]

    def _read_needs(self, releases: Sequence[Release]) -> None:
        """Read the metadata of releases, and that around them."""
        self._read_stored(releases)
        near = dict.fromkeys(each for release in releases for each in self._near(release))
        wanted = [each for each in near if each not in self.needs]
        gone = set()
        for release, needs in self.universe.needs(wanted).items() if wanted else ():
            if needs is not None:
                self.needs[release] = needs
            elif release == self.problem.current.get(release.name):
                self.needs[release] = {}  # installed, so its requirements do not matter
            else:
                gone.add(release)
        self._unreadable |= gone
        for name in {release.name for release in gone} & self.opened.keys():
            self.opened[name] = tuple(each for each in self.opened[name] if each not in gone)

    def _read_stored(self, releases: Iterable[Release]) -> None:
        """Read the cached metadata of releases and of those around them, which costs less than to solve once more."""
        around = dict.fromkeys(each for release in releases for each in self._around(release, _STORED))
        self.needs.update(self.universe.stored_needs([each for each in around if each not in self.needs]))

    def _releases(self, chosen: Mapping[str, str], relaxation: Relaxation) -> dict[str, Release]:
        found = {name: relaxation.release(name, what) for name, what in chosen.items()}
        return {name: release for name, release in found.items() if release is not None}

    def _solution(self, model: Model | None, relaxation: Relaxation, rounds: int) -> Solution:
        decided = not self._may_matter(model)
        unread = {**self.universe.unknown, **({} if decided else self.limited)}
        if model is None:
            return Solution(None, (), optimal=True, relaxation=relaxation, unread=unread, rounds=rounds, decided=decided)
        chosen = self._releases(relaxation.chosen(model.true), relaxation)
        return Solution(chosen, model.cost, model.optimal, relaxation, unread, rounds, decided=decided)

    @property
    def not_read(self) -> frozenset[str]:
        """The packages of which not every release is a candidate because it was not read."""
        unknown = self.universe.unknown  # by package or file
        return frozenset((*self.limited, *unknown, *(normalized(each.partition("-")[0]) for each in unknown)))

    def _may_matter(self, model: Model | None) -> bool:
        """Whether what was not read could make a difference to the changes of the cheapest model."""
        if not self.not_read:
            return False
        if model is not None and not model.optimal:
            return True
        try:
            bound = cheapest_model(self.relaxation(unread=self.not_read).clauses, monotonic() + _LAST)
        except TimeoutError:
            return True
        if model is None or bound is None:
            return bound is not None
        return not bound.optimal or bound.cost[:_OF_CHANGES] != model.cost[:_OF_CHANGES]


def _hard(each: Forbidden) -> Forbidden:
    return replace(each, level="") if each.level == ERRORS else each


def _said(cost: tuple[int, ...]) -> str:
    """The parts of a cost. Downgrades, major versions and half-years count as changes, too: it is no number of packages."""
    amounts = (
        (f"as much as {amount}" if level == "changes" else amount, level) for amount, level in zip(cost, LEVELS) if amount
    )
    return ", ".join(f"{amount} {level}" for amount, level in amounts) or "nothing"


# --- Reading ahead: the requirements of added packages are followed greedily, like an installer does. This is only a heuristic
# that saves models, each of which costs more than a cache lookup.


def follow(
    problem: Problem, chosen: dict[str, Release], opened: Mapping[str, tuple[Release, ...]], needs: Mapping[Release, Needs]
) -> tuple[list[str], list[Release]]:
    """Packages and releases to read next, which are added to ``chosen``; both empty if everything is known."""
    unopened, unread = [], []
    for name, specifiers in _wanted(problem, chosen, needs).items():
        here = chosen.get(name)
        if here is not None and all(satisfies(here.version, text) for text in specifiers):
            continue
        if name not in opened:
            unopened.append(name)
            continue
        plain = [each for each in opened[name] if each.plain]  # other builds are only chosen by models
        fitting = [each for each in plain if all(satisfies(each.version, text) for text in specifiers)]
        if fitting:  # otherwise a package that requires it has to change: left to the next model
            chosen[name] = fitting[-1] if name not in problem.current else _nearest(fitting, problem.current[name])
            if chosen[name] not in needs:
                unread.append(chosen[name])
    return unopened, unread


def _wanted(problem: Problem, chosen: Mapping[str, Release], needs: Mapping[Release, Needs]) -> dict[str, dict[str, None]]:
    """The specifiers that each required package has to satisfy."""
    found: dict[str, dict[str, None]] = {}
    waiting = [(name, "") for name in chosen]
    seen = set(waiting)
    while waiting:
        name, extra = waiting.pop()
        if name not in chosen:
            continue
        for need in needs.get(chosen[name], {}).get(extra, ()):
            if any(chosen.get(each) != problem.current.get(each) for each in (name, need.name)):  # unchanged pairs may stay
                found.setdefault(need.name, {})[need.specifier] = None
            new = [(need.name, each) for each in need.extras if (need.name, each) not in seen]
            seen.update(new)
            waiting += new
    for need in (*problem.asked, *problem.keep):
        found.setdefault(need.name, {})[need.specifier] = None
    return found


def _nearest(fitting: list[Release], current: Release) -> Release:
    """The first release above the installed one, else the last one."""
    return next((each for each in fitting if each.key > current.key), fitting[-1])
