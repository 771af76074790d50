"""Symptom files: an error names file and symptom."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compat.diagnosis.symptoms import packed
from compat.errors import InputError
from tests.conftest import ROOT

GOOD = """
[[symptom]]
name = "new"
pattern = ['first (?P<name>\\w+)', 'second']
hints = ["first", "second"]
title = "{name} fails"
why = "It fails."
fixes = [{ kind = "config", text = "change it" }]
evidence = ["https://example.org"]
"""


def test_the_new_one_is_packed(tmp_path: Path) -> None:
    assert b"first (?P<name>\\w+)|second" in packed(_with(tmp_path, GOOD))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "new"', 'name = "no-driver"', "symptom no-driver: the name is already used"),
        ("title", "titel", "symptom new: symptom: unknown key 'titel'"),
        ("'second'", "'second('", "symptom new: missing \\), unterminated subpattern"),
        ('"config"', '"konfig"', "symptom new: unknown kind of fix 'konfig'"),
        ('{ kind = "config", text = "change it" }', '"no-such-fix"', "symptom new: 'no-such-fix'"),
        ('why = "It fails."', 'why = "It fails."\neffect = "odd"', "symptom new: unknown effect 'odd'"),
        ('hints = ["first", "second"]', "hints = []", "symptom new: hints: expected a list of words"),
    ],
)
def test_an_error_names_the_symptom(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        packed(_with(tmp_path, GOOD.replace(old, new)))


def test_a_file_without_a_place_in_the_order_is_refused(tmp_path: Path) -> None:
    folder = _with(tmp_path, "")
    (Path(folder) / "more.toml").write_text(GOOD, encoding="utf-8")
    with pytest.raises(InputError, match="expected exactly the files loading, binaries"):
        packed(folder)


def _with(tmp_path: Path, text: str) -> str:
    folder = shutil.copytree(ROOT / "matrix" / "symptoms", tmp_path / "symptoms")
    with (folder / "installers.toml").open("a", encoding="utf-8") as file:
        file.write(text)
    return str(folder)
