"""``make peers CASES=cases.jsonl``: compare ``compat`` with similar tools on described real environments; one table.

Each case is a line of JSON: the environment somebody had (``environment``, a described environment), what was at fault
(``bad``: distributions, and facts beginning with ``@``) and ``expect`` (``flag``, or ``clear`` for one that worked). A tool
gets the environment in the form it reads: installed distributions (names, versions and what these releases declare, in a
virtual environment or in front of its own packages), or a requirements file. A case counts as *named* where one line of what
the tool flags holds the distributions at fault, two of them where there are two or more, and as *alarm* where it flags one of
the distributions of an environment that worked. Reports list a part of what was installed, so what is missing is not counted,
for nobody. Every other tool asks the machine it runs on for its GPU, so ``compat`` has several lines: the packages
alone; the GPU, the driver and the job of the report as well; and with its open questions counted.

``SAMPLE=10`` takes every tenth case only.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.check import BENCH, OURS, TOOLS, prepare, venv

ROOT = Path(__file__).resolve().parent.parent
FACTS = ROOT / "matrix" / "facts"
_MARKS = ("error", "warning", "critical", "conflict", "incompatib", "mismatch", "requires", "has requirement", "❌", "⚠", "✗")
"""What a line holds that flags something."""
_LIMIT_S = 120


@dataclass(frozen=True)
class Case:
    """``faulty`` are the distributions at fault; empty if only the machine was at fault."""

    name: str
    environment: dict[str, Any]
    faulty: frozenset[str]
    works: bool

    @property
    def packages(self) -> list[tuple[str, str]]:
        return [(each["name"], each["version"]) for each in self.environment.get("distributions", ()) if each.get("version")]


def cases(path: Path, every: int) -> list[Case]:
    found = []
    for line in path.read_text(encoding="utf-8").splitlines()[::every]:
        case = json.loads(line)
        faulty = frozenset(name for name in case.get("bad", ()) if not name.startswith("@"))
        found.append(Case(case["id"], case["environment"], faulty, case["expect"] != "flag"))
    return found


def declared() -> dict[tuple[str, str], list[str]]:
    """Return the requirements of each tracked release."""
    versions: dict[str, list[str]] = {}
    with (FACTS / "releases.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            versions.setdefault(row["package"], []).append(row["version"])
    found: dict[tuple[str, str], list[str]] = {}
    with (FACTS / "requirements.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            known = versions[row["package"]]
            for run in row["releases"].split():
                first, _, last = run.partition("..")
                for version in known[known.index(first) : known.index(last or first) + 1]:
                    found.setdefault((row["package"], version), []).append(row["requirement"])
    return found


def install(case: Case, folder: Path, requirements: dict[tuple[str, str], list[str]]) -> None:
    """Write the metadata of a case's distributions as an installer would, without code."""
    for name, version in case.packages:
        place = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        place.mkdir(parents=True, exist_ok=True)
        asked = "".join(f"Requires-Dist: {each}\n" for each in requirements.get((name, version.partition("+")[0]), ()))
        (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{asked}", encoding="utf-8")
        (place / "INSTALLER").write_text("pip\n", encoding="utf-8")
        (place / "RECORD").write_text("", encoding="utf-8")


def printed(command: list[str], folder: Path | None = None, **variables: str) -> str:
    """Return a tool's output in a folder (one tool scans it recursively); empty if it times out."""
    environment = {**os.environ, **variables}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_LIMIT_S, env=environment, check=False, cwd=folder
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout + done.stderr


def flagged(text: str) -> list[str]:
    """Return the lines that flag something, in lower case."""
    lines = [line.lower().replace("_", "-") for line in text.splitlines() if "not installed" not in line]
    return [line for line in lines if any(mark in line for mark in _MARKS)]


def names_it(lines: list[str], faulty: frozenset[str]) -> bool:
    wanted = min(2, len(faulty))
    return bool(wanted) and any(sum(name in line for name in faulty) >= wanted for line in lines)


def names_any(lines: list[str], case: Case) -> bool:
    return any(name in line for line in lines for name, _ in case.packages)


def found_by_compat(case: Case, folder: Path, *, everything: bool, asked: bool) -> list[str]:
    """Return compat's findings, one line each with the affected distributions."""
    environment = dict(case.environment)
    if not everything:
        environment = {key: environment[key] for key in ("schema", "python", "os", "distributions") if key in environment}
    path = folder / "environment.json"
    path.write_text(json.dumps(environment), encoding="utf-8")
    report = json.loads(printed([str(OURS / "bin/compat"), "check", "--environment", str(path), "--format", "json"]))
    return [
        " ".join((*each["packages"], each["title"].lower()))
        for each in report["findings"]
        if each["severity"] != "info" and (asked or each["verdict"] == "hit")
    ]


def tools(folder: Path) -> dict[str, Callable[[Case], list[str]]]:
    """Return the available tools, by their names in the table."""
    uv = prepare()
    requirements = declared()
    clean = BENCH / "peers-environment"
    if not clean.exists():
        venv(clean, "--without-pip")

    def installed(case: Case, command: Callable[[Path], list[str]], name: str) -> list[str]:
        place = folder / name / case.name
        (place / "lib").mkdir(parents=True)
        packages = place / next(clean.glob("lib/python3*/site-packages")).relative_to(clean)
        subprocess.run(["cp", "-a", f"{clean}/.", str(place)], check=True)
        install(case, packages, requirements)
        return flagged(printed(command(place)))

    def listed(case: Case, tool: str) -> list[str]:
        path = folder / f"{case.name}-requirements.txt"
        path.write_text("".join(f"{name}=={version}\n" for name, version in case.packages), encoding="utf-8")
        home = folder / "home"
        home.mkdir(exist_ok=True)
        return flagged(printed([tool, "check", str(path)], HOME=str(home)))

    def in_front(case: Case, tool: str) -> list[str]:
        place = folder / "in-front" / case.name
        place.mkdir(parents=True)
        install(case, place, requirements)
        return flagged(printed([tool, "check"], place, PYTHONPATH=str(place)))

    def pip_check(case: Case) -> list[str]:
        return installed(case, lambda place: [str(TOOLS / "bin/pip"), "--python", str(place / "bin/python"), "check"], "pip")

    def uv_check(case: Case) -> list[str]:
        return installed(case, lambda place: [uv, "pip", "check", "--python", str(place)], "uv")

    found: dict[str, Callable[[Case], list[str]]] = {"pip check": pip_check, "uv pip check": uv_check}
    for name, run in (("env-doctor", in_front), ("env-doctor-pypi", listed)):
        tool = peer(name)
        if tool is not None:
            found[f"{name} check"] = partial(run, tool=tool)
    for name, everything, asked in (
        ("compat check, packages alone", False, False),
        ("compat check", True, False),
        ("compat check, with its questions", True, True),
    ):
        found[name] = partial(found_by_compat, folder=folder, everything=everything, asked=asked)
    return found


def peer(name: str) -> str | None:
    """Return the command of a tool, installing it if possible."""
    place = BENCH / name
    command = place / "bin" / name
    if not command.exists():
        venv(place)
        subprocess.run([place / "bin/pip", "install", "--quiet", name], check=False, capture_output=True)
    if not command.exists():
        print(f"{name} cannot be installed here; it is left out", file=sys.stderr)
        return None
    return str(command)


def main() -> int:
    """Print the table; returns 1 if another tool names more than compat from the same packages."""
    path = Path(os.environ.get("CASES", ROOT.parent / "shared" / "cases" / "cases.jsonl"))
    if not path.exists():
        print(f"{path}: no such file; CASES=cases.jsonl names the cases", file=sys.stderr)
        return 2
    chosen = cases(path, int(os.environ.get("SAMPLE", "1")))
    bad = [case for case in chosen if not case.works]
    print(f"{len(bad)} environments that failed, {len(chosen) - len(bad)} that worked\n")
    print("| tool | named | alarms where all was well |\n|---|---|---|")
    figures = {}
    with tempfile.TemporaryDirectory(prefix="compat-peers-") as name:
        for tool, run in tools(Path(name)).items():
            named = sum(names_it(run(case), case.faulty) for case in bad)
            alarms = sum(names_any(run(case), case) for case in chosen if case.works)
            figures[tool] = named
            print(f"| {tool} | {named} of {len(bad)} | {alarms} of {len(chosen) - len(bad)} |", flush=True)
    ours = figures["compat check, packages alone"]
    return int(any(named > ours for tool, named in figures.items() if not tool.startswith("compat")))


if __name__ == "__main__":
    sys.exit(main())
