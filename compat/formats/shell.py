"""Shell scripts and Slurm batch scripts: what they install, and the job they start. Nothing is run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from compat.errors import InputError, printable
from compat.formats.include import WorkingFolders
from compat.formats.installs.files import InstallFiles, InstallFormat
from compat.formats.installs.shell import ShellSteps
from compat.formats.installs.steps import Installs
from compat.formats.listing import Listing
from compat.formats.registry import Commands
from compat.model import EMPTY, Accelerator, Environment, Workload
from compat.records import record, replace
from compat.redact import excerpt, without_secrets
from compat.syntax.shell_commands import ShellCommand, slurm_directives
from compat.workload.command import SBATCH_VALUED, CommandReading, read_with, starts_a_job
from compat.workload.launch import COMMAND, Launch
from compat.workload.launchers import slurm_tasks
from compat.workload.wrappers import program_name, take_options

if TYPE_CHECKING:
    from compat.formats.edit.changes import Change
    from compat.formats.edit.dispatch import Installer
    from compat.formats.installs.edit import InstallScript

_NOWHERE = os.path.join(os.devnull, "")
"""Prefix of the names of files that are not opened; no file can exist there."""
_UP = "\u2025"
"""Replaces ``..`` in such a path, so that it is not resolved."""
_HOMES = ("HOME", "HF_HOME", "XDG_CACHE_HOME")
_AT_RUN_TIME = "its name is only known at run time"
_MOST_TRIES = 6
_MOST_DEVICES = 64


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
    known = {name: value for name, value in command.exported.items() if name in exported}
    return _read(command, f"{path}:{line}", folders, known, scheduler, notes)


def _read(
    command: ShellCommand,
    where: str,
    folders: WorkingFolders,
    variables: Mapping[str, str],
    scheduler: Mapping[str, str],
    notes: list[str],
) -> StartedJob:
    """Read one command; an unreadable file is skipped, so that the rest is read."""
    words = list(command.words)
    hidden: list[str] = []
    unread: list[str] = []
    for _ in range(_MOST_TRIES):
        reading = _ProjectReading(folders, command.directory, variables)
        reading.assigned.update(scheduler)
        try:
            launch = read_with(reading, words)
        except InputError as problem:
            name = reading.names.get(problem.file or "")
            changed = words if name is None else [_without(word, name) for word in words]
            if name is None or (problem.file or "").startswith(_NOWHERE):
                missing = f"{name} was not read: it is not in the project"
                notes.append(f"{where}: {missing if name else f'the job was not read: {problem}'}")
            else:
                unread.append(str(problem))
            if changed == words:
                return StartedJob(notes=tuple(notes), unread=tuple(unread))
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


def count_of(text: str | None) -> int | None:
    """Return a number of GPUs, nodes or processes; ``None`` if unknown."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 5 else None


class Batch:
    """The resources requested by the ``#SBATCH`` lines of a batch script."""

    def __init__(self, text: str) -> None:
        options, _ = take_options(slurm_directives(text), valued=SBATCH_VALUED)
        self._options = {_SHORT.get(name, name): value for name, value in options}
        self._tasks = slurm_tasks(options, {})
        self._nodes = count_of(self._options.get("nodes", "").partition("-")[0])

    def variables(self) -> dict[str, str]:
        """Return the known variables that Slurm sets for the job."""
        found = {
            "SLURM_NTASKS": self._tasks, "SLURM_NPROCS": self._tasks, "SLURM_NNODES": self._nodes,
            "SLURM_JOB_NUM_NODES": self._nodes, "SLURM_NTASKS_PER_NODE": self._number("ntasks_per_node"),
            "SLURM_GPUS_PER_NODE": self._number("gpus_per_node"), "SLURM_GPUS_ON_NODE": len(self.devices() or ()) or None,
        }  # fmt: skip
        return {name: str(value) for name, value in found.items() if value is not None}

    def _number(self, name: str) -> int | None:
        return count_of(self._options.get(name, "").rpartition(":")[2])

    def devices(self) -> tuple[Accelerator, ...] | None:
        """Return the GPUs of a node: ``--gres=gpu:a100:8``, ``--gpus-per-node=8``, ``--gpus=8`` and ``--gpus-per-task=1``."""
        for name in ("gpus_per_node", "gres", "gpus_per_task", "gpus"):
            for part in filter(None, self._options.get(name, "").split(",")):
                kind, _, rest = part.partition("(")[0].partition(":")
                if name == "gres" and kind != "gpu":
                    continue
                model, _, number = (rest if name == "gres" else part).rpartition(":")
                if not number.isdecimal():
                    model, number = number, "1"  # a GPU type without a number means one
                count = self._on_node(name, count_of(number))
                device = Accelerator(name=model) if model.replace("_", "").replace("-", "").isalnum() else Accelerator()
                if count is not None and 0 < count <= _MOST_DEVICES:
                    return (device,) * count
        return None

    def _on_node(self, name: str, count: int | None) -> int | None:
        """Return the GPUs of one node, from those requested per task or for the whole job; ``None`` if unknown."""
        if name == "gpus_per_task":
            tasks = self._number("ntasks_per_node") or (self._tasks if self._nodes == 1 else None)
            return None if count is None or tasks is None else count * tasks
        if name == "gpus":
            even = count is not None and self._nodes is not None and self._nodes > 0 and count % self._nodes == 0
            return count // self._nodes if even and count is not None and self._nodes else None
        return count


_SHORT = {"G": "gpus", "N": "nodes", "n": "ntasks"}


# --- A shell script → listing: what it installs, and the job it starts. Nothing is run.


_LIMIT = 1024 * 1024
"""Characters of a script; larger ones carry data."""
_CONFLICT = ("<<<<<<< ", ">>>>>>> ", "||||||| ")


def read_shell_script(path: str, text: str) -> tuple[Listing, ...]:
    """Return the listing of a shell script or Slurm batch script; it is never complete.

    ``context`` has the workload of the job it starts, the variables it exports, and the CUDA toolkit it loads. Raises
    :class:`InputError` for a file that is too large or has a merge conflict.
    """
    if len(text) > _LIMIT:
        raise InputError(f"is larger than {_LIMIT // 1024 // 1024} MiB: expected a script that installs or launches", path)
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\0", "")
    lines = list(enumerate(text.split("\n"), 1))
    for number, line in lines:
        if line.startswith(_CONFLICT):
            raise InputError("has an unresolved merge conflict", path, number)
    batch = Batch(text)
    scheduler = batch.variables()
    read = ShellSteps(lines, lambda number: f"{path}:{number}", scheduler)
    folders = WorkingFolders(path)
    files = InstallFiles(path, folders)
    installs = Installs(files)
    installs.run(read.steps)
    job = read_job(path, read.others, folders, read.exported, scheduler)
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
                accelerators=batch.devices(),
                cuda_toolkit=_cuda_module(read.others),
                variables=without_secrets({**read.exported, **(job.variables or {})}) or None,
                workload=job.workload,
            ),
            notes=tuple(map(printable, files.notes)), unread=tuple(map(printable, files.unread)),
        ),
    )  # fmt: skip


def _cuda_module(commands: Sequence[tuple[ShellCommand, int]]) -> str | None:
    """Return the CUDA release loaded by ``module load cuda/12.4``; ``None`` if there are two or none."""
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


class ShellScript(InstallFormat):
    """A shell script or a Slurm batch script."""

    kind = "shell"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return read_shell_script(path, text)

    def hand_over(self, script: InstallScript) -> None:
        from compat.formats.edit.files import Mapped

        lead = 1 if script.text.startswith("\ufeff") else 0
        script.read(Mapped(script.text[lead:], range(lead, len(script.text))))

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        return Commands((), (f"bash {pip.quoted(path)}",))
