"""The tasks that ``--task`` knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.api.targets import _tasks
from compat.rules.rule import KINDS

tomllib = pytest.importorskip("tomllib", reason="Python 3.10 cannot read TOML")

RULES = Path(__file__).parents[2] / "matrix" / "rules"


def tasks_in(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from each if key == "task" and isinstance(each, list) else tasks_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from tasks_in(each)


def test_every_task_of_a_rule_can_be_given() -> None:
    used = {task for path in RULES.glob("*.toml") for task in tasks_in(tomllib.loads(path.read_text(encoding="utf-8")))}
    assert {"grpo", "serve", "training"} <= used <= {*_tasks(), *KINDS}
    assert KINDS.keys().isdisjoint(_tasks())
