"""Command-line entry points: parse the words, dispatch to one command, and map its errors to exit codes.

The table of commands is :mod:`compat.api.commands`. Importing and running ``argparse`` would take half the time budget of a
check, so it is not used.
"""

from __future__ import annotations

import gc
import os
import sys

from compat.api.commands import COMMANDS, Command, Options, checked, command_named, option_named
from compat.errors import InputError, Undecided, complain, printable, unexpected
from compat.output.stream import emit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def entry() -> None:
    """The command ``compat``."""
    gc.disable()  # the process is too short-lived for garbage collection to pay off
    _quiet_destructors()
    _end(main())


def doctor_entry() -> None:
    """The command ``compat-doctor``, named after the distribution: runs ``doctor`` unless another command is given.

    This lets ``uvx compat-doctor`` and ``pipx run compat-doctor`` check the current machine.
    """
    gc.disable()
    _quiet_destructors()
    words = sys.argv[1:]
    named = bool(words) and (words[0] in ("help", "-h", "--help", "-V", "--version") or words[0] in {c.name for c in COMMANDS})
    _end(main(words if named else ["doctor", *words]))


def _quiet_destructors() -> None:
    """Silence failing destructors: after an interrupt, the solver's fail on half-initialized objects and print tracebacks."""
    if not os.environ.get("COMPAT_TRACEBACK"):
        sys.unraisablehook = lambda _: None


def _end(code: int) -> None:
    """Flush and exit immediately: interpreter shutdown takes as long as checking an environment."""
    complain("", end="")
    os._exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 no findings at the threshold, 1 findings, 2 invalid input, 3 undecided."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if sys.stdout is None:
            raise InputError("standard output is closed")
        return _run(words)
    except InputError as problem:
        complain(f"compat: {problem}")
        return 2
    except Undecided as problem:
        complain(f"compat: undecided: {printable(str(problem))}")
        return 3
    except KeyboardInterrupt:
        return 130
    except Exception as problem:
        complain(f"compat: {unexpected(problem)}")
        return 2


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        from compat.cli.help import overview

        emit(overview())
        return 0
    if words[0] in ("-V", "--version"):
        from compat import __version__

        emit(f"compat {__version__}")
        return 0
    command = command_named(words[0])
    if asks_for_help(command, words[1:]):
        from compat.cli.help import help_for

        emit(help_for(command))
        return 0
    return _dispatch(parse(command, words[1:]))


def _dispatch(options: Options) -> int:
    """Import and run one command, without the import cost of the others."""
    module = __import__(f"compat.cli.{options.command}", fromlist=["run"])
    return int(module.run(options))


def parse(command: Command, options: Sequence[str]) -> Options:
    """Parse the arguments after a command's name; raises :class:`InputError` for anything the command does not accept."""
    values: dict[str, list[str]] = {}
    operands: list[str] = []
    rest: tuple[str, ...] | None = None
    position = 0
    while position < len(options):
        word = options[position]
        position += 1
        if word == "--":
            rest = tuple(options[position:])
            break
        if command.program and _starts_program(word):
            rest = tuple(options[position - 1 :])
            break
        if not word.startswith("--"):
            if word.startswith("-") and word != "-":
                raise InputError(f"unknown option {word!r} for 'compat {command.name}'")
            operands.append(word)
            continue
        name, equals, given = word[2:].partition("=")
        option = option_named(command, name)
        taken = values.setdefault(name, [])
        if option.metavar is None:
            if equals:
                raise InputError(f"--{name} does not take a value")
            taken.append("")
        elif equals:
            taken.append(checked(option, given))
        else:
            count = _following(options, position) if option.many else int(position < len(options) and options[position] != "--")
            if not count:
                raise InputError(f"--{name} needs a value ({option.metavar})")
            taken += [checked(option, each) for each in options[position : position + count]]
            position += count
    _check_operands(command, operands, rest)
    return Options(command=command.name, values=values, operands=tuple(operands), rest=rest)


def _starts_program(word: str) -> bool:
    return word == "-m" or not word.startswith("-")


def asks_for_help(command: Command, words: Sequence[str]) -> bool:
    """Return whether ``--help`` is among the command's arguments that are meant for compat."""
    for number, word in enumerate(words):
        if word == "--" or (command.program and _starts_program(word) and not _is_value(command, words[:number])):
            return False
        if word in ("-h", "--help"):
            return True
    return False


def _is_value(command: Command, before: Sequence[str]) -> bool:
    """Return whether the argument after ``before`` is the value of an option."""
    last = before[-1] if before else ""
    return any(last == f"--{option.name}" and option.metavar is not None for option in command.options)


def _check_operands(command: Command, operands: list[str], rest: tuple[str, ...] | None) -> None:
    if len(operands) > command.most:
        hint = "; the command to read goes after '--'" if command.command_after_dashes else ""
        raise InputError(f"unexpected argument {operands[command.most]!r} for 'compat {command.name}'{hint}")
    if rest is not None and not command.command_after_dashes and not command.program:
        raise InputError(f"'compat {command.name}' takes no command after '--'")
    if rest is not None and not rest:
        raise InputError("expected a command after '--'")


def _following(words: Sequence[str], position: int) -> int:
    count = 0
    while position + count < len(words) and not words[position + count].startswith("--"):
        count += 1
    return count
