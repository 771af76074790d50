"""``docs/rule-audit.md``: the evidence for each rule's bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from compat.rules.rule import Rule
from scripts.audit.evidence import FOLDER, ROOT, UNCHECKED, Evidence, read

PAGE = ROOT / "docs" / "rule-audit.md"
_HEAD = """# What the bounds of the rules rest on

Written by `make audit`. A bound of a range has a release inside and a neighbour outside. *static*: the source of the two
differs in the name, keyword or message that the rule is about. *mined*: the interface tables have something that one package
needs of the other, missing up to the bound. *metadata*: the neighbour declares a requirement that keeps the packages apart.
*ran*: a program fails inside and ends well outside. *read*: the code was read on both sides. *open*: nothing is released
beyond. *unchecked*: nobody and nothing has looked at this bound yet; the rule may be right or wrong there. The rows, with what
was seen, are in `matrix/evidence`; `compat rules show ID` prints those of a rule.

"""


def write(rules: Sequence[Rule]) -> None:
    """Write the page from the stored rows."""
    rows: dict[str, list[Evidence]] = {}
    for path in sorted(FOLDER.glob("*.csv")):
        for row in read(path):
            rows.setdefault(row.rule, []).append(row)
    lines = ["| rule | level | confidence | bounds | how | last looked at |", "|---|---|---|---|---|---|"]
    for rule in rules:
        found = rows.get(rule.id, [])
        counts = Counter(row.how for row in found)
        how = ", ".join(f"{number} {name}" for name, number in sorted(counts.items())) or "no bounds"
        day = max((row.date for row in found), default="")
        lines.append(f"| {rule.id} | {rule.severity} | {rule.confidence} | {len(found)} | {how} | {day} |")
    PAGE.write_text(_HEAD + _summary(rules, rows) + "\n".join(lines) + "\n", encoding="utf-8")


def _summary(rules: Sequence[Rule], rows: dict[str, list[Evidence]]) -> str:
    every = [row for found in rows.values() for row in found]
    counts = Counter(row.how for row in every)
    lacking = [rule for rule in rules if any(row.how == UNCHECKED for row in rows.get(rule.id, ()))]
    errors = sum(rule.severity == "error" for rule in lacking)
    said = ", ".join(f"{number} {how}" for how, number in counts.most_common())
    return (
        f"{len(every)} bounds of {len(rules)} rules: {said}.\n"
        f"{len(lacking)} rules have a bound that is unchecked, {errors} of them errors.\n\n"
    )
