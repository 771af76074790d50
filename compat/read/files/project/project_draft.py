"""A project's dependencies while its tables are read: entries, choices and what leads to what."""

from __future__ import annotations

from compat.environment import Distribution, Source, normalized
from compat.errors import InputError
from compat.read.files.limits import check_entries
from compat.read.files.listing import ROOT, Choice, Entry
from compat.read.files.project.toml_places import Places
from compat.read.files.requirements.requirement import parse_requirement
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from compat.read.files.listing import Edge

_THIS = Source("directory", {"path": "."})


class Draft:
    """Entries are numbered from 0; a choice has a node of its own, numbered downwards until all entries are known."""

    def __init__(self, path: str, text: str, project: str | None = None) -> None:
        self.path = path
        self.project = project
        self.places = Places(text)
        self.entries: list[Entry] = []
        self.choices: list[Choice] = []
        self.notes: list[str] = []
        self.unread: list[str] = []
        self._edges: list[Edge] = []
        self._nodes: dict[tuple[str, str], int] = {}
        self._own_extras: list[tuple[int, Distribution]] = []
        self._requirements = 0

    def choice(self, kind: str, name: str, *, default: bool = False) -> int:
        """The node of an extra or a group; the same one for names that are equal when normalised."""
        key = (kind, normalized(name))
        if key not in self._nodes:
            node = self._nodes[key] = ROOT - 1 - len(self._nodes)
            self._edges.append((ROOT, node, None, len(self.choices)))
            self.choices.append(Choice(kind, name, default=default))
        return self._nodes[key]

    def between(self, name: str) -> int:
        """A node that stands for all entries of one name."""
        return self._nodes.setdefault(("", name), ROOT - 1 - len(self._nodes))

    def node(self, kind: str, name: str) -> int | None:
        return self._nodes.get((kind, normalized(name)))

    def add(self, found: Distribution, line: int | None, parent: int | None = ROOT) -> int:
        """Lists a distribution; it is installed where ``parent`` is, ``None``: only if something else leads to it."""
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
        """``child`` is installed where ``parent`` is."""
        self._edges.append((parent, child, marker, None))

    def wrong(self, place: str, problem: str, line: int | None) -> InputError:
        return InputError(f"{place}: {problem}", self.path, line)

    def requirement(self, text: Any, place: str, line: int | None) -> Distribution:
        """One requirement; :class:`InputError` for what is none."""
        if not isinstance(text, str):
            raise self.wrong(place, "expected a requirement (PEP 508) in quotes", line)
        self._requirements += 1
        check_entries(self._requirements, self.path, line)
        try:
            return parse_requirement(text)
        except ValueError as problem:
            raise self.wrong(place, str(problem), line) from None

    def requirements(self, value: Any, place: str, line: int | None) -> Iterable[tuple[Distribution, int | None]]:
        """The requirements of an array, each with its line."""
        if not isinstance(value, list):
            raise self.wrong(place, "expected a list of requirements", line)
        for number, text in enumerate(value):
            if isinstance(text, str):
                line = self.places.string(text, line)
            yield self.requirement(text, f"{place}[{number}]", line), line

    def edges(self) -> tuple[Edge, ...]:
        """Every edge, with the extras of this very project (``project[all]``) led to; nodes numbered as in a listing."""
        for parent, found in self._own_extras:
            for extra in found.extra["extras"]:
                node = self.node("extra", extra)
                if node is None:
                    self.notes.append(f"{self.path}: {found.name}[{extra}]: there is no such extra")
                else:
                    self.link(parent, node, found.marker)
        self._own_extras = []
        return tuple((self._final(parent), self._final(child), marker, choice) for parent, child, marker, choice in self._edges)

    def _final(self, node: int) -> int:
        return node if node >= ROOT else len(self.entries) + ROOT - 1 - node
