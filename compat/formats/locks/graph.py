"""The edges of a lock file that says which groups its releases belong to, or only what depends on what."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence

from compat import markers
from compat.formats.listing import ROOT, Choice, Edge
from compat.markers import Marker
from compat.model import normalized

Children = Mapping[int, Sequence[int]]


def edges_by_group(
    packages: Iterable[Mapping[str, str | None]], choices: list[Choice], always: str, defaults: Container[str] | None = None
) -> list[Edge]:
    """Return edges that install a release with any of its groups if its marker for that group holds.

    Every package is given as its groups, each with the marker. ``always`` is the group that is no choice; the others are added
    to ``choices``, as default if they are in ``defaults`` (``None``: all are).
    """
    edges: list[Edge] = []
    numbers: dict[str, int | None] = {each.name: at for at, each in enumerate(choices) if each.kind == "group"}
    numbers[always] = None
    for node, groups in enumerate(packages):
        for group, marker in groups.items():
            if group not in numbers:
                numbers[group] = len(choices)
                choices.append(Choice("group", group, default=defaults is None or group in defaults))
            edges.append(Edge(ROOT, node, marker, numbers[group]))
    return edges


# --- The graph of a lock file that lists dependencies of releases, but not which releases are installed.


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
        compared = [(left, right) for left, _, right in markers.comparisons(tree) if (True, "extra") in (left, right)]
        extras = {normalized((left if right[0] else right)[1]) for left, right in compared}
        if len(extras) > _MANY:
            raise ValueError("names too many extras")
        for extra in sorted(extras | {""}):
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
            admits = self._admits(constraint) if constraint else None
            for number in [number for number in found if admits is None or admits(number)] or found:
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
                todo = [node]
                while todo:
                    node = todo.pop()
                    if node not in reached:
                        reached.add(node)
                        todo.extend(children.get(node, ()))

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
