"""Help texts, generated from the table of commands."""

from __future__ import annotations

from compat.api.commands import COMMANDS, Command, Option

_INDENT = 26
_WIDTH = 80
_MAIN = 5
"""How many commands, the first ones, most people need."""


def overview() -> str:
    """Return the output of ``compat --help``."""
    lines = [f"  {command.name:<12}  {command.summary}" for command in COMMANDS]
    text = [
        "usage: compat COMMAND [OPTIONS]",
        "",
        "Find and fix known-bad combinations of packages, GPUs, drivers and launchers.",
        "Only reads files: nothing that is inspected is executed, except by 'probe' and 'run'.",
        "",
        "commands:",
        *lines[:_MAIN],
        "",
        "more commands:",
        *lines[_MAIN:],
        "",
        "'compat COMMAND --help' lists the options of a command; 'compat --version' prints the version.",
        "exit codes: 0 nothing found, 1 findings, 2 invalid input, 3 undecided",
    ]
    return "\n".join(text)


def help_for(command: Command) -> str:
    """Return the output of ``compat COMMAND --help``."""
    options = "[OPTIONS] " if command.options else ""
    summary = f"{command.summary[:1].upper()}{command.summary[1:]}."
    lines = [f"usage: compat {command.name} {options}{command.operands}".rstrip(), "", summary]
    if command.command_after_dashes:
        lines += ["The command after '--' and the script it starts are read, not run."]
    if command.options:
        lines += ["", "options:", *(line for option in command.options for line in _option(option))]
    return "\n".join(lines)


def _option(option: Option) -> list[str]:
    head = f"  --{option.name}" + (f" {option.metavar}" if option.metavar else "")
    lines: list[str] = [head] if len(head) < _INDENT - 1 else [head, ""]
    for word in option.help.split():
        if len(lines[-1]) > _INDENT and len(lines[-1]) + 1 + len(word) > _WIDTH:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}" if len(lines[-1]) > _INDENT else f"{lines[-1]:<{_INDENT}}{word}"
    return lines


# --- Shell completion scripts, generated from the table of commands.


_FILES = ("environment", "rules", "python")


def bash() -> str:
    """Return the completion script for bash: ``source <(compat completions bash)``."""
    cases = []
    for command in COMMANDS:
        words = [f"--{option.name}" for option in command.options] + list(command.words)
        cases.append(f"    {command.name}) words='{' '.join(words)}' ;;")
    choices = []
    for name, values in _choices().items():
        choices.append(f"    --{name}) COMPREPLY=($(compgen -W '{' '.join(values)}' -- \"$current\")); return ;;")
    return "\n".join([
        "_compat() {",
        '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}" words=""',
        '  case "$previous" in',
        *choices,
        f"    {'|'.join(f'--{name}' for name in _FILES)}) COMPREPLY=($(compgen -f -- \"$current\")); return ;;",
        "  esac",
        '  if [ "$COMP_CWORD" -eq 1 ]; then',
        f"    COMPREPLY=($(compgen -W '{' '.join(c.name for c in COMMANDS)} --help --version' -- \"$current\")); return",
        "  fi",
        '  case "${COMP_WORDS[1]}" in',
        *cases,
        "  esac",
        '  if [[ "$current" == -* || -z "$current" ]]; then COMPREPLY=($(compgen -W "$words --help" -- "$current"));',
        '  else COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current")); fi',
        "}",
        "complete -F _compat compat",
    ])  # fmt: skip


def zsh() -> str:
    """Return the completion script for zsh: ``source <(compat completions zsh)``."""
    lines = ["#compdef compat", "_compat() {", "  local -a commands=("]
    lines += [f"    '{command.name}:{_quoted(command.summary)}'" for command in COMMANDS]
    lines += ["  )", "  if (( CURRENT == 2 )); then _describe command commands; return; fi", "  case $words[2] in"]
    for command in COMMANDS:
        lines.append(f"    {command.name}) _arguments \\")
        for option in command.options:
            text = _quoted(option.help).replace("[", "(").replace("]", ")").replace(":", " ")
            action = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files" if option.metavar else ""
            lines.append(f"      '*--{option.name}[{text}]{action}' \\")
        lines.append(f"      '*:word:({' '.join(command.words)})' ;;" if command.words else "      '*:file:_files' ;;")
    return "\n".join([*lines, "  esac", "}", "compdef _compat compat"])


def fish() -> str:
    """Return the completion script for fish: ``compat completions fish | source``."""
    lines = [
        "complete -c compat -f -n __fish_use_subcommand -l version",
        "complete -c compat -f -n __fish_use_subcommand -l help",
    ]
    for command in COMMANDS:
        lines.append(f"complete -c compat -f -n __fish_use_subcommand -a {command.name} -d '{_quoted(command.summary)}'")
        seen = f"'__fish_seen_subcommand_from {command.name}'"
        if command.words:
            lines.append(f"complete -c compat -f -n {seen} -a '{' '.join(command.words)}'")
        for option in command.options:
            takes = f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r" if option.metavar else ""
            lines.append(f"complete -c compat -n {seen} -l {option.name}{takes} -d '{_quoted(option.help)}'")
    return "\n".join(lines)


def _choices() -> dict[str, tuple[str, ...]]:
    return {option.name: option.choices for command in COMMANDS for option in command.options if option.choices}


def _quoted(text: str) -> str:
    """Return a text for single quotes."""
    return text.replace("'", "’")


SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}
