"""Random problems with extras, families, pre-releases, source candidates and rules: the plan costs what the cheapest one does.

``COMPAT_INSTANCES=10000`` tries that many; some hundred belong to the ordinary suite.
"""

from __future__ import annotations

import os
import random

import pytest

from compat.model import Environment, Source
from compat.repair.candidates import Release
from compat.repair.engine import Statement
from compat.repair.problem import Policy, Problem, Recommended
from compat.repair.relaxation import ABSENT, Forbidden
from compat.repair.solve import Solver
from compat.repair.target import Need
from tests.repair.worlds import TARGET, Everything, MemoryUniverse, need

INSTANCES = int(os.environ.get("COMPAT_INSTANCES", "250"))
NAMES = ("torch", "triton", "trl", "vllm", "peft")
VERSIONS = ("1.0", "1.5", "2.0", "3.0rc1", "3.0")
SPECIFIERS = ("", ">=1.5", "<2", "==1.0", "!=1.5", ">=3.0rc1", "<=2.0", "==9")
EXTRAS = ("fast", "more")


def some_needs(dice: random.Random, name: str) -> tuple[Need, ...]:
    found = []
    for other in NAMES:
        if other != name and dice.random() < 0.3:
            extras = f"[{dice.choice(EXTRAS)}]" if dice.random() < 0.3 else ""
            found.append(need(f"{other}{extras}{dice.choice(SPECIFIERS)}"))
    if dice.random() < 0.1:
        found.append(need(f"{name}[{dice.choice(EXTRAS)}]"))
    return tuple(found)


def instance(seed: int) -> tuple[Problem, MemoryUniverse, list[Forbidden]]:
    dice = random.Random(seed)
    releases, requires = {}, {}
    for name in dice.sample(NAMES, dice.randint(2, 5)):
        versions = sorted(
            dice.sample(VERSIONS, dice.randint(1, 4)), key=lambda text: (float(text.partition("rc")[0]), "rc" not in text)
        )
        found = [
            Release(name, each, f"{2015 + 2 * place}-01-01", None, dice.random() < 0.05) for place, each in enumerate(versions)
        ]
        if dice.random() < 0.15:
            found.append(Release(name, "2.5", "2020-01-01", source=Source("vcs", {"commit": "abc"})))
            found.sort(key=lambda each: each.key)
        elsewhere = Source("index", {"url": "https://index.example/cu128"})
        labelled = [each for each in found if each.source is None and dice.random() < 0.08]
        found += [Release(name, f"{each.version}+cu128", each.day, elsewhere) for each in labelled]
        found.sort(key=lambda each: each.key)
        releases[name] = tuple(found)
        for each in found:
            requires[name, each.version] = {"": some_needs(dice, name), **{extra: some_needs(dice, name) for extra in EXTRAS}}
    current = {name: dice.choice(found) for name, found in releases.items() if dice.random() < 0.75}
    direct = frozenset(name for name in releases if dice.random() < 0.4)
    asked = tuple(need(f"{name}{dice.choice(SPECIFIERS[:3])}") for name in sorted(direct) if dice.random() < 0.5)
    keep = tuple(need(f"{name}{dice.choice(SPECIFIERS)}") for name in releases if dice.random() < 0.1)
    policy = Policy(
        dice.choice(("stay", "upgrade", "newest")), dice.random() < 0.3, any_age=not current or dice.random() < 0.5,
        allow_source=dice.random() < 0.5,
    )  # fmt: skip

    environment = Environment(distributions_complete=dice.random() < 0.5)
    again = random.Random(seed)  # the worlds stay the same
    recommended = tuple(
        Recommended(
            "a-rule",
            tuple((need(f"{name}{dice.choice(SPECIFIERS[1:])}"),) for _ in range(dice.randint(1, 3))),
            frozenset(other for other in current if other != name and again.random() < 0.1),
        )
        for name in current if dice.random() < 0.15
    )  # fmt: skip
    unpinned = frozenset(name for name in current if dice.random() < 0.25)
    problem = Problem(
        environment, TARGET, current, asked, keep, direct, policy, recommended=recommended, from_part=seed % 5 == 0,
        unpinned=unpinned,
    )  # fmt: skip
    universe = MemoryUniverse(releases, requires)
    return problem, universe, list(some_rules(dice, problem, universe))


def some_rules(dice: random.Random, problem: Problem, universe: MemoryUniverse) -> list[Forbidden]:
    def some(name: str) -> tuple[str, frozenset[str]]:
        versions = [each.version for each in problem.candidates(name, universe._releases[name])] or [ABSENT]
        absent = [ABSENT] if dice.random() < 0.15 else []
        return name, frozenset([*dice.sample(versions, dice.randint(1, len(versions))), *absent])

    names = sorted(universe._releases)
    found = []
    for number in range(dice.randint(0, 4)):
        together = tuple(some(name) for name in dice.sample(names, dice.randint(1, min(3, len(names)))))
        unless = ((some(dice.choice(names)),),) if dice.random() < 0.3 else ()
        level = dice.choice(("errors left", "errors left", "warnings left", ""))
        found.append(Forbidden(together, Statement("rule", f"rule {number}"), level, unless))
    return found


@pytest.mark.parametrize("start", range(0, INSTANCES, 50))
def test_the_plan_costs_what_the_cheapest_does(start: int) -> None:
    for seed in range(start, start + 50):
        problem, universe, rules = instance(seed)
        learnt = [rule for number, rule in enumerate(rules) if number % 2]  # half of them turn out in the whole plan only
        known = [rule for rule in rules if rule not in learnt]
        expected = Everything(problem, universe, rules).cheapest()

        def broken(chosen, opened, learnt=learnt):  # type: ignore[no-untyped-def]
            return [rule for rule in learnt if holds(rule, {name: each.version for name, each in chosen.items()})]

        def certain(current, releases, known=known):  # type: ignore[no-untyped-def]
            return known

        solution = Solver(problem, universe, rules=certain, judge=broken, needs={}).solve()
        found = None if solution.chosen is None else solution.cost
        assert found == expected, f"seed {seed}: {found} instead of {expected}"
        if found is not None:
            assert solution.optimal


def holds(rule: Forbidden, chosen: dict[str, str]) -> bool:
    spared = any(all(chosen.get(name, ABSENT) in versions for name, versions in group) for group in rule.unless)
    return not spared and all(chosen.get(name, ABSENT) in versions for name, versions in rule.together)


def test_both_answers_occur() -> None:
    answers = [Everything(problem, universe, rules).cheapest() for problem, universe, rules in map(instance, range(90))]
    assert 5 < sum(each is None for each in answers) < 85
    assert sum(each is not None and each[1] > 0 for each in answers) > 5


def test_what_is_newest_may_bring_in_more_packages_even_old_ones() -> None:
    """Nothing is installed: an older release is not better for needing less, nor one whose dependency is long finished."""
    releases = {
        "app": (Release("app", "1", "2025-01-01"), Release("app", "2", "2026-01-01")),
        "old": (Release("old", "1", "2020-01-01"),),
        "more": (Release("more", "1", "2026-01-01"),),
        "top": (Release("top", "1", "2026-01-01"),),
    }
    requires = {("top", "1"): {"": (need("app"),)}, ("app", "2"): {"": (need("old"), need("more"))}}
    environment = Environment(python="3.11.9", os="linux", machine="x86_64", distributions=(), distributions_complete=True)
    problem = Problem(environment, TARGET, {}, asked=(need("top"),), direct=frozenset(("top",)), policy=Policy(prefer="newest"))
    solver = Solver(problem, MemoryUniverse(releases, requires), rules=lambda *_: (), judge=lambda *_: (), needs={})
    chosen = solver.solve().chosen
    assert chosen is not None
    assert {name: release.version for name, release in chosen.items()} == {"top": "1", "app": "2", "old": "1", "more": "1"}
