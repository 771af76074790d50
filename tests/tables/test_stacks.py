"""Recorded combinations: the table as it is compiled, and what ``compat suggest --list`` prints of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from compat.tables.stacks import Stack, open_stacks
from scripts.pack_facts import stacks

Run = Callable[..., "subprocess.CompletedProcess[str]"]
HEAD = "task,stack,gpu,driver,python,pins,packages,checked\n"


def test_the_table_is_compiled_row_by_row(tmp_path: Path) -> None:
    (tmp_path / "stacks.csv").write_text(f'{HEAD}grpo,"trl,vllm",H100,,3.12,trl==1.0 vllm==0.9,120,2026-11-22\n')
    (row,) = stacks(str(tmp_path))
    found = Stack(*row)
    assert found.to_json()["stack"] == ["trl", "vllm"]
    assert found.to_json()["pins"] == ["trl==1.0", "vllm==0.9"]
    assert stacks(str(tmp_path / "elsewhere")) == ()


def test_every_recorded_combination_pins_what_it_is_named_by() -> None:
    for each in open_stacks():
        pinned = {pin.partition("==")[0] for pin in each.pins.split()}
        assert {*each.stack.split(",")} <= pinned, each
        assert len(each.checked) == len("2026-11-22")


def test_what_is_listed_is_what_was_asked_for(compat: Run) -> None:
    done = compat("suggest", "--list", "--gpu", "T4:2", "--format", "json")
    found = json.loads(done.stdout)["stacks"]
    assert done.returncode == 0
    assert {each["gpu"] for each in found} == {"T4"}
    nothing = compat("suggest", "--list", "--task", "grpo", "--with", "deepspeed")
    assert (nothing.returncode, nothing.stdout.partition(";")[0]) == (1, "No tested combination matches")
