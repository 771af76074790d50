"""A handful of clean runs, as ``python -m benchmarks.clean_probes`` makes a thousand: nothing is raised; and the real commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from compat.probe.request import COULD_NOT_RUN, FAILED, PASSED, ProbeReport
from tests.conftest import ROOT
from tests.examples import slow
from tests.probe.conftest import needs

Probe = Callable[..., ProbeReport]
SCHEMA = Draft202012Validator(json.loads((ROOT / "docs" / "schemas" / "probe-1.json").read_text()))
PASSES_EVERYWHERE = {
    "matmul/fp32", "matmul/bf16", "matmul/fp16", "rotary/eager-half", "rotary/eager-interleaved", "rotary/eager-angles",
    "rotary/eager-lengths", "attention/sdpa-math", "attention/sdpa-flash", "attention/sdpa-default", "attention/sdpa-padding",
}  # fmt: skip


def raised(report: ProbeReport) -> list[tuple[str, str]]:
    return [(each.probe, each.why) for each in report.results if each.status == FAILED]


@pytest.mark.parametrize("seed", [11, 22])
def test_a_quick_run_raises_nothing(probed: Probe, seed: int) -> None:
    report = probed(depth="quick", seed=seed)
    assert raised(report) == []
    assert {each.probe for each in report.results if each.status == PASSED} == PASSES_EVERYWHERE
    assert report.exit == 0


def test_every_group_on_the_cpu_raises_nothing(probed: Probe) -> None:
    needs("transformers", "trl", "accelerate", "datasets")
    report = probed(trainer="sft", launcher="torchrun")
    assert raised(report) == []
    passed = {each.probe for each in report.results if each.status == PASSED}
    assert passed >= PASSES_EVERYWHERE | {
        "matmul/fp64", "rotary/transformers-half", "rotary/transformers-interleaved", "rotary/transformers-angles",
        "rotary/transformers-lengths", "devices/collectives", "devices/dataparallel", "devices/trainer-dataparallel", "trainer/sft",
    }  # fmt: skip
    without = {each.probe for each in report.results if each.status == COULD_NOT_RUN and each.why.startswith("no accelerator")}
    assert without >= {"matmul/fp8", "matmul/fp32-tf32", "triton/run", "health/matmul-rate", "health/state", "devices/copies"}
    trained = next(each for each in report.results if each.probe == "trainer/sft")
    assert trained.measured["processes"] == 2


@pytest.mark.parametrize("trainer", [pytest.param("dpo", marks=slow), "grpo"])
def test_the_other_trainers_take_two_steps(probed: Probe, trainer: str) -> None:
    needs("transformers", "trl", "accelerate", "datasets")
    report = probed("trainer", trainer=trainer, launcher="python")
    assert [(each.probe, each.status, each.why) for each in report.results] == [(f"trainer/{trainer}", PASSED, "")]


@slow
def test_compiled_products_are_right_or_there_is_no_compiler(probed: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    report = probed("matmul/compile", depth="thorough", limit=600.0)
    assert {(each.probe, each.status) for each in report.results} == {
        ("matmul/compile-fp32", PASSED), ("matmul/compile-bf16", PASSED), ("matmul/compile-refusal", PASSED),
    }  # fmt: skip
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("CXX", "no-such-compiler")
    report = probed("matmul/compile", depth="thorough")
    assert {each.status for each in report.results} == {COULD_NOT_RUN}
    assert "needs a C++ compiler" in report.results[0].why


@pytest.mark.parametrize(
    ("fault", "probe", "words"),
    [
        ("compiled-once", "compile-fp32", "compiled, 127×192×80"),
        ("compiled-unchecked", "compile-refusal", "inner dimensions differ"),
    ],
)
def test_code_that_was_compiled_wrong(probed: Probe, fault: str, probe: str, words: str) -> None:
    report = probed("matmul/compile", depth="thorough", fault=fault)
    found = {each.probe: each.why for each in report.results if each.status == FAILED}
    assert words in found[f"matmul/{probe}"]


def test_a_compiler_that_fails_is_a_failed_probe(probed: Probe, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "g++"
    broken.write_text("#!/bin/sh\necho 'fatal error: Python.h: No such file or directory' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    report = probed("matmul/compile-fp32", depth="thorough")
    assert [each.status for each in report.results] == [FAILED]


def test_the_command_in_both_formats(compat: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    needs("torch")
    words = ("probe", "--device", "cpu", "--only", "rotary/eager", "--python", sys.executable)
    done = compat(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✓ rotary" in done.stdout
    document = json.loads(compat(*words, "--format", "json").stdout)
    SCHEMA.validate(document)
    assert {each["probe"] for each in document["probes"]} == {
        f"rotary/eager-{name}" for name in ("half", "interleaved", "angles", "lengths")
    }


def test_no_accelerator_is_no_failure_unless_one_is_named_or_required(
    compat: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    needs("torch")
    words = ("probe", "--quick", "--only", "matmul", "--python", sys.executable)
    done = compat(*words, CUDA_VISIBLE_DEVICES="-1")
    assert done.returncode == 0
    assert "could not run: no accelerator" in done.stdout
    assert compat(*words, "--require-device", CUDA_VISIBLE_DEVICES="-1").returncode == 3
    assert compat(*words, "--device", "cuda:0", CUDA_VISIBLE_DEVICES="-1").returncode == 3
