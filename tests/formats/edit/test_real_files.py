"""Real requirements, projects and environments: one pin after the other changes, and is read back."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.formats.listing import Listing
from compat.formats.registry import format_of
from compat.model import Distribution
from tests.conftest import ROOT

CORPUS = ROOT.parent / "shared" / "corpus" / "files"
FILES = [
    p for k in ("requirements", "pyproject", "conda", "derived") for p in sorted((CORPUS / k).glob("*")) if "lock" not in p.name
]
MOST = 12
"""Pins of one file that are tried."""
AFTER = "987.6.5"


def told(found: Distribution) -> tuple[Any, ...]:
    source = None if found.source is None or found.source.kind in ("index", "nightly", "conda") else str(found.source)
    return found.name, found.version, found.specifier, found.marker, tuple(found.extra.get("extras", ())), source


def rest(listings: tuple[Listing, ...], name: str) -> Counter[tuple[Any, ...]]:
    return Counter(told(e.distribution) for each in listings for e in each.entries if e.distribution.name != name)


def pins(listings: tuple[Listing, ...]) -> list[tuple[str, str]]:
    found = (entry.distribution for listing in listings for entry in listing.entries)
    usual = [
        each for each in found if each.source is not None and each.source.kind in ("index", "conda") and each.specifier is None
    ]
    named = [(each.name, each.version) for each in usual if each.version and each.name[0].isalnum() and each.name != "python"]
    return [pin for pin in dict.fromkeys(named) if pin[1] != "9e"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_pin_can_be_changed(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name.rpartition("__")[2]
    shutil.copyfile(path, copy)
    content = copy.read_bytes()
    form = format_of(str(copy), content)
    before = form.listings(str(copy), content)
    found = pins(before)
    for name, version in found[:: len(found) // MOST + 1]:
        change = Change(name, version, AFTER, hashes=("sha256:" + "1" * 64, "sha256:" + "2" * 64))
        (edit,) = edits_for(str(copy), [change])
        after = form.listings(str(copy), edit.after)
        assert rest(after, name) == rest(before, name)
        versions = Counter(e.distribution.version for each in after for e in each.entries if e.distribution.name == name)
        assert versions[AFTER] >= 1
        assert not versions[version]


def test_the_corpus_is_there() -> None:
    if not CORPUS.is_dir():
        pytest.skip("the corpus is not beside the project")
    assert len(FILES) > 25
