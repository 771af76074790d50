"""Edits of pyproject.toml: dependencies, extras, groups, and the settings of uv, Poetry and PDM; of Pipfile and pixi.toml.

With a uv.lock next to it, ranges are only moved, because uv can lock a given release. Other tools lock the newest one
that fits, so ranges become pins.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, TypeAlias, TypeVar

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
    revision_of,
    rewritten,
    without_version,
)
from compat.formats.edit.files import Edit
from compat.formats.installs.words import backend_of
from compat.formats.project.draft import Draft
from compat.formats.project.toml_edit import ArrayItem, TomlFile, append, as_written, inline_texts, with_keys
from compat.formats.specifiers import ADMIT, EXACT, changed, changed_poetry, limited_poetry
from compat.model import Source, normalized
from compat.syntax.toml import Slot

Item: TypeAlias = "ArrayItem | PoetryItem"
"""A requirement in an array, or a key of one of Poetry's tables."""


class Project:
    """The requirements of a project or a script, and the tool that manages it."""

    def __init__(self, file: TomlFile, draft: Draft | None, locked_by: str | None, *, script: bool = False) -> None:
        self.file = file
        self._locked = locked_by == "uv"
        self._header = "" if script else "project"
        """The table with the dependencies; the document itself in a script."""
        present = [tool for tool in ("uv", "poetry", "pdm") if file.table("tool", tool) is not None]
        self.tool = locked_by if locked_by in ("uv", "poetry", "pdm") else "uv" if script else (*present, None)[0]
        self._poetry = (
            file.table("tool", "poetry", "dependencies") is not None and file.table("project", "dependencies") is None
        )
        self._elsewhere = {} if draft is None else {each.distribution.name: each.file for each in draft.entries if each.file}
        self._forced = [] if draft is None else list(map(_located, draft.uv.overrides))
        self._statements = [] if draft is None else list(map(_located, (*draft.statements, *draft.uv.constraints)))

    def change(self, change: Change) -> None:
        forced = [each for each in self._forced if each.found.name == change.name]
        if forced or change.override:
            self._override(change, forced)
            return
        wanted = decided(self._statements, change, exact=not self._locked)
        for statement, how in wanted:
            self._change_statement(statement, change, how)
        if change.after is None:
            if any(how == REMOVE for _, how in wanted):
                remove_source(self.file, change.name)
            return
        if not wanted:
            self._add(change)
        # the source, in the tool's settings
        if change.no_binary:
            self._build(change)
        elif self.tool == "uv" and (wanted or change.source is not None):
            set_source(self.file, change)
        elif self.tool == "pdm" and change.index_url is not None:
            packages = self.file.source("tool.pdm.source", change.index_url, include_packages=[]).get("include_packages")
            if packages is not None and change.name not in packages:
                packages.append(change.name)
        elif self.tool == "poetry" and change.index_url is not None and not self._poetry:
            self.file.source("tool.poetry.source", change.index_url, priority="supplemental")

    def _build(self, change: Change) -> None:
        """Build a release from source even if it has wheels; only uv has a setting for that."""
        if self.tool != "uv":
            raise InputError(
                f"{change.name} must be built from source, which only uv can configure (tool.uv.no-binary-package)",
                self.file.path,
            )
        if change.name not in map(str, self.file.table("tool", "uv", "no-binary-package") or ()):
            self._append("tool.uv", "no-binary-package", change.name, change.reason)

    def _change_statement(self, statement: Statement[Item], change: Change, how: str) -> None:
        place = statement.place
        try:
            if how == REMOVE:
                place.remove()
            elif isinstance(place, PoetryItem):
                place.change(self.file, change, how)
                if how != ADMIT:
                    place.move_index(self.file, change)
            elif (new := self._requirement(place.text, change, how)) != place.text:
                place.set(new)
        except InputError as problem:
            raise InputError(problem.message, self.file.path, problem.line or statement.line) from None

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
            self._append_requirement("tool.uv", "override-dependencies", change)
        set_source(self.file, change)

    def _add(self, change: Change) -> None:
        """Add a distribution that the file does not name: a constraint for uv, a dependency for the other tools."""
        if change.implied and not change.direct:
            return
        if change.choices and (places := self._places(change.choices)):  # others exclude them, and may need another release
            for header, key in places:
                self._append_requirement(header, key, change)
        elif self.tool == "uv" and not change.direct and change.source is None:
            # uv looks up sources for dependencies only
            self._append_requirement("tool.uv", "constraint-dependencies", change)
        elif self._poetry:
            PoetryItem.add(self.file, "tool.poetry.dependencies", change)
        else:
            if "dependencies" in (self.file.table("project", "dynamic") or ()):
                line = self.file.places.key("project", "dynamic")
                if change.name in self._elsewhere:
                    listed = self._elsewhere[change.name]
                    raise InputError(f"{change.name} is listed in {listed}: pass that file instead", self.file.path, line)
                problem = f"the dependencies are dynamic (computed by the build backend): {change.name} cannot be added here"
                raise InputError(problem, self.file.path, line)
            if self._header and self.file.table(self._header) is None:
                raise InputError(f"has no [project] table to add {change.name} to", self.file.path)
            self._append_requirement(self._header, "dependencies", change)

    def _places(self, choices: Collection[str]) -> list[tuple[str, str]]:
        """The table and key of the requirements of each of these extras and groups."""
        headers = {"extra": "project.optional-dependencies", "group": "dependency-groups"}
        return [
            (header, str(key)) for kind, header in headers.items() for key in self.file.table(*header.split(".")) or ()
            if f"{kind} {normalized(str(key))}" in choices
        ]  # fmt: skip

    def _append_requirement(self, header: str, key: str, change: Change) -> None:
        by_source = self.tool == "uv" and change.is_direct_url
        self._append(header, key, change.name if by_source else requirement_for(change), change.reason)

    def _append(self, header: str, key: str, text: str, reason: str) -> None:
        """Add a string to an array, which is created if it is missing; one that is there already stays as it is."""
        array = self.file.table(*filter(None, header.split(".")), key)
        if array is not None and text in map(str, array):
            return
        if array is not None:
            append(array, text, reason)
        elif header:
            self.file.add_string(header, key, text, reason)
        else:
            array = tomlkit.array()
            array.append(as_written(text, None))
            self.file.document.add(key, array)


def _located(statement: Statement[Slot]) -> Statement[Item]:
    slot = statement.place
    item = PoetryItem(slot) if slot.name else ArrayItem(slot)
    return Statement(statement.found, statement.file, statement.line, item, statement.constraint, statement.choice)


# --- ``[tool.uv]``: sources and indexes of distributions.


_DIRECT = ("git", "url")
_LOCAL = ("path", "workspace")


def set_source(file: TomlFile, change: Change) -> None:
    """Update the sources to match a change; a source that the change moves away from is removed.

    :class:`InputError` if the source is a local directory, or if several sources cannot be distinguished.
    """
    sources, key = _sources(file, change.name)
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
    sources, key = _sources(file, name)
    if key is not None:
        del sources[key]


def _sources(file: TomlFile, name: str) -> tuple[Any, str | None]:
    """Return the table of sources, and the key of this distribution in it."""
    sources = file.table("tool", "uv", "sources")
    return sources, next((each for each in sources or () if normalized(each) == name), None)


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
    more = {"rev": revision_of(source), "subdirectory": details.get("subdirectory")}
    return {"git": url, **{key: str(value) for key, value in more.items() if value}}


def _set(file: TomlFile, sources: Any, key: str | None, change: Change, value: dict[str, str]) -> None:
    has_header = re.search(r"^\[tool\.uv\.sources\]", file.text, re.MULTILINE)
    if sources is None or (key is None and has_header):
        file.add_line("tool.uv.sources", f"{change.name} = {inline_texts(value).as_string()}")
    elif key is None:
        sources[change.name] = inline_texts(value)
    else:
        with_keys(sources, key, value, [each for each in sources[key] if each not in ("marker", "extra", "group")])


# --- ``[tool.poetry]``: dependencies with Poetry's own constraints, and sources.


class PoetryItem:
    """One dependency: a constraint, or a table with ``version`` or an address."""

    revisions: tuple[str, ...] = ("rev", "tag", "branch")
    source_key = "source"

    def __init__(self, slot: Slot) -> None:
        self.name = slot.name
        self._owner, self._key = slot.owner, slot.key

    @property
    def value(self) -> Any:
        return self._owner[self._key]

    @property
    def in_table(self) -> bool:
        return isinstance(self.value, dict)

    def constraint(self) -> str | None:
        text = self.value.get("version") if self.in_table else self.value
        return None if text is None else str(text)

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
        assert change.after is not None
        if change.limit and how == EXACT and (bound := limited_poetry(old, change.limit, change.after)) is not None:
            return bound
        return change.after if old is None else changed_poetry(old, change.before, change.after, how)

    def use_url(self, change: Change) -> None:
        """Require a commit or an archive instead of a release."""
        assert change.source is not None
        vcs = change.source.kind == "vcs"
        values = {"git" if vcs else "url": str(change.source.details["url"]).removeprefix("git+")}
        if vcs and (revision := revision_of(change.source)):
            values[self.revisions[0]] = revision
        if self.in_table:
            with_keys(self._owner, self._key, values, ("version", "git", "url", self.source_key, *self.revisions))
        else:
            self._owner[self._key] = inline_texts(values)

    def index(self, file: TomlFile, url: str) -> str:
        """Return the name of the source with this address, which is added if it is missing."""
        return str(file.source("tool.poetry.source", url, priority="explicit")["name"])

    def use_index(self, file: TomlFile, url: str) -> None:
        """Install it from the source with this address."""
        name = self.index(file, url)
        if self.in_table:
            with_keys(self._owner, self._key, {self.source_key: name})
        else:
            self._owner[self._key] = inline_texts({"version": self.constraint() or "*", self.source_key: name})

    def move_index(self, file: TomlFile, change: Change) -> None:
        """Install it from the index of the new release: one for another CUDA release, or none of torch's own any more."""
        leaves = (
            self.in_table and self.source_key in self.value and change.source is None and _is_of_torch(change.before_source)
        )
        url = change.index_url or (change.default_index if leaves else None)
        if url is not None:
            self.use_index(file, url)
        elif leaves:
            with_keys(self._owner, self._key, {}, (self.source_key,))

    def remove(self) -> None:
        """Remove it; :class:`InputError` (without a place) if it is one of several for different platforms."""
        if isinstance(self._owner, list):
            raise InputError(f"{self.name} is required in several places: remove it by hand")
        del self._owner[self._key]

    @classmethod
    def add(cls, file: TomlFile, header: str, change: Change) -> None:
        """Add a dependency to a table, with the reason as a comment."""
        table: dict[str, Any] = {change.name: ""}
        item = cls(Slot(table, change.name, change.name))
        if change.is_direct_url:
            item.use_url(change)
        else:
            table[change.name] = as_written(item.changed_constraint(None, change, EXACT), None)
        if change.index_url is not None:
            item.use_index(file, change.index_url)
        comment = f" # {change.reason}" if change.reason else ""
        file.add_line(header, f"{change.name} = {table[change.name].as_string()}{comment}")


def _is_of_torch(source: Source | None) -> bool:
    """Whether a source is torch's own index for one CUDA release."""
    folder = str(source.details.get("url", "")).rstrip("/").rpartition("/")[2] if source is not None else ""
    return "cuda" in backend_of(folder)


# --- Pipfile and pixi: tables of packages like Poetry's, whose constraints are PEP 440 clauses.


class ClauseItem(PoetryItem):
    """One dependency: PEP 440 clauses, or ``*`` for any release."""

    source_key = "index"

    def changed_constraint(self, old: str | None, change: Change, how: str) -> str:
        assert change.after is not None
        if change.limit and how == EXACT and (bound := limited_poetry(old, change.limit, change.after)) is not None:
            return bound
        return changed("" if old in (None, "*") else str(old), change.before, change.after, how) or "*"


Written = TypeVar("Written", bound=ClauseItem)


def edit_tables(
    file: TomlFile, statements: Sequence[Statement[Written]], changes: Sequence[Change], item: type[ClauseItem], header: str
) -> Edit:
    """Return the edit of a file for the changes; what it does not name yet is added to a table as an ``item``."""
    for change in changes:
        wanted = decided(statements, change, exact=True)
        for statement, how in wanted:
            if how == REMOVE:
                statement.place.remove()
                continue
            statement.place.change(file, change, how)
            statement.place.move_index(file, change)
        if not wanted and change.after is not None and (change.direct or not change.implied):
            item.add(file, header, change)
    return file.edit()
