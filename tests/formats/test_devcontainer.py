"""devcontainer.json: JSON with comments, features and the commands that install when the container is made."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import edits_for
from compat.formats.listing import Listing
from compat.formats.registry import read_listings

CONTAINER = """\
// For format details, see the documentation.
{
  "name": "train", /* a comment
  over two lines */
  "image": "nvcr.io/nvidia/pytorch:24.10-py3",
  "features": {
    "ghcr.io/devcontainers/features/python:1": { "version": "3.11" },
    "ghcr.io/devcontainers/features/nvidia-cuda:1": { "cudaVersion": "12.4" },
  },
  "onCreateCommand": { "a": "pip install trl==0.12.1", "b": ["pip", "install", "peft==0.13.2"] },
  "postCreateCommand": "pip install transformers==4.46.3 && pre-commit install",
  "containerEnv": { "HF_HOME": "/hf", "SITE": "https://a.example//x", "HOST": "${localEnv:HOST}" },
}
"""


def read(tmp_path: Path, text: str) -> Listing:
    path = tmp_path / "devcontainer.json"
    path.write_text(text, encoding="utf-8")
    (listing,) = read_listings(str(path))
    return listing


def test_commands_features_and_image(tmp_path: Path) -> None:
    listing = read(tmp_path, CONTAINER)
    assert [(e.distribution.name, e.distribution.version, e.line) for e in listing.entries] == [
        ("torch", "2.5.0a0+e000cf0ad9.nv24.10", 5),
        ("trl", "0.12.1", 10),
        ("peft", "0.13.2", 10),
        ("transformers", "4.46.3", 11),
    ]
    assert (listing.requires_python, listing.context.cuda_toolkit) == ("==3.11.*", "12.4")
    assert listing.context.variables == {"HF_HOME": "/hf", "SITE": "https://a.example//x"}


def test_the_pins_are_those_of_the_json_without_its_comments(tmp_path: Path) -> None:
    lines = [line for line in CONTAINER.split("\n") if not line.startswith("//")]
    plain = re.sub(r"/\*.*?\*/", "", "\n".join(lines), flags=re.DOTALL)
    document = json.loads(re.sub(r",(\s*})", r"\1", plain))
    expected = set(re.findall(r"([a-z]+)==([\d.]+)", json.dumps(document)))
    own = [e.distribution for e in read(tmp_path, CONTAINER).entries]
    assert {(each.name, each.version) for each in own if each.source and each.source.kind == "index"} == expected


def test_a_dockerfile_is_named(tmp_path: Path) -> None:
    listing = read(tmp_path, '{"build": {"dockerfile": "Dockerfile"}}')
    assert listing.entries == ()
    assert any("is built from Dockerfile: check that one too" in note for note in listing.notes)


def test_an_edit_changes_one_pin(tmp_path: Path) -> None:
    path = tmp_path / "devcontainer.json"
    path.write_text(CONTAINER, encoding="utf-8")
    (edit,) = edits_for(str(path), [Change("transformers", "4.46.3", "4.48.0")])
    assert edit.after.decode() == CONTAINER.replace("4.46.3", "4.48.0")
    with pytest.raises(InputError, match="peft is installed here in a way that cannot be changed safely"):
        edits_for(str(path), [Change("peft", "0.13.2", "0.14.0")])
