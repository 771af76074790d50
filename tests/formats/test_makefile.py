"""Makefiles: what the recipes of targets install."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.formats.scripts import Makefile
from tests.formats.listings import lines, pins

TEXT = """\
PIP ?= python -m pip
VERSION := 4.40.1
.PHONY: install

install: venv  ## everything
\t@$(PIP) install torch==2.1.2 \\
\t    "transformers==$(VERSION)"
\tcd src && pip install trl==0.8.6
\techo $$HOME

test:
\tpytest
"""


def test_recipes_with_variables_and_continued_lines() -> None:
    (listing,) = Makefile().read("Makefile", TEXT)
    assert (listing.label, listing.notes) == ("target install", ())
    assert pins(listing) == {"torch": "2.1.2", "transformers": "4.40.1", "trl": "0.8.6"}
    assert lines(listing) == {"torch": 6, "transformers": 7, "trl": 8}


def test_the_project_is_read_from_setup_py(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\nsetup(install_requires=['torch==2.1.2'], extras_require={'rl': ['trl==0.8.6']})\n"
    )
    (listing,) = Makefile().read(str(tmp_path / "Makefile"), "dev:\n\tpip install -e .[rl]\n")
    assert pins(listing) == {"torch": "2.1.2", "trl": "0.8.6"}


def test_only_versions_change(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(TEXT)
    (edit,) = edits_for(str(tmp_path / "Makefile"), (Change("torch", "2.1.2", "2.2.0"), Change("trl", "0.8.6", "0.9.6")))
    assert edit.after.decode() == TEXT.replace("2.1.2", "2.2.0").replace("0.8.6", "0.9.6")


def test_variables_do_not_multiply_the_text() -> None:
    text = f"A = {'torch ' * 500}\na:\n" + "\tpip install $(A)\n" * 1000
    with pytest.raises(InputError, match="its variables expand to more than") as problem:
        Makefile().read("Makefile", text)
    assert problem.value.line is not None
