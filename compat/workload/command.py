"""Read a command line for the job it would start. Nothing is run; only the files and the script it names are read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from compat.errors import InputError
from compat.files import regular_path
from compat.model import Workload
from compat.records import replace
from compat.redact import is_secret
from compat.syntax.json import read_text
from compat.workload import launchers, training_tools
from compat.workload.launch import Launch, merge_workloads
from compat.workload.launch_config import read_deepspeed
from compat.workload.reading import Reading
from compat.workload.wrappers import (
    SHELLS,
    ShellCall,
    handed_to_shell,
    is_python,
    program_name,
    shell_call,
    take_options,
    unwrapped,
)

if TYPE_CHECKING:
    from compat.syntax.shell_commands import ShellCommand
    from compat.workload.script import ScriptFacts


_SCRIPT_LIMIT = 1024 * 1024


def from_command(words: Sequence[str], directory: str, variables: Mapping[str, str]) -> Launch:
    """Return the job a command would start. Nothing is run; the configuration files and the script it names are read.

    ``directory`` is the working directory of the command, ``variables`` its environment. The command line takes
    precedence over the script, and the script over configuration files. Raises :class:`InputError` if the command
    cannot be parsed or a file it names cannot be read.
    """
    if not any(word.strip() for word in words):
        raise InputError("expected a command after '--', such as: accelerate launch train.py")
    if any("\0" in word for word in words):
        raise InputError("the command contains a NUL character")
    return read_with(CommandReading(directory, variables), words)


def read_with(reading: Reading, words: Sequence[str]) -> Launch:
    """Like :func:`from_command`, with a custom :class:`Reading` that may resolve files differently."""
    reading.start(words)
    return _finished(reading)


def _shell(reading: Reading, words: list[str]) -> None:
    """``bash -c TEXT ARGUMENTS`` or ``bash FILE ARGUMENTS``."""
    call = shell_call(["bash", *words]) or ShellCall()
    if call.text is not None:
        _choose(reading, _commands(call.text, call.arguments, reading.inherited), "the shell command")
    elif call.script is not None:
        path = reading.path(call.script)
        text = read_text(regular_path(path), _SCRIPT_LIMIT)
        reading.lenient = True
        _choose(reading, _commands(text, call.arguments, {**reading.inherited, **reading.assigned}), path)
    else:
        reading.note("the command starts an interactive shell")


def _commands(text: str, arguments: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> Sequence[ShellCommand]:
    """Return the commands of a shell text. The lexer is imported on demand: a guarded script never needs it."""
    from compat.syntax.shell_commands import commands_of

    return commands_of(text, arguments, variables)


def _batch(reading: Reading, words: list[str]) -> None:
    """``sbatch FILE``: the options on its ``#SBATCH`` lines count as if given to ``srun``."""
    options, rest = take_options(words, valued=SBATCH_VALUED)
    wrapped = [value for name, value in options if name == "wrap"]
    if not rest and not wrapped:
        reading.note("sbatch names no batch script")
        return
    path = reading.path(rest[0]) if rest else "sbatch --wrap"
    text = wrapped[0] if wrapped else read_text(regular_path(path), _SCRIPT_LIMIT)
    from compat.syntax.shell_commands import slurm_directives

    directives, _ = take_options(slurm_directives(text), valued=SBATCH_VALUED)
    tasks = launchers.slurm_tasks([*directives, *options], reading.inherited)
    if tasks is not None:
        reading.assigned["SLURM_NTASKS"] = str(tasks)
    reading.lenient = True
    _choose(reading, _commands(text, rest[1:], {**reading.inherited, **reading.assigned}), path)
    reading.assigned.pop("SLURM_NTASKS", None)


SBATCH_VALUED = frozenset((
    "n", "N", "p", "A", "J", "t", "c", "w", "x", "C", "q", "G", "o", "e", "i", "D", "d", "M", "a", "ntasks", "nodes",
    "partition", "account", "job_name", "time", "cpus_per_task", "nodelist", "exclude", "constraint", "qos", "gpus",
    "output", "error", "gres", "mem", "ntasks_per_node", "gpus_per_node", "gpus_per_task", "array", "wrap", "export",
    "chdir", "dependency", "mail_type", "mail_user", "reservation", "signal", "mem_per_gpu", "mem_per_cpu",
))  # fmt: skip


def _choose(reading: Reading, commands: Sequence[ShellCommand], where: str) -> None:
    """Read the last command that starts a job, and note the others as not checked."""
    # a shell script called by name may prepare the job or clean up after it
    found = (command for command in commands if not command.words[0].endswith(".sh"))
    jobs = [command for command in found if starts_a_job(command.words)]
    if not jobs:
        reading.note(f"no command in {where} starts a known job")
        return
    *others, command = jobs
    for other in others:
        reading.note(f"{where} also starts {' '.join(other.words)}: not checked; pass it on its own after --")
    reading.assigned.update(command.exported)
    if command.directory is not None:
        reading.directory = reading.path(command.directory)
    reading.start(command.words)


def starts_a_job(words: Sequence[str]) -> bool:
    """Whether a command starts a training script, or a tool that trains or serves."""
    try:
        rest = unwrapped(words, {})
    except InputError:
        return False
    text = handed_to_shell(rest)
    if text is not None:
        return any(starts_a_job(each.words) for each in _commands(text))
    name = program_name(rest[0]) if rest else ""
    if is_python(name):
        module = rest[rest.index("-m") + 1] if "-m" in rest[1:-1] else ""
        return any(word.endswith((".py", ".ipynb")) for word in rest[1:]) or module not in ("", "pip", "venv", "ensurepip")
    if name == "ray":
        return "submit" in rest
    if name == "accelerate":
        return rest[1:2] == ["launch"]
    if name in SHELLS:
        return len(rest) > 1 and "-s" not in rest and not rest[1].startswith("<(")
    return name in CommandReading.programs or (name.endswith((".py", ".sh")) and not name.startswith("-"))


def _finished(reading: Reading) -> Launch:
    """Merge the facts by precedence: the command and its files, the script and its files, launcher configuration."""
    facts = None if reading.script is None else _script_facts(reading, reading.script)
    if facts is not None:
        reading.assigned.update(facts.variables)
        if facts.workload.launcher is not None and reading.plain:
            reading.launched(None, None)
    accounts: list[Workload] = []
    for draft in (reading.draft, *reversed(reading.recipes)):
        accounts += [draft.workload(), *_deepspeed_files(reading, draft.configs)]
    if facts is not None:
        # the script may change the directory first, so a file it names may be missing here
        there = [file for file in facts.configs if os.path.isfile(reading.path(file))]
        accounts += [replace(facts.workload, options=None), *_deepspeed_files(reading, there)]
    for draft in reading.defaults:
        accounts += [draft.workload(), *_deepspeed_files(reading, draft.configs)]
    given = (*reading.given, *((facts.workload.options if facts is not None else None) or ()))
    workload = Workload(script=reading.script, options=given or None)
    for account in reversed(accounts):
        workload = merge_workloads(account, workload)
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


def _script_facts(reading: Reading, script: str) -> ScriptFacts | None:
    from compat.workload.script import read_script

    path = os.path.join(script, "__main__.py") if os.path.isdir(script) else script
    if os.path.isfile(path):
        return read_script(path)
    if not reading.lenient:
        raise InputError("no such file: expected the script that the command starts", path)
    reading.note(f"{path} was not read: no such file")
    return None


class CommandReading(Reading):
    """A reading that supports every known program and module that starts jobs."""

    programs: ClassVar = {**launchers.PROGRAMS, **training_tools.PROGRAMS, **dict.fromkeys(SHELLS, _shell), "sbatch": _batch}
    modules: ClassVar = {**launchers.MODULES, **training_tools.MODULES}
