"""Which releases may be chosen: of an index what the target can take, of that what the policy lets in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from compat.index import Index, Settings, Store
from compat.index.settings import Source
from compat.model import Accelerator, Environment
from compat.repair.candidates import IndexUniverse, Release
from compat.repair.problem import Policy, Problem
from compat.repair.target import Need, Target
from tests.index.server import IndexServer, Packages
from tests.repair.worlds import TARGET, need

NOTHING = Policy()


def releases(*versions: str, **more: object) -> tuple[Release, ...]:
    return tuple(Release("a", version, **more) for version in versions)  # type: ignore[arg-type]


def chosen(
    offered: Iterable[Release], current: str | None = None, *, asked: str = "", keep: str = "", policy: Policy = NOTHING,
    environment: Environment = Environment(), direct: frozenset[str] = frozenset(),  # noqa: B008 (frozen)
) -> list[str]:  # fmt: skip
    installed = {} if current is None else {"a": Release("a", current)}
    wanted = (need(f"a{asked}"),) if asked else ()
    kept = (need(f"a{keep}"),) if keep else ()
    problem = Problem(environment, TARGET, installed, wanted, kept, direct, policy)
    return [each.version for each in problem.candidates("a", offered)]


def test_prereleases_are_candidates_where_one_is_there_or_asked_for_or_there_is_nothing_else() -> None:
    offered = releases("1.0", "2.0rc1", "2.0")
    assert chosen(offered, "1.0") == ["1.0", "2.0"]
    assert chosen(offered, "2.0rc1") == ["1.0", "2.0rc1", "2.0"]
    assert chosen(offered, "1.0", asked=">=2.0rc1") == ["1.0", "2.0rc1", "2.0"]
    assert chosen(offered, "1.0", keep="==2.0rc1") == ["1.0", "2.0rc1", "2.0"]
    assert chosen(offered, "1.0", keep="!=2.0rc1") == ["1.0", "2.0"]
    assert chosen(offered, "1.0", policy=Policy(prereleases=True)) == ["1.0", "2.0rc1", "2.0"]
    assert chosen(releases("1.0a1", "1.0a2")) == ["1.0a1", "1.0a2"]


def test_withdrawn_releases_are_candidates_where_they_are_pinned_or_there() -> None:
    offered = (*releases("1.0"), *releases("1.1.0", yanked=True), *releases("1.2"))
    assert chosen(offered, "1.0") == ["1.0", "1.2"]
    assert chosen(offered, "1.1.0") == ["1.0", "1.1.0", "1.2"]
    assert chosen(offered, "1.0", keep="==1.1") == ["1.0", "1.1.0", "1.2"]
    assert chosen(offered, "1.0", keep="===1.1.0") == ["1.0", "1.1.0", "1.2"]
    assert chosen(offered, "1.0", keep="==1.1.*") == ["1.0", "1.2"]
    assert chosen(releases("1.0", yanked=True)) == []


def test_old_releases_are_candidates_where_the_user_asks_for_them() -> None:
    offered = tuple(
        Release("a", version, day) for version, day in (("1.0", "2020-01-01"), ("1.1", "2020-02-01"), ("2.0", "2025-01-01"))
    )
    assert chosen(offered, "2.0") == ["2.0"]
    assert chosen(offered, "2.0", keep="==1.1") == ["1.1", "2.0"]
    assert chosen(offered, "2.0", keep=">=1.0") == ["2.0"]
    assert chosen(offered, "2.0", policy=Policy(any_age=True)) == ["1.0", "1.1", "2.0"]


def test_old_releases_of_transitive_packages_are_candidates_if_nothing_newer_does() -> None:
    offered = tuple(Release("a", version, day) for version, day in (("1.0", "2020-01-01"), ("2.0", "2025-01-01")))
    assert chosen(offered, "2.0", policy=Policy(older=True)) == ["1.0", "2.0"]
    assert chosen(offered, "2.0", policy=Policy(older=True), direct=frozenset({"a"})) == ["2.0"]


def test_another_build_of_what_is_there_is_no_candidate() -> None:
    assert chosen(releases("2.5.0", "2.6.0", "2.6.0+cu118", "2.7.0"), "2.6.0+cu124") == [
        "2.5.0", "2.6.0+cu118", "2.6.0+cu124", "2.7.0",
    ]  # fmt: skip
    assert chosen(releases("2024.5.1", "2024.6"), "2024.05.1") == ["2024.05.1", "2024.6"]


def test_builds_for_processors_are_none_for_an_accelerator() -> None:
    offered, gpu = releases("2.5.0", "2.6.0+cpu", "2.7.0"), Environment(accelerators=(Accelerator(name="Tesla T4"),))
    assert chosen(offered, "2.5.0", environment=gpu) == ["2.5.0", "2.7.0"]
    assert chosen(offered, "2.5.0", environment=Environment(driver="550.54")) == ["2.5.0", "2.7.0"]
    assert chosen(offered, "2.5.0") == ["2.5.0", "2.6.0+cpu", "2.7.0"]
    assert "2.6.0+cpu" in chosen(offered, "2.5.0+cpu", environment=gpu)
    assert chosen(offered, "2.5.0+cpu", environment=gpu)[0] == "2.5.0"  # the same release with CUDA


def test_a_release_without_a_date_is_as_old_as_the_one_before_it() -> None:
    """A mirror or a folder beside the index gives none: a release of it is not near for that reason."""
    offered = tuple(
        Release("a", version, day)
        for version, day in (("0.9", ""), ("1.0", "2024-01-01"), ("3.0", ""), ("2.0", "2025-06-01"), ("4.0", "2026-01-01"))
    )
    problem = Problem(Environment(), TARGET, {"a": Release("a", "1.0")}, policy=NOTHING)
    found = problem.candidates("a", offered)
    assert [each.day for each in found] == ["2024-01-01", "2024-01-01", "2025-06-01", "2025-06-01", "2026-01-01"]


def dated(**days: str) -> list[Release]:
    return [Release("a", version.removeprefix("v").replace("_", "."), day) for version, day in days.items()]


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        ("2.0", ["1.5", "2.0", "3.0"]),
        ("2.0+local", ["1.5", "2.0+local", "3.0"]),
        ("1.7.dev3+g1", ["1.5", "1.7.dev3+g1", "2.0", "3.0"]),  # as old as the next release
        ("9.0", ["3.0", "9.0"]),  # as new as the newest
    ],
)
def test_much_older_releases_are_none(current: str, expected: list[str]) -> None:
    offered = dated(v1_0="2020-01-01", v1_5="2022-06-01", v2_0="2023-01-01", v3_0="2025-01-01")
    assert chosen(offered, current) == expected
    assert len(chosen(offered, current, policy=Policy(any_age=True))) >= 4


@contextmanager
def universe(packages: Packages, target: Target = TARGET, **options: object) -> Iterator[tuple[IndexUniverse, IndexServer]]:
    with IndexServer(packages, **options) as server:  # type: ignore[arg-type]
        index = Index(Settings(sources=(Source(server.url),), retries=0), Store(":memory:"))
        yield IndexUniverse(index, target), server
        index.close()


def versions(found: Iterable[Release] | None) -> list[str] | None:
    return None if found is None else [each.version for each in found]


def test_releases_of_an_index_are_those_that_the_target_takes() -> None:
    packages: Packages = {
        "a": {
            "1.0": {"uploaded": "2024-01-02T00:00:00Z"},
            "1.1": {"requires_python": ">=3.12"},
            "1.10": {"yanked": "broken"},
            "1.9": {"wheel_tags": ["cp311-cp311-win_amd64", "cp311-cp311-manylinux_2_17_x86_64"]},
            "1.8": {"wheel_tags": ["cp312-cp312-manylinux_2_17_x86_64"], "sdist": False},
        },
    }
    with universe(packages) as (found, _):
        offered = found.releases(["a"])["a"]
        assert versions(offered) == ["1.0", "1.9", "1.10"]
        assert offered is not None
        assert [(each.day, each.yanked) for each in offered] == [("2024-01-02", False), ("", False), ("", True)]
        assert found.releases(["nothing"]) == {"nothing": ()}
        assert len(found.hashes("a", "1.0")) == 2


def test_source_distributions_count_where_everybody_builds_them() -> None:
    built: dict[str, Any] = {"wheel_tags": ["cp311-cp311-manylinux_2_17_x86_64"]}
    windows, newer = {"wheel_tags": ["cp311-cp311-win_amd64"]}, {"wheel_tags": ["cp311-cp311-manylinux_2_39_x86_64"]}
    packages: Packages = {
        "never": {"1.0": {"wheel": False}, "2.0": {"wheel": False}},
        "no-more": {"1.0": built, "1.5": {"wheel": False}, "2.0": built, "3.0": {"wheel": False}, "4.0": windows},
        "too-new": {"1.0": built, "2.0": newer},
    }
    with universe(packages) as (found, _):
        offered = found.releases(packages)
        assert versions(offered["never"]) == ["1.0", "2.0"]
        assert versions(offered["no-more"]) == ["1.0", "2.0", "3.0", "4.0"]
        assert versions(offered["too-new"]) == ["1.0"]
        assert [found.serves(each) for each in offered["no-more"] or ()] == [True, True, False, False]
        assert found.serves(Release("unseen", "1.0")) is None


def test_needs_are_read_without_a_build() -> None:
    packages: Packages = {
        "wheel": {"1.0": {"requires": ["b>1", "c; sys_platform == 'win32'"], "extras": {"fast": ["d"]}}},
        "static": {"1.0": {"wheel": False, "requires": ["b"]}},
        "dynamic": {"1.0": {"wheel": False, "dynamic": True, "requires": ["b"]}},
        "windows": {"1.0": {"wheel_tags": ["cp311-cp311-win_amd64"], "dynamic": True, "requires": ["b>=2"]}},
    }
    with universe(packages) as (found, server):
        needs = {each.name: told for each, told in found.needs([Release(name, "1.0") for name in packages]).items()}
        assert needs["wheel"] == {"": (Need("b", ">1", ()),), "fast": (Need("d", "", ()),)}
        assert needs["static"] == {"": (Need("b", "", ()),)}
        assert needs["dynamic"] is None
        assert needs["windows"] == {"": (Need("b", ">=2", ()),)}  # a release's wheels are held to say the same
        assert found.unknown == {}
        assert not any("setuptools" in path for path in server.requests)


def test_what_the_matrix_declares_stands_in_for_what_cannot_be_read() -> None:
    packages = {"deepspeed": {"0.16.1": {"wheel": False, "dynamic": True}}}
    with universe(packages) as (found, _):
        if "deepspeed" not in found._declared:
            pytest.skip("the tables are not compiled")
        (needs,) = found.needs([Release("deepspeed", "0.16.1")]).values()
    assert needs is not None
    assert {"torch", "numpy", "einops"} <= {each.name for each in needs[""]}


def test_a_page_that_cannot_be_read_is_unknown_and_not_empty() -> None:
    with universe({"a": {"1.0": {}}, "b": {"1.0": {}}}, faults={"a": "500", "b-1.0-py3-none-any.whl": "wrong-hash"}) as (
        found,
        _,
    ):
        assert found.releases(["a"]) == {"a": None}
        assert set(found.unknown) == {"a"}
        assert found.needs([Release("a", "1.0")]) == {Release("a", "1.0"): None}


def test_a_pinned_index_that_cannot_be_reached_leaves_the_ordinary_ones() -> None:
    with IndexServer({"torch": {"2.7.0": {}, "2.8.0": {}}}) as server:
        lost = Source("http://127.0.0.1:9/cu128", "vendor", explicit=True)
        settings = Settings(sources=(lost, Source(server.url)), pinned={"torch": ("vendor",)}, retries=0)
        index = Index(settings, Store(":memory:"))
        universe = IndexUniverse(index, TARGET)
        found = universe.releases(["torch"])["torch"]
        index.close()
    assert [each.version for each in found or ()] == ["2.7.0", "2.8.0"]
    assert list(universe.narrowed) == ["torch"]
    assert universe.unknown == {}


def test_newer_releases_for_other_pythons_only_are_known() -> None:
    """Not those for another system or glibc, early ones, and those that were withdrawn."""
    here = ["cp311-cp311-manylinux_2_17_x86_64"]
    newer = {"2.0": {"wheel_tags": ["cp312-cp312-manylinux_2_17_x86_64"]}, "1.5": {"requires_python": ">=3.12"}}
    packages: Packages = {
        "a": {"1.0": {"wheel_tags": here}, **newer},
        "b": {"1.0": {}, "2.0": {"wheel_tags": ["cp312-cp312-win_amd64"]}, "3.0": {"wheel_tags": ["cp312-cp312-manylinux_2_99_x86_64"]}},
        "c": {"1.0": {}, "2.0rc1": {"requires_python": ">=3.12"}, "3.0": {"requires_python": ">=3.12", "yanked": True}},
        "d": {"1.0": {"requires_python": ">=3.12"}, "2.0": {}},
    }  # fmt: skip
    without = {name: {version: {"sdist": False, **each} for version, each in found.items()} for name, found in packages.items()}
    with universe(without) as (found, _):
        found.releases(packages)
        assert found.beyond == {"a": "1.5"}


def test_a_package_of_the_project_that_is_not_planned_for_is_not_unread() -> None:
    settings = Settings(
        sources=(Source("http://127.0.0.1:9/simple", "own", explicit=True),), pinned={"a": ("own",), "b": ("own",)}
    )
    index = Index(settings, Store(":memory:"))
    found = IndexUniverse(index, TARGET)
    assert index.lost() == {"a", "b"}
    assert found.unknown == {}
    found.needs([Release("a", "1.0")])
    assert "a" in {**found.unknown, **found.narrowed}
    assert "b" not in {**found.unknown, **found.narrowed}
    index.close()
