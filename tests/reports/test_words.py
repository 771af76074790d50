"""The names that reports use for distributions."""

from __future__ import annotations

from pathlib import Path

import compat
from compat.reports.words import distribution_of
from compat.rules.compiled import open_matrix

TABLES_OF_SEVERAL = {"assertions", "at_once", "changes", "flags", "foreign", "homes", "index", "lines", "rows", "values"}


def test_every_distribution_of_rules_and_tables_can_be_named() -> None:
    tables = {path.stem for path in (Path(compat.__file__).parent / "data" / "surface").glob("*.bin")}
    assert {name for name in {*open_matrix().names, *(tables - TABLES_OF_SEVERAL)} if distribution_of(name) is None} == set()
