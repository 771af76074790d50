"""Shell text → its install commands, with their lines and branches, and its other commands. Nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compat.formats.installs.command import install_of
from compat.formats.installs.steps import Command, Line, Step, alternatives
from compat.model import EMPTY
from compat.syntax.shell import segments, written_words
from compat.syntax.shell_commands import LONGEST, ShellCommand, ShellReader, logical_lines
from compat.workload.wrappers import assignment, handed_to_shell

UNKNOWN = "${...}"
"""A value that is only known at run time: no variable has that name."""

_KEYWORDS = frozenset(("then", "do", "!", "time", "elif", "else", "while", "until"))
_TESTS = frozenset(("[", "[[", "test", "((", "command", "which", "grep", "type", "hash", "!"))
_SETTERS = frozenset(("export", "declare", "typeset", "local", "readonly"))
_WIDEST = 1 << 14
"""Characters of a command; longer ones carry data."""
_MOST_KEYWORDS = 20
"""Most keywords before a command."""
_DEEPEST = 40
"""Nested conditions whose branches are tracked separately."""
_MOST_SHELLS = 3
"""``bash -c "bash -c …"``."""


class ShellSteps:
    """What the lines of a script do.

    ``steps`` are the install commands; ``others`` the other commands in order, each with its line; ``unread`` lists, by
    line, what was not read and may install something. ``exported`` are the known variables that later commands see.
    ``written`` are the lines of the file that contain the whole script.
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
        self.unread: list[tuple[int, str]] = []
        self._where = where
        self._depth = depth
        self._given = variables
        self._written = written
        self._lines: tuple[Line, ...] = ()
        """The lines of the current command."""
        self._reader = ShellReader(variables)
        self._frames: list[str] = []
        """Open constructs: ``if``, ``case``, ``group`` (braces, parentheses, a function), ``maybe group`` under a condition."""
        self._open: list[_Branches] = []
        self._beyond = 0
        for logical in logical_lines([text for _, text in lines[:LONGEST]]):
            self._lines = written or tuple(lines[logical.start : logical.end])
            if len(logical.text) > _WIDEST:
                if "install" in logical.text:
                    self.unread.append((lines[logical.start][0], "the command is too long to be read"))
                continue
            self._line(logical.text)
        if len(lines) > LONGEST and any("install" in text for _, text in lines[LONGEST:]):
            self.unread.append((lines[LONGEST][0], f"only {LONGEST} lines of shell were read"))
        while self._open:
            self._end()
        exported = self._reader.exported
        self.exported = {name: value for name, value in exported.items() if "$" not in value and "`" not in value}

    def _line(self, text: str) -> None:
        tested = False
        for segment in segments(text):
            if segment.operator not in ("&&", "||"):
                tested = False
            words = segment.text.split(None, _MOST_KEYWORDS)
            if len(words) > _MOST_KEYWORDS and all(word in _KEYWORDS or word in "{}()" for word in words[:_MOST_KEYWORDS]):
                continue
            tested = tested or next((word for word in words if word not in _KEYWORDS), "") in _TESTS
            self._segment(segment.text, words, maybe=segment.operator == "||" or (segment.operator == "&&" and tested))

    def _segment(self, segment: str, words: list[str], *, maybe: bool) -> None:
        """Read one simple command and the keywords that open or close a branch around it; ``maybe``: it may not run."""
        first = words[0] if words else ""
        frame = self._frames[-1] if self._frames else ""
        if first[:1] == "(" != first[1:2]:
            self._group(f"( {segment.lstrip()[1:]}", maybe=maybe)
        elif frame in ("group", "maybe group") and segment.rstrip().endswith(")") and "(" not in segment:
            self._read(segment.rstrip()[:-1])
            self._close()
        elif first == "case" and " in" in segment:
            self._frames.append("case")
            self._begin(_Branches(starts_at_once=False))
            self._arm(segment.partition(" in")[2])
        elif frame == "case" and first == "esac":
            self._close()
        elif frame == "case" and ")" in first:
            self._arm(segment)
        elif first == "{" or first.endswith("()") or words[-1:] == ["{"]:
            self._group(segment, maybe=maybe)
        elif first == "if":
            self._frames.append("if")
            self._begin(_Branches())
            self._read(segment)
        elif first in ("else", "elif") and frame == "if":
            self._next(last=first == "else")
            self._read(segment)
        elif (first == "fi" and frame == "if") or (first == "}" and frame in ("group", "maybe group")):
            self._close()
        else:
            self._one(self._with_unknown_values(segment, maybe=maybe), maybe=maybe)

    def _one(self, segment: str, *, maybe: bool) -> None:
        """Read a command that is its own branch if it may not run."""
        if maybe:
            self._begin(_Branches())
        self._read(segment)
        if maybe:
            self._end()

    def _group(self, segment: str, *, maybe: bool) -> None:
        if segment.rstrip().endswith(("}", ")")):
            closed = segment.count("(") == segment.count(")")
            self._one(segment.rstrip()[:-1] if closed else segment, maybe=maybe)
            return
        self._frames.append("maybe group" if maybe else "group")
        if maybe:
            self._begin(_Branches())
        self._read(segment)

    def _arm(self, segment: str) -> None:
        """Read an arm of a ``case``: its pattern and its first command."""
        pattern, closed, rest = segment.partition(")")
        if closed:
            self._next(last=pattern.strip(" \t\"'(") == "*")
            segment = self._with_unknown_values(rest, maybe=True)
        self._read(segment)

    def _with_unknown_values(self, segment: str, *, maybe: bool) -> str:
        """Return a segment; under a condition, assigned values become unknown."""
        if not maybe and all(frame == "group" for frame in self._frames):
            return segment
        words = [word.value for word in written_words(segment)]
        if "=" not in segment or "$(" in segment or "`" in segment:
            return segment
        kept = [word for word in words if word in _KEYWORDS or word in _SETTERS or "=" in word[1:]]
        if len(kept) < len(words) or not any(assignment(word) for word in words):
            return segment
        return " ".join(f"{word.partition('=')[0]}={UNKNOWN}" if assignment(word) else word for word in words)

    def _read(self, segment: str) -> None:
        """Read the commands of a segment into the open branch."""
        line = self._lines[0][0]
        for command in self._reader.read(segment):
            install = install_of(command.words, {**self._given, **command.exported})
            if install is not None:
                self._current().append(Command(install, self._where(line), self._lines, command.directory))
                continue
            inner = handed_to_shell(command.words) if self._depth < _MOST_SHELLS else None
            if inner is not None and "install" in inner:
                lines = [(line, text) for text in inner.split("\n")]
                known = {**self._given, **command.variables, **command.exported}
                self._current().extend(ShellSteps(lines, self._where, known, self._depth + 1, self._written).steps)
            self.others.append((command, line))

    def _begin(self, branches: _Branches) -> None:
        if len(self._open) == _DEEPEST:
            self._beyond += 1
        else:
            self._open.append(branches)

    def _next(self, *, last: bool) -> None:
        if self._open and not self._beyond:
            self._open[-1].next(last=last)

    def _close(self) -> None:
        """Close the innermost construct; a group that always runs has no branch."""
        if self._frames.pop() != "group":
            self._end()

    def _end(self) -> None:
        if self._beyond:
            self._beyond -= 1
        elif self._open:
            branches = self._open.pop()
            self._current().extend(branches.steps())

    def _current(self) -> list[Step]:
        return self._open[-1].current if self._open else self.steps


class _Branches:
    """The branches of one condition; those of a ``case`` start with its first arm."""

    def __init__(self, *, starts_at_once: bool = True) -> None:
        self.current: list[Step] = []
        self._found: list[list[Step]] = [self.current] if starts_at_once else []
        self._total = False

    def next(self, *, last: bool) -> None:
        """Start the next branch; the ``last`` one runs if no other does."""
        self.current = []
        self._found.append(self.current)
        self._total = self._total or last

    def steps(self) -> list[Step]:
        return alternatives(self._found if self._total else [*self._found, []])
