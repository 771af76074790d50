"""Reading ahead: what a model brings in is followed to what that needs, and the plan is the same."""

from __future__ import annotations

from itertools import pairwise

import pytest
from packaging.version import Version

from compat.model import Environment
from compat.records import replace
from compat.repair.candidates import Release
from compat.repair.engine import ERRORS, Statement
from compat.repair.explain import conflict
from compat.repair.problem import MOST, Policy, Problem, Recommended
from compat.repair.relaxation import Forbidden
from compat.repair.solve import Solver, follow
from compat.repair.target import Need
from tests.repair.worlds import TARGET, MemoryUniverse, need

LENGTH = 12


def releases(name: str, *versions: str) -> tuple[Release, ...]:
    return tuple(Release(name, version, "2025-01-01") for version in versions)


def problem(*asked: str, current: tuple[Release, ...] = ()) -> Problem:
    environment = Environment(distributions_complete=True)
    return Problem(environment, TARGET, {each.name: each for each in current}, tuple(need(text) for text in asked))


def test_a_chain_of_requirements_takes_few_models() -> None:
    names = [f"link-{number}" for number in range(LENGTH)]
    requires = {(name, "1.0"): {"": (need(f"{after}>=1"),)} for name, after in pairwise(names)}
    universe = MemoryUniverse({name: releases(name, "1.0") for name in names}, requires)
    solution = Solver(problem("link-0"), universe, rules=lambda *_: (), judge=lambda *_: (), needs={}).solve()
    assert solution.chosen is not None
    assert set(solution.chosen) == set(names)
    assert solution.optimal
    assert solution.rounds <= 3


def test_what_is_not_opened_is_opened_and_what_is_not_read_is_read() -> None:
    trl, old, new = *releases("trl", "1.0"), *releases("peft", "1.0", "2.0")
    chosen = {"trl": trl}
    needs: dict[Release, dict[str, tuple[Need, ...]]] = {trl: {"": (need("peft<2"),)}}
    assert follow(problem("trl"), chosen, {"trl": (trl,)}, needs) == (["peft"], [])
    opened = {"trl": (trl,), "peft": (old, new)}
    assert follow(problem("trl"), chosen, opened, needs) == ([], [old])
    assert chosen["peft"] == old
    assert follow(problem("trl"), chosen, opened, {**needs, old: {}}) == ([], [])


def test_extras_are_followed_where_they_are_asked_for() -> None:
    trl, peft = *releases("trl", "1.0"), *releases("peft", "1.0")
    opened = {"trl": (trl,), "peft": (peft,)}
    needs = {trl: {"": (need("peft[more]"),)}, peft: {"more": (need("scipy"),), "less": (need("numba"),)}}
    assert follow(problem("trl"), {"trl": trl, "peft": peft}, opened, needs) == (["scipy"], [])


def test_what_is_installed_moves_to_the_nearest_release_that_fits() -> None:
    (trl,) = releases("trl", "1.0")
    one, two, three, four = releases("peft", "1.0", "2.0", "3.0", "4.0")
    opened = {"trl": (trl,), "peft": (one, two, three, four)}
    for specifier, nearest in ((">=3", three), ("<2", one), ("!=2.0", three)):
        found = follow(problem(current=(two,)), {"trl": trl, "peft": two}, opened, {trl: {"": (need(f"peft{specifier}"),)}})
        assert found == ([], [nearest]), specifier


def test_nothing_fits_and_nothing_is_followed() -> None:
    trl, peft = *releases("trl", "1.0"), *releases("peft", "1.0")
    opened = {"trl": (trl,), "peft": (peft,)}
    assert follow(problem("trl"), {"trl": trl}, opened, {trl: {"": (need("peft>=9"),)}}) == ([], [])


def test_torchaudio_goes_back_to_torch_rather_than_torch_forward_to_it() -> None:
    """Both are named by the user; which torchaudio is right follows from torch, whatever direction that is."""
    current = (*releases("torch", "2.10.0"), *releases("torchaudio", "2.11.0"))
    environment = Environment(distributions_complete=True)
    pair = (("torch", frozenset({"2.10.0"})), ("torchaudio", frozenset({"2.11.0"})))
    apart = Forbidden(pair, Statement("rule", "They are for different torches"), ERRORS)
    asked = Problem(environment, TARGET, {each.name: each for each in current}, direct=frozenset({"torch", "torchaudio"}))
    known = {"torch": releases("torch", "2.10.0", "2.11.0"), "torchaudio": releases("torchaudio", "2.10.0", "2.11.0")}
    asked = replace(asked, recommended=(Recommended("a-rule", ((need("torchaudio==2.10.0"),), (need("torch>=2.11"),))),))
    solver = Solver(asked, MemoryUniverse(known, {}), rules=lambda *_: (apart,), judge=lambda *_: (), needs={})
    solution = solver.solve(("torch", "torchaudio"))
    assert solution.chosen is not None
    assert {name: each.version for name, each in solution.chosen.items()} == {"torch": "2.10.0", "torchaudio": "2.10.0"}


def test_a_fix_for_what_nobody_pinned_moves_nothing_that_was_pinned() -> None:
    """A newer torch is recommended for a torchao that came along; vllm would have to move for it, another torchao does too."""
    current = (*releases("vllm", "0.7"), *releases("torch", "2.5"), *releases("torchao", "0.18"))
    known = {
        "vllm": releases("vllm", "0.7", "0.19"), "torch": releases("torch", "2.5", "2.10"),
        "torchao": releases("torchao", "0.17", "0.18"),
    }  # fmt: skip
    needs = {("vllm", "0.7"): {"": (need("torch==2.5"),)}, ("vllm", "0.19"): {"": (need("torch==2.10"),)}}
    apart = Forbidden(
        (("torch", frozenset({"2.5"})), ("torchao", frozenset({"0.18"}))), Statement("rule", "They do not go together"), ERRORS
    )
    told = (Recommended("a-rule", ((need("torch>=2.10"),),)),)
    for unpinned, moved in ((frozenset({"torch", "torchao"}), ["torchao"]), (frozenset({"torchao"}), ["vllm", "torch"])):
        asked = replace(problem(current=current), direct=frozenset({"vllm"}), unpinned=unpinned, recommended=told)
        solution = Solver(asked, MemoryUniverse(known, needs), rules=lambda *_: (apart,), judge=lambda *_: (), needs={}).solve()
        assert solution.chosen is not None
        assert [name for name, each in solution.chosen.items() if each != asked.current[name]] == moved, unpinned


def test_a_fix_is_not_needed_where_another_package_of_the_finding_has_to_move() -> None:
    """bitsandbytes has no library for the CUDA of a torch that the driver does not support, and one for the torch before it."""
    current = (*releases("torch", "2.15"), *releases("bitsandbytes", "0.46"))
    known = {"torch": releases("torch", "2.10", "2.15"), "bitsandbytes": releases("bitsandbytes", "0.46", "0.50")}
    no_library, no_driver = (
        Forbidden(tuple((name, frozenset({version})) for name, version in bad), Statement("rule", "bad"), ERRORS)
        for bad in ((("torch", "2.15"), ("bitsandbytes", "0.46")), (("torch", "2.15"),))
    )
    for moving, rules, moved in (
        (frozenset({"torch"}), (no_library, no_driver), ["torch"]),
        (frozenset[str](), (no_library,), ["bitsandbytes"]),
    ):
        told = (Recommended("a-rule", ((need("bitsandbytes>=0.50"),),), moving),)
        asked = replace(problem(current=current), direct=frozenset(known), recommended=told)
        universe = MemoryUniverse(known, {})
        solution = Solver(asked, universe, rules=lambda *_, rules=rules: rules, judge=lambda *_: (), needs={}).solve(known)
        assert solution.chosen is not None
        assert [name for name, each in solution.chosen.items() if each != asked.current[name]] == moved


def test_torch_moves_no_further_because_an_open_torchvision_would_be_older() -> None:
    """Which torchvision is right follows from torch, which the user pinned to a release of years ago."""
    days = {"2.0": "2023-03-15", "2.1": "2023-10-04", "2.9": "2025-10-15"}
    torch = tuple(Release("torch", version, day) for version, day in days.items())
    vision = tuple(Release("torchvision", version, day) for version, day in zip(("0.15", "0.16", "0.24"), days.values()))
    newest = Release("torchvision", "0.29", "2026-09-01")
    known = {"torch": torch, "torchvision": (*vision, newest)}
    needs = {("torchvision", each.version): {"": (need(f"torch=={own.version}"),)} for each, own in zip(vision, torch)}
    needs["torchvision", "0.29"] = {"": (need("torch>=2.14"),)}
    bad = Forbidden((("torch", frozenset({"2.0"})),), Statement("rule", "no code for the GPU"), ERRORS)
    apart = Forbidden(
        (("torch", frozenset(days)), ("torchvision", frozenset({"0.29"}))), Statement("rule", "for another torch"), ERRORS
    )
    asked = problem(current=(torch[0], newest))
    asked = replace(asked, direct=frozenset({"torch"}), unpinned=frozenset({"torchvision"}))
    solver = Solver(asked, MemoryUniverse(known, needs), rules=lambda *_: (bad, apart), judge=lambda *_: (), needs={})
    solution = solver.solve(known)
    assert solution.chosen is not None
    assert {name: each.version for name, each in solution.chosen.items()} == {"torch": "2.1", "torchvision": "0.16"}


def test_a_pinned_release_moves_to_one_of_its_time_rather_than_to_one_of_a_year_later() -> None:
    """vllm 0.18 needs no change of ray; the one that fixes the error and was uploaded half a year after what is pinned does."""
    vllm = [Release("vllm", *each) for each in (("0.8", "2025-05-01"), ("0.10", "2025-09-01"), ("0.18", "2026-07-01"))]
    ray = [Release("ray", *each) for each in (("2.47", "2025-06-01"), ("2.48", "2025-07-01"))]
    needs = {("vllm", "0.10"): {"": (need("ray>=2.48"),)}}
    bad = Forbidden((("vllm", frozenset({"0.8"})),), Statement("rule", "no code for the GPU"), ERRORS)
    asked = replace(problem(current=(vllm[0], ray[0])), direct=frozenset({"vllm", "ray"}))
    universe = MemoryUniverse({"vllm": tuple(vllm), "ray": tuple(ray)}, needs)
    for policy, expected in ((Policy(), {"vllm": "0.10", "ray": "2.48"}), (Policy("upgrade"), {"vllm": "0.18", "ray": "2.47"})):
        wanted = replace(asked, policy=policy)
        solution = Solver(wanted, universe, rules=lambda *_: (bad,), judge=lambda *_: (), needs={}).solve(("vllm", "ray"))
        assert solution.chosen is not None
        assert {name: each.version for name, each in solution.chosen.items()} == expected


def test_a_package_goes_to_its_first_major_release_rather_than_back() -> None:
    """outlines 0.1 pins the core of its time, and 1.2 that of the new vllm; 0.0 is from before there was one."""
    outlines = [Release("outlines", *each) for each in (("0.0", "2024-06-22"), ("0.1", "2024-12-13"), ("1.2", "2025-07-31"))]
    core = [Release("outlines-core", *each) for each in (("0.1", "2024-12-10"), ("0.2", "2025-05-01"))]
    needs = {("outlines", "0.1"): {"": (need("outlines-core==0.1"),)}, ("outlines", "1.2"): {"": (need("outlines-core==0.2"),)}}
    bad = Forbidden((("outlines-core", frozenset({"0.1"})),), Statement("rule", "vllm pins another"), ERRORS)
    asked = replace(problem(current=(outlines[1], core[0])), direct=frozenset({"outlines", "outlines-core"}))
    universe = MemoryUniverse({"outlines": tuple(outlines), "outlines-core": tuple(core)}, needs)
    solution = Solver(asked, universe, rules=lambda *_: (bad,), judge=lambda *_: (), needs={}).solve(
        ("outlines", "outlines-core")
    )
    assert solution.chosen is not None
    assert {name: each.version for name, each in solution.chosen.items()} == {"outlines": "1.2", "outlines-core": "0.2"}


def test_the_age_of_what_others_bring_along_moves_no_pin() -> None:
    """vllm 0.10 pins an old setuptools, which the file does not list and no error is about."""
    vllm = [Release("vllm", *each) for each in (("0.8", "2025-05-01"), ("0.10", "2025-09-01"), ("0.11", "2025-09-15"))]
    tools = [Release("setuptools", *each) for each in (("79.0", "2024-04-01"), ("84.0", "2026-10-01"))]
    needs = {("vllm", "0.10"): {"": (need("setuptools<80"),)}}
    bad = Forbidden((("vllm", frozenset({"0.8"})),), Statement("rule", "no code for the GPU"), ERRORS)
    unnamed = frozenset({"setuptools"})
    asked = replace(problem(current=(vllm[0], tools[1])), direct=frozenset({"vllm"}), unpinned=unnamed, unnamed=unnamed)
    for concerned, expected in ((frozenset[str](), "0.10"), (unnamed, "0.11")):
        wanted = replace(asked, concerned=concerned)
        universe = MemoryUniverse({"vllm": tuple(vllm), "setuptools": tuple(tools)}, needs)
        solution = Solver(wanted, universe, rules=lambda *_: (bad,), judge=lambda *_: (), needs={}).solve(
            ("vllm", "setuptools")
        )
        assert solution.chosen is not None
        assert solution.chosen["vllm"].version == expected


def test_the_version_that_the_installer_chose_may_go_back_by_a_major_one() -> None:
    """Nobody asked for transformers 5: it is what a range admits today, so vllm, which is pinned, does not move for it."""
    current = (*releases("vllm", "0.11"), *releases("transformers", "5.0"))
    pair = (("vllm", frozenset({"0.11"})), ("transformers", frozenset({"5.0"})))
    apart = Forbidden(pair, Statement("rule", "They do not go together"), ERRORS)
    known = {"vllm": releases("vllm", "0.11", "0.12"), "transformers": releases("transformers", "4.57", "5.0")}
    for unpinned, moved in ((frozenset({"transformers"}), "transformers"), (frozenset(), "vllm")):
        asked = replace(problem(current=current), direct=frozenset(known), unpinned=unpinned)
        solver = Solver(asked, MemoryUniverse(known, {}), rules=lambda *_: (apart,), judge=lambda *_: (), needs={})
        solution = solver.solve(("vllm", "transformers"))
        assert solution.chosen is not None
        assert [name for name, each in solution.chosen.items() if each != asked.current[name]] == [moved], unpinned


def test_a_package_that_the_file_names_goes_on_rather_than_back_for_the_newest_of_what_it_requires() -> None:
    """datasets 2.16 fixes the error and needs an old fsspec; a datasets from before the error goes with the newest."""
    days = {"1.18": "2022-01-28", "2.14": "2023-08-08", "2.16": "2023-12-22"}
    datasets = tuple(Release("datasets", *each) for each in days.items())
    fsspec = (Release("fsspec", "2023.10", "2023-10-21"), Release("fsspec", "2026.9", "2026-09-20"))
    needs = {("datasets", version): {"": (need("fsspec"),)} for version in days}
    needs["datasets", "2.16"] = {"": (need("fsspec<=2023.10"),)}
    pair = (("datasets", frozenset({"2.14"})), ("fsspec", frozenset({"2023.10", "2026.9"})))
    apart = Forbidden(pair, Statement("rule", "They do not go together"), ERRORS)
    asked = problem(current=(datasets[1], fsspec[1]))
    asked = replace(asked, direct=frozenset({"datasets"}), unpinned=frozenset({"datasets", "fsspec"}))
    asked = replace(asked, concerned=frozenset({"datasets", "fsspec"}))
    universe = MemoryUniverse({"datasets": datasets, "fsspec": fsspec}, needs)
    for unnamed, expected in ((frozenset({"fsspec"}), "2.16"), (frozenset[str](), "1.18")):
        wanted = replace(asked, unnamed=unnamed)
        solver = Solver(wanted, universe, rules=lambda *_: (apart,), judge=lambda *_: (), needs={})
        solution = solver.solve(("datasets", "fsspec"))
        assert solution.chosen is not None
        assert solution.chosen["datasets"].version == expected


def test_torch_goes_back_to_the_nearest_release_although_an_older_one_needs_fewer_libraries() -> None:
    versions = ("1.12", "2.3", "2.14")
    torch, libraries = releases("torch", *versions), releases("nvidia-cudnn-cu12", "8.9", "9.1", "9.5")
    bad = Forbidden((("torch", frozenset({"2.14"})),), Statement("rule", "bad"), ERRORS)
    universe = MemoryUniverse(
        {"torch": torch, "nvidia-cudnn-cu12": libraries}, {("torch", "2.3"): {"": (need("nvidia-cudnn-cu12==8.9"),)}}
    )
    there = replace(problem("torch", current=torch[-1:]), unpinned=frozenset({"torch"}), from_part=True)
    solution = Solver(there, universe, rules=lambda *_: [bad], judge=lambda *_: [], needs={}).solve()
    assert {name: each.version for name, each in (solution.chosen or {}).items()} == {
        "torch": "2.3",
        "nvidia-cudnn-cu12": "8.9",
    }


def test_packages_that_nobody_named_move_before_one_that_somebody_pinned() -> None:
    current = (*releases("vllm", "0.11"), *releases("fsspec", "2026.1"), *releases("pyarrow", "26.0"))
    names = ("vllm", "fsspec", "pyarrow")
    pairs = [tuple((name, frozenset({here[name]})) for name in ("vllm", other)) for other in ("fsspec", "pyarrow")
             for here in ({each.name: each.version for each in current},)]  # fmt: skip
    apart = [Forbidden(pair, Statement("rule", "They do not go together"), ERRORS) for pair in pairs]
    known = {"vllm": releases("vllm", "0.11", "0.12"), "fsspec": releases("fsspec", "2025.1", "2026.1"),
             "pyarrow": releases("pyarrow", "25.0", "26.0")}  # fmt: skip
    unnamed = frozenset({"fsspec", "pyarrow"})
    for free, moved in ((unnamed, ["fsspec", "pyarrow"]), (frozenset(), ["vllm"])):
        asked = replace(problem(current=current), direct=frozenset(names), unpinned=free, unnamed=free)
        solution = Solver(asked, MemoryUniverse(known, {}), rules=lambda *_: apart, judge=lambda *_: (), needs={}).solve(names)
        assert solution.chosen is not None
        assert sorted(name for name, each in solution.chosen.items() if each != asked.current[name]) == moved


def test_what_nothing_requires_any_more_is_removed_rather_than_downgraded() -> None:
    """vllm 2 no longer requires outlines, which shares a pin with it: as a lock made anew would leave it out."""
    current = (*releases("vllm", "1.0"), *releases("outlines", "1.0"), *releases("core", "1.0"))
    known = {
        "vllm": releases("vllm", "1.0", "2.0"), "outlines": releases("outlines", "0.9", "1.0"),
        "core": releases("core", "1.0", "2.0"),
    }  # fmt: skip
    requires = {
        ("vllm", "1.0"): {"": (need("outlines"), need("core==1.0"))}, ("vllm", "2.0"): {"": (need("core==2.0"),)},
        ("outlines", "1.0"): {"": (need("core==1.0"),)},
    }  # fmt: skip
    old = Forbidden((("vllm", frozenset({"1.0"})),), Statement("rule", "It breaks"), ERRORS)
    asked = replace(problem(current=current), direct=frozenset({"vllm"}))
    solver = Solver(asked, MemoryUniverse(known, requires), rules=lambda *_: (old,), judge=lambda *_: (), needs={})
    chosen = solver.solve(("vllm",)).chosen
    assert chosen is not None
    assert {name: each.version for name, each in chosen.items()} == {"vllm": "2.0", "core": "2.0"}


def test_an_unmet_requirement_that_is_no_error_stays_unmet() -> None:
    current = (*releases("trl", "1.0"), *releases("bitblas", "1.0"))
    known = {"trl": releases("trl", "1.0", "1.5"), "ml-dtypes": releases("ml-dtypes", "1.0")}
    universe = MemoryUniverse(known, {("bitblas", "1.0"): {"": (need("ml-dtypes"),)}})
    old = Forbidden((("trl", frozenset({"1.0"})),), Statement("rule", "It breaks"), ERRORS)
    asked = replace(problem(current=current), direct=frozenset({"trl", "bitblas"}))
    solver = Solver(asked, universe, rules=lambda *_: (old,), judge=lambda *_: (), needs={})
    chosen = solver.solve(("trl",)).chosen
    assert chosen is not None
    assert {name: each.version for name, each in chosen.items()} == {"trl": "1.5", "bitblas": "1.0"}


def test_of_a_package_with_too_many_releases_some_are_candidates() -> None:
    """The installed one and its neighbours, the newest, what is pinned, and some in between, in the order of versions."""
    many = tuple(Release("a", f"1.{number}") for number in range(5 * MOST))
    current, pinned = Release("a", "1.7"), need("a!=1.7,==1.1234")
    universe = MemoryUniverse({"a": many}, {})
    problem = Problem(Environment(), TARGET, {"a": current}, keep=(pinned,))
    solver = Solver(problem, universe, rules=lambda *_: [], judge=lambda *_: [], needs={})
    solution = solver.solve()
    assert solution.chosen == {"a": Release("a", "1.1234")}
    some = [each.version for each in solver.opened["a"]]
    assert len(some) < MOST
    assert {"1.0", "1.7", "1.400", "1.1234", f"1.{5 * MOST - 90}", f"1.{5 * MOST - 1}"} <= set(some)
    assert some == sorted(some, key=Version)
    assert len({int(each[2:]) // 100 for each in some}) == 5 * MOST // 100
    assert (solution.decided, dict(solution.unread)) == (True, {})  # no other release makes another plan possible


@pytest.mark.parametrize(("specifier", "decided"), [("", False), ("<1", True)])
def test_releases_that_are_not_considered_leave_open_only_what_they_could_resolve(specifier: str, decided: bool) -> None:
    """Of ``a`` there are too many releases; all that are read require what ``b`` does not have."""
    known = {"a": tuple(Release("a", f"1.{number}") for number in range(5 * MOST)), "b": releases("b", "1.0")}
    requires = {("a", each.version): {"": (need("b>=2"),)} for each in known["a"]}
    problem = Problem(Environment(), TARGET, {}, asked=(need("a"), need(f"b{specifier}")))
    solver = Solver(problem, MemoryUniverse(known, requires), rules=lambda *_: [], judge=lambda *_: [], needs={})
    solution = solver.solve()
    assert (solution.chosen, solution.decided, bool(solution.unread)) == (None, decided, not decided)
    assert [each.text for each in conflict(solver)] == (["the project requires b<1"] if decided else [])
