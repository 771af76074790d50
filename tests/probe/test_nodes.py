"""Collectives between nodes: several calls on one machine, each as one node would make it, meeting through torchrun."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compat.errors import InputError
from compat.probe.request import ProbeResult
from compat.probe.session import Meeting, _judged, meeting_at, probe_nodes
from compat.probe.worker import Ended
from tests.examples import slow
from tests.probe.conftest import FAULTS, needs

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def met(tmp_path: Path, count: int, seconds: int = 240) -> list[dict[str, dict[str, str]]]:
    """What each of ``count`` nodes wrote of its probes."""
    needs("torch")
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    where = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "compat", "facts", "--output", str(tmp_path), "--probe", "--rendezvous", where,
               "--nodes", str(count), "--timeout", str(seconds)]  # fmt: skip
    nodes = [subprocess.Popen(command, env={**variables, "SLURMD_NODENAME": f"n{number}"}) for number in range(count)]
    assert [each.wait(300) for each in nodes] == [0] * count
    files = [json.loads((tmp_path / f"n{number}.json").read_text(encoding="utf-8")) for number in range(count)]
    return [{each["probe"]: each for each in file["node"]["probes"]} for file in files]


@slow
def test_three_nodes_meet_and_are_probed(tmp_path: Path) -> None:
    for probes in met(tmp_path, 3):
        assert probes["nodes/names"]["status"] == "passed"
        assert probes["nodes/collectives"] == {
            "probe": "nodes/collectives", "device": "cpu", "status": "passed", "why": "gloo, 3 nodes, 3 processes",
        }  # fmt: skip
        assert probes["matmul/fp32"]["status"] == "passed"


def test_wrong_numbers_of_one_side_are_named_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("torch")
    monkeypatch.setenv("COMPAT_TEST_FAULT", "rank-other-data")  # breaks the second rank
    monkeypatch.setenv("PYTHONPATH", str(FAULTS))
    meeting = Meeting("127.0.0.1", free_port(), 2, 60.0)
    with ThreadPoolExecutor(2) as pool:
        sides = [pool.submit(probe_nodes, sys.executable, meeting, 0) for _ in range(2)]
    for side in sides:
        names, collectives = side.result()
        assert (names.status, collectives.status) == ("passed", "failed")
        assert "element 100 is 530984155404, not 530984155403" in collectives.why


def test_a_side_that_does_not_come_is_named_by_the_other() -> None:
    needs("torch")
    (result,) = probe_nodes(sys.executable, Meeting("127.0.0.1", free_port(), 2, 4.0), 0)
    assert (result.probe, result.status) == ("nodes/collectives", "failed")
    assert "the 2 nodes did not meet at 127.0.0.1:" in result.why
    assert "within 4 s" in result.why


def test_a_place_whose_name_does_not_resolve() -> None:
    (result,) = probe_nodes(sys.executable, Meeting("no-such-node.invalid", 29400, 2, 8.0), 0)
    assert result.status == "failed"
    assert "no-such-node.invalid, where the nodes meet, does not resolve" in result.why


@pytest.mark.parametrize(
    ("text", "nodes"),
    [("node1", "2"), (":1", "2"), ("n:0", "2"), ("n:70000", "2"), ("n:1", None), ("n:1", "1"), ("n:1", "two")],
)
def test_a_meeting_place_that_is_none(text: str, nodes: str | None) -> None:
    with pytest.raises(InputError, match="--rendezvous"):
        meeting_at(text, nodes, 10.0)


def test_an_interpreter_that_cannot_be_started() -> None:
    (result,) = probe_nodes("/no/such/python", Meeting("127.0.0.1", free_port(), 2, 4.0), 0)
    assert isinstance(result, ProbeResult)
    assert result.status == "could-not-run"


def test_a_process_that_was_killed_is_the_cause() -> None:
    words = ("  rank      : 0 (local_rank: 0)", "  exitcode  : -9 (pid: 25787)  (SIGKILL)", "======")
    (result,) = _judged([], Ended(1, False, 9.0, words), Meeting("n1", 29400, 2, 30.0), 1, "cpu", 9.0)
    assert (result.status, result.why) == ("failed", "a process of this node ended by SIGKILL while it joined the others")
