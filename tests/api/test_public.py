"""``import compat``: the commands as functions."""

from __future__ import annotations

import doctest
import json
from pathlib import Path

import pytest

import compat
from compat.api import machine, public
from compat.errors import InputError
from compat.machine.hardware import Hardware
from compat.model import Accelerator, Distribution, Environment
from tests.conftest import ROOT
from tests.index.server import IndexServer

FOUNDING = {"distributions": [{"name": "trl", "version": "0.14.0"}, {"name": "vllm", "version": "0.6.6.post1"}]}


def test_the_documented_examples_run() -> None:
    results = doctest.testmod(public, extraglobs={"compat": compat})
    assert results.attempted >= 2
    assert results.failed == 0
    results = doctest.testfile(str(ROOT / "docs/api.md"), module_relative=False)
    assert results.attempted >= 4
    assert results.failed == 0


def test_a_mapping_an_environment_and_a_file_give_one_answer(tmp_path: Path) -> None:
    file = tmp_path / "environment.json"
    file.write_text(json.dumps({"schema": "compat/environment/1", **FOUNDING}))
    environment = Environment(distributions=(Distribution("trl", "0.14.0"), Distribution("vllm", "0.6.6.post1")))
    reports = [compat.check(subject, gpu="A100:2", task="grpo", features=["vllm"]) for subject in (FOUNDING, environment, file)]
    rules = [[finding.rule for finding in report.findings] for report in reports]
    assert rules[0] == rules[1] == rules[2]
    assert "trl-grpo-vllm-second-device" in rules[0]
    assert [report.exit for report in reports] == [1, 1, 1]


def test_the_command_that_is_about_to_run_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("raise SystemExit('never run')\n")
    environment = Environment(accelerators=(Accelerator(name="A100"),) * 2)
    report = compat.check(environment, command=["torchrun", "--nproc-per-node", "2", "train.py"])
    assert report.environment.workload is not None
    assert report.environment.workload.launcher == "torchrun"


def test_no_note_asks_for_a_gpu_that_was_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "read_hardware", lambda variables: Hardware(notes=("No GPU was found; pass --gpu.",)))
    assert "No GPU was found; pass --gpu." in compat.doctor().notes
    assert "No GPU was found; pass --gpu." not in compat.doctor(gpu="A100:2").notes


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(InputError, match="no-such"):
        compat.check("no-such.lock")
    with pytest.raises(InputError, match="environment"):
        compat.check({"python": 3.11})
    with pytest.raises(TypeError, match="features"):
        compat.check(FOUNDING, features=[1.5])  # type: ignore[list-item]
    with pytest.raises(AttributeError, match="nonsense"):
        compat.nonsense  # noqa: B018


def test_an_option_that_is_not_taken_is_refused() -> None:
    calls = {"check": compat.check, "fix": compat.fix, "doctor": lambda _, **given: compat.doctor(**given)}
    calls["diagnose"] = lambda _, **given: compat.diagnose("ImportError: x", **given)
    for name, call in calls.items():
        with pytest.raises(TypeError, match=f"^{name}.*'gpus'; did you mean gpu"):
            call(FOUNDING, gpus="A100:2")  # type: ignore[operator]
        with pytest.raises(InputError, match="--launcher: 'torchrum' is not one of"):
            call(FOUNDING, launcher="torchrum")  # type: ignore[operator]
        with pytest.raises(TypeError, match="unexpected keyword argument 'format'"):
            call(FOUNDING, format="json")  # type: ignore[operator]
        with pytest.raises(TypeError, match="gpu: expected NAME"):
            call(FOUNDING, gpu=True)  # type: ignore[operator]
    with pytest.raises(TypeError, match="all: expected True or False"):
        compat.check(FOUNDING, all="yes")
    with pytest.raises(TypeError, match="unexpected keyword argument 'write'"):
        compat.fix(FOUNDING, write=True)
    assert compat.check(FOUNDING, processes=2, gpu=None, all=True).exit in (0, 1)


def test_an_error_is_judged_by_the_environment_that_is_given() -> None:
    error = "ImportError: cannot import name 'AutoModelForVision2Seq' from 'transformers'"
    installed = {"distributions": [{"name": "verl", "version": "0.7.0"}, {"name": "transformers", "version": "5.0.0"}]}
    report = compat.diagnose(error, environment=installed)
    assert [(each.rule, each.verdict) for each in report.findings] == [("verl-vision2seq-transformers-5", "hit")]
    assert report.exit == 1
    assert {each.verdict for each in compat.diagnose(error).findings} == {"possible"}
    with pytest.raises(InputError, match="empty"):
        compat.diagnose(" ")


def test_a_plan_for_a_file_and_for_a_described_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("clingo")
    monkeypatch.setenv("COMPAT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "requirements.txt"
    file.write_text("trl==0.14.0\nvllm==0.6.6.post1\n")
    packages = {
        "trl": {version: {"requires_python": ">=3.9"} for version in ("0.14.0", "0.15.0")},
        "vllm": {version: {"requires_python": ">=3.9"} for version in ("0.6.6.post1", "0.7.2")},
    }
    with IndexServer(packages) as server:
        job = {"gpu": "A100:2", "task": "grpo", "features": ["vllm"], "python_version": "3.11", "index_url": server.url}
        plans = [compat.fix(subject, **job) for subject in (file, FOUNDING)]  # type: ignore[arg-type]
    assert [[(each.name, each.after) for each in plan.changes] for plan in plans] == [
        [("trl", "0.15.0"), ("vllm", "0.7.2")]
    ] * 2
    assert all(plan.stands for plan in plans)
    assert file.read_text() == "trl==0.14.0\nvllm==0.6.6.post1\n"


def test_what_is_planned_wrongly_raises() -> None:
    with pytest.raises(InputError, match="no-such"):
        compat.fix("no-such.txt")
    with pytest.raises(InputError, match="time-limit"):
        compat.fix(FOUNDING, time_limit="long")
