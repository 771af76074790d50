"""tox.ini: environments, factors and references."""

from __future__ import annotations

from pathlib import Path

from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.formats.test_runners import Tox
from tests.formats.listings import lines, pins

TEXT = """\
[tox]
envlist = py310-torch{20,21}, lint

[base]
deps =
    numpy<2

[testenv]
deps =
    {[base]deps}
    torch20: torch==2.0.1
    torch21,!torch20: torch==2.1.2
    !torch20-!lint: trl==0.8.6  # newest
    -r{toxinidir}/requirements.txt
    .[test]
commands = pytest

[testenv:lint]
deps = ruff
"""


def test_factors_choose_the_lines_of_each_environment(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("peft==0.7.1\n")
    old, new, lint = Tox().read(str(tmp_path / "tox.ini"), TEXT)
    assert pins(old) == {"numpy": "<2", "torch": "2.0.1", "peft": "0.7.1"}
    assert pins(new) == {"numpy": "<2", "torch": "2.1.2", "trl": "0.8.6", "peft": "0.7.1"}
    assert (lines(new)["numpy"], lines(new)["torch"], lines(new)["trl"]) == (6, 12, 13)
    assert (new.label, new.requires_python, pins(lint)) == ("environment py310-torch21", "==3.10.*", {"ruff": None})


def test_environments_with_the_same_lines_are_one_listing() -> None:
    (listing,) = Tox().read("tox.ini", "[tox]\nenv_list = py{38,39,310,311}\n[testenv]\ndeps = torch==2.0.1\n")
    assert (listing.label, listing.requires_python) == ("environment py38, py39, py310 and 1 more", None)


def test_only_versions_change(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("peft==0.7.1\n")
    (tmp_path / "tox.ini").write_text(TEXT)
    (edit,) = edits_for(str(tmp_path / "tox.ini"), (Change("trl", "0.8.6", "0.9.6"),))
    assert edit.after.decode() == TEXT.replace("trl==0.8.6", "trl==0.9.6")
