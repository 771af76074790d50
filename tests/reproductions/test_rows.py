"""Each row of rows/*.toml: its program fails with the bad releases and with no good ones, and the matrix says the same."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping

import pytest
from rows import Row, releases, rows, shows, traceback_of

ROWS = rows()
NAMES = [row.rule for row in ROWS]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.reproduction
@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_the_program_fails_with_the_bad_releases_only(row: Row) -> None:
    traceback = traceback_of(row.program, row.bad)
    assert shows(row, traceback), traceback or "nothing was raised"
    for pins in row.good:
        assert traceback_of(row.program, pins) == "", pins


@pytest.mark.reproduction
@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_the_traceback_is_recognised(compat: Run, described: Callable[..., str], row: Row) -> None:
    if row.silent:
        pytest.skip("nothing is raised by the packages themselves")
    environment = described(releases(row.bad), workload=dict(row.workload))
    words = ("diagnose", "-", "--environment", environment, "--format", "json")
    assert row.rule in found(compat(*words, stdin=traceback_of(row.program, row.bad)))


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_the_matrix_says_the_same(compat: Run, described: Callable[..., str], row: Row) -> None:
    def check(pins: Mapping[str, str]) -> set[str]:
        environment = described(releases(pins), workload=dict(row.workload))
        return found(compat("check", "--environment", environment, "--format", "json"))

    assert row.rule in check(row.bad)
    for pins in row.good:
        assert row.rule not in check(pins), pins


def found(done: subprocess.CompletedProcess[str]) -> set[str]:
    """The rules that hold."""
    assert done.returncode in (0, 1), done.stderr
    return {finding["rule"] for finding in json.loads(done.stdout)["findings"] if finding["verdict"] == "hit"}
