"""Shell text → the install commands in it, with their lines and branches, and its other commands. Nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compat.formats.installs.command import install_of
from compat.formats.installs.steps import Command, Line, Step, alternatives
from compat.formats.shell.lines import AT, CASE, ELSE, END, IF, LAST, MARK, NEWLINE, QUOTED, Marked
from compat.model import EMPTY
from compat.syntax.shell_commands import ShellCommand, commands_of
from compat.workload.wrappers import handed_to_shell

LONGEST = 4000
"""Lines of a script that are looked at, as everywhere where shell text is read."""
_DEEPEST = 40


class ShellSteps:
    """What the lines of a script do.

    ``steps`` are the install commands; ``others`` the commands that install nothing, in order, each with its line;
    ``unread`` says, by line, what was not read though it may install something.
    ``exported`` are the variables that every command behind them sees, where their values are known; ``written`` are the
    lines that stand in the file for all of it.
    """

    def __init__(
        self,
        lines: Sequence[Line],
        where: Callable[[int], str],
        variables: Mapping[str, str] = EMPTY,
        depth: int = 0,
        written: tuple[Line, ...] | None = None,
    ) -> None:
        self.steps: list[Step] = []
        self.others: list[tuple[ShellCommand, int]] = []
        self._lines = lines[:LONGEST]
        self._where = where
        self._depth = depth
        self._given = variables
        self._open: list[_Branches] = []
        self._beyond = 0
        self._written = written
        self._at: tuple[Line, ...] = written or ()
        marked = Marked(self._lines)
        self._logical = marked.logical
        self.unread = [(lines[marked.logical[at][1]][0], "the command is too long to be read") for at in marked.unread]
        if len(lines) > LONGEST and any("install" in text for _, text in lines[LONGEST:]):
            self.unread.append((lines[LONGEST][0], f"only {LONGEST} lines of shell were read"))
        commands = commands_of(f"{marked.text}\n{MARK}", (), variables)
        for command in commands:
            if command.words[0][:1] == MARK:
                self._mark(command.words[0][1:])
            else:
                self._command(command)
        while self._open:
            self._end()
        exported = commands[-1].exported if commands else {}
        self.exported = {name: value for name, value in exported.items() if "$" not in value and "`" not in value}

    def _mark(self, word: str) -> None:
        if word.startswith(AT):
            _, start, end = self._logical[int(word[len(AT) :])]
            self._at = self._written or tuple(self._lines[start:end])
        elif word in (IF, CASE):
            if len(self._open) == _DEEPEST:
                self._beyond += 1
            else:
                self._open.append(_Branches(starts_at_once=word == IF))
        elif word in (ELSE, LAST) and self._open and not self._beyond:
            self._open[-1].next(last=word == LAST)
        elif word == END:
            self._end()

    def _end(self) -> None:
        if self._beyond:
            self._beyond -= 1
        elif self._open:
            branches = self._open.pop()
            self._current().extend(branches.steps())

    def _current(self) -> list[Step]:
        return self._open[-1].current if self._open else self.steps

    def _command(self, command: ShellCommand) -> None:
        words = [word.replace(NEWLINE, "\n").replace(QUOTED, "") for word in command.words]
        directory = command.directory and command.directory.replace(QUOTED, "")
        install = install_of(words, {**self._given, **command.exported})
        line = self._at[0][0] if self._at else self._lines[0][0]
        if install is not None:
            self._current().append(Command(install, self._where(line), self._at, directory))
            return
        inner = handed_to_shell(words) if self._depth < 3 else None
        if inner is not None and "install" in inner:
            lines = [(line, text) for text in inner.split("\n")]
            known = {**self._given, **command.variables, **command.exported}
            self._current().extend(ShellSteps(lines, self._where, known, self._depth + 1, self._written).steps)
        self.others.append((ShellCommand(words, command.variables, command.exported, directory), line))


class _Branches:
    """The branches of one condition while they are read."""

    def __init__(self, *, starts_at_once: bool) -> None:
        self.current: list[Step] = []
        self._found: list[list[Step]] = [self.current] if starts_at_once else []
        self._total = False

    def next(self, *, last: bool) -> None:
        self.current = []
        self._found.append(self.current)
        self._total = self._total or last

    def steps(self) -> list[Step]:
        return alternatives(self._found if self._total else [*self._found, []])
