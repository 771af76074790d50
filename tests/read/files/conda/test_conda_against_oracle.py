"""Every real conda, conda-lock and pixi file against what independent readers found in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compat.environment import Distribution
from compat.read.files.conda.conda_environment import read_conda_environment
from compat.read.files.conda.conda_lock import read_conda_lock
from compat.read.files.conda.pixi_lock import read_pixi_lock
from compat.read.files.listing import Listing
from tests.conftest import ROOT

CORPUS = ROOT / ".." / "shared" / "corpus"
ORACLES = sorted((CORPUS / "oracle").glob("conda__*.json"))

if not ORACLES:
    pytest.skip("the corpus is not here", allow_module_level=True)

CALLED_BY_PIP = {"pytorch": "torch"}
"""The oracle keeps conda's names; this package holds a distribution that is called otherwise."""
FAMILIES = {("python", "3.10"): "==3.10.*", ("pytorch-cuda", "11.8"): "==11.8.*"}
"""``=3.10`` is written as a version and asks for any 3.10.x: both are kept, and the range is what is judged."""


def read(oracle: Path) -> tuple[dict[str, Any], str, Listing]:
    wanted = json.loads(oracle.read_text(encoding="utf-8"))
    file = CORPUS / "files" / wanted["file"]
    text = file.read_bytes().decode("utf-8")
    reader = read_conda_environment
    if wanted["file"].endswith("pixi.lock"):
        reader = read_pixi_lock
    elif wanted["file"].endswith("conda-lock.yml"):
        reader = read_conda_lock
    (listing,) = reader(str(file), text)
    return wanted, text, listing


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda path: path.stem)
def test_names_versions_markers_and_sources_are_the_oracles(oracle: Path) -> None:
    wanted, text, listing = read(oracle)
    assert len(listing.entries) == wanted["count"]
    for entry, package in zip(listing.entries, wanted["packages"], strict=True):
        found, name, version = entry.distribution, package["name"], package["version"]
        family = FAMILIES.get((name, version)) if package.get("spec") else None
        assert found.name == (CALLED_BY_PIP.get(name, name) if is_conda(package) else name)
        assert (found.version, found.marker) == (version, package["marker"])
        assert family is None or found.specifier == family
        assert_same_source(found, package)
    lines = text.splitlines()
    for entry in listing.entries:
        assert entry.line is not None
        place = "".join(lines[entry.line - 1 : entry.line + 2]).lower().replace("_", "-").replace(".", "-")
        source = entry.distribution.source
        name = source.details.get("name", entry.distribution.name) if source is not None else ""
        assert name.lower().replace("_", "-").replace(".", "-") in place


def is_conda(package: dict[str, Any]) -> bool:
    return bool(package["source"]["manager"] == "conda")


def assert_same_source(distribution: Distribution, package: dict[str, Any]) -> None:
    source, wanted = distribution.source, package["source"]
    assert source is not None
    url = wanted.get("url")
    if is_conda(package):
        assert (source.kind, source.details["name"]) == ("conda", package["raw_name"])
        assert url is None or source.details["url"] == url
        assert package.get("build") is None or source.details["build"] == package["build"]
        assert wanted.get("platform") in (None, source.details.get("platform"))
    elif url is None:
        assert source.kind == ("nightly" if ".dev" in (package["version"] or "") else "index")
    elif url.startswith("git+"):
        assert source.kind == "vcs"
        assert len(source.details["commit"]) == 40
        assert url.endswith(source.details["commit"])
        assert url.startswith(f"git+{source.details['url']}")
    elif url == ".":
        assert source.kind == "directory"
        assert source.details.get("editable", False) == wanted.get("editable", True)  # not in the oracle of version 5
    else:
        assert (source.kind, source.details["file"]) == ("index", url)
