"""Resolver scenarios of our own, each from its roots: what is chosen is what ``uv pip compile`` chooses from the same index.

They are of the kinds that real indexes have: early, local, late and yanked releases, epochs, Requires-Python, markers, extras that
name themselves, and wheels for other machines. Where the answers differ on purpose, ours is stated with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compat.index import Index, Settings, Store
from compat.index.configuration import uv_binary
from compat.index.settings import Source
from compat.model import Environment
from compat.repair.candidates import IndexUniverse
from compat.repair.problem import Policy, Problem
from compat.repair.resolved import resolved_by_uv
from compat.repair.solve import Solver
from compat.repair.target import Target
from compat.repair.verify import Question
from tests.index.server import IndexServer


class Scenario(NamedTuple):
    """What is required of which packages, on Linux x86_64 with glibc 2.28 unless ``os`` says otherwise."""

    name: str
    requires: Sequence[str]
    packages: Mapping[str, Mapping[str, Mapping[str, Any]]]
    python: str = "3.12"
    os: str = "linux"


def R(*requires: str) -> dict[str, object]:  # noqa: N802 (a release, in tables of them)
    return {"requires": list(requires)}


SCENARIOS = (
    # Pre-releases
    Scenario("pre-only-one-side", ["a", "b"], {"a": {"1.0": R("c>=2.0rc1")}, "b": {"1.0": R("c")}, "c": {"1.0": {}, "2.0rc1": {}}}),
    Scenario("pre-upper-bound-exclusive", ["a<2.0"], {"a": {"1.0": {}, "2.0rc1": {}, "2.0.dev1": {}}}),
    Scenario("pre-upper-bound-pre", ["a<2.0rc2"], {"a": {"1.0": {}, "2.0rc1": {}, "2.0rc2": {}}}),
    Scenario("pre-compatible", ["a~=1.0rc1"], {"a": {"1.0rc1": {}, "1.0rc2": {}, "2.0": {}}}),
    Scenario("pre-only-in-range-root", ["a>=2"], {"a": {"1.0": {}, "2.1rc1": {}}}),
    Scenario("pre-only-transitive-in-range", ["a"], {"a": {"1.0": R("b>=2"), }, "b": {"1.0": {}, "2.1rc1": {}}}),
    Scenario("pre-only-package-transitive", ["a"], {"a": {"1.0": R("b")}, "b": {"1.0rc1": {}, "1.0rc2": {}}}),
    Scenario("pre-exact-transitive", ["a"], {"a": {"1.0": R("b==2.0rc1")}, "b": {"1.0": {}, "2.0rc1": {}}}),
    Scenario("pre-not-equal", ["a!=2.0rc1"], {"a": {"1.0": {}, "2.0rc1": {}, "2.0rc2": {}}}),
    Scenario("dev-over-pre", ["a>=1.0.dev0"], {"a": {"1.0.dev1": {}, "1.0a1": {}, "1.0rc1.dev2": {}}}),
    Scenario("dev-only", ["a"], {"a": {"1.0.dev1": {}, "1.0.dev2": {}}}),
    Scenario("dev-of-pre-bound", ["a>=1.0rc1,<1.0"], {"a": {"1.0rc1": {}, "1.0rc2.dev1": {}, "1.0": {}}}),
    Scenario("pre-all-stable-broken", ["a"], {"a": {"1.0": R("missing"), "2.0rc1": {}}}),
    # Local
    Scenario("local-pinned-public", ["a==1.0"], {"a": {"1.0": {}, "1.0+cu1": {}}}),
    Scenario("local-only-public-asked", ["a==1.0"], {"a": {"1.0+cu1": {}, "1.0+cpu": {}}}),
    Scenario("local-not-equal-public", ["a!=1.0"], {"a": {"0.9": {}, "1.0+cu1": {}}}),
    Scenario("local-not-equal-local", ["a!=1.0+cu1"], {"a": {"1.0": {}, "1.0+cu1": {}, "1.0+cu2": {}}}),
    Scenario("local-less-equal", ["a<=1.0"], {"a": {"0.9": {}, "1.0+cu1": {}}}),
    Scenario("local-greater", ["a>1.0"], {"a": {"1.0+cu1": {}, "0.9": {}}}),
    Scenario("local-arbitrary", ["a===1.0"], {"a": {"1.0": {}, "1.0+cu1": {}}}),
    Scenario("local-arbitrary-local", ["a===1.0+cu1"], {"a": {"1.0": {}, "1.0+cu1": {}}}),
    Scenario("local-numeric-order", ["a"], {"a": {"1.0+2": {}, "1.0+10": {}, "1.0+abc": {}}}),
    Scenario("local-star", ["a==1.0.*"], {"a": {"1.0.1+cu1": {}, "1.1": {}}}),
    Scenario("local-compatible", ["a~=1.0.0"], {"a": {"1.0.3+cu1": {}, "1.1": {}}}),
    Scenario("local-two-want", ["a", "b"], {"a": {"1.0": R("t==1.0")}, "b": {"1.0": R("t==1.0+x")}, "t": {"1.0": {}, "1.0+x": {}, "1.0+y": {}}}),
    # Post
    Scenario("post-greater-post", ["a>1.0.post1"], {"a": {"1.0.post1": {}, "1.0.post2": {}}}),
    Scenario("post-star", ["a==1.0.*"], {"a": {"1.0": {}, "1.0.post3": {}, "1.1": {}}}),
    Scenario("post-dev", ["a"], {"a": {"1.0": {}, "1.0.post1.dev1": {}}}),
    Scenario("post-of-pre", ["a>=1.0rc1"], {"a": {"1.0rc1.post1": {}, "1.0rc1": {}}}),
    Scenario("post-compatible", ["a~=1.0.post1"], {"a": {"1.0": {}, "1.0.post1": {}, "1.5": {}, "2.0": {}}}),
    Scenario("post-less-equal", ["a<=1.0"], {"a": {"0.9": {}, "1.0.post1": {}}}),
    # Epochs
    Scenario("epoch-higher", ["a>=2020"], {"a": {"2020.1": {}, "1!1.0": {}}}),
    Scenario("epoch-less", ["a<1!0"], {"a": {"2020.1": {}, "1!1.0": {}}}),
    Scenario("epoch-star", ["a==1!1.*"], {"a": {"1.5": {}, "1!1.2": {}, "1!2.0": {}}}),
    Scenario("epoch-compatible", ["a~=1!1.0"], {"a": {"1.5": {}, "1!1.2": {}, "1!2.0": {}}}),
    Scenario("epoch-transitive", ["a", "b"], {"a": {"1": R("c<3"), "2": R("c<1!3")}, "b": {"1": R("c>=1!1")}, "c": {"2.0": {}, "1!1.0": {}, "1!3.0": {}}}),
    # Yanked
    Scenario("yank-only", ["a"], {"a": {"1.0": {"yanked": "bad"}}}),
    Scenario("yank-pin-transitive", ["a"], {"a": {"1.0": R("b==2.0")}, "b": {"1.0": {}, "2.0": {"yanked": True}}}),
    Scenario("yank-pin-root-and-transitive", ["a", "b==2.0"], {"a": {"1.0": R("b>=2")}, "b": {"1.0": {}, "2.0": {"yanked": True}}}),
    Scenario("yank-star-pin", ["a==2.*"], {"a": {"1.0": {}, "2.0": {"yanked": True}}}),
    Scenario("yank-newest", ["a"], {"a": {"1.0": {}, "2.0": {"yanked": True}}}),
    Scenario("yank-arbitrary", ["a===2.0"], {"a": {"1.0": {}, "2.0": {"yanked": True}}}),
    Scenario("yank-pin-zero", ["a==2"], {"a": {"1.0": {}, "2.0": {"yanked": True}}}),
    # Requires-Python
    Scenario("rp-newest-too-new", ["a"], {"a": {"1.0": {}, "2.0": {"requires_python": ">=3.13"}}}),
    Scenario("rp-transitive", ["a"], {"a": {"1.0": R("b<2"), "2.0": R("b>=2")}, "b": {"1.0": {}, "2.0": {"requires_python": ">=3.13"}}}),
    Scenario("rp-patch", ["a"], {"a": {"1.0": {}, "2.0": {"requires_python": ">=3.12.4"}}}, python="3.12.3"),
    Scenario("rp-patch-ok", ["a"], {"a": {"1.0": {}, "2.0": {"requires_python": ">=3.12.3"}}}, python="3.12.3"),
    Scenario("rp-not-equal", ["a"], {"a": {"1.0": {}, "2.0": {"requires_python": "!=3.12.*"}}}),
    Scenario("rp-invalid", ["a"], {"a": {"1.0": {}, "2.0": {"requires_python": ">=3.6.*"}}}),
    Scenario("rp-upper", ["a"], {"a": {"1.0": {}, "2.0": {"requires_python": "<3.12"}}}),
    Scenario("rp-minor-only", ["a"], {"a": {"1.0": {}, "2.0": {"requires_python": ">3.12"}}}),
    Scenario("rp-tilde", ["a"], {"a": {"1.0": {}, "2.0": {"requires_python": "~=3.11"}}}),
    # Markers
    Scenario("marker-false", ["a; sys_platform=='win32'"], {"a": {"1.0": {}}}),
    Scenario("marker-version", ["a"], {"a": {"1.0": R("b<2; python_version<'3.12'", "b>=2; python_version>='3.12'")}, "b": {"1.0": {}, "2.0": {}}}),
    Scenario("marker-in", ["a"], {"a": {"1.0": R("b==1.0; sys_platform in 'linux darwin'", "b==2.0; sys_platform not in 'linux darwin'")}, "b": {"1.0": {}, "2.0": {}}}),
    Scenario("marker-machine", ["a"], {"a": {"1.0": R("b==1.0; platform_machine=='x86_64'", "b==2.0; platform_machine!='x86_64'")}, "b": {"1.0": {}, "2.0": {}}}),
    Scenario("marker-full-version", ["a"], {"a": {"1.0": R("b==1.0; python_full_version<'3.12.4'", "b==2.0; python_full_version>='3.12.4'")}, "b": {"1.0": {}, "2.0": {}}}, python="3.12.6"),
    Scenario("marker-reversed", ["a"], {"a": {"1.0": R("b==1.0; '3.10'>python_version", "b==2.0; '3.10'<=python_version")}, "b": {"1.0": {}, "2.0": {}}}),
    Scenario("marker-or-extra", ["a[x]"], {"a": {"1.0": {"requires": ["b==1.0; extra=='x' or sys_platform=='win32'", "c; extra=='x' and sys_platform=='win32'"]}}, "b": {"1.0": {}}, "c": {"1.0": {}}}),
    Scenario("marker-platform-release", ["a"], {"a": {"1.0": R("b==1.0; platform_release>='20'")}, "b": {"1.0": {}}}),
    Scenario("marker-impl", ["a"], {"a": {"1.0": R("b; implementation_name=='pypy'", "c; platform_python_implementation=='CPython'")}, "b": {"1.0": {}}, "c": {"1.0": {}}}),
    Scenario("marker-not-extra", ["a[x]"], {"a": {"1.0": {"requires": ["b; extra!='x'"], "extras": {"x": ["c"]}}}, "b": {"1.0": {}}, "c": {"1.0": {}}}),
    # Extras
    Scenario("extra-missing", ["a[nope]"], {"a": {"1.0": {}}}),
    Scenario("extra-older-has", ["a[x]"], {"a": {"1.0": {"extras": {"x": ["b"]}}, "2.0": {}}, "b": {"1.0": {}}}),
    Scenario("extra-self", ["a[all]"], {"a": {"1.0": {"extras": {"all": ["a[x,y]"], "x": ["b"], "y": ["c"]}}}, "b": {"1.0": {}}, "c": {"1.0": {}}}),
    Scenario("extra-self-pinned", ["a[all]"], {"a": {"1.0": {"extras": {"all": ["a[x]==1.0"], "x": ["b"]}}, "2.0": {"extras": {"all": ["a[x]==1.0"], "x": ["c"]}}}, "b": {"1.0": {}}, "c": {"1.0": {}}}),
    Scenario("extra-conflict", ["a[x,y]"], {"a": {"1.0": {"extras": {"x": ["b<2"], "y": ["b>=2"]}}}, "b": {"1.0": {}, "2.0": {}}}),
    Scenario("extra-conflict-older-ok", ["a[x,y]"], {"a": {"1.0": {"extras": {"x": ["b"], "y": ["b"]}}, "2.0": {"extras": {"x": ["b<2"], "y": ["b>=2"]}}}, "b": {"1.0": {}, "2.0": {}}}),
    Scenario("extra-norm", ["a[My_Extra]"], {"a": {"1.0": {"extras": {"my-extra": ["b"]}}}, "b": {"1.0": {}}}),
    Scenario("extra-norm2", ["a[my.extra]"], {"a": {"1.0": {"extras": {"My_Extra": ["b"]}}}, "b": {"1.0": {}}}),
    Scenario("extra-transitive", ["a"], {"a": {"1.0": R("b[x]>=1")}, "b": {"1.0": {"extras": {"x": ["c>1"]}}, "2.0": {"extras": {"x": ["c>5"]}}}, "c": {"1.0": {}, "2.0": {}}}),
    Scenario("extra-cycle", ["a[x]"], {"a": {"1.0": {"extras": {"x": ["b[y]"]}}}, "b": {"1.0": {"extras": {"y": ["a[x]<2"]}}}}),
    Scenario("extra-two-paths", ["a", "b"], {"a": {"1.0": R("c[x]")}, "b": {"1.0": R("c<2")}, "c": {"1.0": {"extras": {"x": ["d==1"]}}, "2.0": {"extras": {"x": ["d==2"]}}}, "d": {"1": {}, "2": {}}}),
    # Structure
    Scenario("self-dep", ["a"], {"a": {"1.0": R("a>=1.0"), "2.0": R("a<2")}}),
    Scenario("cycle", ["a"], {"a": {"1.0": R("b"), "2.0": R("b<1")}, "b": {"1.0": R("a<2")}}),
    Scenario("transitive-missing-package", ["a"], {"a": {"1.0": {}, "2.0": R("nope")}}),
    Scenario("parenthesised", ["a (>=1.0)"], {"a": {"1.0": R("b (<2)")}, "b": {"1.0": {}, "2.0": {}}}),
    Scenario("legacy-specifier", ["a"], {"a": {"1.0": {}, "2.0": R("b >= 1.0.*")}, "b": {"1.0": {}}}),
    Scenario("wheel-other-platform", ["a"], {"a": {"1.0": {}, "2.0": {"wheel_tags": ["cp312-cp312-win_amd64"], "sdist": False}}}),
    Scenario("wheel-abi3", ["a"], {"a": {"1.0": {}, "2.0": {"wheel_tags": ["cp39-abi3-manylinux_2_17_x86_64"], "sdist": False}}}),
    Scenario("wheel-glibc-too-new", ["a"], {"a": {"1.0": {}, "2.0": {"wheel_tags": ["cp312-cp312-manylinux_2_39_x86_64"], "sdist": False}}}),
    Scenario("wheel-musl", ["a"], {"a": {"1.0": {}, "2.0": {"wheel_tags": ["cp312-cp312-musllinux_1_2_x86_64"], "sdist": False}}}),
    Scenario("wheel-py2", ["a"], {"a": {"1.0": {}, "2.0": {"wheel_tags": ["py2-none-any"], "sdist": False}}}),
    Scenario("wheel-py2py3", ["a"], {"a": {"2.0": {"wheel_tags": ["py2.py3-none-any"], "sdist": False}}}),
    Scenario("wheel-multi-tag", ["a"], {"a": {"1.0": {}, "2.0": {"wheel_tags": ["cp311.cp312-none-manylinux2014_x86_64.manylinux_2_17_x86_64"], "sdist": False}}}),
    Scenario("wheel-freethreaded", ["a"], {"a": {"1.0": {}, "2.0": {"wheel_tags": ["cp313-cp313t-manylinux_2_17_x86_64"], "sdist": False}}}, python="3.13"),
    Scenario("wheel-linux-raw", ["a"], {"a": {"1.0": {}, "2.0": {"wheel_tags": ["cp312-cp312-linux_x86_64"], "sdist": False}}}),
    Scenario("wheel-older-cp", ["a"], {"a": {"1.0": {}, "2.0": {"wheel_tags": ["cp311-none-any"], "sdist": False}}}),
    Scenario("wheel-py312", ["a"], {"a": {"1.0": {}, "2.0": {"wheel_tags": ["py313-none-any"], "sdist": False}}}),
    Scenario("wheel-py310", ["a"], {"a": {"1.0": {}, "2.0": {"wheel_tags": ["py310-none-any"], "sdist": False}}}),
    Scenario("mac-universal2", ["a"], {"a": {"1.0": {}, "2.0": {"wheel_tags": ["cp312-cp312-macosx_11_0_universal2"], "sdist": False}}}, os="darwin"),
    Scenario("mac-too-new", ["a"], {"a": {"1.0": {}, "2.0": {"wheel_tags": ["cp312-cp312-macosx_15_0_x86_64"], "sdist": False}}}, os="darwin"),
    Scenario("many-specifiers", ["a>=1,!=1.5,!=1.6.*,<2"], {"a": {"1.4": {}, "1.5": {}, "1.6.2": {}, "2.0": {}}}),
    Scenario("less-than-post", ["a<1.0.post1"], {"a": {"1.0": {}, "1.0.post1": {}, "1.0.post1.dev1": {}}}),
    Scenario("greater-pre", ["a>1.0"], {"a": {"1.0.post1": {}, "1.0": {}}}),
    Scenario("star-pre", ["a==1.0.*"], {"a": {"1.0rc1": {}, "0.9": {}}}),
    Scenario("not-star", ["a!=1.*"], {"a": {"0.9": {}, "1.5": {}, "2.0rc1": {}}}),
    Scenario("backtrack-deep", ["a", "b"], {"a": {f"{i}.0": R(f"c=={i}.0") for i in range(1, 30)}, "b": {"1.0": R("c<5")}, "c": {f"{i}.0": {} for i in range(1, 30)}}),
    Scenario("unsat-diamond", ["a", "b"], {"a": {"1.0": R("c<2")}, "b": {"1.0": R("c>=2")}, "c": {"1.0": {}, "2.0": {}}}),
    Scenario("contradictory-root", ["a>1", "a<1"], {"a": {"1.0": {}, "2.0": {}, "0.5": {}}}),
)  # fmt: skip
EARLY = "early releases are only taken where one is named by the project, or there are no others"
BOUND = "pip minds upper bounds of Requires-Python, and a plan holds for both"
YANKED = "uv says that a yanked release has no usable wheels, which is taken for one that is built"
DIFFERENT: Mapping[str, tuple[Mapping[str, str] | None, str]] = {
    "pre-only-one-side": (None, EARLY),
    "pre-upper-bound-pre": ({"a": "2.0rc1"}, "uv prefers a final release, and the requirement names an early one"),
    "pre-only-in-range-root": (None, EARLY),
    "pre-only-transitive-in-range": (None, EARLY),
    "pre-exact-transitive": (None, EARLY),
    "pre-all-stable-broken": (None, EARLY),
    "star-pre": (None, EARLY),
    "yank-only": (None, YANKED),
    "yank-pin-transitive": (None, YANKED),
    "yank-star-pin": (None, YANKED),
    "rp-not-equal": ({"a": "1.0"}, BOUND),
    "rp-upper": ({"a": "1.0"}, BOUND),
    "legacy-specifier": ({"a": "1.0"}, "pip refuses the metadata that uv corrects"),
}
"""What is chosen where uv chooses otherwise, and why."""


def chosen(scenario: Scenario, target: Target, index: Index) -> dict[str, str] | None:
    environment = Environment(distributions_complete=True)
    problem = Problem(environment, target, {}, asked=target.needs(scenario.requires), policy=Policy(prefer="upgrade"))
    solution = Solver(problem, IndexUniverse(index, target), rules=lambda *_: [], judge=lambda *_: [], needs={}).solve()
    assert solution.optimal
    assert not solution.unread
    return None if solution.chosen is None else {name: release.version for name, release in solution.chosen.items()}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_the_answer_is_that_of_uv(scenario: Scenario, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if uv_binary() is None:
        pytest.skip("uv is not installed")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path))
    target = Target(Environment(python=scenario.python, os=scenario.os, machine="x86_64", glibc="2.28"))
    with IndexServer(scenario.packages) as server:
        settings = Settings(sources=(Source(server.url),), retries=0)
        index = Index(settings, Store(":memory:"))
        ours = chosen(scenario, target, index)
        index.close()
        if scenario.name in DIFFERENT:
            assert ours == DIFFERENT[scenario.name][0]
            return
        theirs = resolved_by_uv(Question(requires=tuple(scenario.requires)), target, settings, override=False)
    assert ours == theirs.releases, theirs.why
    assert ours is not None or theirs.refused


def test_every_difference_is_one_of_a_scenario() -> None:
    names = [each.name for each in SCENARIOS]
    assert len(set(names)) == len(names)
    assert DIFFERENT.keys() <= set(names)
