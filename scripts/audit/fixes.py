"""``python -m scripts.audit.fixes [RULE…] [--again]``: where the fixes of rules lead.

Each fix that moves packages is resolved with ``uv pip compile`` for the first example that the rule hits, with the other
packages of the example pinned, on the first Python that has wheels for all of them; the whole result is judged by all rules.
Rows are kept in ``matrix/fixes.csv``: a fix that is there already is not resolved again. It may be stopped and started again.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from compat.formats.described import parse_described
from compat.model import Distribution, Environment, Source, normalized
from compat.records import replace
from compat.rules.compiled import Matrix, in_memory
from compat.rules.evaluate import judge
from compat.rules.loader import load_folder
from compat.rules.rule import FixTemplate, Rule
from scripts.audit.evidence import ROOT

FILE = ROOT / "matrix" / "fixes.csv"
PYTHONS = ("3.11", "3.10", "3.12", "3.9", "3.13", "3.8")
LEADS, FINE, ALONE, IMPOSSIBLE = "leads into", "fine", "fine without the example's other pins", "cannot be resolved"
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)")


@dataclass(frozen=True)
class Followed:
    """One fix, what came of it, and the rules of severity error that hold in the result."""

    rule: str
    fix: str
    example: str
    python: str
    result: str
    seen: str
    date: str


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.audit.fixes", description=__doc__)
    parser.add_argument("rules", nargs="*", metavar="RULE", help="only these (default: all)")
    parser.add_argument("--again", action="store_true", help="resolve fixes again that have a row already")
    words = parser.parse_args(arguments)
    rules = load_folder(str(ROOT / "matrix" / "rules"))
    matrix = in_memory(rules, {})
    known = {(row.rule, row.fix, row.example): row for row in _read()}
    rows: list[Followed] = []
    for rule in rules:
        for fix, environment in _moving(rule):
            key = rule.id, _fix(fix), _pins(environment)
            wanted = not words.rules or rule.id in words.rules
            if key in known and not (wanted and words.again):
                rows.append(known[key])
            elif wanted:
                rows.append(followed(rule, fix, environment, matrix))
                print(f"{rule.id}: {_fix(fix)}: {rows[-1].result} {rows[-1].seen}"[:200], flush=True)
                _write([*rows, *(row for other, row in known.items() if row not in rows)])
    if not words.rules:
        _write(rows)
    return int(any(row.result == LEADS for row in rows))


def followed(rule: Rule, fix: FixTemplate, environment: Environment, matrix: Matrix) -> Followed:
    """What becomes of the example's environment when the fix is installed."""
    moved = {normalized(name): spec for name, spec in fix.packages}
    others = {d.name: d.version for d in environment.distributions or () if d.name not in moved and d.version}
    pins = [f"{name}{spec}" for name, spec in fix.packages]
    stated = re.match(r"\d+\.\d+", environment.python or "")
    pythons = (stated[0],) if stated else PYTHONS
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    why = ""
    for result, wanted in ((FINE, [*pins, *(f"{n}=={v}" for n, v in others.items())]), (ALONE, [*pins, *others])):
        for python in pythons:
            resolved, said = _resolved(wanted, python, tuple(name + spec for name, spec in fix.along))
            why = why or said
            if resolved is None:
                continue
            after = _installed(environment, resolved, python)
            bad = [each for each in judge(after, matrix) if each.verdict == "hit" and each.severity == "error"]
            before = _without_fix(environment, python, matrix) if bad else set()
            new = [
                each.rule
                for each in bad
                if each.rule == rule.id or (each.rule not in before and moved.keys() & each.packages.keys())
            ]
            parts = rule.id, _fix(fix), _pins(environment), python
            return Followed(*parts, LEADS if new else result, ", ".join(new), today)
    return Followed(rule.id, _fix(fix), _pins(environment), "", IMPOSSIBLE, why, today)


def _without_fix(environment: Environment, python: str, matrix: Matrix) -> set[str]:
    """The rules that hold in the example as it is, with what its pins bring along today."""
    pins = [f"{d.name}=={d.version}" for d in environment.distributions or () if d.version]
    resolved, _ = _resolved(pins, python)
    before = environment if resolved is None else _installed(environment, resolved, python)
    return {each.rule for each in judge(before, matrix) if each.verdict == "hit"}


def _moving(rule: Rule) -> Iterator[tuple[FixTemplate, Environment]]:
    example = next((each for each in rule.examples if each.verdict == "hit"), None)
    if example is None:
        return
    environment, _ = parse_described(example.environment, "example")
    if environment.os not in (None, "linux"):
        return  # what is resolved is Linux
    for fix in rule.fixes:
        if fix.kind in ("upgrade", "downgrade", "pin"):
            yield fix, environment


def _resolved(wanted: list[str], python: str, along: tuple[str, ...] = ()) -> tuple[dict[str, str] | None, str]:
    """The pins that uv finds, or why there are none, in its words; ``along`` holds for what comes with them."""
    command = ["uv", "pip", "compile", "-", "--python-version", python, "--python-platform", "x86_64-manylinux_2_31",
               "--only-binary", ":all:", "--no-header", "--no-annotate", "--quiet", "--no-progress"]  # fmt: skip
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
        constraints.write("\n".join(along))
        constraints.flush()
        command += ["--constraints", constraints.name]
        done = subprocess.run(command, input="\n".join(wanted), capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        return None, " ".join(done.stderr.split())[:300]
    return {match[1]: match[2] for line in done.stdout.splitlines() if (match := _PIN.match(line))}, ""


def _installed(environment: Environment, resolved: dict[str, str], python: str) -> Environment:
    found = tuple(
        Distribution(name=normalized(name), version=version, source=Source("index")) for name, version in resolved.items()
    )
    return replace(environment, distributions=found, distributions_complete=True, python=environment.python or python)


def _fix(fix: FixTemplate) -> str:
    return f"{fix.kind} {', '.join(name + spec for name, spec in fix.packages)}"


def _pins(environment: Environment) -> str:
    return ", ".join(f"{d.name} {d.version}" for d in environment.distributions or ())


def _read() -> list[Followed]:
    if not FILE.exists():
        return []
    with FILE.open(encoding="utf-8", newline="") as file:
        return [Followed(**row) for row in csv.DictReader(file)]


def _write(rows: list[Followed]) -> None:
    made = Path(f"{FILE}.new")
    with made.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, [each.name for each in fields(Followed)], lineterminator="\n")
        table.writeheader()
        table.writerows(map(asdict, rows))
    made.replace(FILE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
