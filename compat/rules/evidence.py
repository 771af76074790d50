"""Evidence for the version bounds of rules (``matrix/evidence``, from ``make audit``), compiled for ``compat rules show``."""

from __future__ import annotations

import marshal
import os
from collections.abc import Iterable, Mapping

from compat.files import read_table
from compat.records import record
from compat.rules.rule import Rule
from compat.versions import contains, key_of

FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "evidence.bin")
FIELDS = ("package", "bound", "inside", "outside", "how", "seen", "date")


@record(frozen=True)
class BoundEvidence:
    """Evidence for one bound of a range: the releases inside and outside it, what was observed, how, and the date."""

    package: str
    bound: str
    inside: str
    outside: str
    how: str
    seen: str
    date: str


def packed(rules: Iterable[Rule], rows: Iterable[Mapping[str, str]]) -> bytes:
    """Return the content of the compiled file: the rows that agree with the current rules."""
    ranges = {(rule.id, atom[1]): atom[3] for rule in rules for atom in rule.packages if atom[2] == "in"}
    found: dict[str, list[tuple[str, ...]]] = {}
    for row in rows:
        held = ranges.get((row["rule"], row["package"]), ())
        if contains(held, key_of(row["inside"])) and not (row["outside"] and contains(held, key_of(row["outside"]))):
            found.setdefault(row["rule"], []).append(tuple(row[name] for name in FIELDS))
    return marshal.dumps(found, 4)


def evidence_of(rule: str) -> tuple[BoundEvidence, ...]:
    """Return the evidence for a rule; empty if no audit has run since the rule changed, or if it is user-defined."""
    return tuple(BoundEvidence(*row) for row in marshal.loads(read_table(FILE)).get(rule, ()))
