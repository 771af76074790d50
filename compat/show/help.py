"""Help texts, made from the table of commands."""

from __future__ import annotations

from compat.options import COMMANDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.options import Command, Option

_INDENT = 26


def overview() -> str:
    """What ``compat --help`` prints."""
    lines = [
        "usage: compat COMMAND [OPTIONS]",
        "",
        "Which known-bad combinations of packages, GPUs, drivers and launchers hold here,",
        "and what mends them. Reads files only; 'probe' alone starts what it inspects.",
        "",
        "commands:",
        *(f"  {command.name:<12}  {command.summary}" for command in COMMANDS),
        "",
        "'compat COMMAND --help' tells more; 'compat --version' the version.",
        "exit codes: 0 nothing found, 1 findings, 2 unusable input, 3 could not be decided",
    ]
    return "\n".join(lines)


def help_for(command: Command) -> str:
    """What ``compat COMMAND --help`` prints."""
    options = "[OPTIONS] " if command.options else ""
    summary = f"{command.summary[:1].upper()}{command.summary[1:]}."
    lines = [f"usage: compat {command.name} {options}{command.operands}".rstrip(), "", summary]
    if command.command_after_dashes:
        lines += ["The command behind '--' and the script it starts are read; nothing is run."]
    if command.options:
        lines += ["", "options:", *(line for option in command.options for line in _option(option))]
    return "\n".join(lines)


def _option(option: Option) -> list[str]:
    head = f"  --{option.name}" + (f" {option.metavar}" if option.metavar else "")
    first, *more = option.help.split("\n")
    lines = [f"{head:<{_INDENT}}{first}"] if len(head) < _INDENT - 1 else [head, " " * _INDENT + first]
    return [*lines, *(" " * _INDENT + line for line in more)]
