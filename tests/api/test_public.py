"""``import compat``: the commands as functions."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import pytest

import compat
from compat.api import public
from compat.errors import InputError
from compat.model import Accelerator, Distribution, Environment

FOUNDING = {"distributions": [{"name": "trl", "version": "0.14.0"}, {"name": "vllm", "version": "0.7.1"}]}


def test_the_documented_examples_run() -> None:
    results = doctest.testmod(public)
    assert results.attempted >= 2
    assert results.failed == 0


def test_a_mapping_an_environment_and_a_file_give_one_answer(tmp_path: Path) -> None:
    file = tmp_path / "environment.json"
    file.write_text(json.dumps({"schema": "compat/environment/1", **FOUNDING}))
    environment = Environment(distributions=(Distribution("trl", "0.14.0"), Distribution("vllm", "0.7.1")))
    reports = [compat.check(subject, gpu="A100:2", task="grpo", features=["vllm"]) for subject in (FOUNDING, environment, file)]
    rules = [[finding.rule for finding in report.findings] for report in reports]
    assert rules[0] == rules[1] == rules[2]
    assert "trl-grpo-vllm-below-0-7-2" in rules[0]
    assert [report.exit for report in reports] == [1, 1, 1]


def test_the_command_that_is_about_to_run_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("raise SystemExit('never run')\n")
    environment = Environment(accelerators=(Accelerator(name="A100"),) * 2)
    report = compat.check(environment, command=["torchrun", "--nproc-per-node", "2", "train.py"])
    assert report.environment.workload is not None
    assert report.environment.workload.launcher == "torchrun"


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(InputError, match="no-such"):
        compat.check("no-such.lock")
    with pytest.raises(InputError, match="environment"):
        compat.check({"python": 3.11})
    with pytest.raises(TypeError, match="features"):
        compat.check(FOUNDING, features=[1])  # type: ignore[list-item]
    with pytest.raises(AttributeError, match="nonsense"):
        compat.nonsense  # noqa: B018
