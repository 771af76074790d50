"""Holds the matrix against the reproductions without running them: which rules are called reproduced, and where they hit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from rows import Row, environment_of, rows

from compat.formats.described import parse_described
from compat.model import SCHEMA
from compat.rules.evaluate import verdict_of
from compat.rules.facts import Facts, visible
from compat.rules.loader import load_folder

ROWS = rows()
RULES = {rule.id: rule for rule in load_folder(str(Path(__file__).parents[2] / "matrix" / "rules"))}
REPRODUCED = {rule.id for rule in RULES.values() if rule.confidence == "reproduced"}


def test_every_reproduced_rule_has_a_row_or_a_program_of_its_own() -> None:
    modules = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")]
    with_programs = {rule for rule in REPRODUCED if any(f'"{rule}"' in text for text in modules)}
    assert REPRODUCED - with_programs == {row.rule for row in ROWS}


def test_the_readme_names_every_row() -> None:
    text = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
    assert [row.rule for row in ROWS if f"| {row.rule} |" not in text] == []


@pytest.mark.parametrize("row", ROWS, ids=[row.rule for row in ROWS])
def test_the_rule_hits_the_bad_releases_and_no_good_ones(row: Row) -> None:
    assert verdict(row, row.bad) == "hit"
    assert {str(dict(pins)): verdict(row, pins) for pins in row.good} == {str(dict(pins)): "clear" for pins in row.good}


def verdict(row: Row, pins: Mapping[str, str]) -> str:
    """What the row's rule says about these releases: hit, clear or possible."""
    environment, _ = parse_described({"schema": SCHEMA, **environment_of(row, pins)}, row.rule)
    return str(verdict_of(RULES[row.rule], Facts(visible(environment))).word)
