"""Evidence rows, one per bound, stored in ``matrix/evidence``: the observations on both sides, and the method."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from compat.interfaces.rows import Rows
from compat.rules.rule import Rule
from compat.syntax.toml import parse_toml
from compat.tables.declared import Declared
from compat.versions import contains, key_of, overlap
from scripts.audit.bounds import Bound

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "matrix" / "evidence"
REPRODUCTIONS = ROOT / "tests" / "reproductions" / "rows"
OPEN, UNCHECKED = "open", "unchecked"
"""Nothing is released beyond the bound; nobody and nothing has looked."""
BY_HAND = ("read", "ran")
"""Rows that the audit keeps as long as their bound stands."""


@dataclass(frozen=True)
class Evidence:
    """A row: ``how`` is static, metadata, ran, read, open or unchecked; ``seen`` describes the observation."""

    rule: str
    package: str
    bound: str
    inside: str
    outside: str
    how: str
    seen: str
    date: str

    def about(self, bound: Bound) -> bool:
        """Return whether the row is about this bound in its current form."""
        return (self.rule, self.package, self.bound, self.inside, self.outside) == tuple(asdict(bound).values())


def read(path: Path) -> list[Evidence]:
    """Return the rows of a file; none if it does not exist."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [Evidence(**row) for row in csv.DictReader(file)]


def write(path: Path, rows: Iterable[Evidence]) -> None:
    """Write these rows to the file atomically."""
    path.parent.mkdir(exist_ok=True)
    made = path.with_suffix(".new")
    with made.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, [each.name for each in fields(Evidence)], lineterminator="\n")
        table.writeheader()
        table.writerows(map(asdict, rows))
    made.replace(path)


def declared_about(rule: Rule, bound: Bound, tables: Declared) -> str:
    """Return the outer release's requirement on another package of the rule if it excludes the combination; else ``""``."""
    package = tables.package(bound.package)
    places = [None if package is None else package.place(version) for version in (bound.inside, bound.outside)]
    if package is None or None in places:
        return ""
    for other, ranges in rule.ranges.items():
        if other == bound.package:
            continue
        inside, outside = [
            {extra: (text, asked) for text, asked, marker, extra in package.requirements(place, other) if not marker}
            for place in places if place is not None
        ]  # fmt: skip
        for extra, (text, asked) in outside.items():
            if not overlap(asked, ranges) and (extra not in inside or overlap(inside[extra][1], ranges)):
                by = f" (extra {extra})" if extra else ""
                return f"{bound.package} {bound.outside} requires {other}{text}{by}, which excludes the rule's range"
    return ""


class Mined:
    """The rows of the interface tables: names that a release needs from others that lack them."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._needs: dict[str, dict[tuple[str, str, tuple[str, ...]], set[str]]] = {}

    def about(self, rule: Rule, bound: Bound) -> str:
        """Return a need that fails between two packages of the rule inside the bound but not outside; else ``""``."""
        ranges = rule.ranges
        told = " ".join((rule.title, rule.why, *(error.message for error in rule.errors)))
        for consumer in ranges.keys() & set(self._rows.consumers):
            for (package, what, bad), users in self._of(consumer).items():
                name = re.split(r"\W+", what.strip("()=…"))[-1]
                if package not in ranges or package == consumer or not re.search(rf"\b{name}\b", told):
                    continue
                failing = {version for version in bad if contains(ranges[package], key_of(version))}
                using = {version for version in users if contains(ranges[consumer], key_of(version))}
                if bound.package == consumer and failing and bound.inside in using:
                    later = {v for (p, w, _), found in self._of(consumer).items() if (p, w) == (package, what) for v in found}
                    if bound.outside not in later:
                        return f"{consumer} {bound.inside} needs {what} of {package} and {bound.outside} does not"
                if bound.package == package and using and bound.inside in failing and bound.outside not in bad:
                    return f"{what}, which {consumer} needs, is missing in {package} {bound.inside} and not in {bound.outside}"
        return ""

    def _of(self, consumer: str) -> dict[tuple[str, str, tuple[str, ...]], set[str]]:
        if consumer not in self._needs:
            found: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
            for versions, row in (*self._rows.all_of(consumer), *self._rows.all_of(consumer, kind="R")):
                found.setdefault((row.package, row.what, row.bad), set()).update(versions)
            self._needs[consumer] = found
        return self._needs[consumer]


def reproduced(rule: Rule, bound: Bound, programs: Iterable[Mapping[str, Any]]) -> str:
    """Return a reproduction's evidence for a bound: the same program succeeds with the release outside; else ``""``."""
    for program in programs:
        bad = program["bad"].get(bound.package)
        if program["rule"] != rule.id or bad != bound.inside:
            continue
        for good in program["good"]:
            others = {name for name in program["bad"].keys() | good.keys() if program["bad"].get(name) != good.get(name)}
            if good.get(bound.package) == bound.outside and not _in_rule(rule, others - {bound.package}, good):
                return f"the program of tests/reproductions fails with {bad} and ends well with {bound.outside}"
    return ""


def _in_rule(rule: Rule, names: set[str], pins: Mapping[str, str]) -> bool:
    """Return whether one of these packages also decides the rule, so that the two runs do not isolate the cause."""
    return any(
        name in names and (name not in pins or not contains(ranges, key_of(pins[name])))
        for name, ranges in rule.ranges.items()
    )  # fmt: skip


def programs() -> list[Mapping[str, Any]]:
    """Return the rows of the reproductions."""
    return [row for path in sorted(REPRODUCTIONS.glob("*.toml")) for row in parse_toml(str(path))[1].get("row", ())]
