"""Pins that no installer can take on the target: torch 2.1.2 has no wheel for Python 3.12, and no source distribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from compat.model import Finding

if TYPE_CHECKING:
    from compat.index import Index
    from compat.index.records import File
    from compat.repair.target import Target

_TAGS = "https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/"


def unserved(pins: Mapping[str, str], target: Target, index: Index) -> dict[str, Finding]:
    """The pins with files on an index, none of which the target takes, each with the error to be fixed."""
    files = index.files_of_pins(pins.items())
    lost = {name: found for (name, _), found in files.items() if found and not any(_takes(target, each) for each in found)}
    return {name: _finding(name, pins[name], found, target) for name, found in lost.items()}


def _takes(target: Target, file: File) -> bool:
    return target.accepts_python(file.requires_python) and (file.kind != "wheel" or target.takes(file.tags))


def _finding(name: str, version: str, files: tuple[File, ...], target: Target) -> Finding:
    rejected = [each.requires_python for each in files if not target.accepts_python(each.requires_python)]
    title = f"{name} {version} has no wheel for Python {target.minor} on this platform"
    why = "It has no source distribution either, so that installers find no version of it."
    if len(rejected) == len(files):
        title = f"{name} {version} does not support Python {target.minor}"
        why = f"It declares Requires-Python {rejected[0]}; installers reject it."
    return Finding(
        rule=f"wheels-{name}", origin="release", verdict="hit", severity="error", effect="install", title=title, why=why,
        confidence="confirmed", packages={name: version}, facts=("python",), evidence=(_TAGS,),
        here=f"{name} {version}, Python {target.minor}",
    )  # fmt: skip
