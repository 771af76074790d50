"""matrix/reviewed.csv: which releases somebody has looked at, and what came of it."""

from __future__ import annotations

import csv
import datetime
from collections import Counter
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version

from compat.rules.loader import load_folder
from compat.versions import contains, key_of
from scripts.surface.packages import SINCE

MATRIX = Path(__file__).resolve().parents[2] / "matrix"
HEADER = ["package", "release", "released", "sources", "rules"]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with open(MATRIX / "reviewed.csv", encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        assert reader.fieldnames == HEADER
        return list(reader)


def test_each_row_is_well_formed(rows: list[dict[str, str]]) -> None:
    for row in rows:
        assert row["package"] == canonicalize_name(row["package"]), row
        assert str(Version(row["release"])) == row["release"], row
        assert datetime.date.fromisoformat(row["released"]) >= datetime.date.fromisoformat(SINCE), row
        assert row["sources"].strip(), row
        assert row["rules"].strip(), row


def test_each_release_stands_there_once_and_in_order(rows: list[dict[str, str]]) -> None:
    places = [(row["package"], Version(row["release"])) for row in rows]
    assert [place for place, count in Counter(places).items() if count > 1] == []
    assert places == sorted(places)


def test_its_rules_exist_and_are_about_that_release(rows: list[dict[str, str]]) -> None:
    rules = {rule.id: rule for rule in load_folder(str(MATRIX / "rules"))}
    for row in rows:
        for name in [] if row["rules"] == "nothing" else row["rules"].split(" "):
            assert name in rules, row
            about = next(each for each in rules[name].packages if each.name == row["package"])
            assert about.how == "present" or contains(about.ranges, key_of(row["release"])), row


def test_most_packages_of_the_matrix_have_been_looked_at(rows: list[dict[str, str]]) -> None:
    looked_at = {row["package"] for row in rows}
    assert {"accelerate", "deepspeed", "peft", "transformers", "trl", "unsloth", "vllm"} <= looked_at
