"""clingo: the best model of some clauses, level by level, or a contradiction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from time import monotonic

import clingo

from compat.records import record
from compat.repair.clauses import LEVELS, Clauses, Statement

_OPTIONS = [
    "--opt-strategy=usc", "--configuration=handy", "--opt-usc-shrink=inv", "--opt-heuristic=sign,model", "--restart-on-model",
]  # fmt: skip
"""Core-guided with small cores, and led by the last model: without these 180 packages from nothing may take minutes."""


@record(frozen=True)
class Model:
    """The atoms that are true and what they cost; ``optimal`` where no cheaper model is there."""

    true: frozenset[int]
    cost: tuple[int, ...]
    optimal: bool = True


def best(problem: Clauses, deadline: float | None = None) -> Model | None:
    """A cheapest model, ``None`` where there is none; past the deadline (monotonic seconds) the best one found so far.

    ``TimeoutError`` where the deadline passes before any model is found.
    """
    control = _control(problem, _OPTIONS)
    last: tuple[frozenset[int], list[int]] | None = None
    with control.solve(yield_=True, async_=True) as handle:
        while True:
            handle.resume()
            left = None if deadline is None else max(0.0, deadline - monotonic())
            if not handle.wait(left):
                handle.cancel()
                break
            model = handle.model()
            if model is None:
                break
            last = _true(problem, model), list(model.cost)
        finished = bool(handle.get().exhausted) or (last is not None and not any(problem.costs))
    if last is None:
        if finished:
            return None
        raise TimeoutError("no plan was found in time")
    return Model(last[0], cost_of(problem, last[0]), finished)


def cost_of(problem: Clauses, true: Iterable[int]) -> tuple[int, ...]:
    """What a set of true atoms costs, level by level."""
    known = set(true)
    return tuple(sum(weight for atom, weight in level.items() if atom in known) for level in problem.costs)


def contradiction(problem: Clauses) -> tuple[Statement, ...]:
    """Statements that cannot hold together, none of which can be spared; every clause without one is taken as given."""
    groups = list(dict.fromkeys(statement for _, statement in problem.clauses if statement is not None))
    control, guards = _guarded(problem, groups)
    core = _core(control, [guards[group] for group in groups])
    by_guard = {guard: group for group, guard in guards.items()}
    needed = _minimal([guard for guard in core if guard in by_guard], lambda chosen: _core(control, list(chosen)) != ())
    return tuple(by_guard[guard] for guard in needed)


def _minimal(core: Sequence[int], contradicts: Callable[[Sequence[int]], bool]) -> list[int]:
    """A part of a contradiction that no longer is one without any of its members."""
    needed = list(core)
    for guard in core:
        without = [each for each in needed if each != guard]
        if contradicts(without):
            needed = without
    return needed


def _core(control: clingo.Control, assumed: list[int]) -> tuple[int, ...]:
    """The assumed atoms that lead to a contradiction, empty where there is a model."""
    found: list[tuple[int, ...]] = []
    result = control.solve(assumptions=assumed, on_core=lambda core: found.append(tuple(core)))
    if result.satisfiable:
        return ()
    return found[-1] if found and found[-1] else tuple(assumed)


def _control(problem: Clauses, options: list[str]) -> clingo.Control:
    control = clingo.Control([*options, "--warn=none"], message_limit=0)
    with control.backend() as backend:
        _declare(problem, backend)
        for literals, _ in problem.clauses:
            backend.add_rule([], [-literal for literal in literals])
        for level, costs in enumerate(problem.costs):
            if costs:
                backend.add_minimize(len(LEVELS) - level, list(costs.items()))
    return control


def _guarded(problem: Clauses, groups: list[Statement]) -> tuple[clingo.Control, dict[Statement, int]]:
    control = clingo.Control(["--warn=none"], message_limit=0)
    guards: dict[Statement, int] = {}
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
    """Atoms get the numbers that the clauses use: clingo numbers them in the order in which they are added."""
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
