"""Changes to pyproject.toml: dependencies of the project, its extras and groups, and the settings of uv, Poetry and PDM.

Where uv.lock lies beside, ranges are only moved: uv can lock a given release. The other tools would lock the newest
one that fits, so that ranges become pins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tomlkit

from compat.errors import InputError
from compat.formats.edit.changes import REMOVE, Change, Statement, decided
from compat.formats.edit.files import Edit
from compat.formats.project.poetry_edit import PoetryItem, add_poetry, poetry_source, poetry_statements
from compat.formats.project.toml_edit import ArrayItem, TomlFile, append, as_written, items
from compat.formats.project.uv_edit import remove_source, set_source
from compat.formats.registry import lock_beside
from compat.formats.requirements.requirement import Unnamed, editable, parse_requirement
from compat.formats.requirements.text import moved_editable, requirement_for, rewritten, without_version
from compat.formats.specifiers import ADMIT


def edit_pyproject(path: str, content: bytes, changes: Sequence[Change]) -> tuple[Edit, ...]:
    """The edit of a project's file.

    :class:`InputError` for dependencies that the build backend works out, for a folder, and for what no tool of the
    project can express.
    """
    lock = lock_beside(path)
    project = Project(TomlFile(path, content), lock.program if lock is not None else None)
    for change in changes:
        project.change(change)
    return (project.file.edit(),)


class Project:
    """A project's file, and the tool that manages it."""

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
        """Write one change."""
        forced = [each for each in self._arrays("override-dependencies") if each.found.name == change.name]
        if forced or change.override:
            self._override(change, forced)
            return
        statements = [*self._statements(), *self._arrays("constraint-dependencies", constraint=True)]
        wanted = decided(statements, change, exact=not self._locked)
        for statement, how in wanted:
            self._one(statement, change, how)
        if change.after is None:
            if any(how == REMOVE for _, how in wanted):
                remove_source(self.file, change.name)
            return
        if not wanted:
            self._add(change)
        self._source(change, wanted)

    def _source(self, change: Change, wanted: Sequence[object]) -> None:
        """Where the distribution comes from, in the settings of the tool."""
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
        """Have a release built although it has wheels; only uv has a setting for that."""
        if self.tool != "uv":
            raise InputError(
                f"{change.name} must be built from source, which only uv can configure (tool.uv.no-binary-package)",
                self.file.path,
            )
        known = self.file.table("tool", "uv", "no-binary-package")
        if change.name not in map(str, known or ()):
            self._append_text(known, "tool.uv", "no-binary-package", change.name, change.reason)

    def _statements(self) -> Iterator[Statement]:
        """Every requirement, each in an array or in a table of Poetry."""
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

    def _arrays(self, key: str, *, constraint: bool = False) -> list[Statement]:
        found: list[Statement] = []
        for item in items(self.file.table("tool", "uv", key)):
            line = self.file.places.string(item.text, self.file.places.key("tool.uv", key))
            found += self._statement(item, line, constraint=constraint)
        return found

    def _statement(self, item: ArrayItem, line: int | None, *, constraint: bool = False) -> Iterator[Statement]:
        text = item.text.strip()
        try:
            found = editable(text[3:]) if text.startswith("-e ") else parse_requirement(text)
        except Unnamed:
            return
        except ValueError as problem:
            raise InputError(str(problem), self.file.path, line) from None
        yield Statement(found, self.file.path, line, constraint, item)

    def _one(self, statement: Statement, change: Change, how: str) -> None:
        try:
            self._changed(statement, change, how)
        except InputError as problem:
            raise InputError(problem.message, self.file.path, problem.line or statement.line) from None

    def _changed(self, statement: Statement, change: Change, how: str) -> None:
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
            return without_version(operand if mark else text, change.name)  # the source says which commit it is
        if not mark:
            return rewritten(text, change, how)
        return mark + moved_editable(operand, change) if change.is_direct_url else rewritten(operand, change, how)

    def _override(self, change: Change, forced: list[Statement]) -> None:
        """What overrides every requirement, which only uv knows."""
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
            self._one(statement, change, how)
        if not wanted:
            self._append("override-dependencies", change)
        set_source(self.file, change)

    def _add(self, change: Change) -> None:
        """What the file does not name: for uv a constraint, for the others a dependency of its own."""
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
