"""What uv is asked when the search for a plan runs out of time, and which of its answers count."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

from compat.model import Environment, Finding, Fix
from compat.repair.by_uv import Asking, chosen_by_uv
from compat.repair.candidates import Release
from compat.repair.problem import Problem
from compat.repair.resolved import Resolved
from compat.repair.verify import Question
from tests.repair.worlds import TARGET, MemoryUniverse, need

XFORMERS = Finding(
    rule="build-xformers-torch", origin="build", verdict="hit", severity="error", effect="crash", title="", why="",
    confidence="confirmed", packages={"xformers": "1.0", "torch": "3.0"}, facts=(), evidence=(),
    fixes=(Fix("downgrade", "torch", "==2.0"),),
)  # fmt: skip
RELEASES = {name: tuple(Release(name, each) for each in ("1.0", "2.0", "3.0")) for name in ("torch", "xformers", "trl")}


class Uv:
    """Answers with the newest torch that is allowed, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Question] = []

    def __call__(self, question: Question) -> Resolved:
        self.asked.append(question)
        torch = next((version for version in ("1.0", "2.0", "3.0") if f"torch=={version}" in question.requires), "3.0")
        return Resolved({"torch": torch, "xformers": "1.0", "trl": "1.0"})


def judge(chosen: Mapping[str, Release]) -> tuple[Finding, ...]:
    return (XFORMERS,) if chosen["torch"].version != "2.0" else ()


def found(problem: Problem, errors: tuple[Finding, ...], fewer_than: int, uv: Uv) -> dict[str, str] | None:
    asking = Asking(uv, judge, MemoryUniverse(RELEASES, {}), (), monotonic() + 60, lambda _: True)
    chosen = chosen_by_uv(problem, errors, asking, fewer_than)
    return None if chosen is None else {name: release.version for name, release in chosen.items()}


def test_what_is_chosen_from_scratch_is_the_newest_without_an_error() -> None:
    uv = Uv()
    problem = Problem(Environment(), TARGET, {}, asked=(need("trl"),))
    assert found(problem, (), 1, uv) == {"torch": "2.0", "xformers": "1.0", "trl": "1.0"}
    assert [each.requires for each in uv.asked] == [("trl",), ("trl", "torch==2.0")]
    assert not any(each.lowest for each in uv.asked)


def test_pins_are_lower_bounds_and_an_error_bounds_its_package_at_the_fix() -> None:
    uv = Uv()
    current = {name: Release(name, "3.0" if name == "torch" else "1.0") for name in RELEASES}
    problem = Problem(Environment(), TARGET, current, direct=frozenset(current))
    assert found(problem, (XFORMERS,), 1, uv) == {"torch": "2.0", "xformers": "1.0", "trl": "1.0"}
    assert [(each.requires, each.lowest) for each in uv.asked] == [(("torch==2.0", "xformers>=1.0", "trl>=1.0"), True)]


def test_an_answer_that_leaves_as_many_errors_is_none() -> None:
    problem = Problem(Environment(), TARGET, {}, asked=(need("trl"),))
    asking = Asking(Uv(), lambda _: (XFORMERS,), MemoryUniverse(RELEASES, {}), (), monotonic() + 60, lambda _: True)
    assert chosen_by_uv(problem, (), asking, 1) is None


def test_what_has_no_wheel_stays_where_it_is() -> None:
    """uv may choose wheels only: an old release, or another one for that reason alone."""

    def resolve(_: Question) -> Resolved:
        return Resolved({"torch": "2.0", "xformers": "3.0", "trl": "0.1.dev1"})

    current = {name: Release(name, "3.0" if name == "torch" else "1.0") for name in RELEASES}
    releases = {**RELEASES, "trl": (Release("trl", "0.1.dev1"), *RELEASES["trl"])}
    problem = Problem(Environment(), TARGET, current, direct=frozenset(current))
    universe = MemoryUniverse(releases, {})
    asking = Asking(resolve, judge, universe, (), monotonic() + 60, lambda each: each.name != "xformers")
    chosen = chosen_by_uv(problem, (XFORMERS,), asking, 1)
    assert chosen is not None
    assert {name: release.version for name, release in chosen.items()} == {"torch": "2.0", "xformers": "1.0", "trl": "1.0"}
