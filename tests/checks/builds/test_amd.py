"""Builds of torch and its extensions against AMD GPUs."""

from __future__ import annotations

import pytest

from compat.checks import builds, named_devices
from compat.model import Accelerator, Distribution, Environment, Finding, Source
from compat.rules.facts import Facts


def amd(torch: str, gpu: str, variables: dict[str, str | None] | None = None, system: str = "linux") -> dict[str, Finding]:
    environment = Environment(
        os=system, distributions=(Distribution("torch", torch),), accelerators=(Accelerator(name=gpu),), variables=variables
    )
    return {each.rule: each for each in builds.judge(Facts(named_devices(environment)[0]))}


@pytest.mark.parametrize(
    ("torch", "gpu", "override", "holds"),
    [
        ("2.5.1+rocm6.2", "Radeon RX 6700 XT", None, True),
        ("2.5.1+rocm6.2", "Radeon RX 6700 XT", "10.3.0", False),
        ("2.5.1+rocm6.2", "Radeon RX 6700 XT", "12.0.0", True),
        ("2.5.1+rocm6.2", "Radeon RX 7900 XTX", None, False),
        ("2.9.1+rocm6.4", "Radeon 8060S", None, True),
        ("2.11.0+rocm7.2", "Radeon 8060S", None, False),
        ("2.8.0+rocm7.0.0.git64359f59", "Radeon RX 6700 XT", None, False),  # AMD's own build: its targets are unknown
    ],
)
def test_a_build_for_rocm_without_code_for_the_gpu(torch: str, gpu: str, override: str | None, holds: bool) -> None:
    finding = amd(torch, gpu, {"HSA_OVERRIDE_GFX_VERSION": override}).get("build-torch-gfx")
    assert (finding is not None and finding.verdict == "hit") is holds


def test_it_is_a_question_if_the_override_is_unknown() -> None:
    finding = amd("2.5.1+rocm6.2", "Radeon RX 6700 XT")["build-torch-gfx"]
    assert (finding.verdict, finding.unknown) == ("possible", ("variables.HSA_OVERRIDE_GFX_VERSION",))


def test_a_gpu_without_code_runs_as_one_of_its_generation_or_with_a_later_rocm() -> None:
    commands = [fix.command for fix in amd("2.5.1+rocm6.2", "Radeon RX 6700 XT")["build-torch-gfx"].fixes]
    assert "export HSA_OVERRIDE_GFX_VERSION=10.3.0" in commands
    commands = [fix.command for fix in amd("2.9.1+rocm6.4", "Radeon 8060S")["build-torch-gfx"].fixes]
    assert commands[0] == "pip install -U torch --index-url https://download.pytorch.org/whl/rocm7.2"
    assert not any("HSA_OVERRIDE" in (command or "") for command in commands)


def test_a_cpu_only_torch_with_a_gpu_that_rocm_supports() -> None:
    finding = amd("2.9.1+cpu", "Radeon RX 7900 XTX")["build-torch-cpu-only"]
    assert (finding.verdict, finding.severity) == ("hit", "warning")
    assert "rocm" in (finding.fixes[0].command or "")
    assert "build-torch-cpu-only" not in amd("2.9.1+cpu", "Radeon RX 7900 XTX", system="windows")
    assert "build-torch-cpu-only" not in amd("2.9.1+cpu", "Radeon 610M")


@pytest.mark.parametrize(
    ("torch", "command"),
    [
        ("2.6.0", 'pip install "torch==2.6.0+rocm6.2.4" --index-url https://download.pytorch.org/whl/rocm6.2.4'),
        ("2.9.1", 'pip install "torch==2.9.1+rocm6.4" --index-url https://download.pytorch.org/whl/rocm6.4'),
        ("2.7.1+cu126", 'pip install "torch==2.7.1+rocm6.3" --index-url https://download.pytorch.org/whl/rocm6.3'),
        ("99.0.0+cu128", "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/rocm7.2"),
    ],
)
def test_the_build_for_rocm_is_named_so_that_it_can_be_pasted(torch: str, command: str) -> None:
    """With its label: for pip, the build that is there satisfies the same release."""
    environment = Environment(
        os="linux", machine="x86_64", python="3.12", accelerators=(Accelerator(name="MI300X"),),
        distributions=(Distribution("torch", torch, source=Source("index")), Distribution("xformers", "0.0.29.post3")),
    )  # fmt: skip
    found = {each.rule: each for each in builds.judge(Facts(named_devices(environment)[0]))}
    (fix,) = found["build-torch-vendor"].fixes
    assert fix.command == command
    extension = found["build-xformers-vendor"]
    assert (extension.severity, extension.fixes[0].command) == ("warning", "pip uninstall xformers")


@pytest.mark.parametrize(
    ("copy", "gpu"),
    [
        (Distribution("xformers", "0.0.29.post3"), "A100"),
        (Distribution("xformers", "0.0.29.post3", source=Source("index", {"url": "https://download.pytorch.org/whl/rocm6.3"})), "MI300X"),
        (Distribution("xformers", "0.0.29+rocm", source=Source("index")), "MI300X"),
        (Distribution("xformers", "0.0.29.post3", source=Source("vcs", {})), "MI300X"),
    ],
)  # fmt: skip
def test_an_extension_that_may_be_built_for_the_gpu_is_not_named(copy: Distribution, gpu: str) -> None:
    torch = Distribution("torch", "2.6.0", source=Source("index"))
    environment = Environment(
        os="linux", machine="x86_64", python="3.12", accelerators=(Accelerator(name=gpu),), distributions=(torch, copy)
    )
    rules = {each.rule for each in builds.judge(Facts(named_devices(environment)[0]))}
    assert "build-xformers-vendor" not in rules
