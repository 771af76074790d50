"""Errors that hold for every release a requirement admits."""

from __future__ import annotations

import pytest

from compat.checks.ranges import judge, newest_on_its_index
from compat.model import Accelerator, Distribution, Environment, Finding, Source

B200 = (Accelerator(vendor="nvidia", name="B200", compute_capability="10.0"),)


def found(specifier: str, *others: Distribution, python: str | None = None) -> list[Finding]:
    copy = Distribution("torch", None, specifier=specifier, source=Source("index"))
    return list(judge(Environment(python=python, os="linux", distributions=(copy, *others), accelerators=B200)))


@pytest.mark.parametrize("specifier", [">=2.5,<2.6", "<2.6", "~=2.4.0", ">=2.7.0,<2.7.1", "<2.8,!=2.7.1"])
def test_no_admitted_release_has_code_for_the_gpu(specifier: str) -> None:
    (finding,) = found(specifier)
    assert (finding.rule, finding.verdict, finding.severity) == ("build-torch-gpu", "hit", "error")
    assert finding.packages == {"torch": None}
    assert f"every release that torch{specifier} admits" in finding.here


@pytest.mark.parametrize("specifier", ["<2.9", ">=2.5", ">=2.5,!=2.6.0", "<1.0", ">=99"])
def test_some_release_has_it_or_the_requirement_is_open(specifier: str) -> None:
    assert found(specifier) == []


@pytest.mark.parametrize(("os", "verdict"), [("linux", "hit"), (None, "possible")])
def test_no_admitted_release_runs_on_the_driver(os: str | None, verdict: str) -> None:
    """Without the system, the build of a pin is not certain, either."""
    copy = Distribution("torch", None, specifier=">=2.1,<2.6", source=Source("index"))
    (finding,) = judge(Environment(os=os, driver="470.57.02", distributions=(copy,)))
    assert (finding.rule, finding.verdict) == ("build-torch-driver", verdict)


def test_two_requirements_on_one_distribution_are_not_judged() -> None:
    assert found("<2.6", Distribution("torch", None, specifier="<3")) == []


def test_releases_for_other_pythons_do_not_count() -> None:
    assert found("<2.8", python="3.9.7")  # 2.8.0 is the last for it: the requirement excludes it
    assert found("<2.9", python="3.9.7") == []


def on_index(folder: str, specifier: str | None = None) -> list[Finding]:
    url = f"https://download.pytorch.org/whl/{folder}"
    kind = "nightly" if "nightly" in folder else "index"
    copy = Distribution("torch", None, specifier=specifier, source=Source(kind, {"url": url}))
    known = Environment(python="3.11", os="linux", machine="x86_64", distributions=(copy,), accelerators=B200)
    assert (newest_on_its_index(copy, known) is None) == (folder != "cu118")
    return list(judge(known))


@pytest.mark.parametrize("specifier", [None, ">=2.4"])
def test_an_index_for_one_cuda_that_ended_bounds_what_is_taken_from_it(specifier: str | None) -> None:
    (finding,) = on_index("cu118", specifier)
    assert (finding.rule, finding.verdict, finding.severity) == ("build-torch-gpu", "hit", "error")
    assert "on the index for cu118" in finding.here
    assert "torch 2.7.1 for CUDA 11.8" in finding.why


@pytest.mark.parametrize("folder", ["cpu", "rocm6.2", "nightly/cu118", "cu999"])
def test_other_indexes_bound_nothing(folder: str) -> None:
    assert on_index(folder) == []
