"""Install commands in execution order, with their branches, and what they leave installed."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from compat.formats.installs.files import InstallFiles, combined
from compat.formats.installs.words import AT_RUN_TIME, IMAGE_CONSTRAINT, Command, Line, LockInstall, from_index, is_given
from compat.formats.listing import Branch, Edge, Entry, Listing
from compat.formats.requirements.lines import apply_constraints, apply_override, not_together
from compat.model import Distribution, Source, is_release, normalized
from compat.records import record, replace
from compat.versions import contains, key_of, ranges_of

_APART = str.maketrans(dict.fromkeys("\"'`=<>[]@/;~!,()&|#+\\ \t", "\n"))


@record(frozen=True)
class Alternatives:
    """Branches of which exactly one runs; an empty one if possibly none does."""

    branches: tuple[tuple[Step, ...], ...]


class Places:
    """The lines within one command that name distributions."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._first = lines[0][0] if lines else None
        self._names: dict[str, int] = {}
        if len(lines) > 1:
            for number, text in lines:
                for word in text.translate(_APART).split("\n"):
                    for name in (word, word.removesuffix(".git")):
                        self._names.setdefault(normalized(name), number)

    def of(self, name: str) -> int | None:
        """Return the line that names a distribution, else the first line."""
        return self._names.get(name, self._first)


def alternatives(branches: Sequence[Sequence[Step]]) -> list[Step]:
    """Return the branches as one step; no step if none of them installs anything."""
    return [Alternatives(tuple(map(tuple, branches)))] if any(branches) else []


def satisfies(installed: Distribution, requirement: Distribution) -> bool:
    """Whether an installer keeps the installed distribution ``installed`` if ``requirement`` is requested."""
    if requirement.version is not None or (
        requirement.source is not None and requirement.source.kind not in ("index", "nightly", "conda")
    ):
        return False
    if requirement.specifier is None:
        return True
    if installed.version is None:
        return False

    try:
        return contains(ranges_of(requirement.specifier), key_of(installed.version))
    except ValueError:
        return False


def _over(entry: Entry, installed: Distribution) -> Entry:
    """A pin of the release that an image has: an installer keeps the build of the image, whatever index the pin names."""
    wanted, source = entry.distribution, installed.source
    of_image = source is not None and source.kind == "image"
    of_index = wanted.source is None or wanted.source.kind == "index"
    if not of_image or not of_index or (installed.version or "").partition("+")[0] != wanted.version:
        return entry
    return replace(entry, distribution=replace(wanted, source=Source("index"), extra={**wanted.extra, **installed.extra}))


class Installs:
    """The result of install commands applied in order; inside a branch, only what the branch changes.

    The last explicit statement about a distribution wins. If it is in one branch of a condition and another branch would
    leave something else, both version and range are unknown.

    ``locks`` are the installed lock files by path; ``python`` is the version of the created environment, and ``changes``
    counts the statements that changed something.
    """

    def __init__(self, files: InstallFiles, around: Installs | None = None) -> None:
        self._files = files
        self._around = around
        self._taken: Mapping[int, int] = {}
        """The branch that runs, by the id of its alternatives; of others it is unknown which one does."""
        self._done: list[Step | Listing] = []
        self._changed: dict[str, tuple[Entry, ...]] = {}
        """The entries of a distribution: several if they have markers, none if it was uninstalled."""
        self.locks: dict[str, Listing] = {} if around is None else around.locks
        self._locked: set[str] = set() if around is None else around._locked
        self._unsure: dict[str, tuple[tuple[Entry, ...], str]] = {} if around is None else around._unsure
        self._together: list[frozenset[tuple[str, str]]] = [] if around is None else around._together
        """The pins of each command."""
        self._stated: set[tuple[str, str]] = set() if around is None else around._stated
        self._indexes: set[str] = set() if around is None else around._indexes
        self.audio: Entry | None = None if around is None else around.audio
        """The torchaudio of PyTorch's image: unless it is requested, it is not listed, as nothing uses it."""
        self.python: str | None = None
        self.changes = 0

    def copied(self, files: InstallFiles) -> Installs:
        """Return an independent copy, for a Dockerfile stage built on another one."""
        copy = Installs(files)
        copy._changed, copy.locks, copy._locked = dict(self._changed), dict(self.locks), set(self._locked)
        copy.python, copy._together, copy._stated = self.python, list(self._together), self._stated
        copy._indexes, copy.audio = set(self._indexes), self.audio
        return copy

    def take(self, other: Installs) -> None:
        """Add the contents of another environment, whose folder is copied into this one."""
        for name, copies in other._changed.items():
            for entry in copies:
                self.add(entry)
            if not copies and name not in self._changed:
                self._set(name, ())
        self.locks.update(other.locks)
        self._locked |= other._locked
        self._indexes |= other._indexes
        self.python = self.python or other.python

    def run(self, steps: Iterable[Step]) -> None:
        """Apply commands and branches in order."""
        for step in steps:
            self._done.append(step)
            if isinstance(step, Alternatives) and id(step) in self._taken:
                self.run(step.branches[self._taken[id(step)]])
            elif isinstance(step, Alternatives):
                self._branch(step)
            else:
                self.install(step, Places(step.lines).of)

    def lock(self, listing: Listing) -> None:
        """Install what a listing has."""
        self._done.append(listing)
        self._lock((listing,))

    def branches(self, before: Installs | None = None) -> tuple[Branch, ...]:
        """Return what is installed for each branch of a condition if it runs, and differs from what is without knowing it.

        ``before`` is what was installed before the commands of this one.
        """
        paths = list(islice(_paths(self._done, {}), _MOST_BRANCHES + 1))
        if len(paths) > _MOST_BRANCHES:
            self._files.not_read(self._files.path, f"only the first {_MOST_BRANCHES} branches were judged")
        found: dict[tuple[object, ...], Branch] = {_asked(self._listed()[0]): Branch("", (), None, ())}
        for line, taken in paths[:_MOST_BRANCHES]:
            world = Installs(self._files) if before is None else before.copied(self._files)
            world._taken = taken
            for step in self._done:
                if isinstance(step, Listing):
                    world.lock(step)
                else:
                    world.run((step,))
            entries, edges = world._listed()
            found.setdefault(_asked(entries), Branch(f"the branch on line {line}", entries, edges, world.together()))
        return tuple(found.values())[1:]

    def entries(self) -> tuple[Entry, ...]:
        """Return what is installed by name, in the order of the effective statements."""
        return tuple(entry for copies in self._changed.values() for entry in copies)

    def listed(self) -> tuple[tuple[Entry, ...], tuple[Edge, ...] | None]:
        """Return entries and edges for a listing; add a note for each distribution whose version depends on a condition."""
        for name, (copies, text) in self._unsure.items():
            if self._changed.get(name) == copies:
                self._files.note(self._files.path, text)
        return self._listed()

    def _listed(self) -> tuple[tuple[Entry, ...], tuple[Edge, ...] | None]:
        if not self.locks:
            return self.entries(), None

        gone = {name for name, copies in self._changed.items() if not copies}
        return combined(list(self.locks.values()), self.entries(), gone)

    def together(self) -> tuple[frozenset[tuple[str, str]], ...]:
        """Return the (name, version) pins that one command installs, for each command with several that are still in effect."""
        left = {(entry.distribution.name, entry.distribution.version) for entry in self.entries()}
        groups = (pins & left for pins in self._together)
        return tuple(pins for pins in groups if len(pins) > 1)

    def stated(self) -> frozenset[tuple[str, str]]:
        """Return the (name, version) pins of all commands, also those that a later one replaces."""
        return frozenset(self._stated)

    def indexes(self) -> tuple[str, ...]:
        """Return the addresses of all indexes and folders of wheels that the commands and their files name."""
        return tuple(sorted(self._indexes | self._files.indexes))

    def install(self, command: Command, line_of: Callable[[str], int | None]) -> None:
        """Apply one command. ``line_of`` returns the line that names a distribution."""
        install = command.install
        self.python = install.python or self.python
        self._indexes.update(install.indexes)
        for name in install.removed:
            self._set(name, ())
        for lock in install.locks:
            self._lock(self._files.lock(lock, command), lock.left_out)
        wanted = self._wanted(command, line_of)
        constraints = [self._files.constraints(file, command) for file in install.constraints]
        for file in install.overrides:
            by_name = self._files.constraints(file, command)
            wanted = [_forced(entry, by_name.get(entry.distribution.name, ())) for entry in wanted]
        stated = (*wanted, *(entry for by_name in constraints for copies in by_name.values() for entry in copies))
        self._stated.update((each.distribution.name, each.distribution.version) for each in stated if each.distribution.version)
        notes: list[str] = []
        limits = [c for by_name in constraints for entry in wanted for c in by_name.get(entry.distribution.name, ())]
        entries = not_together(apply_constraints(wanted, limits, notes), self._files.path)
        alone = install.no_deps or bool(install.overrides)
        held = IMAGE_CONSTRAINT in install.constraints and bool(self._files.of_image)
        for entry in entries:
            self.add(replace(entry, alone=alone, held=held) if alone or held else entry, upgrade=install.upgrade)
        if not alone and install.manager != "conda":
            asked = (entry.distribution for entry in entries)
            self._together.append(frozenset((each.name, each.version) for each in asked if each.version and is_release(each)))
        for note in (*install.notes, *notes):
            (self._files.not_here if note.endswith(AT_RUN_TIME) else self._files.note)(command.where, note)
        for text in install.unknown:
            (self._files.not_here if is_given(text, command.computed) else self._files.not_read)(command.where, text)

    def _wanted(self, command: Command, line_of: Callable[[str], int | None]) -> list[Entry]:
        """Return what a command requests, in files and by name."""
        install = command.install
        found: list[Entry] = []
        for file in install.files:
            if posixpath.basename(file).startswith("pylock."):
                self._lock(self._files.lock(LockInstall(file), command))
                continue
            for entry in self._files.requirements(file, command):
                index = install.index_url
                found.append(replace(entry, distribution=from_index(entry.distribution, index)) if index else entry)
        found += [Entry(each, line_of(each.name)) for each in install.requirements]
        for script in install.scripts:
            found += self._files.inline(script, command)
        for project in install.directories if not install.no_deps else ():
            found += self._files.project(project, command)
        return found

    def add(self, entry: Entry, *, upgrade: bool = False) -> None:
        """Install one distribution; without ``upgrade``, an installed one that satisfies it is kept."""
        wanted = entry.distribution
        before = self._installed(wanted.name)
        if before is None and not upgrade and wanted.version is None and wanted.name in self._locked:
            return
        copies = {each.distribution.marker: each for each in before or ()}
        earlier = copies.get(wanted.marker) or copies.get(None)
        earlier = self.audio if earlier is None and before is None and wanted.name == "torchaudio" else earlier
        if earlier is not None and not upgrade and satisfies(earlier.distribution, wanted):
            return
        if wanted.marker is None:
            copies = {}
        copies.pop(None, None)
        copies[wanted.marker] = entry if upgrade or earlier is None else _over(entry, earlier.distribution)
        self._set(wanted.name, tuple(copies.values()))

    def _installed(self, name: str) -> tuple[Entry, ...] | None:
        """Return the entries of a distribution; empty if it was uninstalled, ``None`` if no command named it."""
        state: Installs | None = self
        while state is not None:
            if name in state._changed:
                return state._changed[name]
            state = state._around
        return None

    def _set(self, name: str, copies: tuple[Entry, ...]) -> None:
        if copies != self._changed.get(name):
            self.changes += bool(copies or self._changed.get(name))
            self._changed.pop(name, None)  # the last statement comes last
            self._changed[name] = copies

    def _lock(self, listings: Sequence[Listing], left_out: Collection[str] = ()) -> None:
        for listing in listings:
            self.locks[listing.file] = listing
            for entry in listing.entries:
                name = entry.distribution.name
                if name in left_out:
                    self._set(name, self._installed(name) or ())
                else:
                    self._locked.add(name)
                    self.changes += bool(self._changed.pop(name, None))
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
            before = self._installed(name)
            untouched = len(ways) < len(branches)
            merged = self._merged(name, [*ways, *([before or ()] if untouched else [])], before is None)
            self._set(name, merged)

    def _merged(self, name: str, ways: Sequence[tuple[Entry, ...]], new: bool) -> tuple[Entry, ...]:
        """Merge the outcomes of the branches for a distribution."""
        present = [way for way in ways if way]
        asked = {tuple(map(_key, way)) for way in present}
        if not present:
            return ()
        if len(asked) == 1 and (len(present) == len(ways) or (new and asked == {((None, None, None),)})):
            return present[0]
        lines = sorted({entry.line for way in present for entry in way if entry.line is not None and entry.file is None})
        shown = f" (line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines[:6]))})" if lines else ""
        merged: tuple[Entry, ...] = ()  # it may have been uninstalled, so even its presence is unknown
        if all(ways) or new:
            sources = {_kind(entry.distribution.source): entry.distribution.source for way in present for entry in way}
            source = next(iter(sources.values())) if len(sources) == 1 else None
            merged = (replace(present[-1][-1], distribution=Distribution(name, source=source)),)
        self._unsure[name] = (merged, f"{name}: what is installed depends on a condition{shown}: its version is not known")
        return merged


_MOST_BRANCHES = 60


def _paths(steps: Sequence[Step | Listing], outer: Mapping[int, int]) -> Iterator[tuple[int, dict[int, int]]]:
    """Yield each branch that installs something: the first line in it, and the choices that lead to it."""
    for step in steps:
        for at, branch in enumerate(step.branches) if isinstance(step, Alternatives) else ():
            taken = {**outer, id(step): at}
            first = next((each for each in branch if isinstance(each, Command)), None)
            if first is not None and first.lines:
                yield first.lines[0][0], taken
            yield from _paths(branch, taken)


def _forced(entry: Entry, overrides: Sequence[Entry]) -> Entry:
    """Return the entry after the last override of its distribution."""
    return (
        apply_override(entry, overrides[-1].distribution, f"{overrides[-1].file}:{overrides[-1].line}") if overrides else entry
    )


def _key(entry: Entry) -> tuple[str | None, str | None, str | None]:
    found = entry.distribution
    direct = None if _kind(found.source) in ("index", "nightly", "") else repr(found.source)
    return found.version, found.specifier, direct or (repr(found.marker) if found.marker else None)


def _asked(entries: Sequence[Entry]) -> tuple[object, ...]:
    return tuple((each.distribution.name, *_key(each)) for each in entries)


def _kind(source: Source | None) -> str:
    return "" if source is None else source.kind


Step: TypeAlias = "Command | Alternatives"
