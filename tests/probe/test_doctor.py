"""``compat doctor --probe``: what it asks of the probes, and what a failed one means for its report."""

from __future__ import annotations

import json

import pytest

from compat.api.commands import command_named
from compat.cli import doctor, parse
from compat.errors import InputError
from compat.model import Environment
from compat.probe import session
from compat.probe.request import COULD_NOT_RUN, FAILED, PASSED, ProbeReport, ProbeResult, Request, exit_code

WRONG = ProbeResult("matmul/bf16", "cpu", FAILED, "element [1, 2] is 3; exact arithmetic gives 4")
RIGHT = ProbeResult("matmul/bf16", "cpu", PASSED)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """What the probes were asked for; they find :data:`WRONG` where the trainer is sft, else :data:`RIGHT`."""
    requests: list[Request] = []

    def probe(request: Request, environment: Environment) -> ProbeReport:
        requests.append(request)
        if request.trainer == "dpo":
            raise session.NoTorch("no torch in python")
        results = (WRONG if request.trainer == "sft" else RIGHT,)
        return ProbeReport(results, request.python, {}, 1.0, exit_code(results, device_required=False))

    monkeypatch.setattr("compat.api.probe.probe", probe)
    return requests


def run(*words: str) -> int:
    return doctor.run(parse(command_named("doctor"), ("--probe", "--fail-on", "never", *words)))


def test_a_failed_probe_makes_the_exit_code_1(asked: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--task", "sft", "--launcher", "accelerate", "--format", "json") == 1
    document = json.loads(capsys.readouterr().out)
    assert document["exit"] == 1
    assert [(each["probe"], each["status"]) for each in document["probes"]] == [("matmul/bf16", FAILED)]
    assert [(each.trainer, each.launcher, each.device) for each in asked] == [("sft", "accelerate", "all")]


def test_the_probes_stand_below_the_findings(asked: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--task", "grpo", "--launcher", "deepspeed") == 0
    text = capsys.readouterr().out
    assert text.index("machine ") < text.index("✓ matmul")
    assert [(each.trainer, each.launcher) for each in asked] == [("grpo", None)]  # no launcher that we can start


def test_without_torch_the_findings_are_shown_all_the_same(asked: list[Request], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--task", "dpo", "--format", "json") == 0
    (result,) = json.loads(capsys.readouterr().out)["probes"]
    assert (result["status"], result["why"]) == (COULD_NOT_RUN, "no torch in python")


def test_another_machine_cannot_be_probed() -> None:
    with pytest.raises(InputError, match="it cannot be combined with --environment"):
        run("--environment", "x.json")
