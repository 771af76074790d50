"""pyproject.toml → listing: entries, choices and edges are collected in a draft while the tables are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from compat.errors import InputError, printable
from compat.formats.listing import ROOT, Choice, Edge, Entry, Listing, check_entries
from compat.formats.locks.tables import Table, read_toml
from compat.formats.project.tools import PoetryProject, UvSettings
from compat.formats.registry import Commands, Format
from compat.formats.requirements.requirement import Unnamed, editable, parse_requirement
from compat.model import Distribution, Environment, Source, normalized
from compat.records import replace
from compat.syntax.toml import Places

if TYPE_CHECKING:
    from compat.formats.edit.changes import Change
    from compat.formats.edit.dispatch import Installer
    from compat.formats.edit.files import Edit


_THIS = Source("directory", {"path": "."})


class Draft:
    """A listing under construction. Entries are numbered from 0, other nodes downwards until all entries are known."""

    def __init__(self, path: str, text: str, project: str | None = None) -> None:
        self.path = path
        self.project = project
        self.places = Places(text)
        self.entries: list[Entry] = []
        self.choices: list[Choice] = []
        self.notes: list[str] = []
        self.unread: list[str] = []
        self.elsewhere: list[str] = []
        self._edges: list[Edge] = []
        self._nodes: dict[tuple[str, str], int] = {}
        self._own_extras: list[tuple[int, Distribution]] = []
        self._requirements = 0

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

    def requirement(self, text: object, place: str, line: int | None) -> Distribution:
        """Parse one requirement; :class:`InputError` if it is invalid."""
        if not isinstance(text, str):
            raise self.wrong(place, "expected a requirement (PEP 508) in quotes", line)
        self._requirements += 1
        check_entries(self._requirements, self.path, line)
        try:
            return parse_requirement(text)
        except ValueError as problem:
            raise self.wrong(place, str(problem), line) from None

    def requirements(self, value: object, place: str, line: int | None) -> Iterable[tuple[Distribution, int | None]]:
        """Parse the requirements of an array, each with its line."""
        if not isinstance(value, list):
            raise self.wrong(place, "expected a list of requirements", line)
        for number, text in enumerate(value):
            if isinstance(text, str):
                line = self.places.string(text, line)
            yield self.requirement(text, f"{place}[{number}]", line), line

    def edges(self) -> tuple[Edge, ...]:
        """Return every edge, with the project's own extras (``project[all]``) resolved and nodes numbered as in a listing."""
        for parent, found in self._own_extras:
            for extra in found.extra["extras"]:
                node = self.node("extra", extra)
                if node is None:
                    self.notes.append(f"{self.path}: {found.name}[{extra}]: unknown extra")
                else:
                    self.link(parent, node, found.marker)
        self._own_extras = []
        return tuple(
            Edge(self._final(parent), self._final(child), marker, choice) for parent, child, marker, choice in self._edges
        )

    def _final(self, node: int) -> int:
        return node if node >= ROOT else len(self.entries) + ROOT - 1 - node


# --- pyproject.toml: what a project declares (PEP 621, PEP 735, Poetry, PDM, uv) → one listing of ranges and pins.


class Pyproject(Format):
    """A project's pyproject.toml: each extra and dependency group is a choice. No listing for a file of tool settings only.

    It is never complete: transitive dependencies are not in the file. Dependencies computed by the build backend
    (``dynamic``) are in ``elsewhere``. :class:`InputError` for invalid TOML and values of a wrong type.
    """

    kind = "pyproject"
    says_build = True

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        from compat.formats.edit.dispatch import verified
        from compat.formats.project.edit import edit_pyproject

        return verified(edit_pyproject(path, content, changes), self, changes)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        from compat.formats.registry import lock_next_to

        lock = lock_next_to(path)
        return Commands() if lock is None else lock.load().commands(path, content, changes, pip)

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        document = read_toml(path, text)
        tool = document.table("tool") or Table({}, path)
        project, groups = document.table("project"), document.table("dependency-groups")
        poetry, pdm, uv = tool.table("poetry"), tool.table("pdm"), tool.table("uv")
        if not any((project, groups, poetry, pdm, uv)):
            return ()
        name = (project and project.text("name")) or (poetry and poetry.text("name"))
        draft = Draft(path, text, normalized(name) if name else None)
        settings = UvSettings(uv or Table({}, path), draft)
        requires_python = _project(project, draft, settings) if project is not None else None
        if poetry is not None:
            tables = PoetryProject(poetry, draft)
            if project is not None and "dependencies" in project.content:
                tables.enrich()
            else:
                tables.read()
            requires_python = requires_python or tables.requires_python
        _groups(groups, draft, settings, uv is not None)
        _development(uv, pdm, draft, settings)
        return (listing_of(draft, "pyproject", settings, requires_python, uv),)


def listing_of(draft: Draft, kind: str, settings: UvSettings, requires_python: str | None, uv: Table | None) -> Listing:
    """Convert a draft into a listing."""
    edges = draft.edges()
    entries = settings.applied(draft.entries, draft.notes)
    markers = {number: entry.distribution.marker for number, entry in enumerate(entries)
               if entry.distribution.marker != draft.entries[number].distribution.marker}  # fmt: skip
    edges = tuple(each._replace(marker=markers.get(each.child, each.marker)) for each in edges)
    environments = _environments(uv)
    return Listing(
        draft.path, kind, entries, edges, tuple(draft.choices), settings.conflicts(), requires_python=requires_python,
        environments=environments, context=Environment(), notes=tuple(map(printable, dict.fromkeys(draft.notes))),
        unread=tuple(map(printable, draft.unread)),
        elsewhere=tuple(map(printable, draft.elsewhere)),
    )  # fmt: skip


def _environments(uv: Table | None) -> tuple[str, ...]:
    value = None if uv is None else uv.content.get("environments")
    if uv is None or value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(uv.texts("environments"))


def python_range(draft: Draft, value: object, place: str, line: int | None) -> str | None:
    """Return the specifier set of ``requires-python``; :class:`InputError` if it is invalid."""
    if value is None:
        return None
    try:
        asked = parse_requirement(f"python {value}") if isinstance(value, str) else None
    except ValueError:
        asked = None
    if asked is None or asked.marker is not None or asked.extra or asked.name != "python":
        raise draft.wrong(place, "expected a version specifier such as '>=3.10'", line)
    return f"=={asked.version}" if asked.version is not None else asked.specifier


def _project(project: Table, draft: Draft, settings: UvSettings) -> str | None:
    """Read dependencies and extras of ``[project]`` into the draft; return the supported Python versions."""
    line = draft.places.key("project", "dependencies")
    value = project.content.get("dependencies", [])
    for found, at in draft.requirements(value, "project.dependencies", line):
        draft.add(settings.sourced(found), at)
    extras = project.table("optional-dependencies")
    for extra, value in ({} if extras is None else extras.content).items():
        node = draft.choice("extra", extra)
        line = draft.places.key("project.optional-dependencies", extra)
        for found, at in draft.requirements(value, f"project.optional-dependencies.{extra}", line):
            draft.add(settings.sourced(found, "extra", extra), at, node)
    line = draft.places.key("project", "dynamic")
    for key in project.texts("dynamic"):
        if key in ("dependencies", "optional-dependencies"):
            draft.elsewhere.append(
                f"{draft.path}:{line}: project.{key} was not read: it is dynamic (computed by the build backend)"
            )
    line = draft.places.key("project", "requires-python")
    return python_range(draft, project.content.get("requires-python"), "project.requires-python", line)


def _groups(groups: Table | None, draft: Draft, settings: UvSettings, has_uv: bool) -> None:
    """``[dependency-groups]`` (PEP 735)."""
    if groups is None:
        return
    defaults = settings.default_groups() if has_uv else ()
    for name in groups.content:
        draft.choice("group", name, default=defaults is None or normalized(name) in defaults)
    included: dict[int, list[int]] = {}
    for name, items in groups.content.items():
        line = draft.places.key("dependency-groups", name)
        place, node = f"dependency-groups.{name}", draft.choice("group", name)
        if not isinstance(items, list):
            raise draft.wrong(place, "expected a list of requirements", line)
        for item in items:
            if isinstance(item, dict):
                other = item.get("include-group")
                child = draft.node("group", other) if isinstance(other, str) and len(item) == 1 else None
                if child is None:
                    raise draft.wrong(place, 'expected {include-group = "…"} with the name of another group', line)
                draft.link(node, child)
                included.setdefault(node, []).append(child)
                continue
            line = draft.places.string(item, line) if isinstance(item, str) else line
            draft.add(settings.sourced(draft.requirement(item, place, line), "group", name), line, node)
    if _has_cycle(included):
        raise draft.wrong(
            "dependency-groups", "the groups include each other in a cycle", draft.places.key("dependency-groups")
        )


def _has_cycle(included: dict[int, list[int]]) -> bool:
    """Whether a group includes itself, directly or through others."""
    waiting = {node: len(children) for node, children in included.items()}
    above: dict[int, list[int]] = {}
    for node, children in included.items():
        for child in children:
            above.setdefault(child, []).append(node)
    free = [node for node in above if node not in waiting]
    while free:
        for parent in above.get(free.pop(), ()):
            waiting[parent] -= 1
            if not waiting[parent]:
                del waiting[parent]
                free.append(parent)
    return bool(waiting)


def _development(uv: Table | None, pdm: Table | None, draft: Draft, settings: UvSettings) -> None:
    """Read development dependencies as uv and PDM declared them before PEP 735."""
    if uv is not None and "dev-dependencies" in uv.content:
        node = draft.choice("group", "dev", default=True)
        line = draft.places.key("tool.uv", "dev-dependencies")
        for found, at in draft.requirements(uv.content["dev-dependencies"], "tool.uv.dev-dependencies", line):
            draft.add(settings.sourced(found, "group", "dev"), at, node)
    groups = None if pdm is None else pdm.table("dev-dependencies")
    for name in () if groups is None else groups.content:
        assert groups is not None
        node = draft.choice("group", name, default=True)
        line = draft.places.key("tool.pdm.dev-dependencies", name)
        for text in groups.texts(name):
            line = draft.places.string(text, line)
            _pdm_requirement(draft, node, text, f"tool.pdm.dev-dependencies.{name}", line)


def _pdm_requirement(draft: Draft, node: int, text: str, place: str, line: int | None) -> None:
    """Parse a requirement, or ``-e`` and an address."""
    operand = text.strip().removeprefix("-e ")
    try:
        draft.add(editable(operand) if operand != text.strip() else parse_requirement(text), line, node)
    except Unnamed as problem:
        draft.notes.append(f"{draft.path}:{line}: {problem}; skipped")
    except ValueError as problem:
        raise draft.wrong(place, str(problem), line) from None
