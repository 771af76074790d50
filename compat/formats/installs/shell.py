"""Shell text → the install commands in it, with their lines and branches, and its other commands. Nothing is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compat.formats.installs.command import install_of
from compat.formats.installs.steps import Command, Line, Step, alternatives
from compat.model import EMPTY
from compat.syntax.shell import here_document, open_quote, written_words
from compat.syntax.shell_commands import ShellCommand, commands_of
from compat.workload.wrappers import assignment, handed_to_shell

MARK = "\x01"
UNKNOWN = "${...}"
"""A value that is known at run time: no variable has that name."""
NEWLINE = "\x02"
"""Stands for the end of a line within quotes."""
QUOTED = "\x04"
"""In front of a variable in quotes, whose value is one word."""
IF, CASE, ELSE, LAST, END, AT = "if", "case", "else", "last", "end", "at:"
"""A branch begins; branches begin with the next one; the next branch; … which is run where no other is; they end."""

_PASSED = frozenset(("then", "do", "!", "time", "elif", "else", "while", "until"))
_TESTS = frozenset(("[", "[[", "test", "((", "command", "which", "grep", "type", "hash", "!"))
_SETTERS = frozenset(("export", "declare", "typeset", "local", "readonly"))
_TELLING = ("install", "pip", "uv", "conda", "python", "accelerate", "torchrun", "deepspeed", "srun")
_MOST_JOINED = 300
"""Lines that one pair of quotes may hold."""
_MOST_TRIES = 20
_WIDEST = 1 << 14
"""Characters of a command; what is longer carries data."""
_KEYWORDS = 20
"""Of which no command has more in front of it."""


def logical_lines(lines: Sequence[Line]) -> list[tuple[str, int, int]]:
    """Lines with their continuations, and those that one pair of quotes holds, as one: (text, first, behind the last).

    Comments are left out; the bodies of here-documents are not lines but stand in the text of their command.
    """
    found: list[tuple[str, int, int]] = []
    tries = _MOST_TRIES
    at = 0
    while at < len(lines):
        start = at
        text, at = _continued(lines, at)
        if text.lstrip().startswith("#"):
            continue
        if tries and open_quote(text):
            joined, end = _closed(lines, text, at)
            if end:
                text, at = joined, end
            else:
                tries -= 1
        delimiter = here_document(text)
        body = at
        while delimiter and body < len(lines) and lines[body][1].strip() != delimiter:
            body += 1
        if delimiter and body < len(lines):
            at = body + 1
        found.append((text, start, at))
    return found


def _continued(lines: Sequence[Line], at: int) -> tuple[str, int]:
    parts: list[str] = []
    while at < len(lines):
        text = lines[at][1]
        at += 1
        comment = parts and text.lstrip().startswith("#")  # ends the continuation, as people do not expect
        if comment or not text.endswith("\\"):
            parts.append("" if comment else text)
            break
        parts.append(text[:-1])
    return " ".join(parts), at


def _closed(lines: Sequence[Line], text: str, at: int) -> tuple[str, int]:
    """The text up to the line that closes its quotes, and where that line ends; 0 where none does."""
    parts, end = [text], at
    quote = open_quote(text)
    while quote and end < min(len(lines), at + _MOST_JOINED):
        parts.append(lines[end][1])
        quote = open_quote(lines[end][1], quote)
        end += 1
    return (text, 0) if quote else (NEWLINE.join(parts), end)


class Marked:
    """A script's logical lines as text with marks; a variable that is set under a condition is set to :data:`UNKNOWN`."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.logical = logical_lines(lines)
        self.unread: list[int] = []
        """The logical lines that are too long to be read, and may install something."""
        self._frames: list[str] = []
        self.text = "\n".join(self._line(number, text) for number, (text, _, _) in enumerate(self.logical))

    def _line(self, number: int, text: str) -> str:
        if len(text) > _WIDEST:
            if "install" in text:
                self.unread.append(number)
            return ""
        result = [f"{MARK}{AT}{number} ; " if _is_command(text) else ""]
        tested = False
        if here_document(text):
            text = text.replace("<<", "< ", 1)  # its body is no part of the marked text
        text = text.replace(MARK, "").replace(' "$', f' "{QUOTED}$').replace(f"{QUOTED}$@", "$@")
        for separator, segment in segments(text):
            tested = tested if separator in ("&&", "||") else False
            words = segment.split(None, _KEYWORDS)
            if len(words) > _KEYWORDS and all(word in _PASSED or word in "{}()" for word in words[:_KEYWORDS]):
                continue
            tested = tested or _first(words) in _TESTS
            maybe = separator == "||" or (separator == "&&" and tested)
            result.append(f"{separator} {self._segment(segment, words, maybe)}")
        return "".join(result)

    def _segment(self, segment: str, words: list[str], maybe: bool) -> str:
        first = words[0] if words else ""
        frame = self._frames[-1] if self._frames else ""
        if first[:1] == "(" != first[1:2]:
            return self._group(f"( {segment.lstrip()[1:]}", maybe)
        if frame in ("group", "maybe group") and segment.rstrip().endswith(")") and "(" not in segment:
            return f"{segment.rstrip()[:-1]} ; {self._close()}"
        if first == "case" and " in" in segment:
            self._frames.append("case")
            _, _, arm = segment.partition(" in")
            return f"{MARK}{CASE} ; {self._arm(arm)}"
        if frame == "case" and first == "esac":
            return self._close()
        if frame == "case" and ")" in first:
            return self._arm(segment)
        if first == "{" or first.endswith("()") or words[-1:] == ["{"]:
            return self._group(segment, maybe)
        if first == "if":
            self._frames.append("if")
            return f"{MARK}{IF} ; {segment}"
        if first in ("else", "elif") and frame == "if":
            return f"{MARK}{LAST if first == 'else' else ELSE} ; {segment}"
        if (first == "fi" and frame == "if") or (first == "}" and frame in ("group", "maybe group")):
            return self._close()
        segment = self._blurred(segment, maybe=maybe)
        return f"{MARK}{IF} ; {segment} ; {MARK}{END}" if maybe else segment

    def _group(self, segment: str, maybe: bool) -> str:
        if segment.rstrip().endswith(("}", ")")):
            segment = segment.rstrip()[:-1] if segment.count("(") == segment.count(")") else segment
            return f"{MARK}{IF} ; {segment} ; {MARK}{END}" if maybe else segment
        self._frames.append("maybe group" if maybe else "group")
        return f"{MARK}{IF} ; {segment}" if maybe else segment

    def _arm(self, segment: str) -> str:
        pattern, closed, rest = segment.partition(")")
        if not closed:
            return segment
        last = pattern.strip(" \t\"'(") == "*"
        return f"{MARK}{LAST if last else ELSE} ; {self._blurred(rest, maybe=True)}"

    def _close(self) -> str:
        return "" if self._frames.pop() == "group" else f"{MARK}{END}"

    def _blurred(self, segment: str, *, maybe: bool) -> str:
        """A segment; under a condition, what it only assigns is a value that is known at run time."""
        if not maybe and all(frame == "group" for frame in self._frames):
            return segment
        words = [word.value for word in written_words(segment)]
        if "=" not in segment or "$(" in segment or "`" in segment:
            return segment
        kept = [word for word in words if word in _PASSED or word in _SETTERS or "=" in word[1:]]
        if len(kept) < len(words) or not any(assignment(word) for word in words):
            return segment
        return " ".join(f"{word.partition('=')[0]}={UNKNOWN}" if assignment(word) else word for word in words)


def _is_command(text: str) -> bool:
    """Whether a line may be more than an assignment."""
    first = (text.split(None, 1) or [""])[0]
    lowered = text.lower()
    return not ("=" in first or first in _SETTERS) or any(word in lowered for word in _TELLING)


def _first(words: Sequence[str]) -> str:
    return next((word for word in words if word not in _PASSED), "")


def segments(line: str) -> list[tuple[str, str]]:
    """A line's simple commands, each with what separates it from the one before; its comment is left out."""
    found: list[tuple[str, str]] = []
    separator, quote = "", ""
    start = at = depth = 0
    while at < len(line):
        letter = line[at]
        if letter == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"`":
            quote = letter
        elif letter == "#" and (at == 0 or line[at - 1] in " \t;&|"):
            line = line[:at]
            break
        elif letter in "()":
            depth = _depth(line, at, depth)
        elif letter in ";&|" and not depth and not _redirects(line, at):
            found.append((separator, line[start:at]))
            separator = line[at : at + 2] if line[at : at + 2] in ("&&", "||", ";;") else letter
            start = at = at + len(separator)
            continue
        at += 1
    found.append((separator, line[start:]))
    return found


def _depth(line: str, at: int, depth: int) -> int:
    """How many ``$(`` are open behind a parenthesis."""
    if line[at] == "(":
        return depth + 1 if depth or (at and line[at - 1] in "$<>") else 0
    return max(0, depth - 1)


def _redirects(line: str, at: int) -> bool:
    """``2>&1`` and ``&>``: no separator."""
    return line[at] == "&" and (line[at - 1 : at] == ">" or line[at + 1 : at + 2] == ">")


# --- Shell text → the install commands in it, with their lines and branches, and its other commands. Nothing is run.


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
