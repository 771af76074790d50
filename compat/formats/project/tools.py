"""Tables of tools in pyproject.toml: ``[tool.uv]`` and ``[tool.poetry]``, translated to PEP 440 and PEP 508."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compat.formats.edit.changes import Statement
from compat.formats.listing import ROOT, Entry
from compat.formats.locks.tables import Table, both, either, index_source, is_name, path_source, vcs_source_at
from compat.formats.requirements.lines import constrained
from compat.formats.requirements.requirement import INDEX, canonical_marker, direct_url, parse_requirement, source_of_url
from compat.formats.specifiers import alternatives, python_marker
from compat.model import Distribution, Source, normalized
from compat.records import replace
from compat.redact import excerpt
from compat.syntax.toml import Slot

if TYPE_CHECKING:
    from compat.formats.project.draft import Draft

_MOST_SOURCES = 100
"""Sources of one distribution; real lists have three."""


def _indexes(table: Table, key: str) -> dict[str, str]:
    """Return the addresses of indexes by name."""
    return {str(each.get("name")): each["url"] for each in table.tables(key) if isinstance(each.get("url"), str)}


def _direct_source(given: Table, path: str | None, editable: str) -> Source | None:
    """Return the repository, archive or folder that a table names; ``editable`` is the key of that flag."""
    repository, url = given.text("git"), given.text("url")
    if repository is not None:
        revision = given.text("rev") or given.text("tag") or given.text("branch")
        return vcs_source_at(repository, revision, given.text("subdirectory"))
    if url is not None:
        return source_of_url(url)
    return None if path is None else path_source(path, editable=given.flag(editable))


def specifier_of(asked: Distribution) -> str | None:
    """Return the specifier set of a requirement for Python."""
    return asked.specifier if asked.version is None else f"=={asked.version}"


class UvSettings:
    """The uv settings that change what is installed; :class:`InputError` if one has a wrong type."""

    def __init__(self, table: Table, draft: Draft) -> None:
        self._table = table
        self._draft = draft
        self._indexes = _indexes(table, "index")
        self._sources: dict[str, list[Table]] = {}
        for name, value in table.section("sources").content.items():
            where = f"tool.uv.sources.{name}"
            items = value if isinstance(value, list) else [value]
            line = draft.places.key("tool.uv.sources", name)
            if len(items) > _MOST_SOURCES or not all(isinstance(each, dict) for each in items):
                raise draft.wrong(where, f"expected a table or a list of at most {_MOST_SOURCES} tables", line)
            self._sources[normalized(name)] = [Table(each, draft.path, line, where) for each in items]
        self.overrides = self._list("override-dependencies")
        self.constraints = self._list("constraint-dependencies", constraint=True)

    def _list(self, key: str, *, constraint: bool = False) -> list[Statement[Slot]]:
        value = self._table.content.get(key)
        if value is None:
            return []
        found = self._draft.requirements(value, f"tool.uv.{key}", self._draft.places.key("tool.uv", key))
        return [replace(each, constraint=constraint) for each in found]

    def environments(self) -> tuple[str, ...]:
        """Return the markers of the environments that uv locks for."""
        value = self._table.content.get("environments")
        return (value,) if isinstance(value, str) else tuple(self._table.texts("environments"))

    def default_groups(self) -> tuple[str, ...] | None:
        """Return the groups that uv installs by default; ``None`` for all of them."""
        value = self._table.content.get("default-groups", ["dev"])
        if value == "all":
            return None
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._table.expected("default-groups", 'a list of names or "all"')
        return tuple(map(normalized, value))

    def sourced(self, found: Distribution, kind: str | None = None, choice: str | None = None) -> Distribution:
        """Return a dependency with its configured source; ``kind`` is set for dependencies of an extra or a group."""
        given = [each for each in self._sources.get(found.name, ()) if self._applies(each, kind, choice)]
        if not given:
            return found
        sources = [self._source(each) for each in given]
        if len(sources) == 1 and given[0].text("marker") is None and (source := sources[0]) is not None:
            # the version in a wheel's file name replaces the requirement
            url = source.details.get("url") if source.kind == "url" else None
            version = None if url is None else direct_url(str(url), found.name, None).version
            found = replace(found, source=source)
            return found if version is None else replace(found, version=version, specifier=None)
        # some apply on one platform and some on another; elsewhere the index is used
        if all(source is not None and source.kind == "index" for source in sources):
            return found
        return replace(found, source=None)

    @staticmethod
    def _applies(source: Table, kind: str | None, choice: str | None) -> bool:
        for each in ("extra", "group"):
            name = source.text(each)
            if name is not None and (kind != each or choice is None or normalized(name) != normalized(choice)):
                return False
        return True

    def _source(self, given: Table) -> Source | None:
        direct = _direct_source(given, given.text("path"), "editable")
        if direct is not None:
            return direct
        if given.flag("workspace"):
            return Source("directory", {"editable": True})
        name = given.text("index")
        return None if name is None else index_source(self._indexes.get(name))

    def applied(self, entries: list[Entry], notes: list[str]) -> tuple[Entry, ...]:
        """Return the entries after overrides and constraints."""
        overrides: dict[str, dict[str | None, Statement[Slot]]] = {}
        for each in self.overrides:
            overrides.setdefault(each.found.name, {})[each.found.marker] = each
        entries = [self._overridden(entry, overrides.get(entry.distribution.name, {}), notes) for entry in entries]
        return constrained(entries, [Entry(each.found, each.line, each.file) for each in self.constraints], notes)

    @staticmethod
    def _overridden(entry: Entry, overrides: dict[str | None, Statement[Slot]], notes: list[str]) -> Entry:
        if not overrides:
            return entry
        asked = entry.distribution
        override = overrides.get(asked.marker) or next(iter(overrides.values()))
        place = f"{override.file}:{override.line}"
        if len(overrides) > 1 and asked.marker not in overrides:
            notes.append(f"{place}: {asked.name} is overridden in several ways; its version is not known")
            return replace(entry, distribution=replace(asked, version=None, specifier=None, source=None))
        forced = override.found
        direct = forced.source is not None and forced.source.kind not in ("index", "nightly")
        changed = replace(
            asked, version=forced.version, specifier=forced.specifier, extra={**asked.extra, "override": place},
            marker=forced.marker,  # an override replaces the requirement, including its marker
            source=forced.source if direct else asked.source,
        )  # fmt: skip
        return replace(entry, distribution=changed)

    def conflicts(self) -> tuple[tuple[int, ...], ...]:
        """Return the sets of choices that cannot be combined, by number; those of other projects are left out."""
        value = self._table.content.get("conflicts", [])
        if not isinstance(value, list):
            raise self._table.expected("conflicts", "a list of lists")
        numbers = {(choice.kind, normalized(choice.name)): number for number, choice in enumerate(self._draft.choices)}
        found = []
        for each in value:
            if not isinstance(each, list) or not all(isinstance(item, dict) for item in each):
                raise self._table.wrong("conflicts: expected a list of lists of tables")
            members = [self._member(Table(item, self._draft.path, None, "tool.uv.conflicts"), numbers) for item in each]
            known = tuple(number for number in members if number is not None)
            if len(known) == len(members) > 1:
                found.append(known)
        return tuple(found)

    def _member(self, item: Table, numbers: dict[tuple[str, str], int]) -> int | None:
        package, extra, group = item.text("package"), item.text("extra"), item.text("group")
        if package is not None and normalized(package) != self._draft.project:
            return None
        return numbers.get(("extra", normalized(extra)) if extra is not None else ("group", normalized(group or "")))


# --- ``[tool.poetry]``: dependencies, groups and extras, translated to PEP 440 and PEP 508.


_LONGEST = 1000
"""Characters of a version constraint."""


class PoetryProject:
    """Reads the tables into a draft; :class:`InputError` for what Poetry would reject."""

    def __init__(self, table: Table, draft: Draft) -> None:
        self._table = table
        self._draft = draft
        self._indexes = {name.lower(): url for name, url in _indexes(table, "source").items()}

    def read(self) -> None:
        """Read all tables: entries, and a choice for each extra and each group."""
        dependencies = self._table.section("dependencies")
        self._python(dependencies)
        self._dependencies(dependencies, "tool.poetry.dependencies", ROOT)
        self._extras()
        old = self._table.table("dev-dependencies")
        if old is not None:
            self._dependencies(old, "tool.poetry.dev-dependencies", self._draft.choice("group", "dev", default=True))
        self._groups()

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
        direct, index = _direct_source(item, item.text("path") or item.text("file"), "develop"), item.text("source")
        return direct if direct is not None or index is None else index_source(self._indexes.get(index.lower()))

    def _marker(self, item: Table) -> str | None:
        """Combine ``python``, ``platform`` and ``markers`` into one marker."""
        python, platform, marker = item.text("python"), item.text("platform"), item.text("markers")
        found: str | None = None
        if python is not None:
            asked = self._alternatives(python, f"{item.name}.python", item.line)
            markers = [python_marker(specifier_of(each) or "") for each in asked]
            found = None if None in markers else either([each for each in markers if each])
        try:
            if platform is not None:
                found = both(found, canonical_marker(f"sys_platform == {platform!r}"))
            if marker is not None:
                found = both(found, canonical_marker(marker))
            return None if found is None else canonical_marker(found)
        except ValueError as problem:
            raise item.wrong(str(problem)) from None

    def _extras(self) -> None:
        extras = self._table.section("extras")
        if extras.content:
            for number, entry in enumerate(self._draft.entries):
                self._draft.link(self._draft.between(entry.distribution.name), number, entry.distribution.marker)
        for extra in extras.content:
            node = self._draft.choice("extra", extra)
            for name in extras.texts(extra):
                self._draft.link(node, self._draft.between(normalized(name.partition("[")[0].split(" ")[0])))

    def _groups(self) -> None:
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
