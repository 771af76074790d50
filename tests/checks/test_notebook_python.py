"""The Python that a notebook was saved with, and its pins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat.checks.notebook_python import with_possible_python
from compat.formats.registry import read_listings


def notebook(folder: Path, python: str, *pins: str) -> str:
    path = folder / "train.ipynb"
    cell = {
        "cell_type": "code",
        "metadata": {},
        "outputs": [],
        "execution_count": None,
        "source": [f"%pip install {' '.join(pins)}"],
    }
    metadata = {"language_info": {"name": "python", "version": python}}
    path.write_text(json.dumps({"cells": [cell], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("python", "pins", "expected"),
    [
        ("3.8.12", ("trl==0.14.0", "transformers==4.48.1", "torch==2.4.0"), None),
        ("3.8.12", ("trl==0.14.0", "transformers==4.46.3"), "3.8.12"),  # a single one may be a mistake
        ("3.10.12", ("trl==0.14.0", "transformers==4.48.1"), "3.10.12"),
        ("3.8.12", ("trl", "transformers"), "3.8.12"),
    ],
)
def test_a_python_that_several_pins_do_not_support_is_not_the_one_it_is_run_with(
    tmp_path: Path, python: str, pins: tuple[str, ...], expected: str | None
) -> None:
    (listing,) = read_listings(notebook(tmp_path, python, *pins))
    found = with_possible_python(listing)
    assert found.context.python == expected
    notes = [] if expected else ["transformers 4.48.1 and trl 0.14.0 do not support it"]
    assert [each.rpartition(": ")[2] for each in found.notes[len(listing.notes) :]] == notes
