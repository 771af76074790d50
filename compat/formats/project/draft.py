"""A project's requirements, read into a draft of its listing: entries, choices and edges are collected table by table.

The draft also has every requirement as a statement with its place in the document. ``compat fix`` reads tomlkit's document in
the same way and edits these places (``project/edit.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compat.errors import InputError, printable
from compat.formats.edit.changes import Statement
from compat.formats.listing import ROOT, Choice, Edge, Entry, Listing, check_entries
from compat.formats.locks.tables import Table
from compat.formats.project.tools import UvSettings, specifier_of
from compat.formats.requirements.requirement import parse_requirement
from compat.model import Distribution, Source, normalized
from compat.records import replace
from compat.syntax.toml import Places, Slot

_THIS = Source("directory", {"path": "."})


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

    def add(self, found: Distribution, line: int | None, parent: int | None = ROOT) -> int:
        """Add a distribution and return its node, installed if ``parent`` is; ``None``: only if another edge leads to it."""
        if found.name == self.project:
            found = replace(found, source=_THIS)
            if parent is not None and found.extra.get("extras"):
                self._own_extras.append((parent, found))
        number = len(self.entries)
        check_entries(number + 1, self.path, line)
        self.entries.append(Entry(found, line))
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
            self.statements.append(each)
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
        return Listing(
            self.path, kind, entries, edges, tuple(self.choices), self.uv.conflicts(), requires_python=self.requires_python,
            environments=self.uv.environments(), notes=tuple(map(printable, dict.fromkeys(self.notes))),
            elsewhere=tuple(map(printable, self.elsewhere)),
        )  # fmt: skip

    def _final(self, node: int) -> int:
        return node if node >= ROOT else len(self.entries) + ROOT - 1 - node
