"""Why a plan changes what it changes, what it would cost otherwise, and what contradicts what where there is no plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from compat.records import record, replace
from compat.repair.clauses import LEVELS, Statement
from compat.repair.engine import best, contradiction
from compat.repair.problem import Problem
from compat.repair.relaxation import ABSENT, Forbidden, Relaxation
from compat.repair.solve import Solution, Solver
from compat.repair.target import Need

_ERRORS = LEVELS[0]
_MOST = 4
"""Statements that one reason names."""


@record(frozen=True)
class Reason:
    """Why a package is not as it was. ``because``: what contradicts it; else ``instead``: what keeping it would cost."""

    because: tuple[str, ...] = ()
    instead: str = ""

    @property
    def text(self) -> str:
        return "; ".join(self.because) or self.instead


def reasons(solver: Solver, solution: Solution, changed: Iterable[str]) -> dict[str, Reason]:
    """The reason for each changed package."""
    left = solution.left(_ERRORS)
    return {name: _reason(solver, name, left) for name in changed}


def _reason(solver: Solver, name: str, left: int) -> Reason:
    current = solver.problem.current.get(name)
    if current is None:
        return Reason(instead="")
    stays = Need(name, f"=={current.version}", ())
    statement = Statement("stays", f"{name} stays at {current.version}")
    hard = _with(solver, left)
    atom = hard.at[name].get(current.version)
    if atom is None:
        return Reason((f"{name} {stays.specifier} cannot be installed there",))
    hard.clauses.add((atom,), statement)
    model = best(hard.clauses)
    if model is None:
        found = [each for each in contradiction(hard.clauses) if each != statement]
        found.sort(key=lambda each: each.kind == "requires")  # what is known to be bad before what follows from it
        return Reason(tuple(each.text for each in found[:_MOST]))
    return Reason(instead=f"keeping {name} {current.version} would cost at least: {said(model.cost)}")


@record(frozen=True)
class Contrast:
    """Another plan, its cost, the level at which it loses, and what the chosen one costs there."""

    changes: tuple[tuple[str, str | None, str | None], ...]
    cost: Mapping[str, int]
    level: str
    chosen: int

    @property
    def text(self) -> str:
        moved = (
            ", ".join(f"{name} {before or '—'} → {after or 'removed'}" for name, before, after in self.changes) or "no change"
        )
        return f"{moved}: {self.cost.get(self.level, 0)} {self.level}, not {self.chosen}"

    def to_json(self) -> dict[str, Any]:
        changes = [{"name": name, "from": before, "to": after} for name, before, after in self.changes]
        return {"changes": changes, "cost": dict(self.cost), "lost_at": self.level}


def next_best(solver: Solver, solution: Solution) -> Contrast | None:
    """The cheapest other plan without an error; ``None`` where there is none.

    It keeps a package that the chosen one moves, or else moves one of them to another release.
    """
    current, chosen = solver.problem.current, solution.chosen or {}
    moved = [name for name in sorted(current) if chosen.get(name) != current[name]]
    at = solution.relaxation.at
    keeps = tuple((name, frozenset(at[name]) - {current[name].version}) for name in moved)
    same = tuple((name, frozenset((chosen[name].version if name in chosen else ABSENT,))) for name in moved)
    for together in (keeps, same) if moved else ():
        other = solver.also(Forbidden(together, Statement("stays", "another choice"), "")).solve()
        if other.chosen is not None:
            return _contrast(solver, solution.cost, other)
    return None


def _contrast(solver: Solver, cost: tuple[int, ...], other: Solution) -> Contrast:
    current, chosen = solver.problem.current, other.chosen or {}
    names = [name for name in sorted(current) if chosen.get(name) != current[name]]
    changes = tuple((name, current[name].told, chosen[name].told if name in chosen else None) for name in names)
    lost = next((place for place, (one, two) in enumerate(zip(cost, other.cost)) if one != two), len(LEVELS) - 1)
    return Contrast(changes, dict(zip(LEVELS, other.cost)), LEVELS[lost], cost[lost])


def _with(solver: Solver, left: int) -> Relaxation:
    """The problem with its errors forbidden, where a plan without them exists."""
    return solver.relaxation(strict=not left)


def conflict(solver: Solver) -> tuple[Statement, ...]:
    """Statements that cannot hold together, where no plan without an error exists."""
    return contradiction(solver.relaxation(strict=True).clauses)


def relieving(problem: Problem, core: Iterable[Statement], solve: Callable[[Problem], Solution]) -> tuple[str, Solution] | None:
    """The one wish of the user's whose withdrawal gives the cheapest plan, and that plan; ``None`` where none does."""
    found = []
    for statement in core:
        if statement.kind == "keep":
            without = replace(problem, keep=tuple(each for each in problem.keep if not statement.text.endswith(each.text)))
        elif statement.kind == "asked":
            without = replace(problem, asked=tuple(each for each in problem.asked if not statement.text.endswith(each.text)))
        else:
            continue
        solution = solve(without)
        if solution.chosen is not None and not solution.left(_ERRORS):
            found.append((solution.cost, statement.text, solution))
    if not found:
        return None
    _, text, solution = min(found, key=lambda each: each[:2])
    return text, solution


def said(cost: tuple[int, ...]) -> str:
    """A cost in words, the levels that are not nought."""
    return ", ".join(f"{amount} {level}" for amount, level in zip(cost, LEVELS) if amount) or "nothing"
