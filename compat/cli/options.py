"""The command-line parser for the table in :mod:`compat.api.commands`.

Importing and running ``argparse`` would take half the time budget of a check, so it is not used.
"""

from __future__ import annotations

from compat.api.commands import Command, Options, checked, option_named
from compat.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


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
        raise InputError(f"'compat {command.name}' does not take {operands[command.most]!r}{hint}")
    if rest is not None and not command.command_after_dashes and not command.program:
        raise InputError(f"'compat {command.name}' takes no command after '--'")
    if rest is not None and not rest:
        raise InputError("expected a command after '--'")


def _following(words: Sequence[str], position: int) -> int:
    count = 0
    while position + count < len(words) and not words[position + count].startswith("--"):
        count += 1
    return count
