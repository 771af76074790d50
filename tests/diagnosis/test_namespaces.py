"""Submodules of top-level modules that many distributions share."""

from __future__ import annotations

import pytest

import compat
from compat.diagnosis.frame_packages import distribution_of_submodule
from tests.diagnosis.test_named_releases import with_release
from tests.diagnosis.test_symptoms import said


@pytest.mark.parametrize(
    ("module", "distribution"),
    [
        ("google.protobuf.internal", ("protobuf", "")),
        ("google.genai", ("google-genai", "")),
        ("google.cloud.storage.blob", ("google-cloud-storage", "")),
        ("google.cloud", None),
        ("ruamel.yaml.main", ("ruamel-yaml", "")),
        ("cuda.bindings.driver", ("cuda-bindings", "")),
        ("cuda.cudart", ("cuda-python", "<13")),
        ("megatron.bridge.models", ("megatron-bridge", "")),
        ("megatron.core.utils", None),
        ("optimum.quanto", ("optimum-quanto", "")),
        ("optimum.gptq", None),
        ("torch.nn", None),
        ("google", None),
    ],
)
def test_the_distribution_of_a_submodule(module: str, distribution: tuple[str, str] | None) -> None:
    assert distribution_of_submodule(module) == distribution


@pytest.mark.parametrize(
    ("error", "name", "spec"),
    [
        ("ModuleNotFoundError: No module named 'megatron.bridge'", "megatron-bridge", None),
        ("ModuleNotFoundError: No module named 'optimum.quanto'", "optimum-quanto", None),
        ("ImportError: cannot import name 'genai' from 'google' (unknown location)", "google-genai", None),
        ("ImportError: cannot import name 'cudart' from 'cuda' (unknown location)", "cuda-python", "<13"),
    ],
)
def test_a_missing_submodule_names_its_own_distribution(error: str, name: str, spec: str | None) -> None:
    (finding,) = compat.diagnose(error).findings
    assert finding.rule == "symptom-not-installed"
    assert [(fix.package, fix.spec) for fix in finding.fixes] == [(name, spec)]


def test_a_release_that_no_longer_has_the_submodule() -> None:
    error = "ImportError: cannot import name 'cudart' from 'cuda' (unknown location)"
    (finding,) = said(error, with_release("cuda-python", "13.0.1"))
    assert finding.why.endswith("It is in the releases <13; 13.0.1 is installed.")
