"""Two engines that share nothing find the same cost: in random problems, and in random clauses with weights of any size."""

from __future__ import annotations

import random

import pytest

from compat.repair.engine import LEVELS, Clauses, cheapest_model
from compat.repair.relaxation import Forbidden
from compat.repair.solve import Solver
from tests.repair.test_optimal import instance

pytest.importorskip("ortools")


def second(problem: Clauses) -> tuple[int, ...] | None:
    from benchmarks.second_engine import cheapest

    return cheapest(problem)


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_the_engines_agree_on_random_problems(start: int) -> None:
    for seed in range(start, start + 50):
        problem, universe, rules = instance(seed)

        def known(current, releases, rules=rules) -> list[Forbidden]:  # type: ignore[no-untyped-def]
            return rules

        solution = Solver(problem, universe, rules=known, judge=lambda *_: (), needs={}).solve()
        assert second(solution.relaxation.clauses) == (solution.cost or None), f"seed {seed}"


def some_clauses(seed: int) -> Clauses:
    """Choices among several with prices on a few levels, single prices, and clauses: most forbid two choices together."""
    dice = random.Random(seed)
    problem = Clauses()
    levels = dice.sample(LEVELS, dice.randint(1, 3))
    groups = [tuple(problem.atom() for _ in range(dice.randint(1, 8))) for _ in range(dice.randint(3, 12))]
    for group in groups:
        problem.exactly_one(group)
        for level in levels:
            for place, atom in enumerate(group):
                problem.cost(level, atom, place * dice.choice((0, 1, 2, dice.randint(0, 300))))
    for _ in range(dice.randint(0, 6)):
        problem.cost(dice.choice(levels), problem.atom(), dice.randint(1, 50))
    for _ in range(dice.randint(5, 60)):
        size = dice.choice((1, 2, 2, 2, 2, 3, 4)) if dice.random() < 0.9 else 1
        literals = [-dice.choice(group[: dice.randint(1, 3)]) for group in dice.sample(groups, min(size, len(groups)))]
        if dice.random() < 0.5:
            literals.append(dice.randint(1, problem.count))
        problem.add(tuple(literals))
    return problem


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_the_engines_agree_on_random_clauses(start: int) -> None:
    for seed in range(start, start + 50):
        problem = some_clauses(seed)
        found = cheapest_model(problem)
        assert second(problem) == (None if found is None else found.cost), f"seed {seed}"
        assert found is None or found.optimal


def test_random_clauses_have_models_and_contradictions() -> None:
    found = [cheapest_model(some_clauses(seed)) for seed in range(300)]
    assert 30 < sum(each is None for each in found) < 270
    assert sum(each is not None and max(each.cost) > 3 for each in found) > 30
