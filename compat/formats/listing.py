"""What a file lists: releases, which of them are installed together, and where.

A lock file may hold several releases of one distribution. Which of them is installed depends on the interpreter and
the platform (markers) and on what is selected (extras, groups, a named environment). :class:`Listing` keeps all of
that; ``compat.checks.selections`` computes every installable selection.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from compat.errors import InputError
from compat.model import Distribution, Environment, normalized
from compat.records import record, replace

ROOT = -1
"""The node that is always installed."""


@record(frozen=True)
class Entry:
    """One listed release and its position: a 1-based line, and the file if it was included.

    ``alone``: a command installs it without what it requires, ``held``: with the constraints of pip that the image sets.
    """

    distribution: Distribution
    line: int | None = None
    file: str | None = None
    alone: bool = False
    held: bool = False


class Edge(NamedTuple):
    """``child`` is installed if ``parent`` is, the marker holds and the choice (an index into ``choices``) is selected.

    ``None`` means always. A tuple and not a record: a lock has thousands, which are unpacked in loops.
    """

    parent: int
    child: int
    marker: str | None = None
    choice: int | None = None


@record(frozen=True)
class Choice:
    """Something that is installed only if selected: an ``extra``, a dependency ``group`` or a named ``environment``.

    ``package`` is its project if a file has several. ``default``: it is installed unless deselected. ``apart``: the project
    declares a conflict between it and itself, so that it is only installed by whoever asks for it, if at all.
    """

    kind: str
    name: str
    package: str | None = None
    default: bool = False
    apart: bool = False

    @property
    def label(self) -> str:
        """Return its name in findings and on the command line: ``extra vllm``, ``extra nemo-gym[vllm]``."""
        return f"{self.kind} {self.package}[{self.name}]" if self.package else f"{self.kind} {self.name}"


def key_of_choice(choice: Choice) -> str:
    """What identifies an extra or a group in its own project: ``extra vllm``."""
    return f"{choice.kind} {normalized(choice.name)}"


def set_apart(choices: Iterable[Choice], numbers: Collection[int]) -> tuple[Choice, ...]:
    """The choices, those with these numbers as conflicting with their own project."""
    return tuple(replace(each, apart=True) if at in numbers else each for at, each in enumerate(choices))


def notes_on_apart(choices: Iterable[Choice]) -> Iterator[str]:
    """The remark on what is not checked because it conflicts with its own project."""
    labels = [each.label for each in choices if each.apart]
    if labels:
        yield f"in conflict with the project itself, and only checked if requested: {', '.join(labels)}"


@record(frozen=True)
class Branch:
    """What is installed if a branch of the file's commands runs. ``label`` says where it is."""

    label: str
    entries: tuple[Entry, ...]
    edges: tuple[Edge, ...] | None
    together: tuple[frozenset[tuple[str, str]], ...]


_COMMANDS = (
    "dockerfile", "shell", "compose", "notebook", "makefile", "gitlab", "devcontainer", "singularity", "kubernetes", "skypilot",
    "dstack",
)  # fmt: skip
"""Kinds of files that run install commands, perhaps over packages that are there already."""


@record(frozen=True)
class Listing:
    """What one file (or one of its stages or services, named by ``label``) installs.

    Nodes 0 … len(entries)-1 are the entries; edges may use higher numbers for intermediate nodes (an extra of a
    distribution). ``edges`` is ``None`` if every entry is installed directly, under its own marker.
    ``conflicts`` are sets of choices that cannot be combined; ``exclusive``: exactly one choice is selected.
    ``requires_python`` is a specifier set, ``environments`` are markers: the file supports no others.
    ``complete``: nothing else gets installed; ``closed``: nothing else but what the entries require. ``context`` holds every
    other fact in the file (python, os, accelerators, variables, workload …; its distributions are not used). ``notes`` are
    remarks; ``unread`` lists what should have been read and was not: a check of such a file never ends with exit code 0.
    ``overridden`` are the distributions whose requirements the file replaces on purpose: those of all packages, or those of
    its own for a package whose metadata the file states itself.
    ``together`` are sets of (name, version) pins that one command of several installs: an installer resolves them as a whole.
    ``elsewhere`` lists what something else decides, such as a build backend or a file that is not in the build context: these
    are notes, and with ``--strict`` like ``unread``.
    ``stated`` are all (name, version) pins that commands state, also those that a later one replaces. ``loose`` are pins in the
    text that nothing which was read accounts for: those of packages that findings can concern are like ``unread``.
    ``branches`` are what is installed instead of ``entries`` if a command under a condition runs, one condition at a time.
    ``indexes`` are the addresses of the indexes and folders of wheels that the file names, ``constraints`` those on packages
    that it does not list. ``hashed``: installers only accept what the file states a hash of.
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
    closed: bool = False
    context: Environment = Environment()
    label: str | None = None
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    overridden: tuple[str, ...] = ()
    together: tuple[frozenset[tuple[str, str]], ...] = ()
    stated: frozenset[tuple[str, str]] = frozenset()
    loose: tuple[Entry, ...] = ()
    branches: tuple[Branch, ...] = ()
    indexes: tuple[str, ...] = ()
    constraints: tuple[Distribution, ...] = ()
    hashed: bool = False

    @property
    def is_relevant(self) -> bool:
        """Whether anything is installed, trains or serves, or was not read."""
        return bool(self.entries or self.unread or self.elsewhere or self.loose or self.context.workload is not None)

    @property
    def starts_empty(self) -> bool:
        """Whether an installer starts without packages, rather than over those of an image or a machine."""
        return self.closed or not self.is_run

    @property
    def is_run(self) -> bool:
        """Whether commands install one after another, of which a later one may replace what an earlier one installed."""
        return self.kind in _COMMANDS

    def has_one_command(self, packages: Mapping[str, str | None]) -> bool:
        """Whether one install command pins all of these releases, so that installers refuse what one requires of another."""
        return any(packages.items() <= pins for pins in self.together)


# --- Limits on what one file may list, far above any real file, so that a malicious one is refused instead of processed.


ENTRIES = 20_000
"""Releases or requirements; the largest known real lock has 1,300."""
EDGES = 500_000
CHOICES = 1_500
"""Extras, groups and environments; real files have a few dozen, workspaces a few hundred."""
CONFLICTING = 500
"""Choices in conflict sets, counted once for each set."""


def within_limits(listing: Listing) -> Listing:
    """Return the listing unchanged; :class:`InputError` if it exceeds a limit."""
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
    """Raise :class:`InputError` if a file has more than :data:`ENTRIES` entries."""
    if count > ENTRIES:
        raise InputError(f"has more than {ENTRIES} entries", file, line)
