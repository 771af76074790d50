"""``python -m scripts.audit [RULE…] [--again] [--offline]``: evidence for every bound of every rule.

For each bound the release inside and its neighbour outside are held against each other: the reproductions, the lines that
``matrix/marks.csv`` names, the name or keyword that the rule's error speaks of, the message itself, and what the releases
declare of the rule's other packages. Rows in
``matrix/evidence`` that were read or run by hand are kept while their bound stands; what nothing shows is ``unchecked``.
``docs/rule-audit.md`` is written anew. It may be stopped and started again.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import itertools
import sys
from collections.abc import Sequence
from functools import cache

from compat.interfaces.rows import open_rows
from compat.rules.loader import load_folder
from compat.rules.rule import Rule
from compat.tables.declared import Declared
from scripts.audit import evidence, marks, page
from scripts.audit.bounds import Bound, bounds_of
from scripts.audit.evidence import BY_HAND, FOLDER, OPEN, ROOT, UNCHECKED, Evidence
from scripts.audit.reading import Reader
from scripts.audit.sources import Sources


class Audit:
    """The sources of evidence for a bound, cheapest first."""

    def __init__(self, *, again: bool, offline: bool) -> None:
        self._again = again
        self._sources = Sources(offline=offline)
        self._reader = Reader(self._sources)
        self._marks = marks.Marks(marks.read(), self._sources)
        self._declared = Declared()
        self._programs = evidence.programs()
        self._mined = evidence.Mined(open_rows())
        self._today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()

    def rows(self, rule: Rule, known: Sequence[Evidence]) -> list[Evidence]:
        """Return a row for each bound of a rule; ``known`` are those of the last run."""
        return [self._row(rule, bound, known) for bound in bounds_of(rule, self._versions)]

    def _row(self, rule: Rule, bound: Bound, known: Sequence[Evidence]) -> Evidence:
        kept = next((row for row in known if row.about(bound)), None)
        if kept is not None and kept.how != UNCHECKED and (kept.how in BY_HAND or not self._again):
            return kept
        how, seen = self._seen(rule, bound)
        parts = (bound.rule, bound.package, bound.bound, bound.inside, bound.outside)
        return Evidence(*parts, how, seen, self._today)

    def _seen(self, rule: Rule, bound: Bound) -> tuple[str, str]:
        if not bound.outside:
            return OPEN, "nothing is released beyond"
        if seen := evidence.reproduced(rule, bound, self._programs):
            return "ran", seen
        if seen := self._marks.seen(bound):
            return "read", seen
        if seen := self._reader.seen(rule, bound):
            return "static", seen
        if seen := self._mined.about(rule, bound):
            return "mined", seen
        if seen := evidence.declared_about(rule, bound, self._declared):
            return "metadata", seen
        return UNCHECKED, ""

    def _versions(self, package: str) -> Sequence[str]:
        """Return all published versions: a table of recent releases would misplace the package's first one."""
        return [*self._sources.versions(package), *_followed().get(package, ())]


@cache
def _followed() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    with (ROOT / "matrix" / "facts" / "releases.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["package"], []).append(row["version"])
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.audit", description=__doc__)
    parser.add_argument("rules", nargs="*", metavar="RULE", help="only these (default: all)")
    parser.add_argument("--again", action="store_true", help="look again at bounds that have a row already")
    parser.add_argument("--offline", action="store_true", help="only releases whose source is in the store")
    words = parser.parse_args(arguments)
    audit = Audit(again=words.again, offline=words.offline)
    rules = load_folder(str(ROOT / "matrix" / "rules"))
    # of all files: a rule that moved to another one keeps its rows
    known = [row for path in sorted(FOLDER.glob("*.csv")) for row in evidence.read(path)]
    for name, group in itertools.groupby(rules, key=lambda rule: rule.file):
        path, rows = FOLDER / name.replace(".toml", ".csv"), list[Evidence]()
        for rule in group:
            wanted = not words.rules or rule.id in words.rules
            rows += audit.rows(rule, known) if wanted else [row for row in known if row.rule == rule.id]
        evidence.write(path, rows)
        print(f"{path.name}: {len(rows)} bounds, {sum(row.how == UNCHECKED for row in rows)} unchecked", flush=True)
    page.write(rules)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
