"""What a file lists: releases, which of them are installed together, and where.

A lock file may hold several releases of one distribution. Which of them is installed depends on the interpreter and
the platform (markers) and on what is asked for (extras, groups, an environment by name): :class:`Listing` keeps all of
that, ``compat.judge.selections`` works out every installable selection.
"""

from __future__ import annotations

from compat.environment import Environment
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from compat.environment import Distribution

    Edge: TypeAlias = tuple[int, int, str | None, int | None]
    """(parent node, child node, marker, choice): the child is installed where the parent is, the marker holds and the
    choice (an index into ``choices``) is made. ``None``: always."""

ROOT = -1
"""The node that is always installed."""


@record(frozen=True)
class Entry:
    """One listed release and the place it is listed at: a 1-based line, of another file where one was included."""

    distribution: Distribution
    line: int | None = None
    file: str | None = None


@record(frozen=True)
class Choice:
    """Something that is installed only if asked for: an ``extra``, a dependency ``group`` or an ``environment`` by name.

    ``package`` is the project it belongs to, where a file has several. ``default``: it is installed if nothing is said.
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
    ``complete``: nothing else gets installed. ``context`` holds every other fact the file tells (python, os, accelerators,
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
