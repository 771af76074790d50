"""Estimates of memory: the formulas, sharding, and when they are worth a warning."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.checks.memory import Memory, estimate_memory, judge_memory
from compat.model import Accelerator, Environment, Workload
from compat.workload.model_files import read_model
from tests.workload.test_model_files import MODELS

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    values = {"model_type": "llama", "max_position_embeddings": 8192, **MODELS["llama"][0]}
    (tmp_path / "config.json").write_text(json.dumps(values), encoding="utf-8")
    return tmp_path


def memory_of(folder: Path, gib: int | None, count: int = 1, workload: Workload | None = None) -> tuple[Memory, list[str]]:
    device = Accelerator(vendor="nvidia", name="A GPU", memory_mib=None if gib is None else gib * 1024)
    environment = Environment(accelerators=(device,) * count, workload=workload)
    memory = estimate_memory(read_model(str(folder)), environment)
    return memory, [finding.here for finding in judge_memory(memory, environment)]


def test_the_parts_of_each_use(folder: Path) -> None:
    memory, _ = memory_of(folder, 80)
    inference, _, _, full = memory.estimates
    assert inference.weights == memory.model.parameters * 2
    assert inference.kv_cache == 4096 * 2 * 32 * 8 * 128 * 2  # tokens, keys and values, layers, heads, width, bytes
    # accelerate estimate-memory, float32: four times the weights for a step with Adam
    assert full.weights + full.gradients + full.optimizer == memory.model.parameters * 16
    assert [each.fits(memory.device) for each in memory.estimates] == [True, True, True, False]


@pytest.mark.parametrize(
    ("stage", "divided"), [("zero-1", {"optimizer"}), ("zero-2", {"optimizer", "gradients"}),
                           ("zero-3", {"optimizer", "gradients", "weights"}), ("fsdp", {"optimizer", "gradients", "weights"})]
)  # fmt: skip
def test_what_each_stage_divides(folder: Path, stage: str, divided: set[str]) -> None:
    memory, _ = memory_of(folder, 80, 8, Workload(features=(stage,)))
    alone, together = (each for each in memory.estimates if each.use == "full")
    assert together.shared == stage
    assert {part for part in ("weights", "gradients", "optimizer")
            if getattr(together, part) == getattr(alone, part) / 8} == divided  # fmt: skip


@pytest.mark.parametrize(
    ("gib", "workload", "found"),
    [
        (24, Workload(task="sft", features_absent=("peft",)), ["126 GiB of 24 GiB"]),
        (24, Workload(task="sft"), []),  # nobody said that it is not LoRA
        (24, Workload(task="sft", features=("peft",)), []),
        (16, Workload(task="sft", features=("peft",)), ["22 GiB of 16 GiB"]),
        (16, Workload(task="sft", features=("peft",), quantization="4bit"), []),
        (16, Workload(task="serve"), ["17 GiB of 16 GiB"]),
        (16, None, []),  # QLoRA fits
        (8, None, ["12 GiB of 8 GiB"]),
        (None, Workload(task="serve"), []),
    ],
)
def test_a_warning_only_where_what_is_run_fits_no_way(
    folder: Path, gib: int | None, workload: Workload | None, found: list[str]
) -> None:
    assert memory_of(folder, gib, 1, workload)[1] == found


def test_doctor_shows_the_estimates(folder: Path, compat: Run) -> None:
    done = compat("doctor", "--model", folder, "--gpu", "RTX 4090", "--task", "serve")
    assert "llama, 8.03 billion parameters (config.json alone), 1 × 4096 tokens" in done.stdout
    assert "inference: 16.6 of 24 GiB, fits" in done.stdout
    document = json.loads(compat("doctor", "--model", folder, "--gpu", "RTX 4090", "--format", "json").stdout)
    assert [each["use"] for each in document["memory"]["estimates"]] == ["inference", "lora", "qlora", "full"]
    assert document["environment"]["workload"]["model"] == "llama"
    assert "8.03 billion" in compat("doctor", "--model", folder, "--gpu", "RTX 4090", "--format", "html").stdout


@pytest.mark.parametrize("name", ["org/name", "s3://bucket/models/name"])
def test_the_name_of_a_model_is_not_a_folder(compat: Run, name: str) -> None:
    assert compat("doctor", "--model", name, "--gpu", "RTX 4090").stderr == ""


@pytest.mark.parametrize("name", ["./nothing", "/nothing/config.json", "config.json", "models/org/name"])
def test_a_folder_that_is_none(tmp_path: Path, compat: Run, name: str) -> None:
    done = compat("doctor", "--model", name, cwd=tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
