"""The kinds of tasks that conditions name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from compat.formats.described import parse_described
from compat.rules.evaluate import verdict_of
from compat.rules.facts import Facts
from compat.rules.loader import rule_of
from compat.rules.rule import KINDS, TRAINING, kinds_of
from compat.rules.unknown import OTHER
from compat.workload.trainers import TASKS
from compat.workload.vocabulary import VOCABULARY


def verdict(
    task: str | None, when: list[str], unless: list[str] | None = None, features: Sequence[str] = (), absent: Sequence[str] = ()
) -> str:
    table: dict[str, Any] = {
        "id": "a-rule", "title": "t", "severity": "error", "effect": "crash", "confidence": "reported", "why": "w",
        "evidence": ["https://example.org"], "packages": {"peft": "*"}, "when": {"task": when},
        "unless": [{"task": unless}] if unless else [], "fix": [{"upgrade": {"peft": ">=1"}}],
        "example": [{"hit": {"packages": {"peft": "0.1.0"}}}, {"clear": {"packages": {}}}],
    }  # fmt: skip
    workload = {"task": task, "features": [*features], "features_absent": [*absent]} if task else {}
    environment = {"distributions": [{"name": "peft", "version": "0.12.0"}], "workload": workload}
    return verdict_of(rule_of(table), Facts(parse_described(environment, "x")[0])).word


@pytest.mark.parametrize("task", sorted({*TASKS.values(), *VOCABULARY["task"]}))
def test_every_task_trains_or_is_one_of_five_others(task: str) -> None:
    assert (TRAINING in kinds_of(task)) is (task not in ("inference", "serve", "import", "install", "build"))


@pytest.mark.parametrize(
    ("task", "kinds"),
    [
        ("train", "training offline-training"),
        ("sft", "training offline-training llm-training"),
        ("simpo", "training offline-training llm-training preference-training"),
        ("grpo", "training online-training llm-training"),
        ("of-a-trainer-of-tomorrow", "training online-training llm-training"),
        ("serve", ""),
    ],
)
def test_the_kinds_of_a_task(task: str, kinds: str) -> None:
    assert kinds_of(task) == set(kinds.split())


def test_a_kind_has_the_kinds_that_its_tasks_share() -> None:
    every = {*TASKS.values(), *VOCABULARY["task"]}
    for kind in KINDS:
        members = [kinds_of(task) for task in every if kind in kinds_of(task)]
        assert kinds_of(kind) == frozenset.intersection(*members), kind
    assert kinds_of(OTHER) == frozenset()


def test_a_condition_names_a_kind() -> None:
    assert [verdict(task, ["training"]) for task in ("prm", "minillm", "serve", None)] == ["hit", "hit", "clear", "possible"]
    assert verdict("kto", ["training"], ["offline-training"]) == "clear"
    assert verdict("grpo", ["training"], ["offline-training"]) == "hit"
    assert verdict(None, ["sft"], ["offline-training"]) == "clear"


@pytest.mark.parametrize(
    ("features", "absent", "exempt", "expected"),
    [
        (["vllm"], ["unsloth"], ["serve", "import"], "clear"),
        (["vllm"], ["unsloth"], ["import"], "hit"),  # a rule about a server is about vLLM in a script, too
        (["vllm", "unsloth"], [], ["serve"], "hit"),  # unsloth loads the model before vLLM does
        (["vllm"], [], ["serve"], "clear"),  # unsloth is not installed
        ([], ["vllm"], ["serve"], "hit"),
        ([], [], ["serve"], "hit"),
    ],
)
def test_a_script_that_generates_with_vllm_is_exempt_like_a_server(
    features: list[str], absent: list[str], exempt: list[str], expected: str
) -> None:
    assert verdict("inference", ["inference"], exempt, features, absent) == expected
    assert verdict("sft", ["sft"], exempt, features, absent) == "hit"
