"""The tables of ``[tool.poetry]``: dependencies, groups and extras, translated to PEP 440 and PEP 508."""

from __future__ import annotations

from typing import Any

from compat.formats.edit.changes import Statement
from compat.formats.listing import ROOT
from compat.formats.locks.tables import Table, and_markers, index_source, is_name, or_markers
from compat.formats.project.draft import Draft, direct_source, indexes_of, specifier_of
from compat.formats.requirements.requirement import INDEX, canonical_marker, direct_url, parse_requirement
from compat.formats.specifiers import alternatives, python_marker
from compat.model import Distribution, Source, normalized
from compat.records import replace
from compat.redact import excerpt
from compat.syntax.toml import Slot

_LONGEST = 1000
"""Characters of a version constraint."""


class PoetryProject:
    """Reads the tables into a draft; :class:`InputError` for what Poetry would reject."""

    def __init__(self, table: Table, draft: Draft) -> None:
        self._table = table
        self._draft = draft
        self._indexes = {name.lower(): url for name, url in indexes_of(table, "source").items()}

    def read(self) -> None:
        """Read all tables: entries, and a choice for each extra and each group."""
        dependencies = self._table.section("dependencies")
        self._python(dependencies)
        self._dependencies(dependencies, "tool.poetry.dependencies", ROOT)
        # the extras link entries that the dependencies have added
        extras = self._table.section("extras")
        if extras.content:
            for number, entry in enumerate(self._draft.entries):
                self._draft.link(self._draft.between(entry.distribution.name), number, entry.distribution.marker)
        for extra in extras.content:
            node = self._draft.choice("extra", extra)
            for name in extras.texts(extra):
                self._draft.link(node, self._draft.between(normalized(name.partition("[")[0].split(" ")[0])))
        old = self._table.table("dev-dependencies")
        if old is not None:
            self._dependencies(old, "tool.poetry.dev-dependencies", self._draft.choice("group", "dev", default=True))
        groups = self._table.section("group")
        included: list[tuple[int, str]] = []
        for name in groups.content:
            group = groups.section(name)
            node = self._draft.choice("group", name, default=not group.flag("optional"))
            included += [(node, other) for other in group.texts("include-groups")]
            self._dependencies(group.section("dependencies"), f"tool.poetry.group.{name}.dependencies", node)
        for node, other in included:
            child = self._draft.node("group", other)
            if child is None:
                raise self._table.wrong(f"include-groups: unknown group {excerpt(other, 60)!r}")
            self._draft.link(node, child)

    def enrich(self) -> None:
        """Next to ``[project]``, the table only sets the sources of dependencies listed there."""
        sources: dict[str, Source] = {}
        for name, value in self._table.section("dependencies").content.items():
            source = self._source(self._item(value, name, "tool.poetry.dependencies")) if isinstance(value, dict) else None
            if source is not None:
                sources[normalized(name)] = source
        for number, entry in enumerate(self._draft.entries):
            found = entry.distribution
            if found.name in sources:
                self._draft.entries[number] = replace(entry, distribution=replace(found, source=sources[found.name]))

    def _python(self, dependencies: Table) -> None:
        python = dependencies.content.get("python")
        if python is None:
            return
        line = self._draft.places.key("tool.poetry.dependencies", "python")
        found = self._alternatives(python, "tool.poetry.dependencies.python", line)
        if len(found) == 1:
            self._draft.requires_python = self._draft.requires_python or specifier_of(found[0])
        else:
            self._draft.notes.append(
                f"{self._draft.path}:{line}: the Pythons {python} are not a single range; any Python is accepted"
            )

    def _alternatives(self, value: Any, place: str, line: int | None, name: str = "python") -> list[Distribution]:
        """Return the requirements of which one has to hold."""
        if not isinstance(value, str) or len(value) > _LONGEST:
            raise self._draft.wrong(place, "expected a version constraint in quotes", line)
        try:
            return [parse_requirement(f"{name} {each}") for each in alternatives(value)]
        except ValueError:
            raise self._draft.wrong(place, f"{excerpt(value, 60)!r} is not a version constraint", line) from None

    def _dependencies(self, table: Table, header: str, parent: int) -> None:
        for name, value in table.content.items():
            if normalized(name) == "python" and header == "tool.poetry.dependencies":
                continue
            line = self._draft.places.key(header, name)
            if not is_name(name):
                raise self._draft.wrong(header, f"{excerpt(name, 60)!r} is not the name of a package", line)
            several = isinstance(value, list)
            for number, each in enumerate(value if several else [value]):
                item = self._item(each, name, header)
                url = item.text("url")
                line = line if url is None else self._draft.places.string(url, line)
                found = self._distribution(name, item, line)
                place = Slot(value, number, name) if several else Slot(table.content, name, name)
                # a change of an address does not depend on the version in a file name
                stated = found if url is None else replace(found, version=None)
                self._draft.statements.append(Statement(stated, self._draft.path, line, place))
                self._draft.add(found, line, None if item.flag("optional") else parent)

    def _item(self, value: Any, name: str, header: str) -> Table:
        """Return one dependency as a table; a string is its version."""
        line = self._draft.places.key(header, name)
        if isinstance(value, str):
            value = {"version": value}
        if not isinstance(value, dict):
            raise self._draft.wrong(f"{header}.{name}", "expected a version constraint or a table", line)
        return Table(value, self._draft.path, line, f"{header}.{name}")

    def _distribution(self, name: str, item: Table, line: int | None) -> Distribution:
        extras = sorted(map(normalized, item.texts("extras")))
        found = Distribution(
            normalized(name), source=self._source(item) or INDEX, marker=self._marker(item),
            extra={"extras": extras} if extras else {},
        )  # fmt: skip
        constraint, url = item.text("version"), item.text("url")
        if constraint is None:
            return found if url is None else replace(found, version=direct_url(url, found.name, None).version)
        asked = self._alternatives(constraint, f"{item.name}.version", line, name)
        if len(asked) > 1:
            # PEP 440 has no "or": treat it as any version
            return replace(found, extra={**found.extra, "requested": constraint})
        return replace(found, version=asked[0].version, specifier=asked[0].specifier)

    def _source(self, item: Table) -> Source | None:
        direct, index = direct_source(item, item.text("path") or item.text("file"), "develop"), item.text("source")
        return direct if direct is not None or index is None else index_source(self._indexes.get(index.lower()))

    def _marker(self, item: Table) -> str | None:
        """Combine ``python``, ``platform`` and ``markers`` into one marker."""
        python, platform, marker = item.text("python"), item.text("platform"), item.text("markers")
        found: str | None = None
        if python is not None:
            asked = self._alternatives(python, f"{item.name}.python", item.line)
            markers = [python_marker(specifier_of(each) or "") for each in asked]
            found = None if None in markers else or_markers([each for each in markers if each])
        try:
            if platform is not None:
                found = and_markers(found, canonical_marker(f"sys_platform == {platform!r}"))
            if marker is not None:
                found = and_markers(found, canonical_marker(marker))
            return None if found is None else canonical_marker(found)
        except ValueError as problem:
            raise item.wrong(str(problem)) from None
