"""Shell text → its install commands, with their lines and branches, and its other commands. Nothing is run.

Commands that install something in a way that is not read are named instead of being passed over.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from compat.formats.installs.command import install_of, with_inline
from compat.formats.installs.runners import Opener
from compat.formats.installs.steps import Step, alternatives
from compat.formats.installs.unread import is_shell_script, made_commands, mentions_install, started_script, unread_install
from compat.formats.installs.words import AT_RUN_TIME, Command, Install, Line
from compat.formats.listing import Entry
from compat.model import EMPTY
from compat.records import replace
from compat.syntax.shell import SimpleCommand, simple_commands, substituted
from compat.syntax.shell_commands import LONGEST, ShellCommand, ShellReader, unrolled
from compat.workload.wrappers import handed_to_shell, reads_script, with_input_named

_TESTS = ("[", "[[", "test", "command", "which", "grep", "type", "hash")
_WIDEST = 1 << 14
"""Characters of a command; longer ones carry data."""
_DEEPEST = 40
"""Nested conditions whose branches are tracked separately."""
_MOST_SHELLS = 3
"""``bash -c "bash -c …"``."""


class ShellSteps:
    """What the lines of a script do.

    ``steps`` are the install commands; ``others`` the other commands in order, each with its line; ``unread`` lists, by
    line, what was not read and may install something, and ``elsewhere`` what something outside the project decides. ``loose``
    are the pins in files that its commands start.
    ``exported`` are the known variables that later commands see.
    ``written`` are the lines of the file that contain the whole script; ``files`` are the files that its commands write: their
    text and the line that writes it. ``computed`` are variables set to something unknown; the script adds its own.
    ``opened`` returns the text of a file of the project, the first time that it is opened for a purpose.
    """

    def __init__(
        self,
        lines: Sequence[Line],
        where: Callable[[int], str],
        variables: Mapping[str, str] = EMPTY,
        depth: int = 0,
        written: tuple[Line, ...] | None = None,
        computed: set[str] | None = None,
        opened: Opener = lambda name, directory, purpose: None,
    ) -> None:
        self.others: list[tuple[ShellCommand, int]] = []
        self.unread: list[tuple[int, str]] = []
        self.elsewhere: list[tuple[int, str]] = []
        self.loose: list[Entry] = []
        self._where = where
        self._depth = depth
        self._given = variables
        self._opened = opened
        self._written = written
        self._reader = ShellReader(variables, computed=computed)
        self.files: dict[str, tuple[str, int]] = {}
        self._copies: dict[str, str] = {}
        """The files that its commands copy, by the place of the copy."""
        self._made: set[str] = set()
        """Files that its commands write, of which the text is unknown."""
        self._appended: set[str] = set()
        """Files of which ``files`` has the end alone."""
        self._frames = [_Frame("script", None)]
        self._tested = False
        """Whether a command of the current ``&&`` list is a test."""
        texts = [text for _, text in lines[:LONGEST]]
        self._text = "\n".join(texts)
        starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
        skipped: list[tuple[int, int]] = []
        for command in unrolled(simple_commands(self._text, skipped)):
            words = command.words
            first, last = (bisect_right(starts, at) - 1 for at in (words[0].start, words[-1].end - 1)) if words else (0, 0)
            self._command(command, tuple(lines[first : last + 1]))
        for start, end in skipped:
            if mentions_install(self._text[start:end]):
                line = lines[bisect_right(starts, start) - 1][0]
                self.unread.append((line, "the install command was not read: a quote or a bracket is not closed"))
        if len(lines) > LONGEST and any("install" in text for _, text in lines[LONGEST:]):
            self.unread.append((lines[LONGEST][0], f"only {LONGEST} lines of shell were read"))
        while len(self._frames) > 1:
            self._close()
        self.steps: list[Step] = self._frames[0].current
        exported = self._reader.exported
        self.exported = {name: value for name, value in exported.items() if "$" not in value and "`" not in value}

    def _command(self, command: SimpleCommand, lines: tuple[Line, ...]) -> None:
        """Read a command and the reserved words before it, which open and close branches."""
        if command.operator == ";;" and self._frames[-1].kind == "case":
            self._frames[-1].pattern = []
        words = command.words
        first = words[0].value if words else ""
        self._tested = first in _TESTS or first.startswith("((") or (self._tested and command.operator in ("&&", "||", ""))
        maybe = command.operator == "||" or (command.operator == "&&" and self._tested)
        for keyword in command.keywords:
            self._keyword(keyword, maybe=maybe)
            maybe = maybe and keyword not in ("{", "(")  # the whole group may not run
        pattern = self._frames[-1].pattern
        if pattern is not None:
            pattern += [word.value for word in words]
        elif first == "case":
            self._open("case", conditional=True)
            self._frames[-1].pattern = [word.value for word in words[3:]]
        elif words and words[-1].end - words[0].start > _WIDEST:
            if any("install" in word.value for word in words):
                self.unread.append((lines[0][0], "the command is too long to be read"))
        elif maybe:
            self._open("command", conditional=True)
            self._read(command, lines)
            self._close()
        else:
            self._read(command, lines)

    def _keyword(self, keyword: str, *, maybe: bool) -> None:
        frame = self._frames[-1]
        if frame.pattern is not None and keyword == ")":
            frame.next(last="*" in frame.pattern)
            frame.pattern = None
        elif keyword == _CLOSED_BY.get(frame.kind):
            self._close()
        elif frame.pattern is not None:
            return
        elif keyword in ("{", "(", "if"):
            self._open(keyword, conditional=maybe or keyword == "if")
        elif keyword in ("else", "elif") and frame.kind == "if":
            frame.next(last=keyword == "else")

    def _open(self, kind: str, *, conditional: bool) -> None:
        self._frames.append(_Frame(kind, self._frames[-1], conditional=conditional))

    def _close(self) -> None:
        steps = self._frames.pop().steps()
        self._frames[-1].current.extend(steps)

    def _read(self, command: SimpleCommand, lines: tuple[Line, ...]) -> None:
        """Read a command into the open branch."""
        frame = self._frames[-1]
        lines = self._written or lines
        for word in command.words if self._depth < _MOST_SHELLS else ():
            for start, end in substituted(self._text, word) if "install" in word.value else ():
                known = {**self._given, **self._reader.exported}
                frame.current.extend(self._inner(self._text[start:end], lines[0][0], known, lines))
        found = self._reader.read(command, certain=frame.certain)
        if found is None:
            return
        line = lines[0][0]
        found.words = with_input_named(found.words, found.source)
        self._write(found, command, line)
        install = with_inline(found.words, install_of(found.words, {**self._given, **found.exported}))
        if install is not None:
            install = replace(install, unknown=(*install.unknown, f"$@: {AT_RUN_TIME}")) if found.open_ended else install
            install = self._with_originals(install, found.directory)
            written = dict(self.files)
            made, computed = self._made, self._reader.computed
            placed = Command(install, self._where(line), lines, found.directory, written, made, {*self._appended}, computed)
            frame.current.append(placed)
            if install.runs:
                self.others.append((found, line))
            return
        inner, own = None, False
        if self._depth < _MOST_SHELLS:
            inner = found.taken if reads_script(found.words) else handed_to_shell(found.words)
            own = inner is None and (inner := self._started(found)) is not None
        if inner is not None and "install" in inner:
            known = {**self._given, **found.variables, **found.exported}
            frame.current.extend(self._inner(inner, line, known, lines if own else self._written))
        elif (unread := unread_install(found, self._opened)) is not None:
            self.loose += unread.pins
            if unread.text:
                (self.elsewhere if unread.elsewhere else self.unread).append((line, unread.text))
        self.others.append((found, line))

    def _started(self, command: ShellCommand) -> str | None:
        """Return the shell text that a command starts, if the project has it or an earlier command wrote it."""
        if (made := made_commands(command.words, command.directory, self._opened)) is not None:
            return made
        name = started_script(command.words)
        if name is None:
            return None
        written = self.files.get(posixpath.normpath(posixpath.join(command.directory or "", name)))
        text = self._opened(name, command.directory, "script") if written is None else written[0]
        if text is not None and command.words[0] in ("source", "."):
            # the variables that a sourced file sets are known in the words of later commands
            reader = ShellReader(self._given)
            for each in simple_commands(text):
                reader.read(each)
            self._reader.learn(reader)
        is_program = command.words[0].endswith(name) and not name.endswith((".sh", ".bash"))
        return text if text is None or not is_program or is_shell_script(text) else None

    def _write(self, found: ShellCommand, command: SimpleCommand, line: int) -> None:
        """Record the files that a command writes; the text of a here-document starts on the next line."""
        for name, text in found.written.items():
            place = posixpath.normpath(posixpath.join(found.directory or "", name))
            self.files[place] = (text, line + bool(command.documents))
            (self._appended.add if name in found.appended else self._appended.discard)(place)
        if found.copied is not None:
            source, target = (posixpath.normpath(posixpath.join(found.directory or "", name)) for name in found.copied)
            self._copies[target] = self._copies.get(source, source)
        self._made.update(posixpath.normpath(posixpath.join(found.directory or "", name)) for name in found.made)

    def _with_originals(self, install: Install, directory: str | None) -> Install:
        """Return the install with the files that its requirements files are copies of."""
        if not self._copies:
            return install
        places = {file: posixpath.normpath(posixpath.join(directory or "", file)) for file in install.files}
        originals = {file: self._copies[place] for file, place in places.items() if place in self._copies}
        files = (posixpath.relpath(originals[file], directory or ".") if file in originals else file for file in install.files)
        return replace(install, files=tuple(files))

    def _inner(self, text: str, line: int, known: Mapping[str, str], written: tuple[Line, ...] | None) -> list[Step]:
        """Return the install commands of a script within a command of that line."""
        lines = [(line, each) for each in text.split("\n")]
        read = ShellSteps(lines, self._where, known, self._depth + 1, written, self._reader.computed, self._opened)
        self.unread += read.unread
        self.elsewhere += read.elsewhere
        self.loose += read.loose
        return read.steps


_CLOSED_BY = {"if": "fi", "case": "esac", "{": "}", "(": ")"}


class _Frame:
    """An open construct: a key of ``_CLOSED_BY``, the whole script, or one command that may not run.

    ``current`` are the steps of its open branch. ``pattern`` is that of the next arm of a ``case``, ``None`` within an arm.
    ``certain``: it runs in any case.
    """

    def __init__(self, kind: str, around: _Frame | None, *, conditional: bool = False) -> None:
        self.kind = kind
        self.pattern: list[str] | None = None
        self.certain: bool = not conditional and (around is None or around.certain)
        self.current: list[Step] = [] if around is None else around.current
        self._depth: int = conditional + (0 if around is None else around._depth)
        self._branches: list[list[Step]] | None = [] if conditional and self._depth <= _DEEPEST else None
        self._total = False
        if kind != "case":
            self.next(last=False)

    def next(self, *, last: bool) -> None:
        """Start the next branch; the ``last`` one runs if no other does."""
        if self._branches is not None:
            self.current = []
            self._branches.append(self.current)
            self._total = self._total or last

    def steps(self) -> list[Step]:
        """Return the branches as one step."""
        branches = self._branches or []
        return alternatives(branches if self._total else [*branches, []])
