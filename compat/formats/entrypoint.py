"""What a script or a container starts: the last job among the commands, or the entry point with its command. Nothing is run."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Mapping, Sequence

from compat.errors import InputError
from compat.formats.include import WorkingFolders
from compat.model import EMPTY, Workload
from compat.records import record, replace
from compat.redact import excerpt
from compat.syntax.shell_commands import ShellCommand
from compat.workload.command import CommandReading, read_with, starts_a_job
from compat.workload.launch import COMMAND, Launch
from compat.workload.wrappers import program_name

_NOWHERE = os.path.join(os.devnull, "")
"""Prefix of the names of files that are not opened; no file can exist there."""
_UP = "\u2025"
"""Replaces ``..`` in such a path, so that it is not resolved."""
_HOMES = ("HOME", "HF_HOME", "XDG_CACHE_HOME")
_AT_RUN_TIME = "its name is only known at run time"
_MOST_TRIES = 6
_IN_IMAGE = "image:"
"""Prefix of paths outside of the build context, so that they never match a local file."""
_LAUNCHERS = ("accelerate", "torchrun", "deepspeed", "ray")
_INIT = ("tini", "dumb-init", "catatonit", "docker-init")


# --- The job of a script.


@record(frozen=True)
class StartedJob:
    """The job that a script starts: its workload, its variables, notes, and what could not be read."""

    workload: Workload | None = None
    variables: Mapping[str, str] | None = None
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


class _ProjectReading(CommandReading):
    """A reading that resolves files only in the script's project."""

    def __init__(self, folders: WorkingFolders, directory: str | None, variables: Mapping[str, str]) -> None:
        super().__init__(directory or "", {})
        self.lenient = True
        self.assigned.update(variables)
        self.names: dict[str, str] = {}
        """The path that was tried → the name as written."""
        self._folders = folders

    def path(self, name: str) -> str:
        if name.startswith(_NOWHERE) or name in self.names:
            return name
        found = self._folders.find(name, self.directory) or f"{_NOWHERE}{name.replace('..', _UP)}"
        self.names[found] = name
        return found

    def variable(self, name: str) -> str | None:
        # accelerate's defaults are in the home directory of the machine that runs the script
        return os.devnull if name in _HOMES else super().variable(name)


def read_job(
    path: str, commands: Sequence[tuple[ShellCommand, int]], folders: WorkingFolders, exported: Mapping[str, str],
    scheduler: Mapping[str, str] = EMPTY,
) -> StartedJob:  # fmt: skip
    """Return the last job among the commands of a script; a note names the others. ``exported`` are variables certainly set.

    ``scheduler`` are variables that Slurm or another scheduler sets; they are not part of the result.
    """
    jobs = [each for each in commands if starts_a_job(each[0].words)]
    if not jobs:
        return StartedJob()
    *others, (command, line) = jobs
    notes = [f"{path}:{at}: {_shown(other.words)} is not checked; only the last job is" for other, at in others[:20]]
    where = f"{path}:{line}"
    known = {name: value for name, value in command.exported.items() if name in exported}
    words = list(command.words)
    hidden: list[str] = []
    unread: list[str] = []
    for _ in range(_MOST_TRIES):  # an unreadable file is hidden, so that the rest is read
        reading = _ProjectReading(folders, command.directory, {**known, **scheduler})
        try:
            launch = read_with(reading, words)
        except InputError as problem:
            name = reading.names.get(problem.file or "")
            changed = words if name is None else [_without(word, name) for word in words]
            if name is None or (problem.file or "").startswith(_NOWHERE):
                missing = f"{name} was not read: it is not in the project"
                if not (name or "").startswith("$"):
                    notes.append(f"{where}: {missing if name else f'the job was not read: {problem}'}")
            else:
                unread.append(str(problem))
            if changed == words or (name or "").startswith("$"):
                break
            hidden.append(name or "")
            words = changed
            continue
        return _job_of(launch, where, notes, unread, hidden, scheduler)
    return StartedJob(notes=tuple(notes), unread=tuple(unread))


def _without(word: str, name: str) -> str:
    """Replace the file name in a word by one that is only known at run time."""
    if word == name or word.endswith(f"={name}"):
        return f"{word[: len(word) - len(name)]}${name}"
    if " " not in word and "\n" not in word:
        return word
    for before in " =\n\"'":
        word = word.replace(f"{before}{name}", f"{before}${name}")
    return word


def _job_of(
    launch: Launch, where: str, notes: list[str], unread: list[str], hidden: Sequence[str], scheduler: Mapping[str, str]
) -> StartedJob:
    for note in launch.notes:
        text = note.replace(_NOWHERE, "").replace(_UP, "..")
        if any(f"${name} " in text and _AT_RUN_TIME in text for name in hidden):
            continue
        text = text.replace("no such file", "it is not in the project") if _NOWHERE in note else text
        notes.append(f"{where}: {text}")
    workload = launch.workload
    if workload.script is not None and workload.script.startswith(_NOWHERE):
        workload = replace(workload, script=None)  # the script was not read
    origins = {key: where if origin == COMMAND else origin for key, origin in workload.origins.items()}
    workload = replace(workload, origins=origins)
    empty = workload == Workload(origins=origins)
    variables = {name: value for name, value in launch.variables.items() if name not in scheduler and "$" not in value}
    return StartedJob(None if empty else workload, variables, tuple(dict.fromkeys(notes)), tuple(unread))


def _shown(words: Sequence[str]) -> str:
    text = " ".join(words)
    return text if len(text) <= 80 else f"{excerpt(text, 79)}…"


# --- The job of a container.


class _ImageReading(CommandReading):
    """A reading that resolves files only in the build context."""

    def __init__(self, variables: Mapping[str, str], workdir: str, find: Callable[[str], str | None]) -> None:
        super().__init__(workdir, variables)
        self.lenient = True
        self._find = find

    def path(self, name: str) -> str:
        if name.startswith(_IN_IMAGE):
            return name
        folder = self.directory.removeprefix(_IN_IMAGE)
        place = posixpath.normpath(posixpath.join(folder, name))
        return self._find(place) or f"{_IN_IMAGE}{place}"


def started(
    entrypoint: Sequence[str] | None,
    command: Sequence[str] | None,
    variables: Mapping[str, str],
    workdir: str,
    find: Callable[[str], str | None],
) -> Launch | None:
    """Return the job that entry point and command start, or ``None``. ``find`` maps a path in the image to a local one."""
    words = _without_init([*(entrypoint or ()), *(command or ())])
    if not words or any("\0" in word for word in words):
        return None
    try:
        launch = read_with(_ImageReading(variables, workdir, find), words)
    except InputError:
        return None
    workload = launch.workload
    if workload.script is not None and workload.script.startswith(_IN_IMAGE):
        workload = replace(workload, script=None)  # the script was not read
    if workload == Workload(origins=workload.origins):
        return None
    notes = tuple(note for note in launch.notes if _IN_IMAGE not in note)
    return replace(launch, workload=workload, notes=notes)


def is_job(workload: Workload) -> bool:
    """Whether it is a training or serving job; a Python script alone may be any web server."""
    return workload.task is not None or workload.trainer is not None or workload.launcher in _LAUNCHERS


def _without_init(words: list[str]) -> list[str]:
    """Return a command without a wrapping init program: ``tini -- …``."""
    if not words or program_name(words[0]) not in _INIT:
        return words
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 1
        if words[at - 1] == "--":
            break
    return words[at:]
