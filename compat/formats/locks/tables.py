"""Typed access to the tables of a lock file: a value of another type is an :class:`InputError` with line and key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from compat import markers
from compat.errors import InputError
from compat.formats.listing import ROOT, Edge
from compat.formats.requirements.requirement import is_commit
from compat.formats.specifiers import is_version
from compat.model import Source, normalized
from compat.redact import excerpt, without_credentials
from compat.syntax.toml import Places, parse_text

if TYPE_CHECKING:
    from compat.markers import Marker

if TYPE_CHECKING:
    Content = dict[str, Any]


_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_KINDS = {dict: "a table", list: "a list", bool: "true or false", int: "a number", float: "a number", type(None): "null"}


class Table:
    """A table and its line; ``name`` identifies it in errors (``package torch``) and is empty for the document.

    ``text`` is the TOML text of the file: errors in a table without a line take that of the key or of the table's header.
    """

    def __init__(self, content: Content, file: str, line: int | None = None, name: str = "", text: str = "") -> None:
        self.content = content
        self.file = file
        self.line = line
        self.name = name
        self._text = text

    def wrong(self, problem: str, key: str = "") -> InputError:
        """Return the error for ``problem`` in this table, or in the value of ``key``."""
        line = self.line
        if line is None and self._text:
            line = Places(self._text).key(self.name.replace(" ", "."), key)
        return InputError(f"{self.name}: {problem}" if self.name else problem, self.file, line)

    def expected(self, key: str, expected: str) -> InputError:
        """Return the error for a missing ``key`` or a value of another type."""
        value = self.content.get(key)
        if value is None:
            return self.wrong(f"expected {key} ({expected})", key)
        return self.wrong(f"{key}: expected {expected}, not {_described(value)}", key)

    def text(self, key: str) -> str | None:
        value = self.content.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.expected(key, "a string")
        return self.sound(value, key)

    def sound(self, text: str, key: str) -> str:
        """Return the text; :class:`InputError` for an unpaired surrogate, which JSON allows and which cannot be printed."""
        if not text.isascii():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise self.wrong(f"{key}: contains an unpaired surrogate", key) from None
        return text

    def needed_text(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            raise self.expected(key, "a string")
        if not value:
            raise self.wrong(f"{key}: expected a non-empty string", key)
        return value

    def flag(self, key: str) -> bool:
        value = self.content.get(key, False)
        if not isinstance(value, bool):
            raise self.expected(key, "true or false")
        return value

    def texts(self, key: str) -> list[str]:
        """Return a list of strings; empty if missing."""
        value = self.content.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.expected(key, "a list of strings")
        return [self.sound(each, key) for each in value]

    def table(self, key: str) -> Table | None:
        value = self.content.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.expected(key, "a table")
        return Table(value, self.file, self.line, f"{self.name} {key}".strip(), self._text)

    def tables(self, key: str) -> list[Content]:
        """Return a list of tables; empty if missing."""
        value = self.content.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.expected(key, "a list of tables")
        return value


def read_toml(path: str, text: str) -> Table:
    """Return the document of a TOML text; :class:`InputError` if it is invalid."""
    return Table(parse_text(text, path), path, text=text)


def packages_of(document: Table, key: str, text: str) -> list[Table]:
    """Return the tables under ``[[key]]``, each named after its package and with the line of its header, if known."""
    found = document.tables(key)
    lines: list[int] | list[None] = _header_lines(text, f"[[{key}]]")
    if len(lines) != len(found):
        lines = [None] * len(found)
    return [
        Table(content, document.file, line, _label(key, number, content))
        for number, (content, line) in enumerate(zip(found, lines))
    ]


def name_of(package: Table, name: str) -> str:
    """Return the normalised name of a package; :class:`InputError` if it is invalid."""
    core = name.replace("-", "").replace("_", "").replace(".", "")
    if not core.isalnum() or not core.isascii():
        raise package.wrong(f"{excerpt(name, 80)!r} is not the name of a package")
    return normalized(name)


def version_of(package: Table, version: str | None) -> str | None:
    """Return the version as written; :class:`InputError` if it is invalid (PEP 440)."""
    if version is not None and not is_version(version):
        raise package.wrong(f"{excerpt(version, 80)!r} is not a version (PEP 440)")
    return version


def index_source(url: str | None) -> Source:
    """Return the source of a release on a package index; ``url`` if the file names the index."""
    return Source("index", {"url": without_credentials(url)}) if url else Source("index")


def vcs_source_at(url: str, revision: str | None, subdirectory: str | None) -> Source:
    """Return the source of a repository at a revision, which may be a commit hash."""
    commit = revision if revision is not None and is_commit(revision) else None
    return vcs_source(url, commit, None if commit else revision, subdirectory)


def vcs_source(url: str, commit: str | None, revision: str | None, subdirectory: str | None) -> Source:
    """Return the source of a commit in a repository."""
    given = {"commit": commit, "requested_revision": revision, "subdirectory": subdirectory}
    return Source("vcs", {"url": without_credentials(url), **{key: value for key, value in given.items() if value}})


def url_source(url: str) -> Source:
    """Return the source of an archive."""
    return Source("url", {"url": without_credentials(url)})


def path_source(path: str, *, editable: bool) -> Source:
    """Return the source of a local archive or folder."""
    if path.lower().endswith(_ARCHIVES):
        return Source("url", {"path": path})
    return Source("directory", {"path": path, "editable": True} if editable else {"path": path})


def either(markers: list[str]) -> str | None:
    """Return a marker that holds if one of them does, or ``None``."""
    return markers[0] if len(markers) == 1 else " or ".join(f"({each})" for each in markers) or None


def both(first: str | None, second: str | None) -> str | None:
    """Return a marker that holds if both do."""
    return f"({first}) and ({second})" if first and second else first or second


def _header_lines(text: str, header: str) -> list[int]:
    found, at, line, counted = [], text.find(header), 1, 0
    while at >= 0:
        if not text[text.rfind("\n", 0, at) + 1 : at].strip(" \t"):
            line += text.count("\n", counted, at)
            counted = at
            found.append(line)
        end = text.find("\n", at)  # no line has two of them, and one in a text may have thousands
        at = text.find(header, end) if end >= 0 else -1
    return found


def _label(key: str, number: int, content: Content) -> str:
    name = content.get("name")
    return f"package {excerpt(name, 80)}" if isinstance(name, str) and name else f"{key}[{number}]"


def _described(value: Any) -> str:
    return f"the string {excerpt(value, 40)!r}" if isinstance(value, str) else _KINDS.get(type(value), "a date or a time")


# --- The graph of a lock file that lists dependencies of releases, but not which releases are installed.


if TYPE_CHECKING:
    Children = Mapping[int, Sequence[int]]


_MANY = 16
"""Real locks hold five releases of one distribution, and a marker names two extras; beyond this they are not distinguished."""
_MOST_NODES = 5000
"""Intermediate nodes; a lock of 250 releases has 600. Beyond this a dependency may mean any release of its name."""


class LockedGraph:
    """Releases are the nodes 0 … n-1; intermediate nodes (extras) are numbered after them.

    ``conditions`` are the markers under which releases can be installed; they are used if a name has several releases.
    ``admits`` turns a constraint into a predicate on release numbers.
    """

    def __init__(
        self, names: Sequence[str], conditions: Sequence[str | None], admits: Callable[[str], Callable[[int], bool]]
    ) -> None:
        self.edges: list[Edge] = []
        self._size = len(names)
        self._admits = admits
        self._nodes: dict[tuple[str | int, ...], int] = {}
        self._extras: list[tuple[int, int]] = []
        self._by_name: dict[str, list[int]] = {}
        for number, name in enumerate(names):
            self._by_name.setdefault(name, []).append(number)
        self._conditions = [condition if len(self._by_name[name]) > 1 else None for name, condition in zip(names, conditions)]

    def add(self, parent: int, child: int, marker: str | None = None, choice: int | None = None) -> None:
        """Add an edge, as in :class:`Listing`."""
        self.edges.append(Edge(parent, child, marker, choice))

    def depend(self, parent: int, child: int, marker: str | None) -> None:
        """Add an edge from a release, or from its extra if the marker names one, to a dependency.

        Raises ``ValueError`` if such a marker is invalid.
        """
        if marker is None or "extra" not in marker:
            self.add(parent, child, marker)
            return
        tree = markers.parse(marker)
        for extra in ("", *_extras_in(tree)):
            settled = _settled(tree, extra)
            if settled is not False:
                source = self.extra(parent, extra) if extra else parent
                self.add(source, child, None if isinstance(settled, bool) else markers.written(settled))

    def resolved(self, name: str, constraint: str, extra: str | None = None) -> int | None:
        """Return the node for the releases that a dependency may mean, or for an extra of them; ``None`` if there are none."""
        found = self._by_name.get(name)
        if found is None:
            return None
        if len(found) == 1:
            return found[0] if extra is None else self.extra(found[0], extra)
        if len(found) > _MANY or len(self._nodes) > _MOST_NODES:
            constraint = ""
        key = (name, constraint, extra or "")
        node = self._nodes.get(key)
        if node is None:
            node = self._new(key)
            for number in self._admitted(found, constraint):
                self.add(node, number if extra is None else self.extra(number, extra), self._conditions[number])
        return node

    def extra(self, number: int, extra: str) -> int:
        """Return the node for an extra of a release."""
        node = self._nodes.get((number, extra))
        if node is None:
            node = self._new((number, extra))
            self._extras.append((number, node))
        return node

    def add_extras_of_roots(self) -> None:
        """Install an extra that no release requires with its release: the project must have required it."""
        asked = {child for _, child, _, _ in self.edges}
        for number, node in self._extras:
            if node not in asked:
                self.add(number, node)

    def add_roots(self, wanted: Sequence[int], within: Collection[int], reached: set[int], choice: int | None = None) -> None:
        """Install the nodes that nothing in ``within`` leads to, and one release of every cycle that nothing leads to.

        Afterwards all of ``wanted`` are in ``reached``.
        """
        children: dict[int, list[int]] = {}
        for parent, child, _, _ in self.edges:
            if parent != ROOT and (child >= self._size or child in within):
                children.setdefault(parent, []).append(child)
        for node in _parents_first(wanted, children):
            if node < self._size and node not in reached:
                self.add(ROOT, node, self._conditions[node], choice)
                _reach(node, children, reached)

    def add_chosen(self, chosen: Iterable[tuple[int, int]]) -> None:
        """Install nodes, each with a choice, and every extra of every node they lead to.

        Poetry resolves an extra of the project this way (measured with 1.8 and 2.5): an extra such as ``fsspec[http]`` is
        included even if only another package requires it. These installs need their own nodes.
        """
        children: dict[int, list[tuple[int, str | None]]] = {}
        for parent, child, marker, _ in self.edges:
            children.setdefault(parent, []).append((child, marker))
        for number, node in self._extras:
            children.setdefault(number, []).append((node, None))
        todo: list[int] = []
        for node, choice in chosen:
            self.add(ROOT, self._twin(node, todo), None, choice)
        while todo:
            node = todo.pop()
            twin = self._twin(node, todo)
            if node < self._size:
                self.add(twin, node)
            for child, marker in children.get(node, ()):
                self.add(twin, self._twin(child, todo), marker)

    def _twin(self, node: int, todo: list[int]) -> int:
        twin = self._nodes.get((node,))
        if twin is None:
            twin = self._new((node,))
            todo.append(node)
        return twin

    def _new(self, key: tuple[str | int, ...]) -> int:
        self._nodes[key] = self._size + len(self._nodes)
        return self._nodes[key]

    def _admitted(self, found: list[int], constraint: str) -> list[int]:
        if not constraint:
            return found
        admits = self._admits(constraint)
        return [number for number in found if admits(number)] or found


def _parents_first(start: Iterable[int], children: Children) -> Iterator[int]:
    """Return every reachable node before its children; in a cycle, the one visited first."""
    seen: set[int] = set()
    order: list[int] = []
    for first in start:
        if first in seen:
            continue
        seen.add(first)
        path = [(first, iter(children.get(first, ())))]
        while path:
            node, rest = path[-1]
            child = next((each for each in rest if each not in seen), None)
            if child is None:
                order.append(node)
                path.pop()
            else:
                seen.add(child)
                path.append((child, iter(children.get(child, ()))))
    return reversed(order)


def _reach(node: int, children: Children, reached: set[int]) -> None:
    todo = [node]
    while todo:
        node = todo.pop()
        if node not in reached:
            reached.add(node)
            todo.extend(children.get(node, ()))


def _extras_in(tree: Marker) -> list[str]:
    found = set()
    for left, _, right in markers.comparisons(tree):
        if (True, "extra") in (left, right):
            found.add(normalized((left if right[0] else right)[1]))
    if len(found) > _MANY:
        raise ValueError("names too many extras")
    return sorted(found - {""})


def _settled(tree: Marker, extra: str) -> Marker | bool:
    """Evaluate a marker for one selected ``extra`` (``""``: none) and return the rest."""
    form = tree[0]
    if form == "is":
        left, operator, right = tree[1]
        if (True, "extra") not in (left, right):
            return tree
        asked = normalized((left if right[0] else right)[1]) == extra
        return asked if operator == "==" else not asked
    parts = []
    decisive: bool = form == "or"
    for each in tree[1:]:
        settled = _settled(each, extra)
        if settled is decisive:
            return decisive
        if not isinstance(settled, bool):
            parts.append(settled)
    if not parts:
        return not decisive
    return parts[0] if len(parts) == 1 else (form, *parts)
