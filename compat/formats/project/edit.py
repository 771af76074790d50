"""Edits of pyproject.toml: dependencies, extras, groups, and the settings of uv, Poetry and PDM.

With a uv.lock next to it, ranges are only moved, because uv can lock a given release. Other tools lock the newest one
that fits, so ranges become pins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import tomlkit

from compat.errors import InputError
from compat.formats.edit.changes import (
    REMOVE,
    Change,
    Statement,
    decided,
    moved_editable,
    repository,
    requirement_for,
    rewritten,
    without_version,
)
from compat.formats.edit.files import Edit
from compat.formats.project.toml_edit import ArrayItem, TomlFile, append, as_written, inline_texts, items, with_keys
from compat.formats.registry import lock_next_to
from compat.formats.requirements.requirement import Unnamed, editable, parse_requirement
from compat.formats.specifiers import ADMIT, alternatives, changed_poetry
from compat.model import Distribution, Source, normalized

Item: TypeAlias = "ArrayItem | PoetryItem"
"""A requirement in an array, or a key of one of Poetry's tables."""


def edit_pyproject(path: str, content: bytes, changes: Sequence[Change]) -> tuple[Edit, ...]:
    """Return the edit of a pyproject.toml.

    :class:`InputError` for dependencies computed by the build backend, for a local directory, and for what no tool of
    the project can express.
    """
    lock = lock_next_to(path)
    project = Project(TomlFile(path, content), lock.program if lock is not None else None)
    for change in changes:
        project.change(change)
    return (project.file.edit(),)


class Project:
    """A pyproject.toml and the tool that manages the project."""

    def __init__(self, file: TomlFile, locked_by: str | None, *, script: bool = False) -> None:
        self.file = file
        self._locked = locked_by == "uv"
        self._script = script
        present = [tool for tool in ("uv", "poetry", "pdm") if file.table("tool", tool) is not None]
        self.tool = locked_by if locked_by in ("uv", "poetry", "pdm") else "uv" if script else (*present, None)[0]
        self._poetry = file.table("tool", "poetry", "dependencies") is not None and not self._has_own()

    def _has_own(self) -> bool:
        return self.file.table("project", "dependencies") is not None

    def change(self, change: Change) -> None:
        """Apply one change."""
        forced = [each for each in self._arrays("override-dependencies") if each.found.name == change.name]
        if forced or change.override:
            self._override(change, forced)
            return
        statements = [*self._statements(), *self._arrays("constraint-dependencies", constraint=True)]
        wanted = decided(statements, change, exact=not self._locked)
        for statement, how in wanted:
            self._change_statement(statement, change, how)
        if change.after is None:
            if any(how == REMOVE for _, how in wanted):
                remove_source(self.file, change.name)
            return
        if not wanted:
            self._add(change)
        self._source(change, wanted)

    def _source(self, change: Change, wanted: Sequence[object]) -> None:
        """Set the source of the distribution in the tool's settings."""
        if change.no_binary:
            self._build(change)
        elif self.tool == "uv" and (wanted or change.source is not None):
            set_source(self.file, change)
        elif self.tool == "pdm" and change.index_url is not None:
            packages = self.file.source("tool.pdm.source", change.index_url, include_packages=[]).get("include_packages")
            if packages is not None and change.name not in packages:
                packages.append(change.name)
        elif self.tool == "poetry" and change.index_url is not None and not self._poetry:
            poetry_source(self.file, change.index_url, "supplemental")

    def _build(self, change: Change) -> None:
        """Build a release from source even if it has wheels; only uv has a setting for that."""
        if self.tool != "uv":
            raise InputError(
                f"{change.name} must be built from source, which only uv can configure (tool.uv.no-binary-package)",
                self.file.path,
            )
        known = self.file.table("tool", "uv", "no-binary-package")
        if change.name not in map(str, known or ()):
            self._append_text(known, "tool.uv", "no-binary-package", change.name, change.reason)

    def _statements(self) -> Iterator[Statement[Item]]:
        """Yield every requirement, in arrays and in Poetry's tables."""
        for header, key, array in self._requirement_arrays():
            line = self.file.places.key(header, key)
            for item in items(array):
                line = self.file.places.string(item.text, line)
                yield from self._statement(item, line)
        if not self._has_own() or self._script:
            yield from poetry_statements(self.file)

    def _requirement_arrays(self) -> Iterator[tuple[str, str, Any]]:
        table = self.file.table
        if self._script:
            yield "", "dependencies", table("dependencies")
        yield "project", "dependencies", table("project", "dependencies")
        for header in ("project.optional-dependencies", "dependency-groups", "tool.pdm.dev-dependencies"):
            for key, array in (table(*header.split(".")) or {}).items():
                yield header, key, array
        yield "tool.uv", "dev-dependencies", table("tool", "uv", "dev-dependencies")

    def _arrays(self, key: str, *, constraint: bool = False) -> list[Statement[Item]]:
        found: list[Statement[Item]] = []
        for item in items(self.file.table("tool", "uv", key)):
            line = self.file.places.string(item.text, self.file.places.key("tool.uv", key))
            found += self._statement(item, line, constraint=constraint)
        return found

    def _statement(self, item: ArrayItem, line: int | None, *, constraint: bool = False) -> Iterator[Statement[Item]]:
        text = item.text.strip()
        try:
            found = editable(text[3:]) if text.startswith("-e ") else parse_requirement(text)
        except Unnamed:
            return
        except ValueError as problem:
            raise InputError(str(problem), self.file.path, line) from None
        yield Statement(found, self.file.path, line, item, constraint)

    def _change_statement(self, statement: Statement[Item], change: Change, how: str) -> None:
        try:
            self._change_item(statement, change, how)
        except InputError as problem:
            raise InputError(problem.message, self.file.path, problem.line or statement.line) from None

    def _change_item(self, statement: Statement[Item], change: Change, how: str) -> None:
        place = statement.place
        if how == REMOVE:
            place.remove()
        elif isinstance(place, PoetryItem):
            place.change(self.file, change, how)
            if change.index_url is not None and how != ADMIT:
                place.use_source(poetry_source(self.file, change.index_url))
        else:
            new = self._requirement(str(place.text), change, how)
            if new != place.text:
                place.set(new)

    def _requirement(self, text: str, change: Change, how: str) -> str:
        operand = text.strip().removeprefix("-e ")
        mark = "-e " if operand != text.strip() else ""
        if change.is_direct_url and (self.tool == "uv" or how == ADMIT):
            return without_version(operand if mark else text, change.name)  # the source names the commit
        if not mark:
            return rewritten(text, change, how)
        return mark + moved_editable(operand, change) if change.is_direct_url else rewritten(operand, change, how)

    def _override(self, change: Change, forced: list[Statement[Item]]) -> None:
        """Override every requirement of the distribution, which only uv supports."""
        if change.after is None:
            for statement in forced:
                statement.place.remove()
            return
        if self.tool != "uv":
            raise InputError(
                f"{change.name} {change.after} violates what another distribution requires, which only uv can override "
                "(tool.uv.override-dependencies)", self.file.path,
            )  # fmt: skip
        wanted = decided(forced, change, exact=True)
        for statement, how in wanted:
            self._change_statement(statement, change, how)
        if not wanted:
            self._append("override-dependencies", change)
        set_source(self.file, change)

    def _add(self, change: Change) -> None:
        """Add a distribution that the file does not name: a constraint for uv, a dependency for the other tools."""
        if change.implied and not change.direct:
            return
        if self.tool == "uv" and not change.direct and change.source is None:
            self._append("constraint-dependencies", change)  # uv looks up sources for dependencies only
        elif self._poetry:
            add_poetry(self.file, change)
        else:
            self._refuse_dynamic(change)
            own = self.file.table("dependencies") if self._script else self.file.table("project", "dependencies")
            if own is None and self.file.table("project") is None and not self._script:
                raise InputError(f"has no [project] table to add {change.name} to", self.file.path)
            self._append_to(own, "" if self._script else "project", "dependencies", change)

    def _refuse_dynamic(self, change: Change) -> None:
        if "dependencies" in (self.file.table("project", "dynamic") or ()):
            line = self.file.places.key("project", "dynamic")
            message = f"the dependencies are dynamic (computed by the build backend): {change.name} cannot be added here"
            raise InputError(message, self.file.path, line)

    def _append(self, key: str, change: Change) -> None:
        self._append_to(self.file.table("tool", "uv", key), "tool.uv", key, change)

    def _append_to(self, array: Any, header: str, key: str, change: Change) -> None:
        by_source = self.tool == "uv" and change.is_direct_url
        self._append_text(array, header, key, change.name if by_source else requirement_for(change), change.reason)

    def _append_text(self, array: Any, header: str, key: str, text: str, reason: str) -> None:
        if array is not None:
            append(array, text, reason)
            return
        if not header:
            array = tomlkit.array()
            array.append(as_written(text, None))
            self.file.document.add(key, array)
            return
        self.file.add_string(header, key, text, reason)


# --- ``[tool.uv]``: sources and indexes of distributions.


_DIRECT = ("git", "url")
_LOCAL = ("path", "workspace")


def set_source(file: TomlFile, change: Change) -> None:
    """Update the sources to match a change; a source that the change moves away from is removed.

    :class:`InputError` if the source is a local directory, or one of several that cannot be told apart.
    """
    sources = file.table("tool", "uv", "sources")
    key = next((each for each in sources or () if normalized(each) == change.name), None)
    current = None if key is None else sources[key]
    if current is not None and not isinstance(current, dict):
        _check_several(file, change, current)
        return
    if current is not None and any(each in current for each in _LOCAL):
        raise _wrong(file, change, "it is installed from a directory, which is not replaced")
    direct = current is not None and any(each in current for each in _DIRECT)
    if change.source is not None and change.is_direct_url:
        _set(file, sources, key, change, _direct(change.source, current))
    elif change.index_url is not None:
        name = str(file.source("tool.uv.index", change.index_url, explicit=True)["name"])
        if current is not None and not direct and "index" in current:
            if str(current["index"]) != name:
                current["index"] = as_written(name, current["index"])
        else:
            _set(file, sources, key, change, {"index": name})
    elif direct or (current is not None and "index" in current and change.before_source is not None):
        del sources[key]


def remove_source(file: TomlFile, name: str) -> None:
    """Remove the source of a distribution that is no longer required."""
    sources = file.table("tool", "uv", "sources")
    key = next((each for each in sources or () if normalized(each) == name), None)
    if key is not None:
        del sources[key]


def _wrong(file: TomlFile, change: Change, problem: str) -> InputError:
    return InputError(f"tool.uv.sources.{change.name}: {problem}", file.path, file.places.key("tool.uv.sources", change.name))


def _check_several(file: TomlFile, change: Change, current: Any) -> None:
    """Check that a list of sources by marker, extra or group already serves the change; :class:`InputError` if not."""
    if change.source is None and all("index" in each for each in current):
        return
    indexes = {str(each.get("name")): str(each.get("url", "")) for each in file.table("tool", "uv", "index") or ()}
    urls = {indexes.get(str(each.get("index")), "").rstrip("/") for each in current}
    if change.index_url is not None and change.index_url.rstrip("/") in urls:
        return
    raise _wrong(file, change, "there are several sources; cannot tell which one to change")


def _direct(source: Source, current: Any) -> dict[str, str]:
    details = source.details
    url = str(details["url"]).removeprefix("git+")
    if source.kind == "url":
        return {"url": url}
    if current is not None and "git" in current and repository(str(current["git"])) == repository(url):
        url = str(current["git"])
    found = {"git": url}
    revision = details.get("commit") or details.get("requested_revision")
    if revision:
        found["rev"] = str(revision)
    if details.get("subdirectory"):
        found["subdirectory"] = str(details["subdirectory"])
    return found


def _set(file: TomlFile, sources: Any, key: str | None, change: Change, value: dict[str, str]) -> None:
    if sources is None or (key is None and _has_header(file)):
        file.add_line("tool.uv.sources", f"{change.name} = {inline_texts(value).as_string()}")
    elif key is None:
        sources[change.name] = inline_texts(value)
    else:
        with_keys(sources, key, value, [each for each in sources[key] if each not in ("marker", "extra", "group")])


def _has_header(file: TomlFile) -> bool:
    return bool(re.search(r"^\[tool\.uv\.sources\]", file.text, re.MULTILINE))


# --- ``[tool.poetry]``: dependencies with Poetry's own constraints, and sources.


_ADDRESSES = ("git", "url", "path", "file")


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
        """Return what it requires, for comparison with a change."""
        name = normalized(self.name)
        for kind in _ADDRESSES if self.in_table else ():
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
        """Apply a change; :class:`InputError` for a local directory."""
        if self.in_table and any(kind in self.value for kind in ("path", "file")):
            raise InputError(f"{self.name} is installed from a directory, which is not replaced", file.path)
        if change.is_direct_url:
            self.use_url(change)
            return
        old = self.constraint()
        new = self.changed_constraint(old, change, how)
        if self.in_table:
            with_keys(self._owner, self._key, {"version": new}, ("git", "url", *self.revisions))
        elif new != old:
            self._owner[self._key] = as_written(new, self.value)

    def changed_constraint(self, old: str | None, change: Change, how: str) -> str:
        """Return the changed constraint."""
        assert change.after is not None
        return change.after if old is None else changed_poetry(old, change.before, change.after, how)

    def use_url(self, change: Change) -> None:
        """Require a commit or an archive instead of a release."""
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
        """Set the source by its name."""
        if self.in_table:
            with_keys(self._owner, self._key, {self.source_key: name})
        else:
            self._owner[self._key] = inline_texts({"version": self.constraint() or "*", self.source_key: name})

    def remove(self) -> None:
        """Remove it; :class:`InputError` (without a place) if it is one of several for different platforms."""
        if isinstance(self._owner, list):
            raise InputError(f"{self.name} is required in several places: remove it by hand")
        del self._owner[self._key]


def poetry_statements(file: TomlFile) -> Iterator[Statement[Item]]:
    """Yield the requirements in Poetry's tables."""
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
    """Yield every dependency table with its header."""
    for key in ("dependencies", "dev-dependencies"):
        table = file.table("tool", "poetry", key)
        if isinstance(table, dict):
            yield f"tool.poetry.{key}", table
    for name in file.table("tool", "poetry", "group") or ():
        table = file.table("tool", "poetry", "group", name, "dependencies")
        if isinstance(table, dict):
            yield f"tool.poetry.group.{name}.dependencies", table


def add_poetry(file: TomlFile, change: Change) -> None:
    """Add a dependency, with the reason as a comment."""
    if change.is_direct_url:
        holder: dict[str, Any] = {change.name: ""}
        PoetryItem(change.name, holder, change.name).use_url(change)
        value = holder[change.name].as_string()
    elif change.index_url is not None:
        source = poetry_source(file, change.index_url)
        value = inline_texts({"version": str(change.after), "source": source}).as_string()
    else:
        value = as_written(str(change.after), None).as_string()
    comment = f" # {change.reason}" if change.reason else ""
    file.add_line("tool.poetry.dependencies", f"{change.name} = {value}{comment}")


def poetry_source(file: TomlFile, url: str, priority: str = "explicit") -> str:
    """Return the name of the source with this address, adding it with ``priority`` if it is missing."""
    return str(file.source("tool.poetry.source", url, priority=priority)["name"])
