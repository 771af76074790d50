"""Why a plan changes something, what cannot hold together, and which wish is best given up."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from compat.model import Environment, Finding, Fix
from compat.records import replace
from compat.repair.candidates import Release
from compat.repair.engine import Requires, Statement
from compat.repair.explain import conflict, contradiction_text, most_helpful_removal, reasons, why_unsatisfied
from compat.repair.problem import Problem
from compat.repair.relaxation import Forbidden
from compat.repair.solve import Solution, Solver
from tests.repair.worlds import TARGET, MemoryUniverse, need

VERSIONS = {"torch": ("1.0", "2.0"), "trl": ("1.0", "2.0", "3.0"), "peft": ("1.0", "2.0"), "vllm": ("1.0", "2.0")}
BAD = Forbidden((("trl", frozenset({"1.0"})),), Statement("rule", "It breaks (a-rule)"), "errors left")
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


def why(asked: Solver, solution: Solution, *names: str) -> dict[str, str]:
    return reasons(asked, solution.chosen or {}, names, ())


def test_reasons_are_those_that_hold_in_the_plan() -> None:
    """The rule for what it is about, and what the plan's own releases require: not what others of them would."""
    asked = solver()
    solution = asked.solve(["trl"])
    assert chosen(solution) == {"torch": "1.0", "trl": "2.0", "peft": "2.0", "vllm": "1.0"}
    assert why(asked, solution, "trl", "peft") == {"trl": "It breaks (a-rule)", "peft": "trl 2.0 requires peft>=2"}


def test_what_follows_torch_is_no_reason_for_another_to_follow() -> None:
    torch, vision, audio = (
        tuple(Release(name, each) for each in ("1.0", "2.0")) for name in ("torch", "torchvision", "torchaudio")
    )
    releases = {
        "torch": torch,
        "torchvision": vision,
        "torchaudio": audio,
        "trl": (Release("trl", "1.0"), Release("trl", "2.0")),
    }
    requires = {(name, each): (f"torch=={each}",) for name in ("torchvision", "torchaudio") for each in ("1.0", "2.0")}
    current = {name: found[0] for name, found in releases.items()}
    environment = Environment(distributions_complete=True)
    asked = for_problem(
        Problem(environment, TARGET, current, keep=(need("torch>=2"),), direct=frozenset(current)), releases, requires
    )  # fmt: skip
    found = why(asked, asked.solve(["trl", "torch"]), "torchvision", "torchaudio")
    assert found == {name: f"{name} 1.0 requires torch==1.0" for name in ("torchvision", "torchaudio")}


def test_a_pair_that_breaks_is_the_reason_for_the_one_that_moves() -> None:
    pair = Forbidden((("trl", frozenset({"1.0"})), ("vllm", frozenset({"1.0"}))), BAD.statement, BAD.level)
    asked = solver(requires={("vllm", "2.0"): ("torch>=2",)})
    asked._rules = lambda *_: [pair]
    solution = asked.solve(["trl", "vllm"])
    assert chosen(solution)["trl"] == "2.0"
    assert why(asked, solution, "trl") == {"trl": "It breaks (a-rule)"}


def test_a_release_that_spares_the_others_moves_for_what_they_break() -> None:
    spared = Forbidden(
        (("trl", frozenset({"1.0", "2.0", "3.0"})), ("peft", frozenset({"1.0", "2.0"}))), BAD.statement, BAD.level,
        ((("vllm", frozenset({"2.0"})),),),
    )  # fmt: skip
    asked = solver(requires={("vllm", "1.0"): ("torch==1.0",), ("vllm", "2.0"): ("torch==2.0",)})
    asked._rules = lambda *_: [spared]
    solution = asked.solve(["trl", "vllm"])
    assert chosen(solution) == {"torch": "2.0", "trl": "1.0", "peft": "1.0", "vllm": "2.0"}
    assert why(asked, solution, "vllm") == {"vllm": "It breaks (a-rule)"}


def test_an_error_is_the_reason_for_the_package_that_its_fix_moves() -> None:
    """What it also names only comes along: as with triton, which vllm brings and which has no code for the GPU."""
    asked = solver()
    solution = asked.solve(["trl"])
    error = Finding(
        rule="a-rule", origin="rule", verdict="hit", severity="error", effect="crash", title="It breaks", why="", confidence="confirmed",
        packages={"trl": "1.0", "peft": "1.0"}, facts=(), evidence=(), fixes=(Fix("upgrade", "trl", ">=2"),),
    )  # fmt: skip
    found = reasons(asked, solution.chosen or {}, ["trl", "peft"], [error])
    assert found == {"trl": "It breaks (a-rule)", "peft": "trl 2.0 requires peft>=2"}


def test_an_error_about_compiled_code_is_told_as_it_would_be_in_the_plan() -> None:
    """As of bitsandbytes, which has no library for the CUDA of the torch before, nor for that of the new one."""
    asked = solver()
    solution = asked.solve(["trl"])
    before = Finding(
        rule="build-trl-cuda", origin="build", verdict="hit", severity="error", effect="crash", title="Nothing for CUDA 13", why="",
        confidence="confirmed", packages={"trl": "1.0", "torch": "1.0"}, facts=(), evidence=(), fixes=(Fix("upgrade", "trl", ">=2"),),
    )  # fmt: skip
    then = replace(before, title="Nothing for CUDA 12")
    seen: list[str] = []

    def judge(releases: Mapping[str, Release]) -> list[Finding]:
        seen.append(releases["trl"].version)
        return [then]

    found = reasons(asked, solution.chosen or {}, ["trl"], [before], judge)
    assert found == {"trl": "Nothing for CUDA 12 (build-trl-cuda)"}
    assert seen == ["1.0"]


def test_what_a_plan_adds_is_there_for_what_requires_it() -> None:
    asked = solver(requires={("trl", "2.0"): ("extra-package",), ("trl", "3.0"): ("extra-package",)})
    asked.universe._releases["extra-package"] = (Release("extra-package", "1.0"),)  # type: ignore[attr-defined]
    solution = asked.solve(["trl"])
    assert chosen(solution)["extra-package"] == "1.0"
    assert why(asked, solution, "extra-package") == {"extra-package": "trl 2.0 requires extra-package"}


def test_where_a_plan_exists_there_is_no_conflict() -> None:
    asked = solver()
    asked.solve(["trl"])
    assert conflict(asked) == ()


def test_a_conflict_is_minimal_and_one_wish_relieves_it() -> None:
    asked = solver(("peft==1.0", "torch==1.0"))
    solution = asked.solve(["trl"])
    assert solution.left("errors left") == 1
    core = conflict(asked)
    assert {each.text for each in core} == {
        "you keep peft==1.0", "It breaks (a-rule)", "trl 2.0 requires peft>=2", "trl 3.0 requires peft>=2",
    }  # fmt: skip
    universe = asked.universe
    tried: list[Problem] = []

    def solve(problem: Problem) -> Solution:
        tried.append(problem)
        return for_problem(problem, universe._releases, REQUIRES).solve(["trl"])  # type: ignore[attr-defined]

    relief = most_helpful_removal(asked.problem, core, solve)
    assert relief is not None
    assert relief[0] == "you keep peft==1.0"
    assert chosen(relief[1]) == {"torch": "1.0", "trl": "2.0", "peft": "2.0", "vllm": "1.0"}
    assert [[each.text for each in problem.keep] for problem in tried] == [["torch==1.0"]]


def test_where_no_wish_helps_there_is_no_relief() -> None:
    asked = solver(("trl<2",))
    asked.solve(["trl"])
    assert most_helpful_removal(asked.problem, [Statement("rule", "It breaks (a-rule)")], lambda problem: asked.solve()) is None


def test_what_several_releases_require_is_one_statement() -> None:
    """As uv puts it: a range of versions, or all of them."""
    every = {
        ("vllm", "1.0"): ("torch<2",),
        ("vllm", "2.0"): ("torch<2",),
        ("peft", "1.0"): ("torch<2",),
        ("trl", "3.0"): ("peft<2",),
    }
    asked = solver(("torch>=2",), requires={**every, ("trl", "2.0"): ("peft<2",)})
    assert asked.solve(["trl"]).chosen is None
    texts = contradiction_text(conflict(asked), asked.opened)
    assert "you keep torch>=2" in texts
    assert "all versions of vllm require torch<2" in texts


def test_a_range_of_releases_is_named_by_its_ends() -> None:
    opened = {"peft": tuple(Release("peft", each) for each in ("1.0", "2.0", "3.0", "4.0"))}

    def of(version: str, needed: str) -> Requires:
        return Requires("peft", Release("peft", version), need(needed))

    first = (of("1.0", "torch>=1"), of("2.0", "torch>=2"), of("3.0", "torch>=2"))
    assert contradiction_text(first, opened) == ("peft<=3.0 requires torch>=1 or torch>=2",)
    assert contradiction_text(first[1:], opened) == ("peft>=2.0,<=3.0 requires torch>=2",)
    assert contradiction_text((first[0], first[2]), opened) == ("peft 1.0, 3.0 require torch>=1 or torch>=2",)
    many = {"peft": tuple(Release("peft", f"{number}.0") for number in range(12))}
    each = [Requires("peft", release, need(f"torch=={release.version}")) for release in many["peft"]]
    assert contradiction_text((*each[:4], *each[6:8], each[9]), many) == (
        "peft 0.0 to 3.0, 6.0 to 7.0, 9.0 require torch==0.0 or … or torch==9.0",
    )
    assert contradiction_text(first[:1], opened) == ("peft 1.0 requires torch>=1",)


@pytest.mark.parametrize(
    ("release", "told"),
    [
        (Release("peft", "2.0", yanked=True), "peft 2.0 was yanked"),
        (Release("peft", "2.5.dev1"), "peft 2.5.dev1 is a pre-release (--pre considers those)"),
        (Release("peft", "2.0", day="2019-01-01"), "peft 2.0 is more than 365 days older than the current release (--any-age considers it)"),
        (Release("peft", "1.0"), "there is no peft>=2 for this target"),
    ],
)  # fmt: skip
def test_why_no_release_meets_a_requirement_is_part_of_a_contradiction(release: Release, told: str) -> None:
    core = [Statement("keep", "you keep trl==2.0"), Requires("trl", Release("trl", "2.0"), need("peft>=2"))]
    problem = Problem(Environment(), TARGET, {"trl": Release("trl", "1.0")})
    opened = {"trl": (Release("trl", "2.0"),), "peft": (Release("peft", "1.0"),)}
    assert why_unsatisfied(core, problem, opened, lambda name: (release,)) == (told,)
    if release.version == "1.0":
        why = "peft 2.0 has no wheel, and compat builds nothing"
        assert why_unsatisfied(core, problem, opened, lambda name: (release,), {"peft": ["0.9", "2.0"]}) == (why,)
    opened["peft"] = (Release("peft", "2.1"),)
    assert why_unsatisfied(core, problem, opened, lambda name: (release,)) == ()
