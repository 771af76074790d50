"""Made-up packages with several releases, each a few lines of source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compat.interfaces.code.files import read_code
from compat.interfaces.code.needs import CodeNeeds
from compat.interfaces.code.releases import Releases, Reverse
from compat.interfaces.release import SourceSurface
from compat.interfaces.source.module import read_module

_BASE = """
from dataclasses import dataclass

@dataclass
class Arguments:
    output_dir: str = ""
    {field}: str = "no"

class Trainer:
    def train(self): self.compute_loss(1, 2{passed})
    def compute_loss(self, model, inputs{parameter}): pass
"""
_LIBRARY = """
from dataclasses import dataclass
from base import Arguments, Trainer
{warns}
@dataclass
class Config(Arguments):
    {field}: int = 0

class Special(Trainer):
    def __init__(self, model, {keyword}=None): pass
{more}
"""
_WARNS = """
def deprecate_kwarg(*a, **k): pass
"""
PACKAGES: dict[str, dict[str, dict[str, str]]] = {
    "base": {
        "1.0": {"base": _BASE.format(field="evaluation", passed="", parameter="")},
        "2.0": {"base": _BASE.format(field="eval", passed="", parameter="")},
        "3.0": {"base": _BASE.format(field="eval", passed=", items=3", parameter=", items=None")},
    },
    "lib": {
        "0.1": {"lib": _LIBRARY.format(field="max_seq", keyword="tokenizer", warns="", more="def helper(): pass")},
        "0.2": {"lib": _LIBRARY.format(field="max_seq", keyword="tokenizer", warns="", more="def helper(): pass")},
        "0.3": {"lib": _LIBRARY.format(field="max_length", keyword="processing", warns=_WARNS, more="")},
    },
}
TRACKED = {name: name for name in PACKAGES}


class Table:
    """As much of a shipped table as is asked for."""

    def __init__(self, package: str, releases: Mapping[str, Mapping[str, str]]) -> None:
        self.package, self.versions = package, tuple(releases)
        self._surfaces = {version: _surface(package, version, files) for version, files in releases.items()}

    def surface(self, version: str) -> Any:
        return self._surfaces.get(version)

    def modules(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for each in self._surfaces.values() for name in each.names))

    def names_in(self, module: str) -> frozenset[str]:
        found = [each.module(module) for each in self._surfaces.values()]
        return frozenset(name for each in found if each is not None for name in each.definitions)

    def renames(self, module: str, owner: str, old: str) -> tuple[tuple[str | None, str | None, tuple[str, ...]], ...]:
        return (("processing", "0.3", ("0.2",)),) if (owner, old) == ("Special", "tokenizer") else ()

    def block(self, module: str) -> dict[str, list[Any]]:
        return {"rename": [(("Special", "tokenizer"), 0, ("processing", "0.3"))]}


def _surface(package: str, version: str, files: Mapping[str, str]) -> SourceSurface:
    modules = {name: read_module(source.encode(), name) for name, source in files.items()}
    return SourceSurface(package, version, modules, modules.get)


def releases() -> Releases:
    tables = {name: Table(name, found) for name, found in PACKAGES.items()}
    return Releases(tables.get, TRACKED)  # type: ignore[arg-type]


def wanted_in(folder: Path, text: str, name: str = "train.py") -> CodeNeeds:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return CodeNeeds(read_code((str(path),)), TRACKED)


def allowed(folder: Path, text: str) -> dict[str, tuple[str, ...]]:
    """The releases of each made-up package with which some code can do."""
    wanted = wanted_in(folder, text)
    bounds = [bound for each in wanted.code.files for bound in each.bounds]
    ranges = Reverse(wanted, releases(), bounds).ranges()
    return {each.package: tuple(version for version in each.versions if version in each.allowed) for each in ranges}
