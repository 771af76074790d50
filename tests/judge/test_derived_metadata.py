"""Declared requirements, extras, withdrawn releases and floors, by the shipped tables."""

from __future__ import annotations

from typing import Any

import pytest

from compat.environment import Distribution, Environment, Source
from compat.judge import metadata, releases
from compat.judge.facts import Facts
from compat.matrix.declared import Declared
from compat.report import Finding


def found(*distributions: str, source: str | None = None, **keys: Any) -> dict[str, Finding]:
    copies = tuple(
        Distribution(name=name, version=version, source=None if source is None else Source(source))
        for name, _, version in (each.partition("==") for each in distributions)
    )
    facts, declared = Facts(Environment(distributions=copies, **keys)), Declared()
    return {finding.rule: finding for finding in (*metadata.judge(facts, declared), *releases.judge(facts, declared))}


def test_a_violated_requirement_is_a_warning_with_both_ways_out() -> None:
    finding = found("vllm==0.8.5", "torch==2.7.0")["requires-vllm-torch"]
    assert (finding.verdict, finding.severity) == ("hit", "warning")
    assert [(fix.kind, fix.package) for fix in finding.fixes] == [("downgrade", "torch"), ("upgrade", "vllm")]


def test_what_transformers_compares_when_it_is_imported_is_an_error() -> None:
    assert found("transformers==4.44.2", "tokenizers==0.15.2")["requires-transformers-tokenizers"].severity == "error"
    assert found("transformers==4.44.2", "tokenizers==0.19.1") == {}


@pytest.mark.parametrize(("vllm", "holds"), [("0.10.2", True), ("0.22.1", False), ("0.33.0", True)])
def test_extras_of_what_is_installed_count(vllm: str, holds: bool) -> None:
    assert ("requires-trl-vllm" in found("trl==1.16.0", f"vllm=={vllm}")) is holds


def test_extras_for_developers_do_not() -> None:
    assert not [rule for rule in found("trl==1.16.0", "pytest==3.0", "parameterized==0.1") if "pytest" in rule]


@pytest.mark.parametrize(
    ("others", "complete", "holds"),
    [
        ((), True, False),  # flax asks for more than scipy: nobody can have asked for it here
        ((), False, True),
        (("jax==0.4.13", "jaxlib==0.4.13", "flax==0.7.0", "optax==0.1.4"), True, True),
    ],
)
def test_an_extra_counts_where_everything_it_adds_may_be_there(others: tuple[str, ...], complete: bool, holds: bool) -> None:
    findings = found("transformers==4.49.0", "scipy==1.15.2", *others, distributions_complete=complete)
    assert ("requires-transformers-scipy" in findings) is holds


@pytest.mark.parametrize("source", ["vcs", "directory", "image", "url"])
def test_what_was_built_otherwise_may_violate_a_pin(source: str) -> None:
    assert found("vllm==0.8.5", "torch==2.7.0", source=source) == {}


def test_a_build_between_releases_is_not_compared() -> None:
    assert found("trl==0.16.0", "transformers==4.46.0.dev0") == {}


def test_local_labels_and_container_builds_count_as_their_release() -> None:
    assert found("vllm==0.8.5", "torch==2.6.0+cu124") == {}


@pytest.mark.parametrize("version", ["4.46.0", "4.52.0", "4.57.0"])
def test_a_withdrawn_release(version: str) -> None:
    finding = found(f"transformers=={version}", python="3.11")["yanked-transformers"]
    assert {fix.kind for fix in finding.fixes} == {"upgrade", "downgrade"}
    assert found("transformers==4.57.1") == {}


@pytest.mark.parametrize(("python", "holds"), [("3.9", True), ("3.9.18", True), ("3.10", False), ("3.11.7", False)])
def test_the_python_a_release_is_for(python: str, holds: bool) -> None:
    assert ("python-transformers" in found("transformers==5.0.0", python=python)) is holds


@pytest.mark.parametrize(("glibc", "holds"), [("2.31", True), ("2.35", False)])
def test_the_glibc_of_the_lowest_wheel(glibc: str, holds: bool) -> None:
    assert ("glibc-vllm" in found("vllm==0.20.0", glibc=glibc, os="linux")) is holds


def test_a_release_that_is_not_known_is_no_finding() -> None:
    assert found("vllm==99.0", "torch==99.0", python="3.6", glibc="2.5") == {}
