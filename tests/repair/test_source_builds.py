"""Source installs as candidates: releases built on the machine, and commits that rules name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat.index import Index, Settings, Store
from compat.index.settings import Source
from compat.repair.candidates import IndexUniverse, Release
from compat.repair.source_builds import Builds, Commits, commits_of
from compat.rules.compiled import open_matrix
from tests.index.server import IndexServer, Packages
from tests.repair.worlds import need


@contextmanager
def universe(packages: Packages) -> Iterator[IndexUniverse]:
    from tests.repair.worlds import TARGET

    with IndexServer(packages) as server:
        index = Index(Settings(sources=(Source(server.url),), retries=0), Store(":memory:"))
        yield IndexUniverse(index, TARGET)
        index.close()


def test_what_is_compiled_and_has_a_source_distribution_can_be_built() -> None:
    packages = {"xformers": {"0.0.28": {}, "0.0.29": {"sdist": False}}, "trl": {"0.16.0": {}}}
    with universe(packages) as base:
        known = base.releases(["xformers", "trl"])
        (built,) = Builds(base).of("xformers", known["xformers"] or ())
        assert list(Builds(base).of("trl", known["trl"] or ())) == []
    assert (built.installed, built.told, built.built) == ("0.0.28", "0.0.28 built from source", True)


def test_a_build_needs_what_its_source_says_else_what_its_wheel_does() -> None:
    packages = {
        "vllm": {"1.0": {"requires": ["torch==2.5.1"], "dynamic": True}},
        "xformers": {"1.0": {"requires": ["torch==2.5.1", "numpy"], "dynamic": True}, "2.0": {"requires": ["torch>=2.7"]}},
    }
    with universe(packages) as base:
        builds = Builds(base)
        for name, version, torch in (("vllm", "1.0", "==2.5.1"), ("xformers", "1.0", ">=2.5.1"), ("xformers", "2.0", ">=2.7")):
            base.releases([name])
            needs = builds.needs(Release(name, f"{version}+compat.built"))
            assert needs is not None
            assert needs[""][0] == need(f"torch{torch}")


def test_the_commits_are_those_that_rules_name_with_a_version() -> None:
    found = {(name, each.version, each.commit[:8]) for name, each in commits_of(open_matrix())}
    assert {("trl", "0.16.0.dev0", "2ee6fd36"), ("unsloth", "2025.2.15", "455517aa")} <= found


def test_a_commit_needs_what_the_next_release_does() -> None:
    packages = {"trl": {"0.15.2": {"requires": ["old"]}, "0.16.0": {"requires": ["new"]}, "0.17.0": {}}}
    with universe(packages) as base:
        commits = Commits(base, open_matrix())
        (commit,) = commits.of("trl", base.releases(["trl"])["trl"] or ())
        assert commits.needs(commit) == {"": (need("new"),)}
        assert commits.assumed == {commit: "assumed to have the requirements of trl 0.16.0"}
        assert list(commits.of("trl", [Release("trl", "0.15.2")])) == []  # what it would require is unknown
    assert commit.told == "0.16.0.dev0 at commit 2ee6fd369f36"
