"""``python -m scripts.coverage [--write]``: what the rules cover, by package and by the year of the releases they are about.

A rule counts in the year in which the newest release that it holds for was uploaded, and under the package whose releases it
ends with. *Newest evidence* is the newest release whose code decided a bound of the package's rules: the last bad one, or the
first good one. Years and days come from ``matrix/facts/releases.csv``; rules about packages that are not followed there, or
that hold for every release, count as *undated*. ``--write`` puts the table into ``docs/coverage.md``.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from compat.rules.loader import load_folder
from compat.rules.rule import Rule
from compat.versions import contains, key_of

if TYPE_CHECKING:
    from compat.versions import Ranges

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "coverage.md"
UNDATED = "undated"
HEAD = """# What the rules cover

Written by `python -m scripts.coverage --write` from time to time, not with every rule. A rule counts in the year in which the
newest release that it holds for was uploaded. *Newest evidence* is the upload of the newest release whose code decided a bound
of that package's rules. *Undated*: the package is not followed release by release, or the rule holds for all of them.

"""


@dataclass
class Covered:
    """The rules of one package."""

    years: Counter[str] = field(default_factory=Counter)
    reproduced: int = 0
    newest: str = ""

    @property
    def rules(self) -> int:
        return sum(self.years.values())


def uploads(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the (version, day) pairs of each tracked package, oldest first."""
    found: dict[str, list[tuple[str, str]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["uploaded"]:
                found.setdefault(row["package"], []).append((row["version"], row["uploaded"]))
    return found


def covered(rules: tuple[Rule, ...], days: dict[str, list[tuple[str, str]]]) -> dict[str, Covered]:
    """Return the figures of every package at fault."""
    found: dict[str, Covered] = {}
    for rule in rules:
        ranged = [(name, ranges) for name, ranges in _ranged(rule) if name in days]
        dated = [(*_last(ranges, days[name]), name) for name, ranges in ranged]
        day, evidence, _ = max(dated, default=("", "", ""))
        here = found.setdefault(_package(rule), Covered())
        here.years[day[:4] or UNDATED] += 1
        here.reproduced += rule.confidence == "reproduced"
        here.newest = max(here.newest, evidence)
    return found


def _package(rule: Rule) -> str:
    """Return the package at fault: the first one that the rule's fixes change, else the first that it names."""
    moved = [fix.packages[0][0] for fix in rule.fixes if fix.packages]
    named = [each.name for each in rule.packages if each.how != "absent"]
    return next((name for name in moved if name in named), (named or moved or ["any"])[0])


def _ranged(rule: Rule) -> Iterator[tuple[str, Ranges]]:
    for name, ranges in rule.ranges.items():
        if any(upper is not None for _, _, upper, _ in ranges):
            yield name, ranges


def _last(ranges: Ranges, days: list[tuple[str, str]]) -> tuple[str, str]:
    """Return the days of the newest release in the ranges and of the newest one that decides a bound."""
    inside = [contains(ranges, key_of(version)) for version, _ in days]
    last = max((place for place, bad in enumerate(inside) if bad), default=None)
    if last is None:
        return "", ""
    return days[last][1], days[min(last + 1, len(days) - 1)][1]


def table(found: dict[str, Covered]) -> str:
    """Render the figures in Markdown, the packages with the most rules first."""
    years = sorted({year for each in found.values() for year in each.years})
    lines = [
        f"| package | rules | reproduced | {' | '.join(years)} | newest evidence |",
        "|---" * (len(years) + 4) + "|",
    ]
    for name, each in sorted(found.items(), key=lambda item: (-item[1].rules, item[0])):
        counts = " | ".join(str(each.years[year] or "") for year in years)
        lines.append(f"| {name} | {each.rules} | {each.reproduced or ''} | {counts} | {each.newest} |")
    total = sum((each.years for each in found.values()), Counter[str]())
    reproduced = sum(each.reproduced for each in found.values())
    newest = max((each.newest for each in found.values()), default="")
    lines.append(f"| all | {sum(total.values())} | {reproduced} | {' | '.join(str(total[y]) for y in years)} | {newest} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    rules = load_folder(str(ROOT / "matrix" / "rules"))
    text = table(covered(rules, uploads(ROOT / "matrix" / "facts" / "releases.csv")))
    print(text, end="")
    if "--write" in arguments:
        PAGE.write_text(HEAD + text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
