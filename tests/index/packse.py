"""The resolver scenarios of ``../shared/packse``: what they ask, and their packages for :class:`IndexServer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from compat.syntax.toml import parse_toml
from scripts.golden_inputs import SHARED

FOLDER = SHARED / "packse"


class Scenario(NamedTuple):
    """One file: ``requires`` of the root, and whether, and with which ``chosen`` versions, they can be met."""

    name: str
    packages: Mapping[str, Mapping[str, Mapping[str, Any]]]
    requires: tuple[str, ...]
    requires_python: str | None
    python: str
    """The interpreter that is resolved for, where nothing is said the newest that all scenarios allow."""
    satisfiable: bool
    chosen: Mapping[str, str]
    explanation: str
    options: Mapping[str, Any]
    """``universal``, ``prereleases``, ``no_binary``, ``python_platform``, ``python``."""


def scenarios(folder: Path = FOLDER) -> Iterator[Scenario]:
    """Every scenario, by name; none where the folder is not there."""
    for path in sorted(folder.glob("*/*.toml")):
        yield read_scenario(path)


def read_scenario(path: Path) -> Scenario:
    _, document = parse_toml(str(path))
    expected, root, options = document["expected"], document["root"], document.get("resolver_options", {})
    return Scenario(
        name=f"{path.parent.name}/{path.stem}",
        packages={name: package.get("versions", {}) for name, package in document.get("packages", {}).items()},
        requires=tuple(root.get("requires", ())),
        requires_python=root.get("requires_python"),
        python=options.get("python") or document.get("environment", {}).get("python") or "3.12",
        satisfiable=expected["satisfiable"],
        chosen=expected.get("packages", {}),
        explanation=expected.get("explanation", ""),
        options=options,
    )
