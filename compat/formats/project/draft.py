"""A project's requirements, read into a draft of its listing: entries, choices and edges are collected table by table.

The settings of uv change what the requirements mean, so they are read here as well; ``poetry.py`` reads a project of Poetry.
The draft also has every requirement as a statement with its place in the document. ``compat fix`` reads tomlkit's document in
the same way and edits these places (``project/edit.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compat.errors import InputError, printable
from compat.formats.edit.changes import Statement
from compat.formats.listing import ROOT, Choice, Edge, Entry, Listing, check_entries, notes_on_apart, set_apart
from compat.formats.locks.tables import Table, index_source, path_source, vcs_source_at
from compat.formats.requirements.lines import apply_constraints, apply_override, of_others
from compat.formats.requirements.requirement import direct_url, mark_source_build, parse_requirement, source_of_url
from compat.model import Distribution, Source, normalized
from compat.records import replace
from compat.syntax.toml import Places, Slot

_THIS = Source("directory", {"path": "."})
_MOST_SOURCES = 100
"""Sources of one distribution; real lists have three."""

_PROJECT = -1
"""In a conflict: the project itself, instead of one of its extras or groups."""


class Draft:
    """A listing under construction. Entries are numbered from 0, other nodes downwards until all entries are known."""

    def __init__(self, document: Table, places: Places, uv: Table | None, project: str | None = None) -> None:
        self.path = document.file
        self.project = project
        self.places = places
        self.statements: list[Statement[Slot]] = []
        """The requirements as written, before the settings of a tool apply."""
        self.entries: list[Entry] = []
        self.choices: list[Choice] = []
        self.notes: list[str] = []
        self.elsewhere: list[str] = []
        self.indexes: list[str] = []
        self.requires_python: str | None = None
        self._edges: list[Edge] = []
        self._nodes: dict[tuple[str, str], int] = {}
        self._own_extras: list[tuple[int, Distribution]] = []
        self._requirements = 0
        self.uv = UvSettings(uv or Table({}, self.path), self)

    def choice(self, kind: str, name: str, *, default: bool = False) -> int:
        """Return the node of an extra or a group; names that are equal when normalised share one."""
        key = (kind, normalized(name))
        if key not in self._nodes:
            node = self._nodes[key] = ROOT - 1 - len(self._nodes)
            self._edges.append(Edge(ROOT, node, None, len(self.choices)))
            self.choices.append(Choice(kind, name, default=default))
        return self._nodes[key]

    def between(self, name: str) -> int:
        """Return the node for all entries of one name."""
        return self._nodes.setdefault(("", name), ROOT - 1 - len(self._nodes))

    def node(self, kind: str, name: str) -> int | None:
        return self._nodes.get((kind, normalized(name)))

    def add(self, found: Distribution, line: int | None, parent: int | None = ROOT, file: str | None = None) -> int:
        """Add a distribution and return its node, installed if ``parent`` is; ``None``: only if another edge leads to it.

        ``file`` is set if it is listed in another file than the project's.
        """
        if found.name == self.project:
            found = replace(found, source=_THIS)
            if parent is not None and found.extra.get("extras"):
                self._own_extras.append((parent, found))
        number = len(self.entries)
        check_entries(number + 1, self.path, line)
        self.entries.append(Entry(found, line, file))
        if parent is not None:
            self.link(parent, number, found.marker)
        return number

    def link(self, parent: int, child: int, marker: str | None = None) -> None:
        """Install ``child`` whenever ``parent`` is installed."""
        self._edges.append(Edge(parent, child, marker))

    def wrong(self, place: str, problem: str, line: int | None) -> InputError:
        return InputError(f"{place}: {problem}", self.path, line)

    def requirement(self, array: list[object], number: int, place: str, line: int | None) -> Statement[Slot]:
        """Parse one requirement of an array; :class:`InputError` if it is invalid."""
        text = array[number]
        if not isinstance(text, str):
            raise self.wrong(place, "expected a requirement (PEP 508) in quotes", line)
        self._requirements += 1
        line = self.places.string(text, line)
        check_entries(self._requirements, self.path, line)
        try:
            return Statement(parse_requirement(str(text)), self.path, line, Slot(array, number))
        except ValueError as problem:
            raise self.wrong(place, str(problem), line) from None

    def requirements(self, value: object, place: str, line: int | None) -> Iterator[Statement[Slot]]:
        """Parse the requirements of an array."""
        if not isinstance(value, list):
            raise self.wrong(place, "expected a list of requirements", line)
        for number in range(len(value)):
            found = self.requirement(value, number, f"{place}[{number}]", line)
            line = found.line
            yield found

    def require(
        self, statements: Iterable[Statement[Slot]], node: int = ROOT, kind: str | None = None, choice: str | None = None
    ) -> None:
        """Add requirements from their configured sources; ``kind`` and ``choice`` name the extra or group they belong to."""
        for each in statements:
            self.statements.append(replace(each, choice=f"{kind} {normalized(choice)}") if kind and choice else each)
            self.add(self.uv.sourced(each.found, kind, choice), each.line, node)

    def python_range(self, document: Table, header: str = "") -> str | None:
        """Return the specifier set of ``requires-python``; :class:`InputError` if it is invalid."""
        value = document.content.get("requires-python")
        if value is None:
            return None
        try:
            asked = parse_requirement(f"python {value}") if isinstance(value, str) else None
        except ValueError:
            asked = None
        if asked is None or asked.marker is not None or asked.extra or asked.name != "python":
            line = self.places.key(header, "requires-python")
            place = f"{header}.requires-python".removeprefix(".")
            raise self.wrong(place, "expected a version specifier such as '>=3.10'", line)
        return specifier_of(asked)

    def listing(self, kind: str) -> Listing:
        """Return the listing, with the project's own extras (``project[all]``) resolved and nodes numbered as in a listing."""
        for parent, found in self._own_extras:
            for extra in found.extra["extras"]:
                node = self.node("extra", extra)
                if node is None:
                    self.notes.append(f"{self.path}: {found.name}[{extra}]: unknown extra")
                else:
                    self.link(parent, node, found.marker)
        entries = self.uv.applied(self.entries, self.notes)
        markers = {number: entry.distribution.marker for number, entry in enumerate(entries)
                   if entry.distribution.marker != self.entries[number].distribution.marker}  # fmt: skip
        edges = tuple(
            Edge(self._final(parent), self._final(child), markers.get(child, marker), choice)
            for parent, child, marker, choice in self._edges
        )
        always = [entries[number] for number in _always(edges) if ROOT < number < len(entries)]
        conflicts, apart = self.uv.conflicts()
        choices = set_apart(self.choices, apart)
        notes = (*self.notes, *notes_on_apart(choices))
        return Listing(
            self.path, kind, entries, edges, choices, conflicts, requires_python=self.requires_python,
            environments=self.uv.environments(), notes=tuple(map(printable, dict.fromkeys(notes))),
            elsewhere=tuple(map(printable, self.elsewhere)),
            overridden=tuple(dict.fromkeys(each.found.name for each in self.uv.overrides)),
            constraints=of_others(always, [Entry(each.found, each.line, each.file) for each in self.uv.constraints]),
            indexes=tuple(self.indexes),
        )  # fmt: skip

    def _final(self, node: int) -> int:
        return node if node >= ROOT else len(self.entries) + ROOT - 1 - node


def _always(edges: Iterable[Edge]) -> set[int]:
    """Return the nodes that are installed whatever extras and groups are asked for."""
    children: dict[int, list[int]] = {}
    for edge in edges:
        if edge.choice is None:
            children.setdefault(edge.parent, []).append(edge.child)
    found, waiting = {ROOT}, [ROOT]
    while waiting:
        more = [child for child in children.get(waiting.pop(), ()) if child not in found]
        found.update(more)
        waiting += more
    return found


def indexes_of(table: Table, key: str) -> dict[str, str]:
    """Return the addresses of indexes by name."""
    return {str(each.get("name")): each["url"] for each in table.tables(key) if isinstance(each.get("url"), str)}


def direct_source(given: Table, path: str | None, editable: str) -> Source | None:
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
        self._indexes = indexes_of(table, "index")
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
        direct = direct_source(given, given.text("path"), "editable")
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
        no_binary = {":all:"} if self._table.content.get("no-binary") is True else set()
        no_binary.update(map(normalized, self._table.texts("no-binary-package")))
        entries = [self._overridden(entry, overrides.get(entry.distribution.name, {}), notes) for entry in entries]
        if no_binary:
            entries = [replace(entry, distribution=mark_source_build(entry.distribution, no_binary)) for entry in entries]
        return apply_constraints(entries, [Entry(each.found, each.line, each.file) for each in self.constraints], notes)

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
        return apply_override(entry, override.found, place)

    def conflicts(self) -> tuple[tuple[tuple[int, ...], ...], set[int]]:
        """Return the sets of choices that cannot be combined, by number, and those that conflict with the project itself.

        Those of other projects are left out.
        """
        value = self._table.content.get("conflicts", [])
        if not isinstance(value, list):
            raise self._table.expected("conflicts", "a list of lists")
        numbers = {(choice.kind, normalized(choice.name)): number for number, choice in enumerate(self._draft.choices)}
        found, apart = [], set[int]()
        for each in value:
            if not isinstance(each, list) or not all(isinstance(item, dict) for item in each):
                raise self._table.wrong("conflicts: expected a list of lists of tables")
            members = [self._member(Table(item, self._draft.path, None, "tool.uv.conflicts"), numbers) for item in each]
            known = tuple(number for number in members if number is not None and number != _PROJECT)
            if _PROJECT in members:
                apart.update(known)
            elif len(known) == len(members) > 1:
                found.append(known)
        return tuple(found), apart

    def _member(self, item: Table, numbers: dict[tuple[str, str], int]) -> int | None:
        """The choice that a member of a conflict names, or the project itself; ``None`` for one of another project."""
        package, extra, group = item.text("package"), item.text("extra"), item.text("group")
        if package is not None and normalized(package) != self._draft.project:
            return None
        if package is not None and extra is None and group is None:
            return _PROJECT
        return numbers.get(("extra", normalized(extra)) if extra is not None else ("group", normalized(group or "")))
