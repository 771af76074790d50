"""num_items_in_batch under nn.DataParallel: a crash, a silent loss of data, and what SFTTrainer makes of that loss."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from environments import Result, reproduce
from packaging.version import Version

pytestmark = pytest.mark.reproduction

SCALAR, DROPS = "transformers-dataparallel-scalar-num-items", "transformers-dataparallel-drops-data"
ACCURACY, CHUNKED = "trl-sft-dataparallel-accuracy", "trl-sft-dataparallel-chunked-loss"

Check = Callable[[str], set[str]]
Diagnose = Callable[[Result, str], set[str]]
Describe = Callable[..., str]

needs_3_11 = pytest.mark.skipif(sys.version_info < (3, 11), reason="that release needs Python 3.11")

# transformers, outcome, what num_items_in_batch is when it reaches the model of two GPUs
TRAINER = [
    ("4.45.2", "ok", "absent"),
    ("4.46.1", "ok", "number"),
    ("4.46.2", "error", "tensor[]"),
    ("4.46.3", "error", "tensor[]"),
    ("4.47.0", "ok", "absent"),  # by mistake: the loss is then averaged wrongly, which is another bug
    ("4.47.1", "ok", "number"),
    ("4.49.0", "ok", "number"),
    ("4.50.0", "error", "tensor[]"),
    ("4.50.3", "error", "tensor[]"),
    ("4.51.0", "data-lost", "tensor[1]"),
    ("4.51.3", "data-lost", "tensor[1]"),
    ("4.56.2", "data-lost", "tensor[1]"),
    ("4.57.1", "ok", "tensor[2, 1]"),
    ("4.57.6", "ok", "tensor[2, 1]"),
    ("5.0.0", "ok", "tensor[2, 1]"),
    pytest.param("5.23.0", "ok", "tensor[2, 1]", marks=needs_3_11),
]
REPLICAS = {"ok": [2, 2], "error": [], "data-lost": [2]}

CRASH, LOST, FINE, REFUSED = "crash", "lost", "fine", "refused"

# transformers, trl, outcome
SFT = [
    ("4.48.3", "0.15.2", FINE),
    ("4.51.3", "0.14.0", LOST),
    ("4.51.3", "0.15.0", CRASH),
    ("4.51.3", "0.15.2", CRASH),
    ("4.51.3", "0.17.0", CRASH),
    ("4.56.2", "0.24.0", CRASH),
    ("4.56.2", "1.6.0", CRASH),
    ("4.56.2", "1.7.0", LOST),  # counts right tokens in the model's own forward, where there is nothing to compare with
    ("4.56.2", "1.14.2", LOST),
    pytest.param("4.56.2", "1.15.0", REFUSED, marks=needs_3_11),
    ("4.57.6", "0.24.0", FINE),
]


def on_two_gpus(describe: Describe, packages: dict[str, str], **workload: object) -> str:
    """The same releases on a machine with two GPUs, started by plain python."""
    return describe(
        packages,
        distributions_complete=True,
        accelerators=[{"name": "NVIDIA A100-SXM4-80GB"}] * 2,
        workload={"launcher": "python", "features_complete": True, **workload},
    )


@pytest.mark.parametrize(("transformers", "outcome", "num_items"), TRAINER)
def test_trainer(transformers: str, outcome: str, num_items: str) -> None:
    result = reproduce("dataparallel_trainer.py", {"transformers": transformers})
    (forward,) = result.detail["forwards"]
    assert (result.outcome, forward["num_items_in_batch"]) == (outcome, num_items)
    assert (forward["rows"], forward["replicas"]) == (4, REPLICAS[outcome])
    if outcome == "error":
        assert (result.exception, result.message) == ("RuntimeError", "chunk expects at least a 1-dimensional tensor")
        assert "torch/nn/parallel/_functions.py::forward" in result.frames


@pytest.mark.parametrize(("transformers", "outcome", "num_items"), TRAINER)
def test_trainer_as_the_matrix_has_it(
    check: Check, diagnose: Diagnose, described: Describe, transformers: str, outcome: str, num_items: str
) -> None:
    result = reproduce("dataparallel_trainer.py", {"transformers": transformers})
    environment = on_two_gpus(described, {"transformers": transformers})
    assert check(environment) == {"ok": set(), "error": {SCALAR}, "data-lost": {DROPS}}[result.outcome]
    if result.outcome == "error":
        assert diagnose(result, environment) == {SCALAR}


@pytest.mark.parametrize(("transformers", "trl", "outcome"), SFT)
def test_sft(transformers: str, trl: str, outcome: str) -> None:
    result = reproduce("dataparallel_sft.py", {"transformers": transformers, "trl": trl})
    assert seen_in_sft(result) == outcome


@pytest.mark.parametrize(("transformers", "trl", "outcome"), SFT)
def test_sft_as_the_matrix_has_it(
    check: Check, diagnose: Diagnose, described: Describe, transformers: str, trl: str, outcome: str
) -> None:
    result = reproduce("dataparallel_sft.py", {"transformers": transformers, "trl": trl})
    environment = on_two_gpus(described, {"transformers": transformers, "trl": trl}, task="sft", batch_size=2)
    silent = {DROPS, CHUNKED} if Version(trl) >= Version("1.7.0") else {DROPS}
    expected = {FINE: set[str](), REFUSED: set[str](), LOST: silent, CRASH: {DROPS, ACCURACY}}
    assert check(environment) == expected[seen_in_sft(result)]
    if outcome == CRASH:
        assert diagnose(result, environment) == {ACCURACY}


def seen_in_sft(result: Result, rows: int = 2, gpus: int = 2) -> str:
    """Which of the four ways the run went; anything else fails."""
    replicas = [forward["replicas"] for forward in result.detail["forwards"]]
    if result.outcome == "ok":
        assert replicas == [[rows] * gpus]
        return FINE
    if result.exception == "ValueError":
        assert re.match(r"SFTTrainer does not support `nn\.DataParallel`", str(result.message))
        assert replicas == []
        return REFUSED
    assert replicas == [[rows]]  # the first replica alone
    if result.outcome == "data-lost":
        return LOST
    assert result.exception == "RuntimeError"
    assert result.message == (
        f"The size of tensor a ({rows}) must match the size of tensor b ({rows * gpus}) at non-singleton dimension 0"
    )
    assert "trl/trainer/sft_trainer.py::compute_loss" in result.frames
    return CRASH


BAD: dict[str, Any] = {"transformers": "4.51.3", "trl": "0.17.0"}


def test_the_numbers_of_the_message_are_rows_of_one_gpu_and_of_all() -> None:
    assert seen_in_sft(reproduce("dataparallel_sft.py", BAD, "--gpus", "8"), gpus=8) == CRASH


def test_one_row_for_each_gpu_hides_the_crash_and_not_the_loss() -> None:
    assert seen_in_sft(reproduce("dataparallel_sft.py", BAD, "--batch-size", "1"), rows=1) == LOST


@pytest.mark.parametrize("trl", ["1.7.0", "1.14.2"])
def test_the_older_loss_still_crashes_where_it_is_no_longer_the_default(
    diagnose: Diagnose, described: Describe, trl: str
) -> None:
    pins = {"transformers": "4.56.2", "trl": trl}
    result = reproduce("dataparallel_sft.py", pins, "--loss-type", "nll")
    assert seen_in_sft(result) == CRASH
    assert diagnose(result, on_two_gpus(described, pins, task="sft", batch_size=2)) == {CHUNKED}


@pytest.mark.parametrize(("trl", "shared"), [("1.6.0", False), ("1.7.0", True), ("1.14.2", True)])
def test_replicas_of_newer_trl_share_one_forward(trl: str, shared: bool) -> None:
    """Every replica gets its rows here. With real GPUs the second would run the forward of the first, on its weights."""
    result = reproduce("dataparallel_sft.py", {"transformers": "4.57.6", "trl": trl})
    assert seen_in_sft(result) == FINE
    assert [forward["shared_forward"] for forward in result.detail["forwards"]] == [shared]
