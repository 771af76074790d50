"""Install commands in the order in which a script or notebook runs them, with the branches that they stand in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from compat.formats.installs.words import from_index
from compat.formats.listing import Edge, Entry, Listing
from compat.formats.requirements.lines import constrained
from compat.model import Distribution, Source, normalized
from compat.records import record, replace

if TYPE_CHECKING:
    from compat.formats.installs.files import InstallFiles
    from compat.formats.installs.words import Install


_APART = str.maketrans(dict.fromkeys("\"'`=<>[]@/;~!,()&|#+\\ \t", "\n"))


@record(frozen=True)
class Command:
    """One install command: ``where`` it stands, for notes, the ``lines`` it is written on, the folder it is run in."""

    install: Install
    where: str
    lines: tuple[Line, ...] = ()
    directory: str | None = None

    @property
    def line(self) -> int | None:
        """The first line of the command."""
        return self.lines[0][0] if self.lines else None


@record(frozen=True)
class Alternatives:
    """Branches of which exactly one is run; an empty one where it may be that none is."""

    branches: tuple[tuple[Step, ...], ...]


class Places:
    """The lines that distributions are named on, within one command."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._first = lines[0][0] if lines else None
        self._names: dict[str, int] = {}
        if len(lines) > 1:
            for number, text in lines:
                for word in text.translate(_APART).split("\n"):
                    for name in (word, word.removesuffix(".git")):
                        self._names.setdefault(normalized(name), number)

    def of(self, name: str) -> int | None:
        """The line that names a distribution; else the first one."""
        return self._names.get(name, self._first)


def alternatives(branches: Sequence[Sequence[Step]]) -> list[Step]:
    """The branches as one step; no step where nothing is installed in any of them."""
    return [Alternatives(tuple(map(tuple, branches)))] if any(branches) else []


# --- Install commands applied one after the other: what is there in the end.


class Installed:
    """The distributions that are installed so far, by name; one that has markers may be there several times."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.changes = 0
        """How often something was installed or uninstalled."""
        self._entries: dict[str, dict[str | None, Entry]] = {}
        for entry in entries:
            self._entries.setdefault(entry.distribution.name, {})[entry.distribution.marker] = entry

    def apply(self, install: Install, line: int | None, file: str | None = None) -> None:
        """One command: its requirements replace what was there, what it uninstalls is gone."""
        for name in install.removed:
            self.remove(name)
        for distribution in install.requirements:
            self.add(Entry(distribution, line, file), upgrade=install.upgrade)

    def add(self, entry: Entry, *, upgrade: bool = False) -> None:
        """The last explicit statement holds; without ``upgrade`` what already fits is left as it is."""
        wanted = entry.distribution
        there = self._entries.get(wanted.name, {})
        earlier = there.get(wanted.marker) or there.get(None)
        if earlier is not None and not upgrade and fits(earlier.distribution, wanted):
            return
        self.changes += 1
        copies = self._entries.pop(wanted.name, {})
        if wanted.marker is None:
            copies = {}
        copies.pop(None, None)
        copies[wanted.marker] = entry
        self._entries[wanted.name] = copies

    def remove(self, name: str) -> None:
        """What ``pip uninstall`` does; a name that is not there is no error."""
        if self._entries.pop(name, None):
            self.changes += 1

    def has(self, name: str) -> bool:
        """Whether a distribution is there."""
        return name in self._entries

    def entries(self) -> tuple[Entry, ...]:
        """What is there, in the order of the statements that hold."""
        return tuple(entry for copies in self._entries.values() for entry in copies.values())


def fits(there: Distribution, wanted: Distribution) -> bool:
    """Whether an installer leaves a distribution as it is when ``wanted`` is asked for."""
    if wanted.version is not None or (wanted.source is not None and wanted.source.kind not in ("index", "nightly", "conda")):
        return False
    if wanted.specifier is None:
        return True
    if there.version is None:
        return False
    from compat.versions import contains, key_of, ranges_of

    try:
        return contains(ranges_of(wanted.specifier), key_of(there.version))
    except ValueError:
        return False


# --- Install commands with branches, applied in order: what is there in the end, and what depends on a condition.
#
# The last explicit statement about a distribution holds. Where it stands in a branch of a condition that is not known, and
# the other branch would leave something else, neither version nor range is known.


class Installs:
    """What is installed so far; inside of a branch, only what the branch changes.

    ``locks`` are the lock files that are installed, by path; ``python`` is the version that an environment is made with.
    """

    def __init__(self, files: InstallFiles, around: Installs | None = None) -> None:
        self._files = files
        self._around = around
        self._changed: dict[str, tuple[Entry, ...]] = {}
        self.locks: dict[str, Listing] = {} if around is None else around.locks
        self._locked: set[str] = set() if around is None else around._locked
        self.python: str | None = None
        self._unsure: dict[str, tuple[tuple[Entry, ...], str]] = {} if around is None else around._unsure

    def run(self, steps: Iterable[Step]) -> None:
        """Apply the steps in order."""
        for step in steps:
            if isinstance(step, Alternatives):
                self._branch(step)
            else:
                self._command(step)

    def listed(self) -> tuple[tuple[Entry, ...], tuple[Edge, ...] | None]:
        """Entries and edges of a listing, in the order of the statements that hold; a note says what depends on what."""
        for name, (copies, text) in self._unsure.items():
            if self._changed.get(name) == copies:
                self._files.note(self._files.path, text)
        entries = [entry for copies in self._changed.values() for entry in copies]
        if not self.locks:
            return tuple(entries), None
        from compat.formats.installs.files import combined

        gone = {name for name, copies in self._changed.items() if not copies}
        return combined(list(self.locks.values()), entries, gone)

    def _there(self, name: str) -> tuple[Entry, ...] | None:
        """The entries of a distribution; empty where it was uninstalled, ``None`` where nothing was said of it."""
        state: Installs | None = self
        while state is not None:
            if name in state._changed:
                return state._changed[name]
            state = state._around
        return None

    def _command(self, command: Command) -> None:
        install = command.install
        self.python = install.python or self.python
        for name in install.removed:
            self._put(name, ())
        for lock in install.locks:
            self._lock(self._files.lock(lock, command))
        places = Places(command.lines)
        wanted = [Entry(each, places.of(each.name)) for each in install.requirements]
        constraints: list[dict[str, list[Entry]]] = []
        for file, is_constraint in install.files:
            if is_constraint:
                constraints.append(self._files.constraints(file, command))
                continue
            for entry in self._files.requirements(file, command):
                index = install.index_url
                wanted.append(replace(entry, distribution=from_index(entry.distribution, index)) if index else entry)
        for project, _ in install.directories if not install.no_deps else ():
            wanted += self._files.project(project, command)
        notes: list[str] = []
        limits = [c for by_name in constraints for entry in wanted for c in by_name.get(entry.distribution.name, ())]
        for entry in constrained(wanted, limits, notes):
            self._add(entry, upgrade=install.upgrade)
        for note in (*install.notes, *notes):
            self._files.note(command.where, note)

    def _add(self, entry: Entry, *, upgrade: bool) -> None:
        name = entry.distribution.name
        before = self._there(name)
        if before is None and not upgrade and entry.distribution.version is None and name in self._locked:
            return
        copies = Installed(before or ())
        copies.add(entry, upgrade=upgrade)
        self._put(name, copies.entries())

    def _put(self, name: str, copies: tuple[Entry, ...]) -> None:
        if copies != self._changed.get(name):
            self._changed.pop(name, None)  # what is said last stands last
            self._changed[name] = copies

    def _lock(self, listings: Sequence[Listing]) -> None:
        for listing in listings:
            self.locks[listing.file] = listing
            for entry in listing.entries:
                self._locked.add(entry.distribution.name)
                self._changed.pop(entry.distribution.name, None)
            self.python = listing.context.python or self.python

    def _branch(self, step: Alternatives) -> None:
        branches = [Installs(self._files, self) for _ in step.branches]
        changed: dict[str, list[tuple[Entry, ...]]] = {}
        for branch, steps in zip(branches, step.branches):
            branch.run(steps)
            for name, copies in branch._changed.items():
                changed.setdefault(name, []).append(copies)
        pythons = {branch.python for branch in branches}
        self.python = pythons.pop() if len(pythons) == 1 else self.python
        for name, ways in changed.items():
            before = self._there(name)
            untouched = len(ways) < len(branches)
            merged = self._merged(name, [*ways, *([before or ()] if untouched else [])], before is None)
            self._put(name, merged)

    def _merged(self, name: str, ways: Sequence[tuple[Entry, ...]], new: bool) -> tuple[Entry, ...]:
        """What is left to say of a distribution that the branches leave in these ways."""
        present = [way for way in ways if way]
        asked = {tuple(map(_asked, way)) for way in present}
        if not present:
            return ()
        if len(asked) == 1 and (len(present) == len(ways) or (new and asked == {((None, None, None),)})):
            return present[0]
        lines = sorted({entry.line for way in present for entry in way if entry.line is not None and entry.file is None})
        shown = f" (line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines[:6]))})" if lines else ""
        merged: tuple[Entry, ...] = ()  # it may have been uninstalled: not even whether it is there is known
        if all(ways) or new:
            sources = {_kind(entry.distribution.source): entry.distribution.source for way in present for entry in way}
            source = next(iter(sources.values())) if len(sources) == 1 else None
            merged = (replace(present[-1][-1], distribution=Distribution(name, source=source)),)
        self._unsure[name] = (merged, f"{name}: what is installed depends on a condition{shown}: its version is not known")
        return merged


def _asked(entry: Entry) -> tuple[str | None, str | None, str | None]:
    found = entry.distribution
    direct = None if _kind(found.source) in ("index", "nightly", "") else repr(found.source)
    return found.version, found.specifier, direct or (repr(found.marker) if found.marker else None)


def _kind(source: Source | None) -> str:
    return "" if source is None else source.kind


Step: TypeAlias = "Command | Alternatives"
Line: TypeAlias = tuple[int, str]
"""The number of a line in the file, and its text."""
