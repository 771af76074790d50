"""A shell script or a batch script of Slurm: what it installs, and the job it starts. Nothing is run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from compat.errors import InputError, printable
from compat.formats.include import WorkingFolders
from compat.formats.installs.files import InstallFiles
from compat.formats.installs.shell import ShellSteps
from compat.formats.installs.steps import Installs
from compat.formats.listing import Listing
from compat.formats.registry import Commands, Format
from compat.model import Accelerator, Environment, Workload
from compat.records import record, replace
from compat.redact import without_secrets
from compat.syntax.shell_commands import ShellCommand, slurm_directives
from compat.workload.command import SBATCH_VALUED, CommandReading, read_with, starts_a_job
from compat.workload.launch import COMMAND, Launch
from compat.workload.launchers import slurm_tasks
from compat.workload.wrappers import program_name, take_options

if TYPE_CHECKING:
    from compat.formats.edit.changes import Change
    from compat.formats.edit.dispatch import Installer
    from compat.formats.edit.files import Edit

_NOWHERE = os.path.join(os.devnull, "")
"""In front of the names of files that are not opened: nothing can be there."""
_UP = "\u2025"
"""Stands for ``..`` in such a path, so that nobody follows it."""
_HOMES = ("HOME", "HF_HOME", "XDG_CACHE_HOME")
_AT_RUN_TIME = "its name is put together at run time"
_MOST_TRIES = 6
_MOST_DEVICES = 64


@record(frozen=True)
class Job:
    """What a script starts: its workload, the variables it is started with, and what could not be told."""

    workload: Workload | None = None
    variables: Mapping[str, str] | None = None
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


class _ProjectReading(CommandReading):
    """A reading that finds files in the project of the script, and nowhere else."""

    def __init__(self, folders: WorkingFolders, directory: str | None, variables: Mapping[str, str]) -> None:
        super().__init__(directory or "", {})
        self.lenient = True
        self.assigned.update(variables)
        self.names: dict[str, str] = {}
        """The path that was tried → the name as it is written."""
        self._folders = folders

    def path(self, name: str) -> str:
        if name.startswith(_NOWHERE) or name in self.names:
            return name
        found = self._folders.find(name, self.directory) or f"{_NOWHERE}{name.replace('..', _UP)}"
        self.names[found] = name
        return found

    def variable(self, name: str) -> str | None:
        # accelerate's defaults lie in a home, which is on the machine where the script is run
        return os.devnull if name in _HOMES else super().variable(name)


def read_job(
    path: str, text: str, commands: Sequence[tuple[ShellCommand, int]], folders: WorkingFolders, exported: Mapping[str, str]
) -> Job:
    """The last job among the commands of a script; the others are named in a note. ``exported``: set for sure."""
    jobs = [each for each in commands if starts_a_job(each[0].words)]
    if not jobs:
        return Job()
    *others, (command, line) = jobs
    notes = [f"{path}:{at}: {_shown(other.words)} is not judged, the last job is" for other, at in others[:20]]
    known = {name: value for name, value in command.exported.items() if name in exported}
    return _read(command, f"{path}:{line}", folders, known, slurm_tasks(_directives(text), {}), notes)


def _read(
    command: ShellCommand,
    where: str,
    folders: WorkingFolders,
    variables: Mapping[str, str],
    tasks: int | None,
    notes: list[str],
) -> Job:
    """One command; a file that keeps it from being read is left out by its name, so that the rest is told."""
    words = list(command.words)
    hidden: list[str] = []
    unread: list[str] = []
    for _ in range(_MOST_TRIES):
        reading = _ProjectReading(folders, command.directory, variables)
        if tasks is not None:
            reading.assigned["SLURM_NTASKS"] = str(tasks)
        try:
            launch = read_with(reading, words)
        except InputError as problem:
            name = reading.names.get(problem.file or "")
            changed = words if name is None else [_without(word, name) for word in words]
            if name is None or (problem.file or "").startswith(_NOWHERE):
                missing = f"{name} was not read: there is no such file in the project"
                notes.append(f"{where}: {missing if name else f'the job was not read: {problem}'}")
            else:
                unread.append(str(problem))
            if changed == words:
                return Job(notes=tuple(notes), unread=tuple(unread))
            hidden.append(name or "")
            words = changed
            continue
        return _told(launch, where, notes, unread, hidden)
    return Job(notes=tuple(notes), unread=tuple(unread))


def _without(word: str, name: str) -> str:
    """A word in which the name of a file is one that is only known at run time."""
    if word == name or word.endswith(f"={name}"):
        return f"{word[: len(word) - len(name)]}${name}"
    if " " not in word and "\n" not in word:
        return word
    for before in " =\n\"'":
        word = word.replace(f"{before}{name}", f"{before}${name}")
    return word


def _told(launch: Launch, where: str, notes: list[str], unread: list[str], hidden: Sequence[str]) -> Job:
    for note in launch.notes:
        text = note.replace(_NOWHERE, "").replace(_UP, "..")
        if any(f"${name} " in text and _AT_RUN_TIME in text for name in hidden):
            continue
        text = text.replace("there is no such file", "there is no such file in the project") if _NOWHERE in note else text
        notes.append(f"{where}: {text}")
    workload = launch.workload
    if workload.script is not None and workload.script.startswith(_NOWHERE):
        workload = replace(workload, script=None)  # it was not read
    origins = {key: where if origin == COMMAND else origin for key, origin in workload.origins.items()}
    workload = replace(workload, origins=origins)
    empty = workload == Workload(origins=origins)
    variables = {name: value for name, value in launch.variables.items() if name != "SLURM_NTASKS" and "$" not in value}
    return Job(None if empty else workload, variables, tuple(dict.fromkeys(notes)), tuple(unread))


def _shown(words: Sequence[str]) -> str:
    text = " ".join(words)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _directives(text: str) -> list[tuple[str, str]]:
    return take_options(slurm_directives(text), valued=SBATCH_VALUED)[0]


def batch_devices(text: str) -> tuple[Accelerator, ...] | None:
    """The GPUs of a node that the ``#SBATCH`` lines ask for: ``--gres=gpu:a100:8``, ``--gpus-per-node=8``."""
    for name, value in reversed(_directives(text)):
        kind, _, rest = value.partition(":")
        if name == "gpus_per_node":
            rest = value
        elif name != "gres" or kind != "gpu":
            continue
        model, _, count = rest.rpartition(":")
        if count.isascii() and count.isdigit() and len(count) < 4 and 0 < int(count) <= _MOST_DEVICES:
            device = Accelerator(name=model) if model.isalnum() else Accelerator()
            return (device,) * int(count)
    return None


# --- A shell script that installs or launches → listing: what it installs, and the job it starts. Nothing is run.


_LIMIT = 1024 * 1024
"""Characters of a script; what is larger carries data."""
_CONFLICT = ("<<<<<<< ", ">>>>>>> ", "||||||| ")


def read_shell_script(path: str, text: str) -> tuple[Listing, ...]:
    """The listing of a shell script or Slurm batch script; it is never complete.

    ``context`` has the workload of the job it starts, the variables it exports, and the CUDA toolkit it loads. Raises
    :class:`InputError` for what cannot be a script: too large, or with a merge conflict in it.
    """
    if len(text) > _LIMIT:
        raise InputError(f"is larger than {_LIMIT // 1024 // 1024} MiB: expected a script that installs or launches", path)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\0", "")
    lines = list(enumerate(text.split("\n"), 1))
    for number, line in lines:
        if line.startswith(_CONFLICT):
            raise InputError("has an unresolved merge conflict", path, number)
    read = ShellSteps(lines, lambda number: f"{path}:{number}")
    folders = WorkingFolders(path)
    files = InstallFiles(path, folders)
    installs = Installs(files)
    installs.run(read.steps)
    job = read_job(path, text, read.others, folders, read.exported)
    for note in job.notes:
        files.note("", note)
    for problem in job.unread:
        files.not_read("", problem)
    for number, problem in read.unread:
        files.not_read(f"{path}:{number}", problem)
    entries, edges = installs.listed()
    python = installs.python
    whole = python is not None and python.count(".") == 2
    return (
        Listing(
            path, "shell", entries, edges,
            requires_python=None if python is None or whole else f"=={python}.*",
            context=Environment(
                python=python if whole else None,
                accelerators=batch_devices(text),
                cuda_toolkit=_cuda_module(read.others),
                variables=without_secrets({**read.exported, **(job.variables or {})}) or None,
                workload=job.workload,
            ),
            notes=tuple(map(printable, files.notes)), unread=tuple(map(printable, files.unread)),
        ),
    )  # fmt: skip


def _cuda_module(commands: Sequence[tuple[ShellCommand, int]]) -> str | None:
    """The release that ``module load cuda/12.4`` makes the toolkit; ``None`` where two are named or none is."""
    found: set[str] = set()
    for command, _ in commands:
        words = command.words
        if program_name(words[0]) in ("module", "ml") and words[1:2] not in (["purge"], ["unload"], ["list"], ["avail"]):
            for word in words[1:]:
                name, _, version = word.lower().replace("cuda-", "cuda/").partition("/")
                parts = version.split(".")
                if name in ("cuda", "cudatoolkit") and len(parts) in (2, 3) and all(p.isascii() and p.isdigit() for p in parts):
                    found.add(".".join(parts[:2]))
    return found.pop() if len(found) == 1 else None


class ShellScript(Format):
    """A shell script, which may be a batch job of SLURM."""

    kind = "shell"
    lists_packages = False

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return read_shell_script(path, text)

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        from compat.formats.edit.files import Mapped
        from compat.formats.installs.edit import InstallScript, edit_installs

        def read(script: InstallScript, text: str) -> None:
            lead = 1 if text.startswith("\ufeff") else 0
            script.read(Mapped(text[lead:], range(lead, len(text))))

        return edit_installs(self, path, content, changes, depth, read)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        return Commands((), (f"bash {pip.quoted(path)}",))
