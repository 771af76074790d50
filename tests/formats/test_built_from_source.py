"""Distributions that an installer is told to compile: wheels say nothing about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.formats.registry import read_listings
from compat.model import Source

BUILT = {"xformers"}
PROJECT = '[project]\nname = "job"\nversion = "1"\ndependencies = ["torch==2.6.0", "xformers==0.0.28.post3"]\n'


def built_in(path: Path) -> set[str]:
    (listing,) = read_listings(str(path))
    return {
        e.distribution.name for e in listing.entries if e.distribution.source and e.distribution.source.details.get("build")
    }


@pytest.mark.parametrize(
    ("name", "text", "built"),
    [
        ("requirements.txt", "--no-binary XFormers\ntorch==2.6.0\nxformers==0.0.28.post3\n", BUILT),
        ("requirements.txt", "torch==2.6.0\nxformers==0.0.28.post3\n--no-binary=:all:\n", {"torch", *BUILT}),
        ("requirements.txt", "torch==2.6.0\nxformers==0.0.28.post3\n", set()),
        ("pyproject.toml", f'{PROJECT}[tool.uv]\nno-binary-package = ["xformers"]\n', BUILT),
        ("pyproject.toml", PROJECT, set()),
        ("requirements.txt", "--no-binary xformers\ntorch==2.6.0\nxformers>=0.0.28\n", set()),  # its release is not known yet
        ("install.sh", "pip install --no-binary xformers torch==2.6.0 xformers==0.0.28.post3\n", BUILT),
    ],
)
def test_what_is_told_to_be_compiled(tmp_path: Path, name: str, text: str, built: set[str]) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    assert built_in(path) == built


def test_a_name_is_compared_as_installers_do(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("--no-binary flash_attn,XFormers\nxformers==0.0.28.post3\n", encoding="utf-8")
    change = Change("xformers", "0.0.28.post3", "0.0.28.post3", source=Source("index", {"build": True}))
    assert edits_for(str(path), [change]) == ()
