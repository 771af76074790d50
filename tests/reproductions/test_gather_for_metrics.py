"""SFTTrainer's count of tokens, gathered as a Python number: a crash under every launcher but plain python."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from environments import Result, reproduce

pytestmark = pytest.mark.reproduction

GATHER = "trl-sft-gather-for-metrics-int"
BAD_COMMIT = "e3244d2d096ff1e2e248c931d06d39e165e20623"
PLAIN, ONE, TWO = None, 1, 2  # processes under torchrun
TRANSFORMERS = "4.49.0"  # the newest in the days of the bug

# trl, whether its fix is undone, processes, outcome, tokens counted
RUNS = [
    *[("0.15.2", False, processes, "ok", None) for processes in (PLAIN, ONE, TWO)],  # did not count yet
    ("0.16.0", False, PLAIN, "ok", 26),
    ("0.16.0", False, ONE, "ok", 26),
    ("0.16.0", False, TWO, "ok", 52),
    ("0.16.0", True, PLAIN, "ok", 26),
    ("0.16.0", True, ONE, "error", 0),
    ("0.16.0", True, TWO, "error", 0),
]


def run(trl: str, undone: bool, processes: int | None) -> Result:
    return reproduce(
        "gather_for_metrics.py",
        {"transformers": TRANSFORMERS, "trl": trl},
        *(["--undo-fix"] if undone else []),
        processes=processes,
    )


@pytest.mark.parametrize(("trl", "undone", "processes", "outcome", "tokens"), RUNS)
def test_count_of_tokens(trl: str, undone: bool, processes: int | None, outcome: str, tokens: int | None) -> None:
    result = run(trl, undone, processes)
    assert (result.outcome, result.detail["tokens"]) == (outcome, tokens)
    assert result.detail["distributed_type"] == ("NO" if processes is PLAIN else "MULTI_CPU")
    if outcome == "error":
        assert (result.exception, result.message) == ("TypeError", "'int' object is not iterable")
        assert "trl/trainer/sft_trainer.py::compute_loss" in result.frames
        assert "accelerate/utils/operations.py::_gpu_gather_object" in result.frames


@pytest.mark.parametrize(("trl", "undone", "processes", "outcome", "tokens"), RUNS)
def test_count_of_tokens_as_the_matrix_has_it(
    check: Callable[[str], set[str]],
    diagnose: Callable[[Result, str], set[str]],
    described: Callable[..., str],
    trl: str,
    undone: bool,
    processes: int | None,
    outcome: str,
    tokens: int | None,
) -> None:
    result = run(trl, undone, processes)
    version, source = ("0.16.0.dev0", {"kind": "vcs", "commit": BAD_COMMIT}) if undone else (trl, "index")
    environment = described(
        {"transformers": TRANSFORMERS, "trl": version},
        sources={"trl": source},
        workload={"task": "sft", "launcher": "torchrun" if processes else "python", "processes": processes or 1},
    )
    assert check(environment) == ({GATHER} if result.outcome == "error" else set())
    if result.outcome == "error":
        assert diagnose(result, environment) == {GATHER}
