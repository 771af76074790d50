"""The files named by install commands: requirements, constraints, projects and lock files."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterable, Sequence

from compat.errors import InputError, printable
from compat.formats.edit.changes import Change
from compat.formats.edit.files import Edit
from compat.formats.include import Missing, NotRead, WorkingFolders
from compat.formats.installs.edit import InstallScript, edit_installs
from compat.formats.installs.words import (
    AT_RUN_TIME,
    IMAGE_CONSTRAINT,
    Command,
    LockInstall,
    is_given,
    is_unresolved,
    printed_file,
)
from compat.formats.listing import ROOT, Choice, Edge, Entry, Listing
from compat.formats.pins import numbered_lines
from compat.formats.registry import FORMATS, Format, format_of
from compat.formats.requirements.file import decode, read_requirements
from compat.model import normalized
from compat.records import record, replace
from compat.redact import excerpt

# --- An installed lock file: its selected part, combined with what other commands install.


def selected(listing: Listing, asked: LockInstall) -> Listing:
    """Return the listing with its choices resolved as the command selects them; no choices remain."""
    chosen = {number for number, choice in enumerate(listing.choices) if _is_selected(choice, asked)}
    edges: Sequence[Edge] | None = listing.edges
    if edges is None:
        edges = [Edge(ROOT, node, entry.distribution.marker) for node, entry in enumerate(listing.entries)]
    kept = tuple(each._replace(choice=None) for each in edges if each.choice is None or each.choice in chosen)
    return replace(listing, edges=kept, choices=(), conflicts=(), exclusive=False)


def _is_selected(choice: Choice, asked: LockInstall) -> bool:
    name = normalized(choice.name)
    if choice.kind == "extra":
        return asked.all_extras or name in map(normalized, asked.extras)
    if choice.kind == "environment":
        return choice.default if asked.environment is None else name == normalized(asked.environment)
    if name in map(normalized, asked.without):
        return False
    return asked.all_groups or name in map(normalized, asked.groups) or (choice.default and asked.default_groups)


def installed_directly(listing: Listing) -> list[Entry]:
    """Return the entries that a selected listing installs, each with the marker of the edge to it."""
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
    """Merge entries and edges of selected locks with what was installed or uninstalled by name afterwards.

    An entry of ``others`` replaces the lock's releases of that name.
    """
    if not locks:
        return tuple(others), None
    later = {entry.distribution.name: entry for entry in others}
    locked = {entry.distribution.name for lock in locks for entry in lock.entries}
    own = [entry for entry in others if entry.distribution.name not in locked]
    entries: list[Entry] = []
    for lock in locks:
        placed = (replace(entry, file=entry.file or lock.file) for entry in lock.entries)
        entries += [later.get(entry.distribution.name, entry) for entry in placed]
    edges: list[Edge] = [Edge(ROOT, len(entries) + at, entry.distribution.marker) for at, entry in enumerate(own)]
    total, start, between = len(entries) + len(own), 0, 0
    for lock in locks:
        size = len(lock.entries)
        for parent, child, marker, _ in lock.edges or ():
            removed = child < size and lock.entries[child].distribution.name in gone
            left = 0 <= parent < size and lock.entries[parent].distribution.name in gone
            if not removed:
                above = ROOT if left else _moved(parent, size, start, total + between)
                edges.append(Edge(above, _moved(child, size, start, total + between), marker))
        between += 1 + max((max(parent, child) - size for parent, child, _, _ in lock.edges or ()), default=-1)
        start += size
    return (*entries, *own), tuple(edges)


def _moved(node: int, size: int, start: int, between: int) -> int:
    """Renumber a node of one lock for the merged listing."""
    if node == ROOT:
        return ROOT
    return start + node if node < size else between + node - size


_MOST_NOTES = 200
_WRITTEN = 1 << 18
"""Characters of the requirements files that the text being read writes, each time that they are installed from."""
_LONGEST = 300
"""Characters of a note."""


@record(frozen=True)
class Opened:
    """A file named by a command: its local path and its content.

    ``before`` is the number of lines before the content if it is a part of the file being read.
    """

    path: str
    content: bytes
    before: int = 0


class InstallFiles:
    """Opens and reads the files named by install commands, each once, and collects notes and what could not be read.

    A file that is missing from the project is in ``elsewhere``, with a note: something else provides it. ``unread`` lists
    files that exist and were not read, because they are refused or invalid.
    """

    def __init__(self, path: str, folders: WorkingFolders | None = None) -> None:
        self.path = path
        self.folders = folders or WorkingFolders(path)
        self.notes: dict[str, None] = {}
        self.unread: dict[str, None] = {}
        self.elsewhere: dict[str, None] = {}
        self.loose: list[Entry] = []
        """Pins that nothing which was read accounts for."""
        self.indexes: set[str] = set()
        """The addresses of indexes and folders of wheels that the files name."""
        self.written: dict[str, Opened] = {}
        """Files that the text being read creates, by name without folder."""
        self.of_image: dict[str, list[Entry]] = {}
        """What :data:`IMAGE_CONSTRAINT` says of the packages that are known to be in the image, by name."""
        self._opened: dict[tuple[str, str | None, str], Opened | None] = {}
        self._projects: dict[tuple[str, str | None], Opened | None] = {}
        self._listed: dict[tuple[Opened, str], list[Entry]] = {}
        self._by_name: dict[Opened, dict[str, list[Entry]]] = {}
        self._locks: dict[str, tuple[Listing, ...]] = {}
        self._texts: set[tuple[str, str]] = set()
        self._room = _WRITTEN

    def note(self, where: str, text: str) -> None:
        """Add a note; ``where`` is its file and line, or empty."""
        _add(self.notes, where, text)

    def not_read(self, where: str, text: str) -> None:
        """Add something that should have been read: without it the check is undecided."""
        _add(self.unread, where, text)

    def not_here(self, where: str, text: str) -> None:
        """Add a note about a file that something else provides; with ``--strict`` the check is undecided without it."""
        self.note(where, text)
        _add(self.elsewhere, where, text)

    def open(self, file: str, command: Command, purpose: str, what: str) -> Opened | None:
        """Open a file for a command; ``None``, with a note, if it is missing from the project or refused.

        ``purpose`` is ``-r``, ``-c``, ``project`` or ``lock``; ``what`` names the file in the note.
        """
        if found := command.written.get(self.place(file, command.directory)):
            return Opened(self.path, found[0].encode("utf-8", "replace"), found[1] - 1)
        key = (file, command.directory, purpose)
        if key not in self._opened:
            self._opened[key] = self.written.get(posixpath.basename(file))
            if self._opened[key] is not None:
                return self._opened[key]
            try:
                self._opened[key] = self.find(file, command.directory, purpose)
            except Missing as reason:
                if self.is_computed(file, command):
                    self.not_read(command.where, f"{what} was not read: what is in it is {AT_RUN_TIME}")
                else:
                    self.not_here(command.where, f"{what} was not read: {reason}")
            except NotRead as reason:
                self.not_read(command.where, f"{what} was not read: {reason}")
        return self._opened[key]

    def place(self, name: str, directory: str | None = None) -> str:
        """Return the path of a file where the commands run."""
        return posixpath.normpath(posixpath.join(directory or "", name))

    def is_computed(self, file: str, command: Command) -> bool:
        """Whether the commands themselves decide which file it is or what is in it, and not whoever provides it."""
        if is_unresolved(file):
            return not is_given(file, command.computed)
        is_stream = file == "-" or file.startswith(("/dev/", "<("))
        return is_stream or not {"*", "?"}.isdisjoint(file) or self.place(file, command.directory) in command.made

    def requirements(self, file: str, command: Command) -> list[Entry]:
        """Return the entries of a file passed with ``-r``."""
        file = printed_file(file) or file
        opened = self.open(file, command, "-r", f"-r {file}")
        found = [] if opened is None else self._entries(opened, "-r")
        if self.place(file, command.directory) not in command.appended:
            return found
        try:  # which is only its end
            return [*self._entries(self.find(file, command.directory, "-r"), "-r"), *found]
        except NotRead:
            return found

    def constraints(self, file: str, command: Command) -> dict[str, list[Entry]]:
        """Return the entries of a file passed with ``-c``, by name."""
        if file == IMAGE_CONSTRAINT and self.of_image:
            return self.of_image
        opened = self.open(file, command, "-c", f"-c {file}")
        if opened is None:
            return {}
        if opened not in self._by_name:
            found = self._by_name[opened] = {}
            for entry in self._entries(opened, "-c"):
                placed = entry if entry.file is not None else replace(entry, file=self.path)  # a part of the file being read
                found.setdefault(entry.distribution.name, []).append(placed)
        return self._by_name[opened]

    def inline(self, script: str, command: Command) -> list[Entry]:
        """Return what the inline metadata of a script requires; what starts the script says if the project has none."""
        try:
            opened = self.find(script, command.directory, "inline")
        except NotRead:
            return []
        return self._entries(opened, "") if b"# /// script" in opened.content else []

    def project(self, project: str, command: Command) -> list[Entry]:
        """Return what a project installed from source (``.``, ``./vllm[audio]``) declares."""
        folder, _, extras = project.removeprefix("file://").partition("[")
        key = (folder, command.directory)
        if key not in self._projects:
            self._projects[key] = self._project(folder or ".", command, f"what {project} requires")
        opened = self._projects[key]
        return [] if opened is None else self._entries(opened, extras.rstrip("]"))

    def _project(self, folder: str, command: Command, what: str) -> Opened | None:
        """Open the file of a project that says what it requires; without any, a note names pyproject.toml."""
        first: Opened | None = None
        for name in ("pyproject.toml", "setup.py", "setup.cfg"):
            try:
                found = self.find(os.path.join(folder, name), command.directory, "project")
            except NotRead:
                continue
            if name != "pyproject.toml" or _declares(found.content):
                return found
            first = found
        return first or self.open(os.path.join(folder, "pyproject.toml"), command, "project", what)

    def find(self, file: str, directory: str | None, purpose: str = "") -> Opened:
        """Open a file; :class:`Missing` if the project has none, :class:`NotRead` if it is refused."""
        return Opened(*self.folders.open(file, directory, f"{purpose} {directory}"))

    def text(self, file: str, directory: str | None, purpose: str) -> str | None:
        """Return the text of a file; ``None`` if the project has none, it is refused, or it was opened for this before."""
        key = (self.place(file, directory), purpose)
        if key in self._texts:
            return None
        self._texts.add(key)
        try:
            return self.find(file, directory, purpose).content.decode("utf-8", "replace")
        except NotRead:
            return None

    def _entries(self, opened: Opened, asked: str) -> list[Entry]:
        """Return the entries of a requirements file, or of a pyproject.toml with the extras ``asked``."""
        key = (opened, asked)
        if key not in self._listed:
            self._listed[key] = []
            self._room -= len(opened.content) if opened.path == self.path else 0
            if self._room < 0:
                self.not_read("", f"{self.path}: a requirements file that it writes was not read: it is written too often")
                return []
            try:
                if os.path.basename(opened.path) in ("pyproject.toml", "setup.cfg") or opened.path.endswith(".py"):
                    self._listed[key] = self._declared(opened, "" if asked in ("-r", "-c") else asked)
                else:
                    self._listed[key] = self._required(opened)
            except InputError as problem:
                self.not_read("", str(problem))
        return self._listed[key]

    def _required(self, opened: Opened) -> list[Entry]:
        found: list[Entry] = []
        for listing in read_requirements(opened.path, decode(opened.content, opened.path)):
            self.indexes.update(listing.indexes)
            self.notes.update(dict.fromkeys(listing.notes))
            self.unread.update(dict.fromkeys(listing.unread))
            for entry in listing.entries:
                if opened.before and entry.file is None:
                    found.append(replace(entry, line=None if entry.line is None else entry.line + opened.before))
                else:
                    found.append(replace(entry, file=entry.file or opened.path))
        return found

    def _declared(self, opened: Opened, extras: str) -> list[Entry]:
        asked = LockInstall(opened.path, tuple(each.strip() for each in extras.split(",")), default_groups=False)
        found: list[Entry] = []
        for listing in format_of(opened.path, opened.content).listings(opened.path, opened.content):
            self.unread.update(dict.fromkeys(listing.unread))
            for text in listing.elsewhere:
                self.not_here("", text)
            found += [replace(entry, file=entry.file or opened.path) for entry in installed_directly(selected(listing, asked))]
        return found

    def lock(self, lock: LockInstall, command: Command) -> tuple[Listing, ...]:
        """Return the lock file or environment file that a command installs, with its choices resolved."""
        opened = self._source_of(lock.file, command) or self.open(
            lock.file, command, "lock", f"{lock.file}, which is installed,"
        )
        if opened is None:
            return ()
        if opened.path not in self._locks:
            self._locks[opened.path] = ()
            try:
                found = format_of(opened.path, opened.content)
                if not found.lists_packages:
                    raise InputError("expected a lock file or an environment file", opened.path)
                self._locks[opened.path] = found.listings(opened.path, opened.content)
            except InputError as problem:
                self.not_read("", str(problem))
        return tuple(selected(each, lock) for each in self._locks[opened.path])

    def _source_of(self, lock: str, command: Command) -> Opened | None:
        """Return the file that a lock file is made from if the project has no such lock: it is locked when it is installed."""
        found = next((each for each in FORMATS if each.program and each.kind == posixpath.basename(lock)), None)
        if found is None:
            return None
        try:
            self.find(lock, command.directory, "locked")
        except Missing:
            for name in found.load().sources:
                try:
                    return self.find(posixpath.join(posixpath.dirname(lock), name), command.directory, "lock")
                except NotRead:
                    continue
        except NotRead:
            pass
        return None


def _declares(content: bytes) -> bool:
    """Whether a pyproject.toml has a project table; one with the settings of tools alone does not say what is required."""
    return any(line.startswith((b"[project]", b"[tool.poetry")) for line in content.splitlines())


def _add(notes: dict[str, None], where: str, text: str) -> None:
    if len(notes) < _MOST_NOTES:
        line = f"{where}: {text}" if where else text
        notes[printable(line if len(line) <= _LONGEST else f"{excerpt(line, _LONGEST - 1)}…")] = None


# --- Files with install commands.


class InstallFormat(Format):
    """A file with install commands, edited in place."""

    lists_packages = False

    def commands_in(self, path: str, text: str) -> Iterable[tuple[int, str]] | None:
        return numbered_lines(text)

    def collect(self, script: InstallScript) -> None:
        """Pass the shell text of ``script.text``, or its requirements, to the editor of install commands."""
        raise NotImplementedError

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        return edit_installs(self, path, content, changes, depth, self.collect)
