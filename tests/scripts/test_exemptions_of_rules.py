"""Exemptions of rules that no example shows."""

from __future__ import annotations

from typing import Any

import pytest

from compat.rules.loader import rule_of
from compat.rules.rule import Rule, in_words
from scripts.audit.exemptions import is_common, main, unshown

_HIT, _CLEAR = {"packages": {"trl": "0.17.0"}, "task": "dpo"}, {"packages": {"trl": "0.18.0"}, "task": "dpo"}


def exempting(*unless: dict[str, Any], clear: tuple[dict[str, Any], ...] = ()) -> Rule:
    return rule_of({
        "id": "r", "title": "t", "severity": "error", "effect": "crash", "confidence": "reported", "why": "w",
        "packages": {"trl": "<0.18"}, "unless": list(unless), "fix": [{"config": "c"}], "evidence": ["https://example.org"],
        "example": [{"hit": _HIT}, *({"clear": each} for each in (_CLEAR, *clear))],
    })  # fmt: skip


def test_an_exemption_is_shown_by_an_example_that_it_clears() -> None:
    with_unsloth = {"packages": {"trl": "0.17.0", "unsloth": "2025.3.19"}, "task": "dpo", "features": ["unsloth"]}
    unless = ({"features": ["unsloth"]}, {"packages": {"axolotl": "*"}})
    assert [list(map(in_words, each)) for each in unshown(exempting(*unless))] == [["unsloth"], ["axolotl present"]]
    assert [list(map(in_words, each)) for each in unshown(exempting(*unless, clear=(with_unsloth,)))] == [["axolotl present"]]


@pytest.mark.parametrize(("exemption", "common"), [
    ({"task": ["serve"]}, True), ({"features": ["own-trainer"]}, True), ({"features": ["unsloth"]}, False),
    ({"task": ["sft"], "packages": {"trl": ">=0.17"}}, False),
])  # fmt: skip
def test_tasks_and_own_trainers_are_common(exemption: dict[str, Any], common: bool) -> None:
    assert is_common(exempting(exemption).unless[0]) is common


def test_the_exemptions_of_one_rule_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trl-sft-end-of-text-masked"]) == 0
    printed = capsys.readouterr().out
    assert "trl-sft-end-of-text-masked: unsloth" in printed
    assert "own-trainer" not in printed
