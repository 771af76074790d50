"""Pipfile and Pipfile.lock of pipenv: tables of packages, and a JSON object with a section for each of them.

The section ``default`` of the lock (``packages`` of the Pipfile) is always installed; the others are choices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compat.formats.edit.changes import Change, Statement
from compat.formats.edit.files import Edit
from compat.formats.edit.installer import Installer
from compat.formats.listing import ROOT, Choice, Edge, Entry, Listing
from compat.formats.locks.tables import (
    Table,
    and_markers,
    index_source,
    path_source,
    read_json,
    read_toml,
    url_source,
    vcs_source_at,
)
from compat.formats.project.draft import Draft, indexes_of
from compat.formats.project.edit import ClauseItem, edit_tables
from compat.formats.project.toml_edit import TomlFile
from compat.formats.registry import Commands, Format, ProjectLock
from compat.formats.specifiers import alternatives
from compat.model import Distribution, Source, normalized
from compat.redact import excerpt
from compat.syntax.toml import Places, Slot

_SPECIFICATION = 6
_MARKER_KEYS = (
    "os_name", "sys_platform", "platform_machine", "platform_python_implementation", "platform_release", "platform_system",
    "platform_version", "python_version", "python_full_version", "implementation_name", "implementation_version",
)  # fmt: skip
_BLANK = " \t\r\n"


class PipfileLock(ProjectLock):
    """Pipfile.lock; :class:`InputError` if it is not a valid one."""

    kind, sources = "Pipfile.lock", ("Pipfile",)
    add, remove, sync = "pipenv install", "pipenv uninstall", "pipenv sync"
    add_from = "pipenv install {what} --index {url}"

    def lock(self, changes: Sequence[Change], pip: Installer) -> str:
        words = " ".join(pip.requirement(change) for change in changes if change.after is not None)
        return f"pipenv upgrade --lock-only {words}" if words else "pipenv lock"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        document = read_json(path, text)
        meta = document.needed_table("_meta", "an object, as in every Pipfile.lock")
        specification = meta.content.get("pipfile-spec", _SPECIFICATION)
        if specification != _SPECIFICATION:
            raise meta.expected("pipfile-spec", str(_SPECIFICATION))
        sources = [Table(each, meta.file, name="_meta sources") for each in meta.tables("sources")]
        indexes = {name: url for each in sources if (name := each.text("name")) and (url := each.text("url"))}
        lines = _Lines(text)
        entries: list[Entry] = []
        edges: list[Edge] = []
        choices: list[Choice] = []
        for section in document.content:
            if section == "_meta":
                continue
            choice = None if section == "default" else len(choices)
            if choice is not None:
                choices.append(Choice("group", section))
            for package in _packages(document, section, lines):
                entries.append(Entry(distribution_of(package, indexes), package.line))
                edges.append(Edge(ROOT, len(edges), _condition(package), choice))
        return (
            Listing(
                path, "Pipfile.lock", tuple(entries), tuple(edges), tuple(choices), requires_python=_requires_python(meta),
                complete=True,
            ),
        )  # fmt: skip


def _requires_python(table: Table) -> str | None:
    requires = table.section("requires")
    exact, minor = requires.text("python_full_version"), requires.text("python_version")
    version = requires.version(exact or minor or None)
    return f"=={version}" if exact else f"=={version}.*" if version else None


def _packages(document: Table, section: str, lines: _Lines) -> list[Table]:
    table = document.section(document.sound(section, "the name of a section"))
    if table.content:
        lines.of(section)
    found = []
    for name in table.content:
        line = lines.of(name)
        content = table.content[name]
        if not isinstance(content, dict):
            raise Table(table.content, document.file, line, section).expected(name, "an object")
        found.append(Table({**content, "name": name}, document.file, line, f"package {excerpt(name, 80)}".strip()))
    return found


def distribution_of(package: Table, indexes: dict[str, str]) -> Distribution:
    """Return what a package of a lock or a Pipfile requires."""
    version, specifier = _asked(package)
    extras = package.texts("extras")
    return Distribution(
        package.distribution(), version, _source(package, indexes), package.text("markers"),
        specifier, {"extras": extras} if extras else {},
    )  # fmt: skip


def _asked(package: Table) -> tuple[str | None, str | None]:
    """Return the version, or the range if the lock has one."""
    text = (package.text("version") or "*").strip()
    number = text.removeprefix("==").strip()
    if text == "*":
        return None, None
    if number[:1].isdecimal() and not number.endswith("*"):
        return package.version(number), None
    try:
        return None, " or ".join(filter(None, alternatives(text))) or None
    except ValueError as problem:
        raise package.wrong(f"version: {problem}") from None


def _source(package: Table, indexes: dict[str, str]) -> Source:
    if (repository := package.repository()) is not None:
        return vcs_source_at(repository, package.text("ref"), package.text("subdirectory"))
    place = package.text("file") or package.text("path")
    if place is None:
        return index_source(indexes.get(package.text("index") or ""))
    return url_source(place) if "://" in place else path_source(place, editable=package.flag("editable"))


def _condition(package: Table) -> str | None:
    """Return the marker of a package; old files also use keys as conditions (``"sys_platform": "== 'win32'"``)."""
    condition = package.text("markers")
    for key in _MARKER_KEYS:
        if key in package.content:
            condition = and_markers(condition, f"{key} {package.needed_text(key)}")
    return condition


class _Lines:
    """Finds the lines of sections and packages, in text order; ``None`` from the first one that is not found."""

    def __init__(self, text: str) -> None:
        self._text = "" if "\\u" in text else text  # the name may be spelled differently
        self._at = 0
        self._line = 1

    def of(self, key: str) -> int | None:
        """Return the line of the next ``"key": {``."""
        quoted = f'"{key}"'
        at = self._at
        while (at := self._text.find(quoted, at)) >= 0:
            start, at = at, at + len(quoted)
            after = self._text[at : at + 200].lstrip(_BLANK)
            if after.startswith(":") and after[1:].lstrip(_BLANK).startswith("{"):
                self._line += self._text.count("\n", self._at, start)
                self._at = at
                return self._line
        self._text = ""
        return None


_TABLES = ("packages", "dev-packages")


class _Item(ClauseItem):
    """A package; its index is the name of a source."""

    revisions = ("ref",)

    def index(self, file: TomlFile, url: str) -> str:
        return str(file.source("source", url, verify_ssl=True)["name"])


class Pipfile(Format):
    """A Pipfile; its other sections than ``packages`` are groups. :class:`InputError` for an invalid constraint."""

    kind = "Pipfile"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        document, places = read_toml(path, text), Places(text)
        indexes = indexes_of(document, "source")
        draft = Draft(document, places, None)
        for header in (key for key, value in document.content.items() if key not in _OTHERS and isinstance(value, dict)):
            node = ROOT if header == "packages" else draft.choice("group", header.removesuffix("-packages"))
            for found, line in _packages_of(document.section(header).content, header, path, places, indexes):
                draft.add(found, line, node)
        draft.requires_python = _requires_python(document)
        return (draft.listing(self.kind),)

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        file = TomlFile(path, content)
        return (edit_tables(file, list(_statements(file)), changes, _Item, "packages"),)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        return PipfileLock().commands(path, content, changes, pip)


_OTHERS = ("source", "requires", "scripts", "pipenv")


def _statements(file: TomlFile) -> Iterator[Statement[_Item]]:
    for header in _TABLES:
        table = file.table(header) or {}
        for key in table:
            for found, line in _packages_of({key: table[key]}, header, file.path, file.places, {}):
                yield Statement(found, file.path, line, _Item(Slot(table, key, key)))


def _packages_of(
    table: dict[str, Any], header: str, path: str, places: Places, indexes: dict[str, str]
) -> Iterator[tuple[Distribution, int | None]]:
    """Yield what a section requires, with lines."""
    for key, value in table.items():
        value = {"version": value} if isinstance(value, str) else value
        if isinstance(value, dict) and normalized(key) != "python":
            package = Table({**value, "name": key}, path, places.key(header, key), key)
            yield distribution_of(package, indexes), package.line
