"""Typed access to the tables of a lock file: a value of another type is an :class:`InputError` with line and key."""

from __future__ import annotations

import os
from typing import Any

from compat.errors import InputError
from compat.formats.requirements.requirement import is_commit
from compat.formats.specifiers import is_version
from compat.model import Source, normalized
from compat.redact import excerpt, without_credentials
from compat.syntax.json import parse_json
from compat.syntax.toml import Places, parse_text, refuse_conflict

Content = dict[str, Any]


_VCS = ("git", "hg", "svn", "bzr")
"""Keys whose value is the address of a repository."""
_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_KINDS = {dict: "a table", list: "a list", bool: "true or false", int: "a number", float: "a number", type(None): "null"}


class Table:
    """A table and its line; ``name`` identifies it in errors (``package torch``) and is empty for the document.

    ``text`` is the TOML text of the file: errors in a table without a line take that of the key or of the table's header.
    """

    def __init__(self, content: Content, file: str, line: int | None = None, name: str = "", text: str = "") -> None:
        self.content = content
        self.file = file
        self.line = line
        self.name = name
        self._text = text

    def wrong(self, problem: str, key: str = "") -> InputError:
        """Return the error for ``problem`` in this table, or in the value of ``key``."""
        line = self.line
        if line is None and self._text:
            line = Places(self._text).key(self.name.replace(" ", "."), key)
        return InputError(f"{self.name}: {problem}" if self.name else problem, self.file, line)

    def expected(self, key: str, expected: str) -> InputError:
        """Return the error for a missing ``key`` or a value of another type."""
        value = self.content.get(key)
        if value is None:
            return self.wrong(f"expected {key} ({expected})", key)
        what = f"the string {excerpt(value, 40)!r}" if isinstance(value, str) else _KINDS.get(type(value), "a date or a time")
        return self.wrong(f"{key}: expected {expected}, not {what}", key)

    def text(self, key: str) -> str | None:
        value = self.content.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.expected(key, "a string")
        return self.sound(value, key)

    def sound(self, text: str, key: str) -> str:
        """Return the text; :class:`InputError` for an unpaired surrogate, which JSON allows and which cannot be printed."""
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise self.wrong(f"{key}: contains an unpaired surrogate", key) from None
        return text

    def needed_text(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            raise self.expected(key, "a string")
        if not value:
            raise self.wrong(f"{key}: expected a non-empty string", key)
        return value

    def flag(self, key: str) -> bool:
        value = self.content.get(key, False)
        if not isinstance(value, bool):
            raise self.expected(key, "true or false")
        return value

    def texts(self, key: str) -> list[str]:
        """Return a list of strings; empty if missing."""
        value = self.content.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.expected(key, "a list of strings")
        return [self.sound(each, key) for each in value]

    def table(self, key: str) -> Table | None:
        value = self.content.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.expected(key, "a table")
        return Table(value, self.file, self.line, f"{self.name} {key}".strip(), self._text)

    def section(self, key: str) -> Table:
        """Return a table; an empty one if missing."""
        return self.table(key) or Table({}, self.file, self.line, f"{self.name} {key}".strip(), self._text)

    def needed_table(self, key: str, expected: str) -> Table:
        found = self.table(key)
        if found is None:
            raise self.expected(key, expected)
        return found

    def tables(self, key: str) -> list[Content]:
        """Return a list of tables; empty if missing."""
        value = self.content.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.expected(key, "a list of tables")
        return value

    def distribution(self) -> str:
        """Return the normalised name of a package; :class:`InputError` if it is invalid."""
        name = self.needed_text("name")
        if not is_name(name):
            raise self.wrong(f"{excerpt(name, 80)!r} is not the name of a package")
        return normalized(name)

    def version(self, text: str | None) -> str | None:
        """Return a version as written; :class:`InputError` if it is invalid (PEP 440)."""
        if text is not None and not is_version(text):
            raise self.wrong(f"{excerpt(text, 80)!r} is not a version (PEP 440)")
        return text

    def repository(self) -> str | None:
        """Return the address of the repository that a package comes from."""
        return next((url for kind in _VCS if (url := self.text(kind)) is not None), None)


def read_toml(path: str, text: str) -> Table:
    """Return the document of a TOML text; :class:`InputError` if it is invalid."""
    return Table(parse_text(text, path), path, text=text)


def read_json(path: str, text: str) -> Table:
    """Return the document of a JSON text; :class:`InputError` if it is invalid or no object."""
    try:
        content = parse_json(text.removeprefix("\ufeff"), path)
    except InputError:
        refuse_conflict(text, path)
        raise
    if not isinstance(content, dict):
        raise InputError(f"expected a JSON object, as in every {os.path.basename(path)}", path)
    return Table(content, path)


def packages_of(document: Table, key: str, text: str) -> list[Table]:
    """Return the tables under ``[[key]]``, each named after its package and with the line of its header, if known."""
    found = document.tables(key)
    lines: list[int] | list[None] = _header_lines(text, f"[[{key}]]")
    if len(lines) != len(found):
        lines = [None] * len(found)
    packages = []
    for number, (content, line) in enumerate(zip(found, lines)):
        name = content.get("name")
        label = f"package {excerpt(name, 80)}" if isinstance(name, str) and name else f"{key}[{number}]"
        packages.append(Table(content, document.file, line, label))
    return packages


def is_name(text: str) -> bool:
    """Whether a text may be the name of a package."""
    core = text.replace("-", "").replace("_", "").replace(".", "")
    return core.isalnum() and core.isascii()


def index_source(url: str | None) -> Source:
    """Return the source of a release on a package index; ``url`` if the file names the index."""
    return Source("index", {"url": without_credentials(url)}) if url else Source("index")


def vcs_source_at(url: str, revision: str | None, subdirectory: str | None) -> Source:
    """Return the source of a repository at a revision, which may be a commit hash."""
    commit = revision if revision is not None and is_commit(revision) else None
    return vcs_source(url, commit, None if commit else revision, subdirectory)


def vcs_source(url: str, commit: str | None, revision: str | None, subdirectory: str | None) -> Source:
    given = {"commit": commit, "requested_revision": revision, "subdirectory": subdirectory}
    return Source("vcs", {"url": without_credentials(url), **{key: value for key, value in given.items() if value}})


def url_source(url: str) -> Source:
    return Source("url", {"url": without_credentials(url)})


def path_source(path: str, *, editable: bool) -> Source:
    """Return the source of a local archive or folder."""
    if path.lower().endswith(_ARCHIVES):
        return Source("url", {"path": path})
    return Source("directory", {"path": path, "editable": True} if editable else {"path": path})


def or_markers(markers: list[str]) -> str | None:
    """Return a marker that holds if one of them does, or ``None``."""
    return markers[0] if len(markers) == 1 else " or ".join(f"({each})" for each in markers) or None


def and_markers(first: str | None, second: str | None) -> str | None:
    """Return a marker that holds if both do."""
    return f"({first}) and ({second})" if first and second else first or second


def _header_lines(text: str, header: str) -> list[int]:
    found, at, line, counted = [], text.find(header), 1, 0
    while at >= 0:
        if not text[text.rfind("\n", 0, at) + 1 : at].strip(" \t"):
            line += text.count("\n", counted, at)
            counted = at
            found.append(line)
        end = text.find("\n", at)  # no line has two of them, and one in a text may have thousands
        at = text.find(header, end) if end >= 0 else -1
    return found
