"""Every resolver scenario of ``../shared/packse`` from its roots: met exactly where it can be, by a set that its requirements take.

A scenario for all platforms at once is tried on each that its markers name, and for each Python that it is made for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from compat.index import Index, Settings, Store
from compat.index.settings import Source
from compat.model import Environment, normalized
from compat.repair.candidates import IndexUniverse
from compat.repair.problem import Policy, Problem
from compat.repair.solve import Solver
from compat.repair.target import Target
from tests.index.packse import Scenario, scenarios
from tests.index.server import IndexServer

ALL = {each.name: each for each in scenarios()}
pytestmark = pytest.mark.skipif(not ALL, reason="the scenarios are not here")

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
SYSTEMS = {"linux": ("Linux", "posix"), "darwin": ("Darwin", "posix"), "win32": ("Windows", "nt")}
Chosen = Mapping[str, str]

OUT_OF_SCOPE = {
    "fork/non-local-fork-marker-transitive": "a limit of uv's universal lock: each platform by itself has an answer",
    "requires_python/python-less-than-current": "uv ignores upper bounds of Requires-Python; pip does not, and a plan holds for both",
    "wheels/only-wheels-no-binary": "--no-binary: compat fix builds nothing",
    "wheels/specific-architecture": "it has wheels for Python 3.13 alone, and is met there alone",
}
"""Scenarios that ask for another thing than a set for a known target, by name."""


def targets(scenario: Scenario) -> list[Environment]:
    glibc = "2.17" if scenario.options.get("python_platform") == "x86_64-manylinux2014" else "2.28"
    if not scenario.options.get("universal"):
        return [Environment(python=scenario.python, os="linux", machine="x86_64", glibc=glibc, distributions_complete=True)]
    named = set(re.findall(r"sys_platform == '(\w+)'", repr((scenario.requires, scenario.packages)).replace('"', "'")))
    pythons = [each for each in PYTHONS if SpecifierSet(scenario.requires_python or "").contains(f"{each}.9")]
    systems = sorted({"linux", *(named - {"windows", "win32"})}) + (["windows"] if named & {"windows", "win32"} else [])
    return [
        Environment(python=f"{each}.9", os=system, machine="x86_64", glibc=glibc, distributions_complete=True)
        for each in pythons for system in systems
    ]  # fmt: skip


def solved(scenario: Scenario, environment: Environment) -> Chosen | None:
    target = Target(environment)
    policy = Policy(prefer="upgrade", prereleases=bool(scenario.options.get("prereleases")))
    problem = Problem(environment, target, {}, asked=target.needs(scenario.requires), policy=policy)
    with IndexServer(scenario.packages) as server:
        index = Index(Settings(sources=(Source(server.url),)), Store(":memory:"))
        solver = Solver(problem, IndexUniverse(index, target), rules=lambda *_: [], judge=lambda *_: [], needs={})
        solution = solver.solve()
        index.close()
    assert not solution.unread
    assert solution.optimal
    return None if solution.chosen is None else {name: release.version for name, release in solution.chosen.items()}


def broken(scenario: Scenario, chosen: Chosen, environment: Environment) -> list[str]:
    """What of the scenario a set of versions does not keep, by ``packaging`` alone."""
    packages = {normalized(name): versions for name, versions in scenario.packages.items()}
    releases = {
        name: next(each for text, each in packages[name].items() if Version(text) == Version(version))
        for name, version in chosen.items()
    }
    markers = marker_environment(environment)
    found = []
    waiting: list[tuple[str, str]] = [("the root", text) for text in scenario.requires]
    seen: set[tuple[str, str]] = set()
    while waiting:
        whose, text = waiting.pop()
        requirement = Requirement(text)
        name = normalized(requirement.name)
        if requirement.marker is not None and not requirement.marker.evaluate(markers):
            continue
        if name not in chosen or not requirement.specifier.contains(chosen[name], prereleases=True):
            found.append(f"{whose} requires {text}, and {name} is {chosen.get(name)}")
            continue
        for extra in {"", *map(normalized, requirement.extras)} - {known for other, known in seen if other == name}:
            seen.add((name, extra))
            waiting += [(f"{name}[{extra}]", need) for need in required(releases[name], extra)]
    found += [f"{name} is not needed" for name in chosen if (name, "") not in seen]
    pinned = {(normalized(each.name), str(each.specifier)) for each in map(Requirement, scenario.requires)}
    for name, version in chosen.items():
        if not SpecifierSet(releases[name].get("requires_python") or "").contains(markers["python_full_version"]):
            found.append(f"{name} {version} is not for this Python")
        if releases[name].get("yanked") and (name, f"=={version}") not in pinned:
            found.append(f"{name} {version} was withdrawn")
    return found


def required(release: Mapping[str, Mapping[str, list[str]]], extra: str) -> Iterable[str]:
    if not extra:
        return release.get("requires", ())
    return next((needs for name, needs in release.get("extras", {}).items() if normalized(name) == extra), ())


def marker_environment(environment: Environment) -> dict[str, str]:
    """Told without the code under test."""
    python = environment.python or ""
    full = python if python.count(".") > 1 else f"{python}.0"
    platform = {"windows": "win32"}.get(environment.os or "", environment.os or "")
    system, kind = SYSTEMS.get(platform, (platform, "posix"))
    return {
        "implementation_name": "cpython", "implementation_version": full, "os_name": kind, "platform_machine": "x86_64",
        "platform_release": "", "platform_system": system, "platform_version": "", "python_full_version": full,
        "platform_python_implementation": "CPython", "python_version": ".".join(full.split(".")[:2]), "sys_platform": platform,
        "extra": "",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_scenario_is_met_where_it_can_be(name: str) -> None:
    scenario = ALL[name]
    answers = [(environment, solved(scenario, environment)) for environment in targets(scenario)]
    satisfiable = all(chosen is not None for _, chosen in answers)
    if name in OUT_OF_SCOPE:
        assert satisfiable != scenario.satisfiable, "it agrees now: take it from OUT_OF_SCOPE"
        return
    assert satisfiable == scenario.satisfiable, scenario.explanation
    for environment, chosen in answers:
        if chosen is not None:
            assert broken(scenario, chosen, environment) == []
            if scenario.chosen:
                assert chosen == {normalized(name): version for name, version in scenario.chosen.items()}


def test_every_scenario_out_of_scope_is_there() -> None:
    assert set(OUT_OF_SCOPE) <= set(ALL)


def test_the_check_finds_what_is_broken() -> None:
    environment = Environment(python="3.12.9", os="linux", machine="x86_64")
    extras, yanked = ALL["extras/extra-incompatible-with-root"], ALL["yanked/requires-package-yanked-and-unyanked-any"]
    assert broken(extras, {"a": "1.0.0", "b": "2.0.0"}, environment) == ["a[extra] requires b==1.0.0, and b is 2.0.0"]
    assert broken(extras, {"a": "1.0.0"}, environment)[0] == "the root requires b==2.0.0, and b is None"
    withdrawn = next(version for version, release in yanked.packages["a"].items() if release.get("yanked"))
    assert broken(yanked, {"a": withdrawn}, environment) == [f"a {withdrawn} was withdrawn"]
