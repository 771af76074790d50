"""What install commands name besides requirements: requirements files, constraints, projects and lock files."""

from __future__ import annotations

import os

from compat.errors import InputError, printable
from compat.read.files.include import NotRead
from compat.read.files.installs.working_folders import Missing
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.read.files.installs.install_command import LockInstall
    from compat.read.files.installs.install_steps import Command
    from compat.read.files.installs.working_folders import WorkingFolders
    from compat.read.files.listing import Entry, Listing

_MOST_NOTES = 200
_LONGEST = 300
"""Characters of a note."""


class InstallFiles:
    """Reads those files, each of them once, and gathers notes and what could not be read.

    A file that the project does not have is a note: something else brings it. ``unread`` is what is there and was not
    read: it is refused, or is not what it should be.
    """

    def __init__(self, path: str, folders: WorkingFolders) -> None:
        self.path = path
        self.folders = folders
        self.notes: dict[str, None] = {}
        self.unread: dict[str, None] = {}
        self._requirements: dict[tuple[str, str | None], list[Entry]] = {}
        self._constraints: dict[tuple[str, str | None], dict[str, list[Entry]]] = {}

    def note(self, where: str, text: str) -> None:
        if len(self.notes) < _MOST_NOTES:
            self.notes[_line(f"{where}: {text}" if where else text)] = None

    def not_read(self, where: str, text: str) -> None:
        if len(self.unread) < _MOST_NOTES:
            self.unread[_line(f"{where}: {text}" if where else text)] = None

    def requirements(self, file: str, command: Command) -> list[Entry]:
        """The entries of a file behind ``-r``."""
        key = (file, command.directory)
        if key not in self._requirements:
            self._requirements[key] = self._read(file, command, "-r")
        return self._requirements[key]

    def constraints(self, file: str, command: Command) -> dict[str, list[Entry]]:
        """The entries of a file behind ``-c``, by name."""
        key = (file, command.directory)
        if key not in self._constraints:
            found: dict[str, list[Entry]] = {}
            for entry in self._read(file, command, "-c"):
                found.setdefault(entry.distribution.name, []).append(entry)
            self._constraints[key] = found
        return self._constraints[key]

    def _read(self, file: str, command: Command, option: str) -> list[Entry]:
        from compat.read.files.requirements.requirements import decode, read_requirements

        opened = self._open(file, command, option, f"{option} {file}")
        if opened is None:
            return []
        path, content = opened
        if os.path.basename(path) == "pyproject.toml":
            return self._project(path, content, ())
        try:
            return self._entries(read_requirements(path, decode(content, path)), path)
        except InputError as problem:
            self.not_read("", str(problem))
            return []

    def _entries(self, listings: tuple[Listing, ...], path: str) -> list[Entry]:
        found: list[Entry] = []
        for listing in listings:
            self.notes.update(dict.fromkeys(listing.notes))
            self.unread.update(dict.fromkeys(listing.unread))
            found += [replace(entry, file=entry.file or path) for entry in listing.entries]
        return found

    def _open(self, file: str, command: Command, purpose: str, what: str) -> tuple[str, bytes] | None:
        try:
            return self.folders.open(file, command.directory, f"{purpose} {command.directory}")
        except Missing as reason:
            self.note(command.where, f"{what} was not read: {reason}")
        except NotRead as reason:
            self.not_read(command.where, f"{what} was not read: {reason}")
        return None

    def project(self, project: str, command: Command) -> list[Entry]:
        """What a project that is installed from source (``.``, ``./vllm[audio]``) declares."""
        folder, _, extras = project.removeprefix("file://").partition("[")
        name = os.path.join(folder or ".", "pyproject.toml")
        key = (f"{project}\0", command.directory)
        if key not in self._requirements:
            opened = self._open(name, command, "project", f"what {project} requires")
            wanted = tuple(each.strip() for each in extras.rstrip("]").split(","))
            self._requirements[key] = [] if opened is None else self._project(*opened, wanted)
        return self._requirements[key]

    def _project(self, path: str, content: bytes, extras: tuple[str, ...]) -> list[Entry]:
        from compat.read.files.installs.install_command import LockInstall
        from compat.read.files.installs.lock_install import installed_directly, selected
        from compat.read.files.kinds import listings_of

        asked = LockInstall(path, extras, default_groups=False)
        found: list[Entry] = []
        try:
            for listing in listings_of(path, "pyproject", content):
                self.unread.update(dict.fromkeys(listing.unread))
                found += [replace(entry, file=entry.file or path) for entry in installed_directly(selected(listing, asked))]
        except InputError as problem:
            self.not_read("", str(problem))
        return found

    def lock(self, lock: LockInstall, command: Command) -> tuple[Listing, ...]:
        """The lock file, or environment file, that a command installs, with its choices made."""
        from compat.read.files.installs.lock_install import selected
        from compat.read.files.kinds import DESCRIBED, kind_of, listings_of

        opened = self._open(lock.file, command, "lock", f"{lock.file}, which is installed,")
        if opened is None:
            return ()
        try:
            kind = kind_of(*opened)
            if kind in (DESCRIBED, "shell", "notebook", "script", "dockerfile", "compose"):
                raise InputError("expected a lock file or an environment file", opened[0])
            return tuple(selected(each, lock) for each in listings_of(opened[0], kind, opened[1]))
        except InputError as problem:
            self.not_read("", str(problem))
            return ()


def _line(text: str) -> str:
    return printable(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
