"""``make fixes CASES=cases.jsonl``: plan a fix for every described real environment that broke; one table (uses the index).

Each case is a line of JSON as for ``make peers``, with its recorded fix (``fix``: tables of ``kind``, ``package``, ``spec``). A
plan *holds* if ``compat check`` finds no error in the resulting environment and uv accepts its releases; it *agrees*
if it moves a package of a recorded fix to a release that the fix allows. Cases whose recorded fix moves no package, and
those without an error finding, are counted and not compared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from packaging.specifiers import SpecifierSet

from compat.model import normalized

COMPAT = str(Path(sys.executable).with_name("compat"))
_MOVING = ("upgrade", "downgrade", "pin", "source-install", "uninstall")
_PYTHON = "3.11"
"""Where a report does not say."""


def main() -> int:
    """Print the outcome of every case and the totals; returns 1 if a plan does not hold."""
    path = Path(os.environ.get("CASES") or "cases.jsonl")
    if not path.is_file():
        print(f"{path}: expected a file of cases (CASES=…)", file=sys.stderr)
        return 2
    ends: Counter[str] = Counter()
    seconds = []
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if case.get("expect") != "flag":
            continue
        started = time.perf_counter()
        end = outcome(case)
        ends[end] += 1
        if end != "no error finding":
            seconds.append(time.perf_counter() - started)
            print(f"{case['id']:32}{end}", flush=True)
    for end, count in ends.most_common():
        print(f"{count:5}  {end}")
    if seconds:
        print(f"median {median(seconds):.1f} s, slowest {max(seconds):.1f} s a case")
    return int(ends["plan does not hold"] > 0)


def outcome(case: dict[str, Any]) -> str:
    """Return the outcome of ``compat fix`` for a case."""
    environment = {"python": _PYTHON, "os": "linux", **{key: value for key, value in case["environment"].items() if value}}
    report = asked("fix", environment, "--brief")
    if report is None:
        return "undecided"
    if not any(each["severity"] == "error" for each in report["findings"]):
        return "no error finding"
    plan = report["plan"]
    if not plan["changes"]:
        return "no release fixes it" if plan["left"] else "no plan"
    after = asked("check", planned(environment, plan["changes"]))
    errors = [each for each in (after or {"findings": [{"severity": "error", "verdict": "hit"}]})["findings"]
              if each["severity"] == "error" and each["verdict"] == "hit"]  # fmt: skip
    if len(errors) > len(plan["left"]) or plan["verified"]["uv"] is not True:
        return "plan does not hold"
    fixes = [each for each in case.get("fix", ()) if each.get("kind") in _MOVING and each.get("package")]
    if not fixes:
        return "plan holds, recorded fix moves no package"
    return (
        "plan holds and agrees"
        if any(agrees(plan["changes"], each) for each in fixes)
        else "plan holds, another fix is recorded"
    )


def asked(command: str, environment: dict[str, Any], *words: str) -> dict[str, Any] | None:
    """Return the report of a command about an environment; ``None`` without one."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "environment.json")
        file.write_text(json.dumps(environment), encoding="utf-8")
        line = [COMPAT, command, "--environment", str(file), "--config", "none", "--format", "json", *words]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.stdout else None


def planned(environment: dict[str, Any], changes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the environment after a plan."""
    moved = {each["name"] for each in changes}
    kept = [each for each in environment.get("distributions", ()) if normalized(each["name"]) not in moved]
    new = [{"name": each["name"], "version": each["to"], "source": dict(_source(each))} for each in changes if each["to"]]
    return {**environment, "distributions": [*kept, *new]}


def _source(change: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "kind", change["source"]
    yield from ((key, change[key]) for key in ("url", "commit", "build") if key in change)


def agrees(changes: list[dict[str, Any]], fix: dict[str, Any]) -> bool:
    """Return whether a change moves the package of a recorded fix to a release that the fix allows."""
    name = normalized(fix["package"])
    for each in changes:
        if each["name"] == name:
            if each["to"] is None or fix["kind"] == "uninstall":
                return each["to"] is None and fix["kind"] == "uninstall"
            return SpecifierSet(fix.get("spec") or "").contains(each["to"], prereleases=True)
    return False


if __name__ == "__main__":
    sys.exit(main())
