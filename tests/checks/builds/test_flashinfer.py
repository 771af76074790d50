"""FlashInfer beside its compiled kernels, which it only accepts from the same release."""

from __future__ import annotations

import pytest

from compat.model import Workload
from tests.checks.builds.test_builds import found, spec


def test_kernels_left_behind_by_an_upgrade_of_flashinfer_are_removed() -> None:
    # vLLM 0.25 requires flashinfer-cubin, which has no later release on the index; 0.26 no longer does
    finding = found("flashinfer-python==0.6.14", "flashinfer-cubin==0.6.13")["build-flashinfer-cubin"]
    assert [each.kind for each in finding.fixes] == ["uninstall", "source-install", "pin", "env-var"]
    earlier = found("flashinfer-python==0.6.13", "flashinfer-cubin==0.6.12")["build-flashinfer-cubin"]
    assert spec(earlier, "pin") == "==0.6.13"


@pytest.mark.parametrize(
    ("python", "kernels", "variables", "holds"),
    [
        ("0.6.12", "flashinfer-jit-cache==0.6.11+cu130", {}, True),
        ("0.6.12", "flashinfer-jit-cache==0.6.12+cu130", {}, False),
        ("0.6.1", "flashinfer-jit-cache==0.6.11+cu130", {}, False),  # only the start is compared
        ("0.7.1", "flashinfer-jit-cache==0.7.0+cu130", {}, True),
        ("0.7.1", "flashinfer-cubin==0.6.13", {}, True),
        ("0.7.2", "flashinfer-cubin==0.6.13", {}, False),  # ignores them with a warning
        ("0.7.2", "flashinfer-jit-cache==0.7.1+cu130", {}, False),
        ("0.7.1", "flashinfer-cubin==0.6.13", {"FLASHINFER_DISABLE_VERSION_CHECK": "1"}, False),
        ("0.6.16", "flashinfer-cubin==0.6.13", {"FLASHINFER_CUBIN_DIR": "/cubins"}, False),
        ("0.6.15.post1", "flashinfer-cubin==0.6.13", {"FLASHINFER_CUBIN_DIR": "/cubins"}, True),
    ],
)
def test_kernels_of_another_flashinfer(python: str, kernels: str, variables: dict[str, str], holds: bool) -> None:
    findings = found(f"flashinfer-python=={python}", kernels, variables=variables)
    assert list(findings) == ([f"build-{kernels.partition('=')[0]}"] if holds else [])


def test_a_training_that_generates_nothing_does_not_import_flashinfer() -> None:
    versions = "flashinfer-python==0.6.14", "flashinfer-cubin==0.6.13"
    assert found(*versions, workload=Workload(task="sft"))["build-flashinfer-cubin"].severity == "warning"
    assert found(*versions, workload=Workload(task="serve"))["build-flashinfer-cubin"].severity == "error"
