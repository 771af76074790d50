"""Which build of torch is installed: for the CPU or for a CUDA, from the default index, from torch's own or from NVIDIA's."""

from __future__ import annotations

from typing import Any

import pytest

from compat.checks import builds, named_devices
from compat.model import Accelerator, Distribution, Environment, Finding, Source
from compat.rules.facts import Facts
from tests.checks.builds.test_builds import found, spec


def cpu_only(torch: str, source: Source | None, **keys: Any) -> Finding | None:
    distributions = (Distribution("torch", torch, source=source),)
    device = Accelerator(vendor="nvidia", name="NVIDIA GH200", compute_capability="9.0")
    facts = Facts(Environment(distributions=distributions, accelerators=(device,), **keys))
    return {each.rule: each for each in builds.judge(facts)}.get("build-torch-cpu-only")


@pytest.mark.parametrize(
    ("beside", "holds"),
    [
        ((), True),  # the default index has 2.7.0 for CUDA 12.6, without code for the GPU
        (("nvidia-cuda-runtime-cu12==12.6.77",), True),
        (("nvidia-cuda-runtime-cu12==12.8.57",), False),
        (("nvidia-cuda-runtime-cu12==12.8.57", "nvidia-cuda-runtime==13.0.96"), True),  # one of them is another package's
    ],
)
def test_the_runtime_listed_beside_a_torch_without_label_tells_its_cuda(beside: tuple[str, ...], *, holds: bool) -> None:
    assert ("build-torch-gpu" in found("torch==2.7.0", *beside, gpus=("NVIDIA GeForce RTX 5090",))) is holds


@pytest.mark.parametrize(
    ("torch", "source", "system", "machine", "verdict"),
    [
        ("2.5.1", "index", "linux", "aarch64", "hit"),  # no wheel of the default index for aarch64 had CUDA before 2.11
        ("2.5.1", None, "linux", "aarch64", "possible"),
        ("2.11.0", "index", "linux", "aarch64", None),
        ("2.5.1", "index", "linux", "x86_64", None),
        ("2.5.1", "index", "windows", "x86_64", "hit"),
        ("2.5.1", None, "windows", "x86_64", None),
        ("2.5.1", "conda", "windows", "x86_64", None),
        ("2.5.1+cu124", "index", "windows", "x86_64", None),
    ],
)
def test_the_default_index_has_builds_for_the_cpu_alone(
    torch: str, source: str | None, system: str, machine: str, verdict: str | None
) -> None:
    finding = cpu_only(torch, None if source is None else Source(source), os=system, machine=machine)
    assert (finding and finding.verdict) == verdict


def test_a_later_torch_helps_if_no_build_of_this_one_has_cuda() -> None:
    finding = cpu_only("2.5.1+cpu", None, os="linux", machine="aarch64")
    assert finding is not None
    assert spec(finding, "upgrade") == ">=2.11.0"


@pytest.mark.parametrize(
    ("index", "system", "holds"),
    [
        ("https://download.pytorch.org/whl/cpu", "linux", True),
        ("https://download.pytorch.org/whl/cu124", "windows", False),
        ("https://index.example/more", "windows", False),
    ],
)
def test_an_additional_index_may_have_the_build_that_is_installed(index: str, system: str, holds: bool) -> None:
    finding = cpu_only("2.5.1", Source("index", {"more": [index]}), os=system, machine="x86_64")
    assert (finding is not None and finding.verdict == "possible") is holds


def test_the_driver_fits_the_build_of_an_additional_index() -> None:
    source = Source("index", {"more": ["https://download.pytorch.org/whl/cu118"]})
    environment = Environment(distributions=(Distribution("torch", "2.1.0", source=source),), driver="470.199.02", os="linux")
    assert "build-torch-driver" not in {each.rule for each in builds.judge(Facts(environment))}


def test_of_old_releases_the_builds_of_other_indexes_are_unknown() -> None:
    """``torch==1.12.1 --extra-index-url …/cu113`` installs 1.12.1+cu113, which has code that an RTX 4090 runs."""
    for index, holds in (("https://download.pytorch.org/whl/cu113", False), ("https://index.example/simple", True)):
        torch = Distribution("torch", "1.12.1", source=Source("index", {"more": [index]}))
        environment = Environment(distributions=(torch,), accelerators=(Accelerator(name="RTX 4090"),), os="linux")
        found = {each.rule for each in builds.judge(Facts(named_devices(environment)[0]))}
        assert ("build-torch-gpu" in found) is holds


def test_xformers_of_an_additional_index_may_be_built_for_its_cuda() -> None:
    torch = Distribution("torch", "2.1.0+cu118")
    for source, holds in (
        (Source("index"), True),
        (Source("index", {"more": ["https://download.pytorch.org/whl/cu118"]}), False),
    ):
        xformers = Distribution("xformers", "0.0.22.post7", source=source)
        environment = Environment(distributions=(torch, xformers), os="linux", machine="x86_64")
        found = {each.rule for each in builds.judge(Facts(environment))}
        assert ("build-xformers-cuda" in found) is holds


def test_a_labelled_torch_without_an_index_shows_that_the_command_names_one() -> None:
    """``torch==2.3.1+cu118`` beside ``torchvision==0.18.1`` is installed with ``--index-url …/cu118``, which has both."""
    index, cu118 = Source("index"), Source("index", {"url": "https://download.pytorch.org/whl/cu118"})
    for source, holds in ((index, False), (cu118, True)):
        torch = Distribution("torch", "2.3.1+cu118", source=source)
        vision = Distribution("torchvision", "0.18.1", source=index)
        environment = Environment(distributions=(torch, vision), os="linux", machine="x86_64")
        assert ("build-torchvision-cuda" in {each.rule for each in builds.judge(Facts(environment))}) is holds


def test_nvidias_wheels_for_jetson_are_not_taken_for_builds_for_the_cpu() -> None:
    device = Accelerator(vendor="nvidia", name="Orin", compute_capability="8.7")
    for torch, rules in (("2.5.1", set()), ("2.5.1+cpu", {"build-torch-cpu-only"})):
        known = (Distribution("torch", torch),)
        environment = Environment(os="linux", machine="aarch64", distributions=known, accelerators=(device,))
        findings = {each.rule: each for each in builds.judge(Facts(environment))}
        assert set(findings) == rules
        assert all("JetPack" in finding.fixes[0].text for finding in findings.values())
