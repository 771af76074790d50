"""Why a plan changes something, what cannot hold together, and which wish is best given up."""

from __future__ import annotations

from collections.abc import Mapping

from compat.environment import Environment
from compat.repair.candidates import Release
from compat.repair.clauses import Statement
from compat.repair.explain import conflict, reasons, relieving
from compat.repair.problem import Problem
from compat.repair.relaxation import Forbidden
from compat.repair.solve import Solution, Solver
from tests.repair.worlds import TARGET, MemoryUniverse, need

VERSIONS = {"torch": ("1.0", "2.0"), "trl": ("1.0", "2.0", "3.0"), "peft": ("1.0", "2.0"), "vllm": ("1.0", "2.0")}
BAD = Forbidden((("trl", frozenset({"1.0"})),), Statement("rule", "It breaks (a-rule)"), "error findings left")
REQUIRES = {("trl", "2.0"): ("peft>=2",), ("trl", "3.0"): ("peft>=2", "torch>=2"), ("vllm", "1.0"): ("torch<2",)}


def solver(keep: tuple[str, ...] = (), *, requires: Mapping[tuple[str, str], tuple[str, ...]] = REQUIRES) -> Solver:
    releases = {name: tuple(Release(name, each) for each in versions) for name, versions in VERSIONS.items()}
    current = {name: found[0] for name, found in releases.items()}
    problem = Problem(
        Environment(distributions_complete=True), TARGET, current, keep=tuple(map(need, keep)), direct=frozenset(current)
    )  # fmt: skip
    return for_problem(problem, releases, requires)


def for_problem(
    problem: Problem, releases: Mapping[str, tuple[Release, ...]], requires: Mapping[tuple[str, str], tuple[str, ...]]
) -> Solver:
    needs = {key: {"": tuple(map(need, texts))} for key, texts in requires.items()}
    return Solver(problem, MemoryUniverse(releases, needs), rules=lambda *_: [BAD], judge=lambda *_: [], needs={})


def chosen(solution: Solution) -> dict[str, str]:
    return {name: release.version for name, release in (solution.chosen or {}).items()}


def test_reasons_name_the_rule_and_what_follows_from_it() -> None:
    asked = solver()
    solution = asked.solve(["trl"])
    assert chosen(solution) == {"torch": "1.0", "trl": "2.0", "peft": "2.0", "vllm": "1.0"}
    why = reasons(asked, solution, ["trl", "peft"])
    assert why["trl"].because == ("It breaks (a-rule)",)
    assert why["peft"].because[0] == "It breaks (a-rule)"
    assert "trl 2.0 requires peft>=2" in why["peft"].because
    assert why["trl"].text == "It breaks (a-rule)"


def test_a_change_that_is_no_must_is_told_by_what_it_would_cost_otherwise() -> None:
    pair = Forbidden((("trl", frozenset({"1.0"})), ("vllm", frozenset({"1.0"}))), BAD.statement, BAD.level)
    asked = solver(requires={("vllm", "2.0"): ("torch>=2",)})
    asked._rules = lambda *_: [pair]
    solution = asked.solve(["trl", "vllm"])
    assert chosen(solution)["trl"] == "2.0"
    why = reasons(asked, solution, ["trl"])["trl"]
    assert why.because == ()
    assert why.instead.startswith("keeping trl 1.0 would cost at least: 2 installed packages changed")


def test_what_a_plan_adds_needs_no_reason() -> None:
    asked = solver(requires={("trl", "2.0"): ("extra-package",), ("trl", "3.0"): ("extra-package",)})
    asked.universe._releases["extra-package"] = (Release("extra-package", "1.0"),)  # type: ignore[attr-defined]
    solution = asked.solve(["trl"])
    assert chosen(solution)["extra-package"] == "1.0"
    assert reasons(asked, solution, ["extra-package"])["extra-package"].text == ""


def test_where_a_plan_exists_there_is_no_conflict() -> None:
    asked = solver()
    asked.solve(["trl"])
    assert conflict(asked) == ()


def test_a_conflict_is_minimal_and_one_wish_relieves_it() -> None:
    asked = solver(("peft==1.0", "torch==1.0"))
    solution = asked.solve(["trl"])
    assert solution.left("error findings left") == 1
    core = conflict(asked)
    assert {each.text for each in core} == {
        "you keep peft==1.0", "It breaks (a-rule)", "trl 2.0 requires peft>=2", "trl 3.0 requires peft>=2",
    }  # fmt: skip
    universe = asked.universe
    tried: list[Problem] = []

    def solve(problem: Problem) -> Solution:
        tried.append(problem)
        return for_problem(problem, universe._releases, REQUIRES).solve(["trl"])  # type: ignore[attr-defined]

    relief = relieving(asked.problem, core, solve)
    assert relief is not None
    assert relief[0] == "you keep peft==1.0"
    assert chosen(relief[1]) == {"torch": "1.0", "trl": "2.0", "peft": "2.0", "vllm": "1.0"}
    assert [[each.text for each in problem.keep] for problem in tried] == [["torch==1.0"]]


def test_where_no_wish_helps_there_is_no_relief() -> None:
    asked = solver(("trl<2",))
    asked.solve(["trl"])
    assert relieving(asked.problem, [Statement("rule", "It breaks (a-rule)")], lambda problem: asked.solve()) is None
