"""What a job needs although nobody listed it."""

from __future__ import annotations

from pathlib import Path

import pytest

import compat
from compat.checks import check_environment
from compat.checks.needed import needed_by
from compat.checks.questions import LEAST, likelihood
from compat.model import Accelerator, Distribution, Environment, Finding, Workload
from compat.rules.compiled import open_matrix


def described(*listed: str, gpu: str | None = None, driver: str | None = None, **job: object) -> Environment:
    copies = tuple(Distribution(*text.split("==")) for text in listed)
    devices = None if gpu is None else (Accelerator(name=gpu),)
    workload = Workload(**job) if job else None  # type: ignore[arg-type]
    return Environment(
        os="linux", machine="x86_64", accelerators=devices, driver=driver, distributions=copies, workload=workload
    )


def questions(here: Environment) -> dict[str, Finding]:
    found = check_environment(here, open_matrix(()))[1]
    return {each.rule: each for each in found if each.verdict == "possible" and likelihood(each) >= LEAST}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({"task": "sft"}, {"torch", "transformers"}),
        ({"task": "qlora"}, {"torch", "transformers", "peft"}),
        ({"task": "serve", "features": ("vllm",)}, {"torch", "vllm"}),
        ({"task": "sft", "features": ("zero-3", "liger")}, {"torch", "transformers", "deepspeed", "liger-kernel"}),
        ({"task": "sft", "launcher": "accelerate"}, {"torch", "transformers", "accelerate"}),
        ({"task": "import"}, set()),
        ({}, set()),
    ],
)
def test_needed_packages(job: dict[str, object], expected: set[str]) -> None:
    assert set(needed_by(described(**job))) == expected  # type: ignore[arg-type]


def test_what_is_listed_is_not_needed() -> None:
    assert needed_by(described("torch==2.6.0", "transformers==4.49.0", task="sft")) == ()


@pytest.mark.parametrize(
    ("gpu", "driver", "rule"),
    [("V100", None, "build-torch-gpu"), ("A100", "535.54.03", "build-torch-driver"), ("RTX 5090", "595.10", "build-torch-gpu")],
)
def test_a_bare_machine_is_asked_about_the_torch_that_fails_there(gpu: str, driver: str | None, rule: str) -> None:
    asked = questions(described(gpu=gpu, driver=driver, task="sft"))[rule]
    assert asked.packages == {"torch": None}
    assert asked.fixes
    assert rule not in questions(described(gpu="A100", driver="595.10", task="sft"))


def test_what_a_feature_needs_is_asked_about_on_a_machine_without_it() -> None:
    """No release of FlashAttention 2 runs on a V100."""
    assert "flash-attn-2-gpu-too-old" in questions(described(gpu="V100", task="sft", features=("flash-attention",)))
    assert "flash-attn-2-gpu-too-old" not in questions(described(gpu="A100", task="sft", features=("flash-attention",)))
    assert "flash-attn-2-gpu-too-old" not in questions(described(gpu="V100", task="sft"))


def test_a_multimodal_job_is_asked_about_the_models_that_read_images() -> None:
    assert "torch-2-9-conv3d" in questions(described("torch==2.9.0", task="sft", features=("multimodal",)))
    assert "torch-2-9-conv3d" not in questions(described("torch==2.9.0", task="sft"))


def test_nothing_is_asked_without_a_job_or_beside_a_listed_torch() -> None:
    assert questions(described(gpu="V100")) == {}
    assert "build-torch-gpu" not in questions(described("torch==2.5.1", gpu="V100", task="sft"))


def test_an_amd_machine_is_not_asked_about_the_default_build() -> None:
    assert "build-torch-vendor" not in questions(described(gpu="MI300X", task="sft"))


def test_a_feature_brings_its_package_of_the_time() -> None:
    """liger-kernel 0.3.1 was the newest when these were, and needs Triton 3."""
    listed = ("torch==2.3.0", "triton==2.3.0", "transformers==4.44.2", "bitsandbytes==0.44.1")
    assert "liger-0-3-1-triton-cast" in questions(described(*listed, task="sft", features=("liger",)))
    assert "liger-0-3-1-triton-cast" not in questions(described(*listed, task="sft"))


@pytest.mark.parametrize(
    ("text", "options", "rule"),
    [
        ("torch\ntransformers\n", {"gpu": ["V100"]}, "build-torch-gpu"),
        ("torch\n", {"gpu": ["A100"], "driver": "535.54"}, "build-torch-driver"),
        ("vllm\n", {"gpu": ["A100"], "driver": "535.54"}, "build-torch-driver"),  # vLLM's newest release pins torch
        ("vllm\ntorch\n", {"gpu": ["V100"]}, "build-torch-gpu"),
    ],
)
def test_an_open_requirement_is_judged_by_the_release_that_is_selected_today(
    text: str, options: dict[str, object], rule: str, tmp_path: Path
) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text(text)
    found = {each.rule: each for each in compat.check(path, **options).findings}  # type: ignore[arg-type]
    assert found[rule].verdict == "possible"
    assert found[rule].fixes
    assert rule not in {each.rule for each in compat.check(path, gpu=["H100"], driver="595.10").findings}
