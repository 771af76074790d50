"""What a file lists: releases, which of them are installed together, and where.

A lock file may hold several releases of one distribution. Which of them is installed depends on the interpreter and
the platform (markers) and on what is asked for (extras, groups, an environment by name): :class:`Listing` keeps all of
that, ``compat.checks.selections`` works out every installable selection.
"""

from __future__ import annotations

from typing import NamedTuple

from compat.errors import InputError
from compat.model import Distribution, Environment
from compat.records import record

ROOT = -1
"""The node that is always installed."""


@record(frozen=True)
class Entry:
    """One listed release and the place it is listed at: a 1-based line, of another file where one was included."""

    distribution: Distribution
    line: int | None = None
    file: str | None = None


class Edge(NamedTuple):
    """``child`` is installed where ``parent`` is, the marker holds and the choice (a number in ``choices``) is made.

    ``None``: always. A tuple and no record: a lock has thousands, which are taken apart in loops.
    """

    parent: int
    child: int
    marker: str | None = None
    choice: int | None = None


@record(frozen=True)
class Choice:
    """Something that is installed only if asked for: an ``extra``, a dependency ``group`` or an ``environment`` by name.

    ``package`` is the project it belongs to, where a file has several. ``default``: it is installed unless deselected.
    """

    kind: str
    name: str
    package: str | None = None
    default: bool = False

    @property
    def label(self) -> str:
        """How it is called in a finding, and on the command line: ``extra vllm``, ``extra nemo-gym[vllm]``."""
        return f"{self.kind} {self.package}[{self.name}]" if self.package else f"{self.kind} {self.name}"


@record(frozen=True)
class Listing:
    """What one file (or one stage or service of it, then ``label`` says which) installs.

    Nodes 0 … len(entries)-1 are the entries; an edge may also use higher numbers, for what stands between (an extra of a
    distribution). ``edges`` is ``None`` where every entry is installed directly, under its own marker.
    ``conflicts`` are sets of choices that cannot be made together; ``exclusive``: exactly one choice is made.
    ``requires_python`` is a specifier set, ``environments`` are markers: the file is made for no others.
    ``complete``: nothing else gets installed. ``context`` holds every other fact in the file (python, os, accelerators,
    variables, workload …; its distributions are not used). ``notes`` are remarks; ``unread`` says what was not read and
    should have been: a check of such a file never ends with exit code 0.
    """

    file: str
    kind: str
    entries: tuple[Entry, ...] = ()
    edges: tuple[Edge, ...] | None = None
    choices: tuple[Choice, ...] = ()
    conflicts: tuple[tuple[int, ...], ...] = ()
    exclusive: bool = False
    requires_python: str | None = None
    environments: tuple[str, ...] = ()
    complete: bool = False
    context: Environment = Environment()
    label: str | None = None
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


# --- How much one file may list: far beyond every real file, so that one made to be too much is refused and not worked on.


ENTRIES = 20_000
"""Releases or requirements; the largest real lock that is known has 1,300."""
EDGES = 500_000
CHOICES = 1_500
"""Extras, groups and environments; real files have some dozens, workspaces a few hundred."""
CONFLICTING = 500
"""Choices in sets of which no two go together, counted once for each set."""


def within_limits(listing: Listing) -> Listing:
    """The listing itself; :class:`InputError` where it has too much of something."""
    conflicting = sum(map(len, listing.conflicts))
    for count, most, what in (
        (len(listing.entries), ENTRIES, "entries"),
        (len(listing.edges or ()), EDGES, "dependencies"),
        (len(listing.choices), CHOICES, "extras, groups or environments"),
        (conflicting, CONFLICTING, "extras and groups in its conflicts"),
    ):
        if count > most:
            raise InputError(f"has more than {most} {what}", listing.file)
    return listing


def check_entries(count: int, file: str, line: int | None) -> None:
    """:class:`InputError` where a file has more entries than it may."""
    if count > ENTRIES:
        raise InputError(f"has more than {ENTRIES} entries", file, line)
