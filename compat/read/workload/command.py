"""A command line, read for the job it would start: nothing is run.

``Reading`` gathers what is said; ``launchers`` beside this knows the programs that start training scripts and
``training_tools`` those that bring their own; ``wrappers`` peels off everything in front.
"""

from __future__ import annotations

import os

from compat.environment import Workload
from compat.errors import InputError
from compat.read.regular_file import regular
from compat.read.workload.arguments import Draft, apply, parse_words
from compat.read.workload.launch import COMMAND, Launch, merge
from compat.read.workload.launch_config import read_deepspeed
from compat.read.workload.wrappers import DEPTH, program_name, unwrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from compat.read.workload.recipe import Recipe
    from compat.read.workload.script import ScriptFacts
    from compat.read.workload.shell_text import ShellCommand

_SHELLS = ("bash", "sh", "zsh", "dash", "ksh")
_SCRIPT_LIMIT = 1024 * 1024
_RECIPE_ENDINGS = (".yaml", ".yml", ".json")


class Reading:
    """What was found out so far about one command.

    ``draft`` is what the command line itself says, ``recipes`` the argument files it names, ``defaults`` what is weaker
    than the script. ``around`` is a launcher that starts several of whatever stands behind it, with its number of
    processes; ``plain`` is set where plain python starts the script, ``lenient`` for commands out of a shell script,
    which may rest on things that are not read.
    """

    def __init__(self, directory: str, variables: Mapping[str, str]) -> None:
        self.directory = directory
        self.inherited = variables
        self.assigned: dict[str, str] = {}
        self.draft = Draft(last_wins=True)
        self.recipes: list[Draft] = []
        self.defaults: list[Draft] = []
        self.around: tuple[str | None, int | None] | None = None
        self.script: str | None = None
        self.lenient = False
        self.plain = False
        self.depth = 0

    def variable(self, name: str) -> str | None:
        """An environment variable as the job would see it."""
        value = self.assigned.get(name)
        return self.inherited.get(name) if value is None else value

    def note(self, text: str) -> None:
        if text not in self.draft.notes:
            self.draft.notes.append(text)

    def path(self, name: str) -> str:
        """A path of the command, as it can be opened from here; short where the command would be started here."""
        if self.directory in ("", ".") or os.path.isabs(name):
            return name
        joined = os.path.join(self.directory, name)
        return name if os.path.abspath(name) == os.path.abspath(joined) else joined

    def say(self, key: str, value: Any) -> None:
        self.draft.say(key, value, COMMAND)

    def launched(self, launcher: str | None, processes: int | None) -> None:
        """Which launcher starts the job, and how many processes of it."""
        self.draft.forget("launcher")
        self.draft.forget("processes")
        if launcher is not None:
            self.say("launcher", launcher)
        if processes:
            self.say("processes", processes)

    def plainly(self) -> None:
        """A plain process, or as many as the launcher around it starts."""
        self.plain = self.around is None
        self.launched(*(self.around or ("python", 1)))

    def plainly_unless_launched(self) -> None:
        """As :meth:`plainly`, where no launcher was read before."""
        if self.draft.get("launcher") is None and self.draft.get("processes") is None:
            self.plainly()

    def options(self, words: Iterable[str], *, origin: str = COMMAND) -> list[str]:
        """Read a script's arguments; returns those that are no options."""
        options, others = parse_words(words)
        for name, value in options:
            apply(self.draft, name, value, origin)
        return others

    def recipe(self, name: str, dialect: Callable[[Recipe], None] | None = None, *, needed: bool = True) -> Recipe | None:
        """Read an argument file; where it is not ``needed``, a file that is none is no error."""
        if "$" in name:
            self.note(f"{name} was not read: its name is put together at run time")
            return None
        from compat.read.workload.recipe import read_recipe

        try:
            found = read_recipe(self.path(name))
        except InputError as problem:
            if needed and not self.lenient:
                raise
            self.note(f"not read: {problem}")
            return None
        if dialect is not None:
            dialect(found)
        self.recipes.append(found.draft)
        self.assigned.update(found.variables)
        return found


def read_command(words: Sequence[str], directory: str, variables: Mapping[str, str]) -> Launch:
    """See :func:`compat.read.workload.launch.from_command`."""
    if not any(word.strip() for word in words):
        raise InputError("expected a command behind '--', such as: accelerate launch train.py")
    if any("\0" in word for word in words):
        raise InputError("the command has a word with a NUL character in it")
    return read_with(Reading(directory, variables), words)


def read_with(reading: Reading, words: Sequence[str]) -> Launch:
    """As :func:`read_command`, with a reading that may find files in its own way."""
    start(reading, words)
    return _finished(reading)


def start(reading: Reading, words: Sequence[str]) -> None:
    """Read one command: peel off what stands in front, then hand it to who knows its program."""
    reading.depth += 1
    if reading.depth > DEPTH:
        raise InputError(f"the command starts one program through another more than {DEPTH} times")
    rest = unwrapped(words, reading.assigned)
    if not rest:
        reading.note("the command starts no program")
        return
    name = program_name(rest[0])
    reader = _reader_of(name)
    if reader is not None:
        reader(reading, rest[1:])
    elif name in _SHELLS:
        _shell(reading, rest[1:])
    elif name == "sbatch":
        _batch(reading, rest[1:])
    elif name.endswith((".py", ".ipynb")):
        run_script(reading, rest)
    elif name.endswith(".sh"):
        _shell(reading, rest)
    else:
        reading.note(f"{rest[0]!r} is no program compat knows: how it starts a job was not read")


def _reader_of(name: str) -> Callable[[Reading, list[str]], None] | None:
    from compat.read.workload.launchers import PROGRAMS, is_python, python
    from compat.read.workload.training_tools import TOOLS

    return python if is_python(name) else PROGRAMS.get(name) or TOOLS.get(name)


def run_script(reading: Reading, words: Sequence[str]) -> None:
    """A script and its arguments, in a plain process unless a launcher was read already."""
    reading.plainly_unless_launched()
    name = words[0]
    if not name:
        raise InputError("the command names a script without a name")
    if "$" in name:
        reading.note(f"{name} was not read: its name is put together at run time")
    elif "://" in name:
        reading.note(f"{name} was not read: it is not on this machine")
    else:
        reading.script = reading.path(name)
    _script_arguments(reading, list(words[1:]))


def _script_arguments(reading: Reading, words: list[str]) -> None:
    """Options, and the argument file that trl's and transformers' parsers accept."""
    options, others = parse_words(words)
    for name, value in options:
        if name == "config" and isinstance(value, str) and value.endswith(_RECIPE_ENDINGS):
            reading.recipe(value, needed=False)
    if not options and len(others) == 1 and others[0].endswith(_RECIPE_ENDINGS):
        from compat.read.workload.recipe import llamafactory

        reading.recipe(others[0], llamafactory, needed=False)
    reading.options(words)


def _shell(reading: Reading, words: list[str]) -> None:
    """``bash -c TEXT ARGUMENTS`` or ``bash FILE ARGUMENTS``."""
    from compat.read.json_text import read_text
    from compat.read.workload.shell_text import commands_of

    rest = list(words)
    while rest and rest[0].startswith(("-", "+")) and len(rest[0]) > 1:
        flag = rest.pop(0)
        if flag in ("-o", "+o", "--rcfile", "--init-file") and rest:
            rest.pop(0)
        elif not flag.startswith("--") and "c" in flag:
            text = rest.pop(0) if rest else ""
            _choose(reading, commands_of(text, rest[1:], reading.inherited), "the shell command")
            return
    if not rest:
        reading.note("the command starts an interactive shell")
        return
    path = reading.path(rest[0])
    text = read_text(regular(path), _SCRIPT_LIMIT)
    reading.lenient = True
    _choose(reading, commands_of(text, rest[1:], {**reading.inherited, **reading.assigned}), path)


def _batch(reading: Reading, words: list[str]) -> None:
    """``sbatch FILE``: the options on its ``#SBATCH`` lines count as if given to ``srun``."""
    from compat.read.json_text import read_text
    from compat.read.workload.launchers import slurm_tasks
    from compat.read.workload.shell_text import commands_of, slurm_directives
    from compat.read.workload.wrappers import take_options

    options, rest = take_options(words, valued=SBATCH_VALUED)
    wrapped = [value for name, value in options if name == "wrap"]
    if not rest and not wrapped:
        reading.note("sbatch names no batch script")
        return
    path = reading.path(rest[0]) if rest else "sbatch --wrap"
    text = wrapped[0] if wrapped else read_text(regular(path), _SCRIPT_LIMIT)
    directives, _ = take_options(slurm_directives(text), valued=SBATCH_VALUED)
    tasks = slurm_tasks([*directives, *options], reading.inherited)
    if tasks is not None:
        reading.assigned["SLURM_NTASKS"] = str(tasks)
    reading.lenient = True
    _choose(reading, commands_of(text, rest[1:], {**reading.inherited, **reading.assigned}), path)
    reading.assigned.pop("SLURM_NTASKS", None)


SBATCH_VALUED = frozenset((
    "n", "N", "p", "A", "J", "t", "c", "w", "x", "C", "q", "G", "o", "e", "i", "D", "d", "M", "a", "ntasks", "nodes",
    "partition", "account", "job_name", "time", "cpus_per_task", "nodelist", "exclude", "constraint", "qos", "gpus",
    "output", "error", "gres", "mem", "ntasks_per_node", "gpus_per_node", "gpus_per_task", "array", "wrap", "export",
    "chdir", "dependency", "mail_type", "mail_user", "reservation", "signal", "mem_per_gpu", "mem_per_cpu",
))  # fmt: skip


def _choose(reading: Reading, commands: Sequence[ShellCommand], where: str) -> None:
    """Read the last command that starts a job, and say which others are not judged."""
    jobs = [command for command in commands if _starts_a_job(command.words)]
    if not jobs:
        reading.note(f"no command in {where} starts a job that compat knows")
        return
    *others, command = jobs
    for other in others:
        reading.note(f"{where} also starts {' '.join(other.words)}: not judged, give it behind -- by itself")
    reading.assigned.update(command.exported)
    if command.directory is not None:
        reading.directory = reading.path(command.directory)
    start(reading, command.words)


def _starts_a_job(words: Sequence[str]) -> bool:
    from compat.read.workload.launchers import is_python

    try:
        rest = unwrapped(words, {})
    except InputError:
        return False
    if not rest:
        return False
    name = program_name(rest[0])
    if is_python(name):
        return any(word.endswith((".py", ".ipynb")) for word in rest[1:]) or ("-m" in rest[1:-1] and "pip" not in rest[1:])
    return _reader_of(name) is not None or name.endswith(".py") or (name in _SHELLS and len(rest) > 1)


def _finished(reading: Reading) -> Launch:
    """Lay the accounts over one another: the command and its files, the script and its files, launcher configuration."""
    facts = None if reading.script is None else _script_facts(reading, reading.script)
    if facts is not None:
        reading.assigned.update(facts.variables)
        if facts.workload.launcher is not None and reading.plain:
            reading.launched(None, None)
    accounts: list[Workload] = []
    for draft in (reading.draft, *reversed(reading.recipes)):
        accounts += [draft.workload(), *_deepspeed_files(reading, draft.configs)]
    if facts is not None:
        # the script may change into another folder first, so that a file it names need not be there
        there = [file for file in facts.configs if os.path.isfile(reading.path(file))]
        accounts += [facts.workload, *_deepspeed_files(reading, there)]
    for draft in reading.defaults:
        accounts += [draft.workload(), *_deepspeed_files(reading, draft.configs)]
    workload = Workload(script=reading.script)
    for account in reversed(accounts):
        workload = merge(account, workload)
    variables = {name: value for name, value in reading.assigned.items() if not is_secret(name)}
    notes = (*reading.draft.notes, *(facts.notes if facts is not None else ()))
    return Launch(workload, variables, reading.script, tuple(dict.fromkeys(notes)))


def _deepspeed_files(reading: Reading, files: Iterable[str]) -> list[Workload]:
    found: list[Workload] = []
    for file in dict.fromkeys(files):
        if "$" in file or (reading.lenient and not os.path.isfile(reading.path(file))):
            reading.note(f"the DeepSpeed configuration {file} was not read")
        else:
            found.append(read_deepspeed(reading.path(file)))
    return found


def is_secret(name: str) -> bool:
    """Whether a variable holds what must not stand in a report."""
    return any(part.endswith(("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD")) for part in name.upper().split("_"))


def _script_facts(reading: Reading, script: str) -> ScriptFacts | None:
    from compat.read.workload.script import read_script

    path = os.path.join(script, "__main__.py") if os.path.isdir(script) else script
    if os.path.isfile(path):
        return read_script(path)
    if not reading.lenient:
        raise InputError("there is no such file: expected the script that the command starts", path)
    reading.note(f"{path} was not read: there is no such file")
    return None
