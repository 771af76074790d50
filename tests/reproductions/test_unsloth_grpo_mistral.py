"""Unsloth's memory-efficient GRPO loss met a Mistral forward that did not know of it yet."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from environments import Result, reproduce

pytestmark = pytest.mark.reproduction

MISTRAL = "unsloth-grpo-mistral-logits"
HIDDEN, VOCABULARY = 48, 320  # of the program's model
LOSS = -0.5117329  # the same sum, whichever way it is computed

# unsloth, unsloth_zoo, outcome, how wide the forward's last return value is
RUNS = [
    ("2025.2.12", "2025.2.6", "ok", VOCABULARY),  # the loss before: made of logits
    ("2025.2.13", "2025.2.7", "error", VOCABULARY),
    ("2025.2.14", "2025.2.7", "error", VOCABULARY),
    ("2025.2.15", "2025.2.7", "error", VOCABULARY),
    ("2025.2.15", "2025.3.4", "error", VOCABULARY),  # a newer unsloth_zoo alone does not fix it
    ("2025.3.1", "2025.3.1", "ok", HIDDEN),
    ("2025.3.1", "2025.2.7", "ok", HIDDEN),  # and is not needed
]


def run(unsloth: str, zoo: str) -> Result:
    # unsloth_zoo 2025.3.4 imports trl
    return reproduce(
        "unsloth_grpo_mistral.py", {"transformers": "4.49.0", "trl": "0.15.2", "unsloth": unsloth, "unsloth-zoo": zoo}
    )


@pytest.mark.parametrize(("unsloth", "zoo", "outcome", "returned"), RUNS)
def test_loss(unsloth: str, zoo: str, outcome: str, returned: int) -> None:
    result = run(unsloth, zoo)
    assert (result.outcome, result.detail["returned"]) == (outcome, returned)
    if outcome == "ok":
        assert result.detail["loss"] == pytest.approx(LOSS, rel=1e-3)
    else:
        assert result.exception == "TorchRuntimeError"
        message = rf"a and b must have same reduction dim, but got \[s\d+, {VOCABULARY}\] X \[{HIDDEN}, {VOCABULARY}\]"
        assert re.search(message, str(result.message))


@pytest.mark.parametrize(("unsloth", "zoo", "outcome", "returned"), RUNS)
def test_loss_as_the_matrix_has_it(
    check: Callable[[str], set[str]],
    diagnose: Callable[[Result, str], set[str]],
    described: Callable[..., str],
    unsloth: str,
    zoo: str,
    outcome: str,
    returned: int,
) -> None:
    result = run(unsloth, zoo)
    environment = described(
        {"unsloth": unsloth, "unsloth-zoo": zoo},
        sources={"unsloth": "index"},
        workload={"task": "grpo", "model": "mistral"},
    )
    assert check(environment) == ({MISTRAL} if result.outcome == "error" else set())
    if result.outcome == "error":
        assert diagnose(result, environment) == {MISTRAL}
