"""A lock file that a command installs: what of it is installed, and how that combines with what else is installed."""

from __future__ import annotations

from compat.environment import normalized
from compat.read.files.listing import ROOT, Entry, Listing
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from compat.read.files.installs.install_command import LockInstall
    from compat.read.files.listing import Choice, Edge


def selected(listing: Listing, asked: LockInstall) -> Listing:
    """The listing with its choices made as the command makes them: no choice is left."""
    made = {number for number, choice in enumerate(listing.choices) if _is_made(choice, asked)}
    edges = tuple(
        (parent, child, marker, None)
        for parent, child, marker, choice in _edges(listing)
        if choice is None or choice in made
    )  # fmt: skip
    return replace(listing, edges=edges, choices=(), conflicts=(), exclusive=False)


def _is_made(choice: Choice, asked: LockInstall) -> bool:
    name = normalized(choice.name)
    if choice.kind == "extra":
        return asked.all_extras or name in map(normalized, asked.extras)
    if choice.kind == "environment":
        return choice.default if asked.environment is None else name == normalized(asked.environment)
    if name in map(normalized, asked.without):
        return False
    return asked.all_groups or name in map(normalized, asked.groups) or (choice.default and asked.default_groups)


def _edges(listing: Listing) -> Sequence[Edge]:
    if listing.edges is not None:
        return listing.edges
    return [(ROOT, node, entry.distribution.marker, None) for node, entry in enumerate(listing.entries)]


def installed_directly(listing: Listing) -> list[Entry]:
    """The entries that a selected listing installs, each with the marker of the edge that leads to it."""
    following: dict[int, list[tuple[int, str | None]]] = {}
    for parent, child, marker, _ in listing.edges or ():
        following.setdefault(parent, []).append((child, marker))
    found: list[Entry] = []
    waiting, seen = [ROOT], {ROOT}
    while waiting:
        for child, marker in following.get(waiting.pop(), ()):
            if child in seen:
                continue
            seen.add(child)
            waiting.append(child)
            if child < len(listing.entries):
                entry = listing.entries[child]
                found.append(replace(entry, distribution=replace(entry.distribution, marker=marker)))
    return sorted(found, key=lambda entry: entry.line or 0)


def combined(
    locks: Sequence[Listing], others: Sequence[Entry], gone: Collection[str]
) -> tuple[tuple[Entry, ...], tuple[Edge, ...] | None]:
    """Entries and edges of selected locks with what was installed or uninstalled by name afterwards.

    An entry of ``others`` takes the place of the lock's releases of that name.
    """
    if not locks:
        return tuple(others), None
    later = {entry.distribution.name: entry for entry in others}
    locked = {entry.distribution.name for lock in locks for entry in lock.entries}
    own = [entry for entry in others if entry.distribution.name not in locked]
    entries: list[Entry] = []
    for lock in locks:
        entries += [later.get(entry.distribution.name, _placed(entry, lock)) for entry in lock.entries]
    edges: list[Edge] = [(ROOT, len(entries) + at, entry.distribution.marker, None) for at, entry in enumerate(own)]
    total, start, between = len(entries) + len(own), 0, 0
    for lock in locks:
        size = len(lock.entries)
        for parent, child, marker, _ in lock.edges or ():
            removed = child < size and lock.entries[child].distribution.name in gone
            left = 0 <= parent < size and lock.entries[parent].distribution.name in gone
            if not removed:
                above = ROOT if left else _moved(parent, size, start, total + between)
                edges.append((above, _moved(child, size, start, total + between), marker, None))
        between += 1 + max((max(parent, child) - size for parent, child, _, _ in lock.edges or ()), default=-1)
        start += size
    return (*entries, *own), tuple(edges)


def _placed(entry: Entry, lock: Listing) -> Entry:
    return entry if entry.file is not None else replace(entry, file=lock.file)


def _moved(node: int, size: int, start: int, between: int) -> int:
    """A node of one lock in the numbers of all of them."""
    if node == ROOT:
        return ROOT
    return start + node if node < size else between + node - size
