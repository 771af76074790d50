"""Every real lock of Poetry, PDM, Pipenv and PEP 751 against what independent readers found in it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from compat.environment import Distribution, normalized
from compat.errors import InputError
from compat.read.files.listing import Listing
from compat.read.files.locks.pdm_lock import read_pdm_lock
from compat.read.files.locks.pipfile_lock import read_pipfile_lock
from compat.read.files.locks.poetry_lock import read_poetry_lock
from compat.read.files.locks.pylock import read_pylock
from tests.conftest import ROOT

CORPUS = ROOT / ".." / "shared" / "corpus"
READERS = {
    "poetry.lock": read_poetry_lock,
    "pdm.lock": read_pdm_lock,
    "Pipfile.lock": read_pipfile_lock,
    "pylock.toml": read_pylock,
}
ORACLES = sorted(
    path for path in (CORPUS / "oracle").glob("*.json") if path.name.removesuffix(".json").endswith(tuple(READERS))
)

if not ORACLES:
    pytest.skip("the corpus is not here", allow_module_level=True)


def read(oracle: Path) -> tuple[dict[str, Any], str, Listing]:
    wanted = json.loads(oracle.read_text(encoding="utf-8"))
    file = CORPUS / "files" / wanted["file"]
    text = file.read_bytes().decode("utf-8")
    reader = next(READERS[kind] for kind in READERS if wanted["file"].endswith(kind))
    (listing,) = reader(str(file), text)
    return wanted, text, listing


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda path: path.stem)
def test_names_versions_markers_and_sources_are_the_oracles(oracle: Path) -> None:
    if not json.loads(oracle.read_text(encoding="utf-8"))["ok"]:
        with pytest.raises(InputError, match="merge conflict") as caught:
            read(oracle)
        assert caught.value.line == 2210
        return
    wanted, text, listing = read(oracle)
    found = [entry.distribution for entry in listing.entries]
    assert [(d.name, d.version, d.marker) for d in found] == [
        (p["name"], p["version"], p["marker"]) for p in wanted["packages"]
    ]
    indexes = {source["name"]: source["url"] for source in wanted["meta"].get("sources") or ()}
    for distribution, package in zip(found, wanted["packages"]):
        assert_same_source(distribution, package["source"], indexes)
    lines = text.split("\n")
    for entry, package in zip(listing.entries, wanted["packages"]):
        assert entry.line is not None
        assert f'"{package["raw_name"]}"' in lines[entry.line - 1] + lines[entry.line]
    assert listing.complete
    assert listing.edges is not None


def assert_same_source(distribution: Distribution, wanted: dict[str, Any], indexes: dict[str, str]) -> None:
    assert distribution.source is not None
    kind, details = distribution.source.kind, dict(distribution.source.details)
    given = wanted.get("type")
    if given in ("pypi-default", "index-default"):
        assert (kind, details) == ("index", {})
    elif given == "git" or "git" in wanted:
        commit = wanted.get("resolved_reference") or wanted.get("ref")
        assert (kind, details["url"], details["commit"]) == ("vcs", wanted.get("url") or wanted["git"], commit)
    elif given == "legacy":
        assert (kind, details) == ("index", {"url": wanted["url"]})
    elif given == "url" or "file" in wanted:
        assert (kind, details) == ("url", {"url": wanted.get("url") or wanted["file"]})
    elif "archive" in wanted:
        assert (kind, details) == ("url", {"url": wanted["archive"]["url"]})
    elif "directory" in wanted or "path" in wanted:
        place = wanted.get("directory", wanted)
        assert (kind, details) == ("directory", {"path": place["path"], "editable": True})
    else:
        assert kind == "index"
        assert details == ({"url": indexes.get(wanted["index"], wanted["index"])} if wanted.get("index") else {})


@pytest.mark.parametrize("oracle", [path for path in ORACLES if "04da2974" not in path.name], ids=lambda path: path.stem)
def test_everything_listed_can_be_installed(oracle: Path) -> None:
    _, _, listing = read(oracle)
    reached, todo = {-1}, [-1]
    below: dict[int, list[int]] = {}
    for parent, child, _, _ in listing.edges or ():
        below.setdefault(parent, []).append(child)
    while todo:
        for child in below.get(todo.pop(), ()):
            if child not in reached:
                reached.add(child)
                todo.append(child)
    left = [entry.distribution.name for number, entry in enumerate(listing.entries) if number not in reached]
    assert left == (["scipy"] if "lorax__3ad7aaef" in oracle.name else [])  # optional there, and in no extra


@pytest.mark.parametrize("oracle", [path for path in ORACLES if "poetry.lock" in path.name], ids=lambda path: path.stem)
def test_what_poetry_calls_optional_needs_an_extra_and_nothing_else_does(oracle: Path) -> None:
    wanted, _, listing = read(oracle)
    reached, todo = {-1}, [-1]
    while todo:
        parent = todo.pop()
        for start, child, _, choice in listing.edges or ():
            if start == parent and child not in reached and (choice is None or listing.choices[choice].kind != "extra"):
                reached.add(child)
                todo.append(child)
    optional = {number for number, package in enumerate(wanted["packages"]) if package["optional"]}
    if all(package["groups"] is None for package in wanted["packages"]):
        assert set(range(len(listing.entries))) - reached == optional


def test_the_corpus_has_the_pins_its_index_names() -> None:
    with (CORPUS / "index.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["file"] and row["kind"] in READERS]
    compared = 0
    for row in rows:
        path = CORPUS / "files" / row["file"]
        try:
            (listing,) = READERS[row["kind"]](str(path), path.read_bytes().decode("utf-8"))
        except InputError:
            continue
        found: dict[str, set[str | None]] = {}
        for entry in listing.entries:
            found.setdefault(entry.distribution.name, set()).add(entry.distribution.version)
        for pin in filter(None, row["pins"].split(";")):
            name, _, versions = pin.partition("=")
            if versions != "?" and not versions.startswith("@"):
                assert set(versions.split("|")) <= found[normalized(name)], (row["file"], pin)
                compared += 1
    assert compared > 50
