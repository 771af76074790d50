"""Pipfile, locked by pipenv. Only its lock is read; a fix edits its packages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compat.errors import InputError
from compat.formats.edit.changes import REMOVE, Change, Statement, decided
from compat.formats.edit.files import Edit
from compat.formats.edit.installer import Installer
from compat.formats.listing import Listing
from compat.formats.locks.pipfile import PipfileLock, distribution_of
from compat.formats.locks.tables import Table
from compat.formats.project.edit import PoetryItem
from compat.formats.project.toml_edit import TomlFile
from compat.formats.registry import Commands, Format
from compat.formats.specifiers import changed
from compat.model import normalized
from compat.syntax.toml import Slot

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
    """A Pipfile; :class:`InputError` for a local directory and an invalid constraint."""

    kind = "Pipfile"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        raise InputError("is not supported: pass the Pipfile.lock that pipenv generates from it", path)

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


def _statements(file: TomlFile) -> Iterator[Statement[_Item]]:
    for header in _TABLES:
        table = file.table(header) or {}
        for key in table:
            value = {"version": table[key]} if isinstance(table[key], str) else table[key]
            if isinstance(value, dict) and normalized(key) != "python":
                package = Table({**value, "name": key}, file.path, file.places.key(header, key), key)
                yield Statement(distribution_of(package, {}), file.path, package.line, _Item(Slot(table, key, key)))
