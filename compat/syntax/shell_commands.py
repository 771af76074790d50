"""The simple commands of shell scripts, with plain variables expanded. Nothing is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compat.syntax.parameters import expanded, reference
from compat.syntax.shell import SimpleCommand, Word, simple_commands, without_commands

LONGEST = 4000
"""Most lines of a script read."""
_COMMANDS = 50_000
"""Most commands and assignments of a script read."""
_WIDEST = 1 << 13
"""Characters of a word in which variables are expanded."""
_MOST = 1 << 20
"""Characters that are expanded in one script, and variables that are recorded for its commands."""


class ShellCommand:
    """A simple command: its words, the variables set before it and its working directory (or ``None``)."""

    def __init__(self, words: list[str], variables: dict[str, str], exported: dict[str, str], directory: str | None) -> None:
        self.words = words
        self.variables = variables
        self.exported = exported
        self.directory = directory


def commands_of(text: str, arguments: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> list[ShellCommand]:
    """Return the simple commands of a script in order; lines that cannot be read are skipped.

    ``arguments`` are ``$1`` … and ``$@``, ``variables`` those that are already set.
    """
    reader = ShellReader(variables or {}, arguments)
    lines = text.splitlines()[:LONGEST]
    return [each for command in simple_commands("\n".join(lines)) if (each := reader.read(command)) is not None]


class ShellReader:
    """Reads a script command by command, tracking its variables and working directory."""

    def __init__(self, variables: Mapping[str, str], arguments: Sequence[str] = ()) -> None:
        self._known = {**variables, **{str(number): value for number, value in enumerate(arguments, 1)}}
        self._arguments = arguments
        self._directory: str | None = None
        self._around: list[str | None] = []
        """The working directories outside the open subshells."""
        self._own: dict[str, str] = {}
        self._exported: dict[str, str] = {}
        self._now: tuple[dict[str, str], dict[str, str]] | None = None
        self._room = _MOST
        """Variables that may still be recorded for commands."""
        self._commands = 0
        self._grown = 0

    def read(self, command: SimpleCommand, *, certain: bool = True) -> ShellCommand | None:
        """Return the next command; ``None`` for one that only sets variables, whose values are unknown unless ``certain``."""
        self._commands += 1
        if self._commands > _COMMANDS:
            return None
        for keyword in command.keywords:
            if keyword == "(":
                self._around.append(self._directory)
            elif keyword == ")" and self._around:
                self._directory = self._around.pop()
        words = [word.value for word in command.words]
        if self._grown < _MOST:
            length = sum(map(len, words)) + len(words)
            words = _filled(command.words, self._known, self._arguments)
            self._grown += sum(map(len, words)) + len(words) - length
        if not words:
            return None
        if words[0] in ("export", "declare", "local", "readonly", "set", "typeset"):
            self._assign(words[1:], export=words[0] == "export", certain=certain)
        elif all(_is_assignment(word) for word in words):
            self._assign(words, export=any(word.partition("=")[0] in self._exported for word in words), certain=certain)
        elif words[0] == "cd":
            self._directory = words[1] if len(words) == 2 and "$" not in words[1] else None
        else:
            return ShellCommand(words, *self._variables(), self._directory)
        return None

    @property
    def exported(self) -> dict[str, str]:
        """Return the variables that the next command sees."""
        return self._variables()[1]

    def _assign(self, words: Sequence[str], *, export: bool, certain: bool) -> None:
        """Set ``NAME=value`` and, after ``export``, ``NAME``. What is only known at run time becomes ``${NAME}``."""
        for word in words if self._room else ():
            name, equals, value = word.partition("=")
            if equals and _is_assignment(word):
                unknown = f"${{{name}}}"
                known = certain and not value.startswith("(")  # NAME=(…) is an array
                self._known[name] = self._own[name] = without_commands(value, unknown) if known else unknown
            if export and name in self._own:
                self._exported[name] = self._own[name]
        self._now = None

    def _variables(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the script's variables and its exports; commands without an assignment between them share the mappings."""
        if self._now is None:
            self._room = max(0, self._room - len(self._own) - len(self._exported))
            if not self._room:
                self._known, self._exported, self._own = {}, {}, {}  # unknown rather than outdated
            self._now = dict(self._own), dict(self._exported)
        return self._now


def slurm_directives(text: str) -> list[str]:
    """Return the options on the ``#SBATCH`` lines of a batch script."""
    found: list[str] = []
    for line in text.splitlines()[:LONGEST]:
        if line.startswith("#SBATCH"):
            found += line[7:].partition(" #")[0].split()
    return found


def _filled(words: Sequence[Word], known: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    result: list[str] = []
    filled = 0
    for each in words:
        word = each.value
        if filled > _MOST or len(word) > _WIDEST:
            result.append(word)
        elif word in ("$@", "$*", "${@}", "${*}"):
            result.extend(arguments)
            filled += sum(map(len, arguments)) + len(arguments)
        elif word.startswith("$") and not each.is_quoted and (found := reference(word, 0, known))[1] == len(word):
            # an unquoted variable may expand to several words
            result.extend([word] if found[0] is None else found[0].split())
            filled += len(found[0] or word)
        else:
            result.append(expanded(word, known) if "$" in word else word)
            filled += len(result[-1])
    return result


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.replace("_", "a").isalnum() and not name[0].isdecimal()
