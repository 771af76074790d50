"""Install commands with branches, applied in order: what is there in the end, and what depends on a condition.

The last explicit statement about a distribution holds. Where it stands in a branch of a condition that is not known, and
the other branch would leave something else, neither version nor range is known.
"""

from __future__ import annotations

from compat.environment import Distribution
from compat.read.files.installs.install_steps import Alternatives, Places
from compat.read.files.installs.install_words import from_index
from compat.read.files.installs.installed import Installed
from compat.read.files.listing import Entry
from compat.read.files.requirements.constraints import constrained
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compat.environment import Source
    from compat.read.files.installs.install_files import InstallFiles
    from compat.read.files.installs.install_steps import Command, Step
    from compat.read.files.listing import Edge, Listing


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
        from compat.read.files.installs.lock_install import combined

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
