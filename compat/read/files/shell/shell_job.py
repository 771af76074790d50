"""The job that a shell script starts → workload. The files it names are opened only inside of the script's project."""

from __future__ import annotations

import os

from compat.environment import Accelerator, Workload
from compat.errors import InputError
from compat.read.files.shell.shell_steps import handed_to_shell
from compat.read.workload.command import SBATCH_VALUED, Reading, read_with
from compat.read.workload.launch import COMMAND
from compat.read.workload.launchers import PROGRAMS, is_python, slurm_tasks
from compat.read.workload.shell_text import commands_of, slurm_directives
from compat.read.workload.training_tools import TOOLS
from compat.read.workload.wrappers import program_name, take_options, unwrapped
from compat.records import record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compat.read.files.installs.working_folders import WorkingFolders
    from compat.read.workload.launch import Launch
    from compat.read.workload.shell_text import ShellCommand

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


class _ProjectReading(Reading):
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


def starts_a_job(words: Sequence[str]) -> bool:
    """Whether a command starts a training script, or a tool that trains or serves."""
    try:
        rest = unwrapped(words, {})
    except InputError:
        return False
    text = handed_to_shell(rest)
    if text is not None:
        return any(starts_a_job(each.words) for each in commands_of(text))
    name = program_name(rest[0]) if rest else ""
    if is_python(name):
        module = rest[rest.index("-m") + 1] if "-m" in rest[1:-1] else ""
        return any(word.endswith((".py", ".ipynb")) for word in rest[1:]) or module not in ("", "pip", "venv", "ensurepip")
    if name == "ray":
        return "submit" in rest
    if name == "accelerate":
        return rest[1:2] == ["launch"]
    if name.endswith((".py", ".sh")):
        return not name.startswith("-")
    return name in PROGRAMS or name in TOOLS or (name in ("bash", "sh") and len(rest) > 1)


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
    return _read(command, f"{path}:{line}", folders, known, _tasks(text), notes)


def _read(
    command: ShellCommand, where: str, folders: WorkingFolders, variables: Mapping[str, str], tasks: int | None,
    notes: list[str],
) -> Job:  # fmt: skip
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
                notes.append(f"{where}: {_missing(name) if name else f'the job was not read: {problem}'}")
            else:
                unread.append(str(problem))
            if changed == words:
                return Job(notes=tuple(notes), unread=tuple(unread))
            hidden.append(name or "")
            words = changed
            continue
        return _told(launch, where, notes, unread, hidden)
    return Job(notes=tuple(notes), unread=tuple(unread))


def _missing(name: str) -> str:
    return f"{name} was not read: there is no such file in the project"


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


def _tasks(text: str) -> int | None:
    """The number of tasks that a batch script's ``#SBATCH`` lines ask for."""
    return slurm_tasks(_directives(text), {})


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
