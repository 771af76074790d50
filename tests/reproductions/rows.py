"""Bugs that a few lines of Python show: each row of rows/*.toml names a rule, the lines, bad releases and good ones.

    [[row]]
    rule = "peft-needs-clear-device-cache"
    program = "import peft"              Python source; raises with the releases in `bad`, ends normally with each of `good`
    bad = { peft = "0.17.1", accelerate = "0.31.0", transformers = "4.49.0" }
    good = [{ peft = "0.17.1", accelerate = "0.32.0", transformers = "4.49.0" }]
    error = "cannot import name 'clear_device_cache'"     a pattern that the last lines of the traceback of `bad` hold
    workload = { task = "sft" }          optional: what `compat check` is told besides the releases
    silent = true                        optional: the program shows it by an assertion of its own, so no traceback is diagnosed

Releases are installed without dependencies in front of the base (see environments.py); torch is that of the base.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environments import BASE, NoResultError, environment, variables

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent / "rows"
KEYS = {"rule", "program", "bad", "good", "error", "workload", "silent"}
_SEEN = "\nimport importlib.metadata as m, sys\nprint({n: m.version(n) for n in %r}, file=sys.stderr)\n"


@dataclass(frozen=True)
class Row:
    rule: str
    program: str
    bad: Mapping[str, str]
    good: tuple[Mapping[str, str], ...]
    error: str
    workload: Mapping[str, Any] = field(default_factory=dict)
    silent: bool = False


def rows() -> list[Row]:
    """Every row of every file; ``ValueError`` where one lacks something or pins torch."""
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        for number, table in enumerate(tomllib.loads(path.read_text(encoding="utf-8")).get("row", ()), 1):
            if set(table) - KEYS or not {"rule", "program", "bad", "good", "error"} <= set(table) or not table["good"]:
                raise ValueError(f"{path.name}: row {number}: expected rule, program, bad, good and error, not {sorted(table)}")
            row = Row(**{**table, "good": tuple(table["good"])})
            if any("torch" in pins for pins in (row.bad, *row.good)):
                raise ValueError(f"{path.name}: row {number}: torch is that of the base")
            found.append(row)
    return found


def environment_of(row: Row, pins: Mapping[str, str]) -> dict[str, Any]:
    """A described environment, complete: the exact releases of the base, these in their place, and what the row runs."""
    base = dict(pin.split("==") for pin in BASE if "==" in pin)
    distributions = [{"name": name, "version": version} for name, version in {**base, **pins}.items()]
    return {"distributions": distributions, "distributions_complete": True, "workload": dict(row.workload)}


def traceback_of(program: str, pins: Mapping[str, str]) -> str:
    """What a program that raised wrote to standard error, or nothing; run once for each environment."""
    return _traceback(program, tuple(pins.items()))


@functools.cache
def _traceback(program: str, pins: tuple[tuple[str, str], ...]) -> str:
    python, layers = environment(dict(pins))
    with tempfile.TemporaryDirectory(prefix="reproduction-") as folder:
        script = Path(folder) / "program.py"
        script.write_text(program, encoding="utf-8")
        given = variables(layers, folder)
        seen = subprocess.run(
            [str(python), "-c", _SEEN % [name for name, _ in pins]],
            cwd=folder, env=given, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if seen.returncode or seen.stderr.strip().splitlines()[-1] != str(dict(pins)):
            raise NoResultError(f"{dict(pins)} was asked for, but this was seen: {seen.stderr[-400:]}")
        done = subprocess.run(
            [str(python), str(script)], cwd=folder, env=given, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=300, check=False,
        )  # fmt: skip
    if done.returncode and "Traceback (most recent call last)" not in done.stderr:
        raise NoResultError(f"exit code {done.returncode} without a traceback\n{done.stderr[-4000:]}")
    return done.stderr if done.returncode else ""


def shows(row: Row, traceback: str) -> bool:
    """Whether the end of a traceback holds the row's error."""
    return re.search(row.error, "\n".join(traceback.rstrip().splitlines()[-20:])) is not None
