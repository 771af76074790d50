"""Errors about packages that a job of a known task does not import."""

from __future__ import annotations

from pathlib import Path

import pytest

import compat


def severities(packages: dict[str, str], **facts: object) -> dict[str, str]:
    distributions = [{"name": name, "version": version} for name, version in packages.items()]
    described = {"distributions": distributions, "distributions_complete": True}
    return {each.rule: each.severity for each in compat.check(described, **facts).findings}  # type: ignore[arg-type]


SETFIT = {"setfit": "1.0.3", "huggingface-hub": "0.24.0"}
PEFT = {"peft": "0.17.0", "transformers": "5.1.0"}
AWQ = {"autoawq": "0.2.9", "transformers": "4.57.1", "peft": "0.17.1"}


@pytest.mark.parametrize(
    ("packages", "rule", "task", "severity"),
    [
        (SETFIT, "setfit-hub-datasetfilter", "sft", "warning"),
        (SETFIT, "setfit-hub-datasetfilter", "train", "error"),
        (SETFIT, "setfit-hub-datasetfilter", None, "error"),
        ({"onnxruntime": "1.18.0", "numpy": "2.0.0"}, "onnxruntime-numpy-2", "grpo", "warning"),
        ({"onnxruntime": "1.18.0", "numpy": "2.0.0"}, "onnxruntime-numpy-2", "inference", "error"),
        ({"torchmetrics": "0.11.4", "setuptools": "82.0.0"}, "torchmetrics-pkg-resources", "dpo", "warning"),
        (PEFT, "peft-hybrid-cache-transformers-5", "serve", "error"),  # by transformers, maybe with an adapter
        ({**PEFT, "vllm": "0.24.0"}, "peft-hybrid-cache-transformers-5", "grpo", "error"),
        ({"wandb": "0.16.6", "numpy": "2.1.0"}, "wandb-numpy-2-float", "sft", "error"),
        ({**AWQ, "peft": "0.19.1"}, "surface-autoawq-transformers", "sft", "warning"),
        (AWQ, "autoawq-gelu-tanh-peft", "lora", "error"),
        ({**AWQ, "vllm": "0.11.0"}, "surface-autoawq-transformers", "serve", "warning"),
        (AWQ, "autoawq-gelu-tanh", None, "warning"),  # a model quantized with AWQ is presumed
    ],
)
def test_an_import_error_of_a_package_that_the_task_does_not_import_is_a_warning(
    packages: dict[str, str], rule: str, task: str | None, severity: str
) -> None:
    assert severities(packages, task=task)[rule] == severity


@pytest.mark.parametrize("beside", [{}, {"vllm": "0.20.0"}])
def test_a_rule_that_exempts_servers_is_not_reported_for_them(beside: dict[str, str]) -> None:
    assert "wandb-numpy-2-float" not in severities({"wandb": "0.16.6", "numpy": "2.1.0", **beside}, task="serve")


@pytest.mark.parametrize("engine", [{"vllm": "0.24.0"}, {"sglang": "0.5.9"}])
def test_the_engines_import_no_peft(engine: dict[str, str]) -> None:
    assert "peft-hybrid-cache-transformers-5" not in severities({**PEFT, **engine}, task="serve")


def test_it_says_what_does_not_import_it() -> None:
    described = {
        "distributions": [{"name": name, "version": version} for name, version in SETFIT.items()],
        "distributions_complete": True,
    }
    (finding,) = (each for each in compat.check(described, task="sft").findings if each.rule == "setfit-hub-datasetfilter")
    assert finding.why.endswith("The trainer does not import setfit, directly or indirectly.")


@pytest.mark.parametrize(
    ("quantization", "severity"), [("awq", "error"), ("4bit", "warning"), ("none", "warning"), (None, "warning")]
)
def test_a_quantizer_is_imported_for_the_models_it_quantized(quantization: str | None, severity: str) -> None:
    found = severities({"autoawq": "0.2.9", "transformers": "4.57.1", "peft": "0.19.1"}, task="sft", quantization=quantization)
    assert found["surface-autoawq-transformers"] == severity


def test_the_trainers_of_lightning_import_it() -> None:
    packages = {"torchmetrics": "0.11.4", "setuptools": "82.0.0", "litgpt": "0.5.0"}
    assert severities(packages, task="sft")["torchmetrics-pkg-resources"] == "error"


@pytest.mark.parametrize(
    ("packages", "rule", "facts", "severity"),
    [
        (
            {"unsloth": "2024.12.12", "unsloth_zoo": "2025.1.1"},
            "surface-unsloth-unsloth-zoo",
            {"task": "sft", "without": "unsloth"},
            "warning",
        ),
        (
            {"unsloth": "2024.12.12", "unsloth_zoo": "2025.1.1"},
            "unsloth-zoo-lost-checkpointing-buffer",
            {"task": "sft"},
            "error",
        ),
        ({"vllm": "0.25.1", "openai": "2.6.1"}, "surface-vllm-openai", {"task": "inference", "without": "vllm"}, "warning"),
        ({"vllm": "0.25.1", "openai": "2.6.1"}, "vllm-openai-namespace-tool", {"task": "grpo", "without": "vllm"}, "error"),
    ],
)
def test_a_package_whose_feature_is_off_is_not_imported(
    packages: dict[str, str], rule: str, facts: dict[str, str], severity: str
) -> None:
    options = {key: [value] if key == "without" else value for key, value in facts.items()}
    assert severities(packages, **options)[rule] == severity


def test_so_it_is_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    for more, severity in (("", "warning"), ("litgpt==0.5.0\n", "error")):
        file.write_text(f"torchmetrics==0.11.4\nsetuptools==82.0.0\n{more}")
        found = {each.rule: each.severity for each in compat.check(str(file), task="sft").findings}
        assert found["torchmetrics-pkg-resources"] == severity
