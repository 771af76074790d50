"""``python -m scripts.audit.fixes [RULE…] [--again]``: where the fixes of rules lead.

Each fix that moves packages is resolved with ``uv pip compile`` for the first example that the rule hits, with the other
packages of the example pinned (where that cannot be had only those that the rule names, then none), on the first Python
that has wheels for all of them; the whole result is judged as ``compat check`` judges it. Rows are kept in
``matrix/fixes.csv``: a fix that is there already is not resolved again, and the row of a fix that no rule has any more is
dropped. It may be stopped and started again.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.version import Version

from compat.api.public import check
from compat.formats.described import parse_described
from compat.index import Index, Store, gather
from compat.model import Distribution, Environment, Finding, Source, normalized
from compat.records import replace
from compat.rules.facts import Facts
from compat.rules.loader import load_folder
from compat.rules.logic import conjunction, holds
from compat.rules.rule import FixTemplate, Rule
from scripts.audit.evidence import ROOT

FILE = ROOT / "matrix" / "fixes.csv"
PYTHONS = ("3.11", "3.10", "3.12", "3.9", "3.13", "3.8")
LEADS, FINE, ALONE, IMPOSSIBLE = "leads into", "fine", "fine without the example's other pins", "cannot be resolved"
_AT_ONCE = 6  # most of a resolution is waiting for the index
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)")
_NO_WHEEL = re.compile(r"Because (?:only )?([A-Za-z0-9._-]+)((?:[<>=!~][^ ]*)?) (?:is available and .*? )?has no usable wheels")


@dataclass(frozen=True)
class Followed:
    """A fix, its outcome, and the new findings in the result: errors, and warnings in parentheses."""

    rule: str
    fix: str
    example: str
    python: str
    result: str
    seen: str
    date: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.rule, self.fix, self.example


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.audit.fixes", description=__doc__)
    parser.add_argument("rules", nargs="*", metavar="RULE", help="only these (default: all)")
    parser.add_argument("--again", action="store_true", help="resolve fixes again that have a row already")
    words = parser.parse_args(arguments)
    known = {row.key: row for row in _read()}
    moving = {
        (rule.id, _fix(fix), _pins(environment)): (rule, fix, environment)
        for rule in load_folder(str(ROOT / "matrix" / "rules"))
        for fix, environment in _moving(rule)
    }
    asked = [key for key in moving if not words.rules or key[0] in words.rules]
    asked.sort(key=lambda key: moving[key][0].severity != "error")
    wanted = [key for key in asked if words.again or key not in known]
    with ProcessPoolExecutor(_AT_ONCE) as pool:
        for done in as_completed([pool.submit(followed, *moving[key]) for key in wanted]):
            row = done.result()
            known[row.key] = row
            print(f"{row.rule}: {row.fix}: {row.result} {row.seen}"[:200], flush=True)
            _write([known[key] for key in moving if key in known])
    _write([known[key] for key in moving if key in known])
    return int(any(known[key].result == LEADS for key in asked))


def followed(rule: Rule, fix: FixTemplate, environment: Environment) -> Followed:
    """Return the outcome of installing the fix in the example's environment."""
    moved = {normalized(name): spec for name, spec in fix.packages}
    others = {d.name: d.version for d in environment.distributions or () if d.name not in moved and d.version}
    pins = [f"{name}{spec}" for name, spec in fix.packages]
    stated = re.match(r"\d+\.\d+", environment.python or "")
    pythons = (stated[0],) if stated else PYTHONS
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    why = ""
    at_fault = others.keys() & {each.name for each in rule.packages}
    held = [[f"{n}=={v}" if n in kept else n for n, v in others.items()] for kept in (others, at_fault, ())]
    for result, beside in zip((FINE, ALONE, ALONE), held):
        wanted = [*pins, *beside]
        for python in pythons:
            resolved, said = _resolved(wanted, python, environment.os, tuple(name + spec for name, spec in fix.along))
            why = why or said
            if resolved is None:
                continue
            found = _judged(environment, resolved, python)
            before = _without_fix(environment, python) if found.keys() - {rule.id} else {}
            new = {
                name: finding
                for name, finding in found.items()
                if name == rule.id or (name not in before and moved.keys() & finding.packages.keys())
            }
            errors = [name for name, finding in new.items() if finding.severity == "error" or name == rule.id]
            parts = rule.id, _fix(fix), _pins(environment), python
            seen = [*errors, *(f"({name})" for name in new if name not in errors)]
            return Followed(*parts, LEADS if errors else result, ", ".join(seen), today)
    return Followed(rule.id, _fix(fix), _pins(environment), "", IMPOSSIBLE, why, today)


def _judged(environment: Environment, pins: dict[str, str], python: str) -> dict[str, Finding]:
    """Return the certain errors and warnings in an environment of these distributions, by rule."""
    found = tuple(
        Distribution(name=normalized(name), version=version, source=Source("index")) for name, version in pins.items()
    )
    after = replace(
        environment, distributions=found, distributions_complete=True, python=environment.python or python,
        os=environment.os or "linux", machine=environment.machine or "x86_64",
    )  # fmt: skip
    findings = check(after).findings
    return {each.rule: each for each in findings if each.verdict == "hit" and each.severity in ("error", "warning")}


def _without_fix(environment: Environment, python: str) -> dict[str, Finding]:
    """Return the findings in the unfixed example, with the current transitive dependencies of its pins."""
    pins = {d.name: d.version for d in environment.distributions or () if d.version}
    resolved, _ = _resolved([f"{name}=={version}" for name, version in pins.items()], python, environment.os)
    return _judged(environment, resolved or pins, python)


def _moving(rule: Rule) -> Iterator[tuple[FixTemplate, Environment]]:
    hits = [parse_described(each.environment, "example")[0] for each in rule.examples if each.verdict == "hit"]
    for fix in rule.fixes:
        fitting = (each for each in hits if conjunction(holds(condition, Facts(each)) for condition in fix.when) is not False)
        environment = next(fitting, None)
        if fix.kind in ("upgrade", "downgrade", "pin") and environment is not None:
            yield fix, environment


def _resolved(
    wanted: list[str], python: str, system: str | None, along: tuple[str, ...] = ()
) -> tuple[dict[str, str] | None, str]:
    """Return the pins that uv finds, or its error message; ``along`` constrains transitive dependencies.

    A package without a wheel is replaced by the requirements of its newest release in range: nothing is built.
    """
    platform = {"windows": "x86_64-pc-windows-msvc", "darwin": "aarch64-apple-darwin"}.get(
        system or "", "x86_64-manylinux_2_35"
    )
    command = ["uv", "pip", "compile", "-", "--python-version", python, "--python-platform", platform,
               "--only-binary", ":all:", "--no-header", "--no-annotate", "--quiet", "--no-progress"]  # fmt: skip
    built: dict[str, str] = {}
    lines = [line for each in wanted for line in _without_wheel(Requirement(each), python, built)]
    with tempfile.TemporaryDirectory() as folder:
        constraints, excludes = Path(folder, "constraints.txt"), Path(folder, "excludes.txt")
        constraints.write_text("\n".join(along))
        command += ["--constraints", str(constraints), "--excludes", str(excludes)]
        while True:
            excludes.write_text("\n".join(built))
            done = subprocess.run(
                command, input="\n".join(lines), capture_output=True, text=True, check=False, timeout=300,
                env=os.environ | {"MACOSX_DEPLOYMENT_TARGET": "14.0"},  # uv assumes 13, for which torch 2.13 has no wheel
            )  # fmt: skip
            source_only = _NO_WHEEL.search(" ".join(done.stderr.split())) if done.returncode else None
            if source_only is None or normalized(source_only[1]) in built:
                break
            name = normalized(source_only[1])
            lines = [line for line in lines if normalized(Requirement(line).name) != name]
            lines += _of_source(Requirement(source_only[1] + source_only[2]), python, built)
            if name not in built:
                break
    if done.returncode:
        return None, " ".join(done.stderr.split())[:300]
    return {match[1]: match[2] for line in done.stdout.splitlines() if (match := _PIN.match(line))} | built, ""


def _without_wheel(wanted: Requirement, python: str, built: dict[str, str]) -> list[str]:
    """Return the requirement if its newest release has a wheel, else that release's requirements, and note it in ``built``."""
    files = [file for file in _index().files(wanted.name) or () if wanted.specifier.contains(file.version)]
    newest = max((file.version for file in files), key=Version, default=None)
    if newest is None or any(file.version == newest and file.filename.endswith(".whl") for file in files):
        return [str(wanted)]
    return _of_source(wanted, python, built)


def _of_source(wanted: Requirement, python: str, built: dict[str, str]) -> list[str]:
    """Return the requirements of the newest source distribution in range, and note the release in ``built``."""
    files = [file for file in _index().files(wanted.name) or () if wanted.specifier.contains(file.version)]
    newest = max(files, key=lambda file: (Version(file.version), file.filename.endswith(".tar.gz")), default=None)
    if newest is None:
        return [str(wanted)]
    metadata = _index().metadata(newest)
    built[normalized(wanted.name)] = newest.version
    place = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux", "extra": ""}
    return [
        f"{each.name}{each.specifier}"
        for each in (metadata.requires if metadata else ())
        if not each.marker or Marker(each.marker).evaluate(place)
    ]


@cache
def _index() -> Index:
    return Index(replace(gather(), timeout=60.0, retries=3), Store())


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
