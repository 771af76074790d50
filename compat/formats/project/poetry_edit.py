"""``[tool.poetry]``: dependencies with Poetry's own constraints, sources, and what is added to them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compat.errors import InputError
from compat.formats.edit.changes import Change, Statement
from compat.formats.locks.constraints import alternatives
from compat.formats.project.toml_edit import TomlFile, as_written, inline_texts, with_keys
from compat.formats.requirements.requirement import parse_requirement
from compat.formats.specifiers import changed_poetry
from compat.model import Distribution, Source, normalized

_DIRECT = ("git", "url", "path", "file")


class PoetryItem:
    """One dependency: a constraint, or a table with ``version`` or an address."""

    revisions: tuple[str, ...] = ("rev", "tag", "branch")
    source_key = "source"

    def __init__(self, name: str, owner: Any, key: Any) -> None:
        self.name = name
        self._owner = owner
        self._key = key

    @property
    def value(self) -> Any:
        return self._owner[self._key]

    @property
    def in_table(self) -> bool:
        return isinstance(self.value, dict)

    def constraint(self) -> str | None:
        text = self.value.get("version") if self.in_table else self.value
        return None if text is None else str(text)

    def found(self, file: TomlFile, line: int | None) -> Distribution:
        """What it asks for, as the statement that is compared with a change."""
        name = normalized(self.name)
        for kind in _DIRECT if self.in_table else ():
            if kind in self.value:
                source = {"git": "vcs", "url": "url"}.get(kind, "directory")
                return Distribution(name, source=Source(source, {"url": str(self.value[kind])}))
        try:
            sets = alternatives(self.constraint() or "*")
            asked = [parse_requirement(f"{name} {each}") for each in sets]
        except ValueError as problem:
            raise InputError(f"{self.name}: {problem}", file.path, line) from None
        return asked[0] if len(asked) == 1 else Distribution(name)

    def change(self, file: TomlFile, change: Change, how: str) -> None:
        """Ask for what the change brings; :class:`InputError` for a folder."""
        if self.in_table and any(kind in self.value for kind in ("path", "file")):
            raise InputError(f"{self.name} is installed from a directory, which is not replaced", file.path)
        if change.is_direct_url:
            self.go_direct(change)
            return
        old = self.constraint()
        new = self.moved(old, change, how)
        if self.in_table:
            with_keys(self._owner, self._key, {"version": new}, ("git", "url", *self.revisions))
        elif new != old:
            self._owner[self._key] = as_written(new, self.value)

    def moved(self, old: str | None, change: Change, how: str) -> str:
        """The constraint with the change made."""
        assert change.after is not None
        return change.after if old is None else changed_poetry(old, change.before, change.after, how)

    def go_direct(self, change: Change) -> None:
        """Ask for a commit, or an archive, and no release."""
        assert change.source is not None
        details = change.source.details
        vcs = change.source.kind == "vcs"
        values = {"git" if vcs else "url": str(details["url"]).removeprefix("git+")}
        if vcs and (revision := details.get("commit") or details.get("requested_revision")):
            values[self.revisions[0]] = str(revision)
        if self.in_table:
            with_keys(self._owner, self._key, values, ("version", "git", "url", self.source_key, *self.revisions))
        else:
            self._owner[self._key] = inline_texts(values)

    def use_source(self, name: str) -> None:
        """Take it from a source by its name."""
        if self.in_table:
            with_keys(self._owner, self._key, {self.source_key: name})
        else:
            self._owner[self._key] = inline_texts({"version": self.constraint() or "*", self.source_key: name})

    def remove(self) -> None:
        """Take it away; :class:`InputError` (without a place) where it is one of several for different platforms."""
        if isinstance(self._owner, list):
            raise InputError(f"{self.name} is asked for in several ways: take it away by hand")
        del self._owner[self._key]


def poetry_statements(file: TomlFile) -> Iterator[Statement]:
    """What the tables of Poetry ask for."""
    for header, table in poetry_tables(file):
        for key in table:
            if normalized(key) == "python":
                continue
            line = file.places.key(header, key)
            value = table[key]
            places = [(value, number) for number in range(len(value))] if isinstance(value, list) else [(table, key)]
            for owner, place in places:
                if isinstance(owner[place], (str, dict)):
                    item = PoetryItem(key, owner, place)
                    yield Statement(item.found(file, line), file.path, line, place=item)


def poetry_tables(file: TomlFile) -> Iterator[tuple[str, Any]]:
    """Every table of dependencies with its header."""
    for key in ("dependencies", "dev-dependencies"):
        table = file.table("tool", "poetry", key)
        if isinstance(table, dict):
            yield f"tool.poetry.{key}", table
    for name in file.table("tool", "poetry", "group") or ():
        table = file.table("tool", "poetry", "group", name, "dependencies")
        if isinstance(table, dict):
            yield f"tool.poetry.group.{name}.dependencies", table


def add_poetry(file: TomlFile, change: Change) -> None:
    """A dependency that is not there, with the reason behind it."""
    if change.is_direct_url:
        holder: dict[str, Any] = {change.name: ""}
        PoetryItem(change.name, holder, change.name).go_direct(change)
        value = holder[change.name].as_string()
    elif change.index_url is not None:
        source = poetry_source(file, change.index_url)
        value = inline_texts({"version": str(change.after), "source": source}).as_string()
    else:
        value = as_written(str(change.after), None).as_string()
    comment = f" # {change.reason}" if change.reason else ""
    file.add_line("tool.poetry.dependencies", f"{change.name} = {value}{comment}")


def poetry_source(file: TomlFile, url: str, priority: str = "explicit") -> str:
    """The name of the source with this address, which is added with a priority where it is not there."""
    return str(file.source("tool.poetry.source", url, priority=priority)["name"])
