"""The same clauses in OR-tools' CP-SAT: the cost of the cheapest model, found by an independent engine.

For development only: `compat` itself never imports it.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from compat.repair.engine import Clauses


def cheapest(problem: Clauses, seconds: float = 600.0) -> tuple[int, ...] | None:
    """Return the proven cost of a cheapest model, level by level; ``None`` if there is no model.

    Raises ``TimeoutError`` if a level exceeds the time limit.
    """
    model = cp_model.CpModel()
    atoms = [model.new_bool_var("") for _ in range(problem.count)]
    for group in problem.one_of:
        model.add_exactly_one(atoms[atom - 1] for atom in group)
    for literals, _ in problem.clauses:
        model.add_bool_or(atoms[literal - 1] if literal > 0 else ~atoms[-literal - 1] for literal in literals)
    paid = []
    for costs in problem.costs or [{}]:
        total = sum(weight * atoms[atom - 1] for atom, weight in costs.items())
        best = _least(model, total, seconds)
        if best is None:
            return None
        paid.append(best)
        model.add(total <= best)
    return tuple(paid)


def _least(model: cp_model.CpModel, total: cp_model.LinearExprT, seconds: float) -> int | None:
    """Return the minimum of an expression; ``None`` if the model is infeasible."""
    model.minimize(total)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    if status != cp_model.OPTIMAL:
        raise TimeoutError(f"CP-SAT: {solver.status_name(status)}")
    return round(solver.objective_value)
