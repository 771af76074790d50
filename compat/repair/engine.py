"""Clauses over numbered atoms, and clingo's cheapest model of them, level by level, or a contradiction.

A literal is an atom's number, or its negative. Clauses carry the statement they come from, so that a contradiction can be
reported in the user's terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from time import monotonic
from typing import NamedTuple

import clingo

from compat.records import record
from compat.repair.candidates import Release
from compat.repair.target import Need

LEVELS = (
    "errors left",
    "recommended fixes not taken",
    "changes",
    "downgrades",
    "source installs",
    "releases behind the newest",
    "warnings left",
    "old releases added",
    "packages added or removed",
    "better recommended fixes",
    "release steps",
    "other builds",
    "release steps of added packages",
    "release steps of dependent packages",
)
"""The minimised costs, most important first.

A changed package counts as one change, plus five if a direct requirement is downgraded, plus five if the major version
changes: an expert would rather change five packages than do either, but not twenty. A downgrade of any other package counts as
two: two that move forward are better than one that goes back. One that a file names without a version counts as a downgrade,
but as no change, so that nothing pinned moves for it. A pinned release that moves counts once more for each half-year
that the new one is from it. The steps of packages that the installer chose count among those
of what is added: what the user pinned moves as little as possible.
"""
ERRORS, WARNINGS = "errors left", "warnings left"


class Requires(NamedTuple):
    """A statement: the requirement of one release, of which ``package`` is the name with the extra, if any.

    There are thousands for each problem, and its text is only written for those that are shown.
    """

    package: str
    release: Release
    need: Need

    @property
    def kind(self) -> str:
        return "requires"

    @property
    def text(self) -> str:
        return f"{self.package} {self.release.told} requires {self.need.text}"


@record(frozen=True)
class Statement:
    """The origin of a clause. ``kind``: rule, finding, asked, keep or stays; ``text`` is shown to the user.

    For one about several releases of a ``package``, ``says`` is what it says about each of them.
    """

    kind: str
    text: str
    package: str = ""
    says: str = ""

    def about(self, versions: Mapping[str, str]) -> str:
        """The text for the releases of one plan."""
        version = versions.get(self.package)
        return f"{self.package} {version} {self.says}" if version is not None else self.text


Origin = Statement | Requires


class Clauses:
    """A problem under construction."""

    def __init__(self) -> None:
        self.count = 0
        self.clauses: list[tuple[tuple[int, ...], Origin | None]] = []
        self.one_of: list[tuple[int, ...]] = []
        self.costs: list[dict[int, int]] = [{} for _ in LEVELS]

    def atom(self) -> int:
        self.count += 1
        return self.count

    def add(self, literals: tuple[int, ...], statement: Origin | None = None) -> None:
        """Add a clause: at least one of the literals holds."""
        self.clauses.append((literals, statement))

    def exactly_one(self, atoms: tuple[int, ...]) -> None:
        self.one_of.append(atoms)

    def cost(self, level: str, atom: int, weight: int = 1) -> None:
        """Add a cost for an atom being true."""
        if weight:
            costs = self.costs[LEVELS.index(level)]
            costs[atom] = costs.get(atom, 0) + weight

    # These atoms are only used where they help to satisfy a clause, so what they imply is all that has to be stated.

    def only_if_all(self, literals: tuple[int, ...]) -> int:
        """An atom that holds only if all literals do."""
        if len(literals) == 1 and literals[0] > 0:
            return literals[0]
        both = self.atom()
        for literal in literals:
            self.add((-both, literal))
        return both

    def only_if_any(self, literals: tuple[int, ...]) -> int:
        """An atom that holds only if at least one literal does."""
        if len(literals) == 1 and literals[0] > 0:
            return literals[0]
        either = self.atom()
        self.add((-either, *literals))
        return either


_STEP = 0.2
"""Seconds between checks of the deadline while clingo runs; in between Python cannot be interrupted."""


@record(frozen=True)
class Model:
    """The atoms that are true and their cost; ``optimal`` if no cheaper model exists."""

    true: frozenset[int]
    cost: tuple[int, ...]
    optimal: bool = True


def cheapest_model(problem: Clauses, deadline: float | None = None) -> Model | None:
    """The cheapest model, ``None`` if none exists; past the deadline (monotonic seconds) the best one found so far.

    ``TimeoutError`` if the deadline passes before any model is found.
    """
    control = _control(problem)
    with control.solve(async_=True) as handle:
        while not handle.wait(_STEP if deadline is None else max(0.0, min(_STEP, deadline - monotonic()))):
            if deadline is not None and monotonic() >= deadline:
                handle.cancel()
                break
        model, finished = handle.last(), not handle.get().interrupted
        if model is None and not finished:
            raise TimeoutError("no plan was found in time")
        true = None if model is None else _true(problem, model)
    return None if true is None else Model(true, cost_of(problem, true), finished)


def cost_of(problem: Clauses, true: Iterable[int]) -> tuple[int, ...]:
    """The cost of a set of true atoms, level by level."""
    known = set(true)
    return tuple(sum(weight for atom, weight in level.items() if atom in known) for level in problem.costs)


def contradiction(problem: Clauses) -> tuple[Origin, ...]:
    """A minimal set of statements that contradict each other; empty if a model exists.

    Clauses without a statement always hold.
    """
    groups = list(dict.fromkeys(statement for _, statement in problem.clauses if statement is not None))
    groups.sort(key=lambda each: each.kind == "requires")  # prefer wishes and findings, which explain more
    control, guards = _guarded(problem, groups)
    core = _core(control, list(guards.values()))
    if core is None:
        return ()
    by_guard = {guard: group for group, guard in guards.items() if guard in core}
    needed = _needed([], list(by_guard), lambda chosen: _core(control, chosen) is not None)
    return tuple(by_guard[guard] for guard in needed)


Contradicts = Callable[[list[int]], bool]


def _needed(given: list[int], candidates: list[int], contradicts: Contradicts, *, grown: bool = True) -> list[int]:
    """A minimal subset of the candidates that contradicts ``given``; earlier candidates are preferred.

    Bisects as QuickXplain does: a few of thousands are needed, and each is found in a few dozen steps. ``grown``: ``given``
    may already be contradictory.
    """
    if grown and contradicts(given):
        return []
    if len(candidates) <= 1:
        return candidates
    half = len(candidates) // 2
    last = _needed(given + candidates[:half], candidates[half:], contradicts)
    return _needed(given + last, candidates[:half], contradicts, grown=bool(last)) + last


def _core(control: clingo.Control, assumed: list[int]) -> frozenset[int] | None:
    """Assumed atoms that lead to a contradiction, ``None`` if a model exists."""
    found: list[frozenset[int]] = []
    result = control.solve(assumptions=assumed, on_core=lambda core: found.append(frozenset(core)))
    if result.satisfiable:
        return None
    return found[-1] if found and found[-1] else frozenset(assumed)


def _control(problem: Clauses) -> clingo.Control:
    control = clingo.Control(["--opt-strategy=usc", "--warn=none"], message_limit=0)
    with control.backend() as backend:
        _declare(problem, backend)
        for literals, _ in problem.clauses:
            backend.add_rule([], [-literal for literal in literals])
        choice = {atom: atoms for atoms in problem.one_of for atom in atoms}
        for level, costs in enumerate(problem.costs):
            if costs:
                priced = dict.fromkeys(choice[atom] for atom in costs if atom in choice)
                backend.add_minimize(len(LEVELS) - level, _in_steps(priced, costs, backend))
    return control


def _in_steps(one_of: Iterable[tuple[int, ...]], costs: Mapping[int, int], backend: clingo.Backend) -> list[tuple[int, int]]:
    """The same costs with one atom for each price that an exactly-one choice reaches or exceeds.

    Proofs of optimality use lower bounds on the cost of a choice: with one weight for each of a hundred releases they take
    ten times as long, or do not finish.
    """
    single = dict(costs)
    steps = []
    for atoms in one_of:
        prices: dict[int, list[int]] = {0: []}
        for atom in atoms:
            prices.setdefault(single.pop(atom, 0), []).append(atom)
        dearer: list[int] = []
        above = sorted(prices, reverse=True)
        for price, less in pairwise(above):
            if not less and len(prices[0]) < 2:  # all but at most one reach it: a price that all reach makes no difference
                steps += [(-atom, price) for atom in prices[0]]
                continue
            reached = backend.add_atom()
            for atom in (*prices[price], *dearer):
                backend.add_rule([reached], [atom])
            steps.append((reached, price - less))
            dearer = [reached]
    return [*single.items(), *steps]


def _guarded(problem: Clauses, groups: list[Origin]) -> tuple[clingo.Control, dict[Origin, int]]:
    control = clingo.Control(["--warn=none"], message_limit=0)
    guards: dict[Origin, int] = {}
    with control.backend() as backend:
        _declare(problem, backend)
        for group in groups:
            guards[group] = backend.add_atom()
            backend.add_rule([guards[group]], choice=True)
        for literals, statement in problem.clauses:
            guard = [] if statement is None else [guards[statement]]
            backend.add_rule([], [*guard, *(-literal for literal in literals)])
    return control, guards


def _declare(problem: Clauses, backend: clingo.Backend) -> None:
    """Declare the atoms, with the numbers that the clauses use: clingo numbers them in the order they are added."""
    for number in range(1, problem.count + 1):
        atom = backend.add_atom()
        assert atom == number, "clingo numbered an atom otherwise"
    backend.add_rule(list(range(1, problem.count + 1)), choice=True)
    for atoms in problem.one_of:
        backend.add_rule([], [-atom for atom in atoms])
        if len(atoms) > 1:
            backend.add_weight_rule([], 2, [(atom, 1) for atom in atoms])


def _true(problem: Clauses, model: clingo.Model) -> frozenset[int]:
    return frozenset(number for number in range(1, problem.count + 1) if model.is_true(number))
