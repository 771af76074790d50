"""Each row of rows/*.toml: its program fails with the bad releases and with no good ones, and its traceback is recognised.

What the matrix says about the same releases is held against the rows by test_reproduced_rules.py, which installs nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest
from rows import Row, environment_of, rows, shows, traceback_of

ROWS = rows()
NAMES = [row.rule for row in ROWS]
Run = Callable[..., "subprocess.CompletedProcess[str]"]
pytestmark = [
    pytest.mark.reproduction,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the oldest compiled releases have wheels for 3.11"),
]


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_the_program_fails_with_the_bad_releases_only(row: Row) -> None:
    traceback = traceback_of(row.program, row.bad)
    assert shows(row, traceback), traceback or "nothing was raised"
    for pins in row.good:
        assert traceback_of(row.program, pins) == "", pins


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_the_traceback_is_recognised(compat: Run, described: Callable[..., str], row: Row) -> None:
    if row.silent:
        pytest.skip("nothing is raised by the packages themselves")
    environment = described(**environment_of(row, row.bad))
    words = ("diagnose", "-", "--environment", environment, "--format", "json")
    assert row.rule in found(compat(*words, stdin=traceback_of(row.program, row.bad)))


def found(done: subprocess.CompletedProcess[str]) -> set[str]:
    """The rules that hold."""
    assert done.returncode in (0, 1), done.stderr
    return {finding["rule"] for finding in json.loads(done.stdout)["findings"] if finding["verdict"] == "hit"}
