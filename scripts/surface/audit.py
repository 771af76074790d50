"""``python -m scripts.surface.audit``: every curated rule whose cause is a name, held against the mined source.

A rule *differs* where a release in its range certainly has what its error says is missing. It then has to be corrected, or say
why it stands: ``source = "…"`` in the rule. That a release outside the range lacks it as well is no difference: other rules,
or what the packages declare, end a range too. Rules whose name the tables do not know are *not derivable*. Exit code 1 where
a rule differs and says nothing.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from compat.interfaces.rows import Rows, open_rows
from compat.interfaces.table import Table, open_table, tracked
from compat.interfaces.world import World
from compat.rules.loader import load_folder
from compat.rules.rule import Rule
from compat.syntax.toml import parse_toml
from compat.versions import contains, key_of

if TYPE_CHECKING:
    pass

RULES = Path(__file__).resolve().parents[2] / "matrix" / "rules"
_FROM = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
_OF_MODULE = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")
_MODULE = re.compile(r"No module named '([\w.]+)'")
_KEYWORD = re.compile(r"unexpected keyword argument '(\w+)'")
_GROUP = re.compile(r"\((?:\?:)?([\w.|]+)\)\??")
AGREES, DIFFERS, SAYS_WHY, UNKNOWN = "agrees", "differs", "says why", "not derivable"


@dataclass(frozen=True)
class Answer:
    rule: Rule
    result: str
    said: str


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.audit", description=__doc__)
    parser.add_argument("--all", action="store_true", help="name every rule, not only those that differ")
    words = parser.parse_args(arguments)
    rows = open_rows()
    answers = [answer for rule in load_folder(str(RULES)) if (answer := audited(rule, rows)) is not None]
    for answer in answers:
        if words.all or answer.result == DIFFERS:
            print(f"{answer.result}: {answer.rule.file}:{answer.rule.line} {answer.rule.id}: {answer.said}")
    counts = Counter(answer.result for answer in answers)
    print(", ".join(f"{counts[result]} {result}" for result in (AGREES, DIFFERS, SAYS_WHY, UNKNOWN)))
    return int(counts[DIFFERS] > 0)


def audited(rule: Rule, rows: Rows) -> Answer | None:
    """What the source says about a rule; ``None`` where its errors name nothing that could be missing.

    Of names that one error gives as alternatives, one has to be missing.
    """
    errors = [
        tuple(dict.fromkeys(cause for text in spelled(error.message) for cause in causes_in(text))) for error in rule.errors
    ]
    causes = [cause for cause in dict.fromkeys(errors) if cause]
    if not causes:
        return None
    said = [answer for cause in causes if (answer := _said(rule, cause, rows)) is not None]
    if not said:
        return Answer(rule, UNKNOWN, "; ".join(".".join(filter(None, cause)) for each in causes for cause in each))
    wrong = [text for differs, text in said if differs]
    if len(wrong) < len(said):
        return Answer(rule, AGREES, "; ".join(text for differs, text in said if not differs))
    reason = reason_of(rule)
    return Answer(rule, SAYS_WHY if reason else DIFFERS, reason or "; ".join(wrong))


def reason_of(rule: Rule) -> str:
    """Why a rule stands although the source says otherwise, in its own words."""
    _, document = parse_toml(str(RULES / rule.file))
    return next((" ".join(each.get("source", "").split()) for each in document["rule"] if each["id"] == rule.id), "")


def spelled(pattern: str) -> Iterator[str]:
    """The texts that a message's pattern spells out; groups of plain alternatives are written out."""
    text = pattern.replace("\\", "").replace("['\"]", "'")
    groups = list(_GROUP.finditer(text))
    if len(groups) > 3:
        return
    for choice in itertools.product(*(group[1].split("|") for group in groups)):
        made, at = [], 0
        for group, chosen in zip(groups, choice):
            made += [text[at : group.start()], chosen]
            at = group.end()
        yield "".join((*made, text[at:]))


def causes_in(text: str) -> Iterator[tuple[str, str]]:
    """(module, name) that is missing; (``""``, keyword) for a keyword that is not taken."""
    yield from ((found[2], found[1]) for found in _FROM.finditer(text))
    yield from ((found[1], found[2]) for found in _OF_MODULE.finditer(text))
    yield from ((found[1], "") for found in _MODULE.finditer(text))
    yield from (("", found[1]) for found in _KEYWORD.finditer(text))


def _said(rule: Rule, causes: tuple[tuple[str, str], ...], rows: Rows) -> tuple[bool, str] | None:
    """Whether the rule differs from the source in this, and in what; ``None`` where the source does not tell."""
    names = [cause for cause in causes if cause[0]]
    if names:
        return _of_names(rule, names)
    return next((said for _, keyword in causes if (said := _of_keyword(rule, keyword, rows)) is not None), None)


def _of_names(rule: Rule, names: list[tuple[str, str]]) -> tuple[bool, str] | None:
    package = tracked().get(names[0][0].partition(".")[0])
    ranges = rule.ranges.get(package or "")
    table = open_table(package) if package is not None and ranges is not None else None
    if table is None or ranges is None:
        return None
    inside = [at for at, version in enumerate(table.versions) if contains(ranges, key_of(version)) and "rc" not in version]
    lacking: list[int] = []
    there: list[int] = []
    for at in inside:
        states = [_state(table, at, *name) for name in names]
        if False in states:
            lacking.append(at)
        elif None not in states:
            there.append(at)
    what = " or ".join(f"{module}:{name}" if name else module for module, name in names)
    if there:
        return True, f"{what} is in {package} {_shortened([table.versions[at] for at in there])}, which the rule's range holds"
    return (False, f"{what} is in no release of {package} in the range") if lacking else None


def _state(table: Table, at: int, module: str, name: str) -> bool | None:
    """Whether a release has a name; ``None`` where that is not known."""
    surface = table.surface(table.versions[at])
    assert surface is not None
    kind = World((surface,)).imported(module, name or None).kind
    return None if kind in ("unknown", "never") else kind != "absent"


def _of_keyword(rule: Rule, keyword: str, rows: Rows) -> tuple[bool, str] | None:
    """A row of two of the rule's packages about this keyword that covers the range; a release that takes it may be unknown."""
    ranges = rule.ranges
    for consumer in ranges:
        if consumer not in rows.consumers:
            continue
        for versions, row in rows.all_of(consumer, kind="R"):
            if row.missing == keyword and row.package in ranges and row.problem.endswith("keyword"):
                inside = [each for each in rows.versions(row.package) if contains(ranges[row.package], key_of(each))]
                taken = [each for each in inside if each not in row.bad]
                used = [each for each in versions if contains(ranges[consumer], key_of(each))]
                if used and not taken:
                    return False, f"{row.what} of {consumer} {_shortened(used)}"
    return None


def _shortened(versions: list[str]) -> str:
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]} ({len(versions)} releases)"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
