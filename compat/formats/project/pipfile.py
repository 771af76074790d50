"""Pipfile, locked by pipenv: what it allows, and the edit of its packages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compat.formats.edit.changes import REMOVE, Change, Statement, decided
from compat.formats.edit.files import Edit
from compat.formats.edit.installer import Installer
from compat.formats.listing import ROOT, Listing
from compat.formats.locks.pipfile import PipfileLock, distribution_of
from compat.formats.locks.tables import Table, read_toml
from compat.formats.project.draft import Draft, indexes_of
from compat.formats.project.edit import PoetryItem
from compat.formats.project.toml_edit import TomlFile
from compat.formats.registry import Commands, Format
from compat.formats.specifiers import changed
from compat.model import Distribution, normalized
from compat.syntax.toml import Places, Slot

_TABLES = ("packages", "dev-packages")


class _Item(PoetryItem):
    """A package: PEP 440 clauses, or ``*`` for any release."""

    revisions = ("ref",)
    source_key = "index"

    def source(self, file: TomlFile, url: str) -> dict[str, Any]:
        return file.source("source", url, verify_ssl=True)

    def changed_constraint(self, old: str | None, change: Change, how: str) -> str:
        assert change.after is not None
        return changed("" if old in (None, "*") else str(old), change.before, change.after, how) or "*"


class Pipfile(Format):
    """A Pipfile; its other sections than ``packages`` are groups. :class:`InputError` for an invalid constraint."""

    kind = "Pipfile"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        document, places = read_toml(path, text), Places(text)
        indexes = indexes_of(document, "source")
        draft = Draft(document, places, None)
        for header in (key for key, value in document.content.items() if key not in _OTHERS and isinstance(value, dict)):
            node = ROOT if header == "packages" else draft.choice("group", header.removesuffix("-packages"))
            for found, line in _packages(document.section(header).content, header, path, places, indexes):
                draft.add(found, line, node)
        requires = document.section("requires")
        exact, minor = requires.text("python_full_version"), requires.text("python_version")
        version = requires.version(exact or minor or None)
        draft.requires_python = f"=={version}" if exact else f"=={version}.*" if version else None
        return (draft.listing(self.kind),)

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        file = TomlFile(path, content)
        for change in changes:
            wanted = decided(list(_statements(file)), change, exact=True)
            for statement, how in wanted:
                item = statement.place
                if how == REMOVE:
                    item.remove()
                    continue
                item.change(file, change, how)
                if change.index_url is not None:
                    item.use_index(file, change.index_url)
            if not wanted and change.after is not None and (change.direct or not change.implied):
                _Item.add(file, "packages", change)
        return (file.edit(),)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        return PipfileLock().commands(path, content, changes, pip)


_OTHERS = ("source", "requires", "scripts", "pipenv")


def _statements(file: TomlFile) -> Iterator[Statement[_Item]]:
    for header in _TABLES:
        table = file.table(header) or {}
        for key in table:
            for found, line in _packages({key: table[key]}, header, file.path, file.places, {}):
                yield Statement(found, file.path, line, _Item(Slot(table, key, key)))


def _packages(
    table: dict[str, Any], header: str, path: str, places: Places, indexes: dict[str, str]
) -> Iterator[tuple[Distribution, int | None]]:
    """Yield what a section requires, with lines."""
    for key, value in table.items():
        value = {"version": value} if isinstance(value, str) else value
        if isinstance(value, dict) and normalized(key) != "python":
            package = Table({**value, "name": key}, path, places.key(header, key), key)
            yield distribution_of(package, indexes), package.line
