"""What ``compat fix`` shows while it works: on a terminal what is opened and proven so far, elsewhere nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.end_to_end.fixing import JOB, LINES, PACKAGES, started
from tests.index.server import IndexServer

pytest.importorskip("clingo")
pty = pytest.importorskip("pty")
TOLD = re.compile(r"(\d+) packages read; any plan costs at least (?:[^\r]*?as much as (\d+) changes)?")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "requirements.txt").write_text(LINES)
    return tmp_path


def on_a_terminal(folder: Path, url: str) -> tuple[str, str]:
    """What goes to standard output, and what a terminal gets as standard error."""
    reader, writer = pty.openpty()
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", "COLUMNS": "70"}
    command = [sys.executable, "-m", "compat", "fix", "requirements.txt", *JOB, "--format", "json", "--index-url", url]
    with subprocess.Popen(command, cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=writer) as run:
        os.close(writer)
        shown = b""
        while part := _read(reader):
            shown += part
        assert run.stdout is not None
        out = run.stdout.read().decode()
    os.close(reader)
    assert run.returncode == 0, shown
    return out, shown.decode()


def _read(reader: int) -> bytes:
    try:
        return os.read(reader, 4096)
    except OSError:  # so Linux says that the other side is closed
        return b""


def test_a_terminal_shows_what_is_opened_and_proven(folder: Path) -> None:
    with IndexServer(PACKAGES) as server:
        out, shown = on_a_terminal(folder, server.url)
    cost = json.loads(out)["plan"]["cost"]
    told = [(int(opened), int(changed or 0)) for opened, changed in TOLD.findall(shown)]
    assert told == sorted(told)
    assert len({opened for opened, _ in told}) > 1
    assert cost["changed"] == 2
    assert told[-1][1] == 4  # transformers and tokenizers, each to a release of half a year later
    assert {opened for opened, _ in told} <= set(range(len(PACKAGES) + 1))
    assert all(len(line) < 70 for line in shown.split("\r\033[K"))
    assert shown.endswith("\r\033[K"), "the line is left clear"


def test_a_pipe_gets_none_of_it(folder: Path) -> None:
    with IndexServer(PACKAGES) as server:
        out, err = started(folder, server.url).communicate(timeout=300)
    assert "tokenizers" in out
    assert err == ""


def test_who_interrupts_it_is_told_what_is_proven(folder: Path) -> None:
    with IndexServer(PACKAGES, faults={"tokenizers": "slow"}, seconds=20) as server:
        run = started(folder, server.url)
        until = time.monotonic() + 120
        while not any("tokenizers" in each for each in map(str, server.requests)) and time.monotonic() < until:
            time.sleep(0.02)
        os.killpg(run.pid, signal.SIGINT)
        out, err = run.communicate(timeout=120)
    assert (run.returncode, out) == (130, "")
    assert re.fullmatch(r"(compat: interrupted: \d packages read.*\n)?", err)  # nothing is said before anything was read
