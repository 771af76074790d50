"""Triton's own assembler, the GPU that it compiles for, and the driver that loads its code."""

from __future__ import annotations

from typing import Any

import pytest

from compat.model import Workload
from tests.checks.builds.test_builds import found, spec


@pytest.mark.parametrize(
    ("triton", "gpu", "holds"),
    [("3.4.0", "GB10", True), ("3.8.0", "GB10", False), ("3.1.0", "RTX 5090", True), ("3.4.0", "RTX 5090", False)],
)
def test_the_assembler_in_tritons_wheel(triton: str, gpu: str, holds: bool) -> None:
    assert ("build-triton-gpu" in found(f"triton=={triton}", gpus=(gpu,))) is holds


@pytest.mark.parametrize(
    ("torch", "triton", "gpu", "driver", "floor"),
    [
        ("2.2.2+cu118", "2.2.0", "A100", "470.57.02", ">=525"),  # CUDA 12.3 beside torch's 11.8
        ("2.2.2+cu118", "2.2.0", "A100", "535.104.05", None),
        ("2.13.0+cu129", "3.7.1", "B200", "575.57.08", ">=580"),  # a second assembler for Blackwell, of CUDA 13.1
        ("2.13.0+cu129", "3.7.1", "H100", "575.57.08", None),  # the first one is of CUDA 12.8
        ("2.10.0+cu128", "3.6.0", "B200", "570.86.10", None),  # both are of CUDA 12
        ("2.13.0+cu130", "3.7.1", "B200", "575.57.08", None),  # torch itself finds no GPU, which is another finding
    ],
)
def test_the_driver_loads_code_of_the_assemblers_cuda(
    torch: str, triton: str, gpu: str, driver: str, floor: str | None
) -> None:
    finding = found(f"torch=={torch}", f"triton=={triton}", gpus=(gpu,), driver=driver).get("build-triton-driver")
    assert (None if finding is None else spec(finding, "driver")) == floor


@pytest.mark.parametrize(
    ("packages", "keys", "severity"),
    [
        ((), {}, "info"),
        (("vllm==0.8.5",), {}, "warning"),
        (("unsloth==2025.2.4",), {}, "error"),
        ((), {"workload": Workload(features=("torch-compile",))}, "error"),
    ],
)
def test_who_compiles_kernels(packages: tuple[str, ...], keys: dict[str, Any], severity: str) -> None:
    stack = ("torch==2.6.0+cu118", "triton==3.2.0", *packages)
    assert found(*stack, gpus=("RTX 3090",), driver="520.61.05", **keys)["build-triton-driver"].severity == severity


@pytest.mark.parametrize(("triton", "gpu", "variable"), [
    ("3.1.0", "RTX 5090", "TRITON_PTXAS_PATH"), ("3.5.1", "NVIDIA GB10", "TRITON_PTXAS_PATH"),
    ("3.6.0", "NVIDIA Thor", "TRITON_PTXAS_BLACKWELL_PATH"),  # with an assembler of its own for Blackwell
    ("3.3.1", "B300", None),  # whose assembler for Blackwell is looked up by a name that no shell accepts
])  # fmt: skip
def test_the_variable_for_another_assembler(triton: str, gpu: str, variable: str | None) -> None:
    finding = found(f"triton=={triton}", gpus=(gpu,))["build-triton-gpu"]
    commands = [fix.command for fix in finding.fixes if fix.kind == "env-var"]
    assert commands == ([f"export {variable}=/usr/local/cuda/bin/ptxas"] if variable else [])
    if variable is not None:
        given = {variable: "/usr/local/cuda/bin/ptxas"}
        assert "build-triton-gpu" not in found(f"triton=={triton}", gpus=(gpu,), variables=given)


def test_another_assembler_is_used() -> None:
    stack = ("torch==2.6.0+cu118", "triton==3.2.0")
    variables = {"TRITON_PTXAS_PATH": "/usr/local/cuda-11.8/bin/ptxas"}
    assert "build-triton-driver" not in found(*stack, gpus=("RTX 3090",), driver="520.61.05", variables=variables)
