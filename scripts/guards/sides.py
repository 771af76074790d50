"""Facts on both sides of a condition: some that satisfy it, and some that do not."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from compat.checks.guards import condition_holds
from compat.interfaces.refusals import Condition, FactTest, fact_tests
from compat.model import Accelerator, Distribution, Environment, Workload
from compat.rules.facts import Facts

_MOST = 20000
"""Combinations of facts that are tried to find one that refuses."""


def facts_on_both_sides(condition: Condition) -> tuple[Facts, Facts] | None:
    """Return facts that satisfy the condition and facts that do not, which differ in as few tests as possible."""
    tests = list(dict.fromkeys(fact_tests(condition)))
    choices: dict[tuple[str, str], list[Any]] = {}
    for test in tests:
        name = "" if test.fact == "capability" else test.name
        choices.setdefault((("package" if test.fact == "installed" else test.fact), name), []).extend(_values(test))
    keys = list(choices)
    refusing: dict[tuple[str, str], Any] | None = None
    accepted: list[tuple[Any, ...]] = []
    for values in itertools.islice(itertools.product(*(dict.fromkeys(choices[key]) for key in keys)), _MOST):
        answer = condition_holds(condition, _facts(dict(zip(keys, values))), presumed=True)
        if answer and refusing is None:
            refusing = dict(zip(keys, values))
        elif answer is False:
            accepted.append(values)
    if refusing is None or not accepted:
        return None
    wanted = tuple(refusing.values())
    nearest = min(accepted, key=lambda values: sum(one != other for one, other in zip(values, wanted)))
    return _facts(refusing), _facts(dict(zip(keys, nearest)))


def _values(test: FactTest) -> list[Any]:
    if test.name == "minor":
        return [f"7.{test.value}", "7.0"]
    if test.fact in ("package", "python", "capability"):
        low = {"package": "0.0.1", "python": "3.8", "capability": "3.5"}[test.fact]
        high = {"package": "9999", "python": "3.14", "capability": "12.1"}[test.fact]
        value = test.value if test.fact != "capability" or "." in test.value else f"{test.value}.0"
        return [value, low, high]
    if test.fact == "installed":
        return ["1.0", None]
    if test.fact == "precision":
        return [test.value, "fp32"]
    if test.fact == "os":
        return ["linux", "windows", "darwin"]
    return [1, 0] if test.fact == "devices" else [True, False] if test.fact == "feature" else [test.value, None]


def _facts(values: Mapping[tuple[str, str], Any]) -> Facts:
    copies = tuple(Distribution(name, each) for (fact, name), each in values.items() if fact == "package" and each)
    capability = next((each for (fact, _), each in values.items() if fact == "capability"), "9.0")
    devices = next((each for (fact, _), each in values.items() if fact == "devices"), 1)
    return Facts(
        Environment(
            python=next((each for (fact, _), each in values.items() if fact == "python"), "3.11"),
            os=next((each for (fact, _), each in values.items() if fact == "os"), "linux"),
            distributions=copies, distributions_complete=True,
            accelerators=tuple(Accelerator("nvidia", compute_capability=capability) for _ in range(devices)),
            variables={name: each for (fact, name), each in values.items() if fact == "variable"},
            workload=Workload(
                precision=next((each for (fact, _), each in values.items() if fact == "precision"), None),
                features=tuple(name for (fact, name), each in values.items() if fact == "feature" and each),
                features_complete=True,
            ),
        )
    )  # fmt: skip
