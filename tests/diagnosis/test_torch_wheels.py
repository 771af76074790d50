"""The torch that a fix names for a driver or a GPU in an error."""

from __future__ import annotations

import pytest

from compat.checks.torch_build import cuda_of, major_version
from compat.diagnosis.devices import for_driver, for_gpu
from compat.model import Distribution, Environment, Source
from compat.rules.facts import Facts
from compat.tables.builds import open_code_tables
from tests.diagnosis.test_symptoms import said

NOWHERE = Facts(Environment())


@pytest.mark.parametrize(("found", "cuda"), [("11000", 11), ("11040", 11), ("12020", 12), ("12090", 12)])
def test_a_build_for_the_cuda_of_the_driver(found: str, cuda: int) -> None:
    (fix,) = for_driver(f"The NVIDIA driver on your system is too old (found version {found}).", NOWHERE)
    label = (fix.spec or "").partition("+")[2]
    assert major_version(cuda_of(label) or "") == cuda
    assert fix.command is not None
    assert fix.command.endswith(f"/{label}")


def test_the_driver_of_the_environment_tells_as_well() -> None:
    (fix,) = for_driver("CUDA driver version is insufficient for CUDA runtime version", Facts(Environment(driver="470.86")))
    assert "+cu11" in (fix.spec or "")


@pytest.mark.parametrize("said_", ["(found version 6050)", "no number at all"])
def test_nothing_is_named_without_a_fitting_build(said_: str) -> None:
    assert for_driver(said_, NOWHERE) == ()


@pytest.mark.parametrize("code", ["sm_50", "sm_61", "sm_70", "sm_75", "sm_90", "sm_120"])
def test_the_named_build_has_code_for_the_gpu(code: str) -> None:
    tables, (fix, *_) = open_code_tables(), for_gpu(code, NOWHERE)
    release, _, label = (fix.spec or "").removeprefix("==").partition("+")
    (build,) = [
        each for each in tables.torch_builds(release)
        if each.machine == "x86_64" and (each.cuda == cuda_of(label) if label else each.default)
    ]  # fmt: skip
    capability = f"{code[3:-1]}.{code[-1]}"
    assert tables.runs(capability, build.codes, build.ptx, build.cuda) is True


@pytest.mark.parametrize("code", ["sm_37", "sm_999", "gfx942", ""])
def test_no_release_is_named_that_does_not_run(code: str) -> None:
    assert for_gpu(code, NOWHERE) == ()


@pytest.mark.parametrize("source", [None, Source("image")])
def test_the_release_that_an_engine_pins_is_kept(source: Source | None) -> None:
    environment = Environment(distributions=(Distribution("vllm", "0.10.0", source=source),))
    (fix,) = for_gpu("sm_120", Facts(environment))
    assert fix.spec == "==2.7.1+cu128"
    assert "vllm 0.10.0 requires this release" in fix.text


def test_an_installed_release_is_kept_if_another_build_of_it_fits() -> None:
    environment = Environment(distributions=(Distribution("torch", "2.8.0+cu128"),))
    first, *_ = for_gpu("sm_61", Facts(environment))
    assert (first.kind, first.spec) == ("source-install", "==2.8.0+cu126")


def test_the_message_leads_to_the_build() -> None:
    (finding,) = said("RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update")
    assert [fix.kind for fix in finding.fixes] == ["driver", "source-install"]
    assert "cuXYZ" not in str(finding.fixes)
