"""A notebook's cell → plain Python, as IPython itself would make it: shell lines and magics become calls."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compat.errors import InputError
from compat.formats.installs.command import install_of
from compat.formats.installs.steps import Command, Line, Step, alternatives
from compat.formats.notebook.values import Values
from compat.formats.shell.steps import ShellSteps
from compat.records import record
from compat.syntax.shell_commands import ShellCommand
from compat.workload.notebook import parsed
from compat.workload.script_names import literal_test
from compat.workload.wrappers import handed_to_shell

if TYPE_CHECKING:
    from compat.formats.notebook.reader import Cell


_PYTHON_CELLS = ("capture", "time", "timeit", "prun", "memit", "mprun", "lprun", "python", "python3")
_SHELL_CELLS = ("bash", "sh", "shell", "zsh", "system", "sx", "!")
_STATEMENTS = ("time", "timeit", "prun", "memit")
_INSTALLERS = ("pip", "pip3", "conda", "mamba", "micromamba", "uv")
"""Magics that are the program of that name; IPython takes their names without a sign as well."""


@record(frozen=True)
class Code:
    """What a cell holds: Python ``source`` line by line, or a ``shell`` script from that line on (from 0).

    ``commands`` are its shell lines: (first line from 1, last line, text). Both are ``None`` for other languages.
    """

    source: str | None = None
    shell: int | None = None
    commands: tuple[tuple[int, int, str], ...] = ()


def translated(lines: Sequence[str]) -> Code:
    """The code of one cell."""
    start = 0
    while start < len(lines):
        text = lines[start].strip()
        if text.startswith("%%"):
            name, _, options = text[2:].strip().partition(" ")
            if name == "script":
                name = next((word for word in options.split() if not word.startswith("-")), "")
            if name in _SHELL_CELLS:
                return Code(shell=start + 1)
            if name not in _PYTHON_CELLS:
                return Code()
        elif text and not text.startswith("#"):
            break
        start += 1
    return _python(["" if at < start else line for at, line in enumerate(lines)])


def _python(lines: Sequence[str]) -> Code:
    result: list[str] = []
    commands: list[tuple[int, int, str]] = []
    state = _State()
    at = 0
    while at < len(lines):
        line = lines[at]
        found = None if state.inside else _call(line.strip())
        if found is None:
            state.feed(line)
            result.append(line)
            at += 1
            continue
        function, text = found
        first = at
        parts = [text]
        at += 1
        while parts[-1].endswith("\\") and at < len(lines):
            parts[-1] = parts[-1][:-1]
            parts.append(lines[at].strip())
            at += 1
        text = " ".join(parts).rstrip("\\")
        if function == "system":
            commands.append((first + 1, at, text))
        call = text if function == "" else f"get_ipython().{function}({text!r})"
        result += [line[: len(line) - len(line.lstrip())] + call, *[""] * (at - first - 1)]
    return Code("\n".join(result), None, tuple(commands))


def _call(text: str) -> tuple[str, str] | None:
    """(method of the shell, its operand) for a line that is no Python; no method: the operand is Python instead."""
    if text.startswith("!"):
        return "system", text.lstrip("!").strip()
    if text.startswith("%"):
        name, _, rest = text.lstrip("%").partition(" ")
        if name in _INSTALLERS:
            return "system", text.lstrip("%")
        if name in ("sx", "system"):
            return "system", rest.strip()
        if name in ("env", "set_env"):
            return "set_env", rest.strip()
        return "", rest.strip() if name in _STATEMENTS and not rest.startswith("-") and rest.strip() else "pass"
    if text.startswith("?") or (text.endswith("?") and "#" not in text):
        return "", "pass"
    first, _, rest = text.partition(" ")
    if first in _INSTALLERS and rest.lstrip().startswith(("install ", "uninstall ", "pip install ", "pip uninstall ")):
        return "system", text
    target, equals, value = text.partition("=")
    value = value.lstrip()
    if equals and value.startswith(("!", "%")) and target.strip().replace("_", "a").isalnum():
        return _call(value)
    return None


class _State:
    """Whether the next line of Python goes on with a text, a bracket or a statement that was begun."""

    def __init__(self) -> None:
        self._quote = ""
        self._depth = 0
        self._continued = False

    @property
    def inside(self) -> bool:
        return bool(self._quote) or self._depth > 0 or self._continued

    def feed(self, line: str) -> None:
        at = 0
        while at < len(line):
            letter = line[at]
            if letter == "\\":
                at += 1
            elif self._quote:
                if line.startswith(self._quote, at):
                    at += len(self._quote) - 1
                    self._quote = ""
            elif letter in "'\"":
                self._quote = letter * 3 if line.startswith(letter * 3, at) else letter
                at += len(self._quote) - 1
            elif letter == "#":
                break
            elif letter in "([{":
                self._depth += 1
            elif letter in ")]}":
                self._depth = max(0, self._depth - 1)
            at += 1
        self._continued = line.endswith("\\") and not self._quote
        if len(self._quote) == 1:
            self._quote = ""  # such a text ends with its line


# --- The code cells of a notebook → the install commands in them, in order and with their branches. Nothing is run.


LONGEST = 1 << 18
"""Characters of code; no notebook that anybody wrote has more."""
_MOST = 5000
"""Shell commands that are looked at."""
_RUNS = ("run", "call", "check_call", "check_output", "Popen", "getoutput", "getstatusoutput")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_BLOCKS = (ast.With, ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_TRIES = ("Try", "TryStar")
"""Names, for Python 3.10 does not have the second."""


class NotebookSteps:
    """What the cells do, one after the other.

    ``steps`` are the install commands, ``others`` the shell commands that install nothing, each with its cell's number,
    ``variables`` those that ``%env`` sets for sure, ``unread`` what was not read, by cell; ``size`` is the length
    of the code.
    """

    def __init__(self, path: str) -> None:
        self.steps: list[Step] = []
        self.others: list[tuple[ShellCommand, int]] = []
        self.variables: dict[str, str] = {}
        self.unread: dict[int, str] = {}
        self.size = 0
        self._left = _MOST
        self._path = path
        self._values = Values()
        self._cell: Cell
        self._ends: dict[int, int] = {}
        self._certain = True

    def read(self, cell: Cell) -> None:
        """The next code cell."""
        self._cell = cell
        self.size += sum(map(len, cell.lines)) + len(cell.lines)
        if self.size > LONGEST:
            self.unread[cell.number] = f"more than {LONGEST // 1024} KiB of code: the rest was not read"
            return
        code = translated(cell.lines)
        if code.shell is not None:
            lines = list(zip(cell.places[code.shell :], cell.lines[code.shell :]))
            self._shell(lines, None, self.steps)
        elif code.source is not None and code.source.strip():
            self._ends = {first: last for first, last, _ in code.commands}
            self._python(code)

    def _python(self, code: Code) -> None:
        try:
            tree = parsed(code.source or "", self._path)
        except InputError:  # the reader of the workload says so
            for first, last, text in code.commands:
                lines = self._lines(first, last)
                self._shell([(lines[0][0], self._values.filled(text))], lines, self.steps)
            return
        self._body(tree.body, self.steps)

    def _lines(self, first: int, last: int) -> tuple[Line, ...]:
        return tuple(zip(self._cell.places[first - 1 : last], self._cell.lines[first - 1 : last]))

    def _where(self, _line: int = 0) -> str:
        return f"{self._path} cell {self._cell.number}"

    def _shell(self, lines: Sequence[Line], written: tuple[Line, ...] | None, into: list[Step]) -> None:
        self._left -= 1
        if lines and self._left < 0:
            self.unread[self._cell.number] = f"only {_MOST} shell commands of a notebook are read"
        elif lines:
            read = ShellSteps(lines, self._where, written=written)
            into.extend(read.steps)
            for _, problem in read.unread:
                self.unread[self._cell.number] = problem
            self.others += [(command, self._cell.number) for command, _ in read.others]

    def _body(self, body: Sequence[ast.stmt], into: list[Step]) -> None:
        for node in body:
            self._statement(node, into)

    def _statement(self, node: ast.stmt, into: list[Step]) -> None:
        if isinstance(node, ast.If):
            self._choice(node, into)
        elif type(node).__name__ in _TRIES:
            self._attempt(node, into)
        elif isinstance(node, ast.Match):
            into.extend(alternatives([*(self._apart(case.body) for case in node.cases), []]))
        elif isinstance(node, _LOOPS):
            if not isinstance(node, ast.While):
                self._values.bind(node.target, None)
            self._body([*node.body, *node.orelse], into)
        elif isinstance(node, _BLOCKS):
            self._block(node, into)
        else:
            self._simple(node, into)

    def _apart(self, body: Sequence[ast.stmt]) -> list[Step]:
        """The steps of a branch."""
        certain, self._certain = self._certain, False
        steps: list[Step] = []
        self._body(body, steps)
        self._certain = certain
        return steps

    def _choice(self, node: ast.If, into: list[Step]) -> None:
        branches: list[list[Step]] = []
        rest: Sequence[ast.stmt] = [node]
        while len(rest) == 1 and isinstance(rest[0], ast.If):
            test, body, rest = rest[0].test, rest[0].body, rest[0].orelse
            answer = literal_test(test)
            if answer and not branches:
                self._body(body, into)
                return
            if answer is not False:
                branches.append(self._apart(body))
            if answer:
                break
        else:
            if not branches:
                self._body(rest, into)
                return
            branches.append(self._apart(rest))
        into.extend(alternatives(branches))

    def _attempt(self, node: Any, into: list[Step]) -> None:
        self._body(node.body, into)
        handlers = [self._apart(handler.body) for handler in node.handlers]
        into.extend(alternatives([*handlers, self._apart(node.orelse)]))
        self._body(node.finalbody, into)

    def _block(
        self, node: ast.With | ast.AsyncWith | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, into: list[Step]
    ) -> None:
        """A function is taken to be called where it stands."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            given = node.args
            self._values.hide(each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs))
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    self._values.bind(item.optional_vars, None)
        self._body(node.body, into)

    def _simple(self, node: ast.stmt, into: list[Step]) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._values.bind(target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._values.bind(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            self._values.bind(node.target, None)
        for each in ast.walk(node):
            if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.args:
                self._call(each, each.func, into)

    def _call(self, node: ast.Call, function: ast.Attribute, into: list[Step]) -> None:
        owner, name, operand = function.value, function.attr, node.args[0]
        lines = self._lines(node.lineno, self._ends.get(node.lineno, node.end_lineno or node.lineno))
        if isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "get_ipython":
            self._notebook_call(name, [self._constant(each) for each in node.args], lines, into)
        elif isinstance(owner, ast.Name) and (
            (owner.id == "os" and name in ("system", "popen")) or (owner.id in ("subprocess", "sp") and name in _RUNS)
        ):
            words = self._values.words(operand)
            if isinstance(operand, ast.Call) and isinstance(operand.func, ast.Attribute) and operand.func.attr == "split":
                operand = operand.func.value
            if words is None:
                self._shell([(lines[0][0], self._values.text(operand))], lines, into)
            elif (install := install_of(words)) is not None:
                into.append(Command(install, self._where(), lines))
            elif (text := handed_to_shell(words)) is not None:
                self._shell([(lines[0][0], each) for each in text.split("\n")], lines, into)
            elif words:
                self.others.append((ShellCommand(words, {}, {}, None), self._cell.number))

    def _constant(self, node: ast.expr) -> str:
        return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else self._values.text(node)

    def _notebook_call(self, name: str, operands: list[str], lines: tuple[Line, ...], into: list[Step]) -> None:
        """What IPython makes of shell lines and magics, also where somebody has written it out."""
        text = operands[0]
        if name in ("run_line_magic", "run_cell_magic"):
            name, text = ("set_env" if text in ("env", "set_env") else "system"), " ".join(operands)
            if operands[0] in ("bash", "sh"):
                text = "\n".join(operands[2:])
        if name == "set_env":
            variable, _, value = text.removeprefix("set_env ").removeprefix("env ").replace("=", " ", 1).strip().partition(" ")
            if self._certain and value.strip() and "{" not in value:
                self.variables[variable] = value.strip()
        elif name in ("system", "getoutput", "system_raw", "system_piped") and self._left >= 0:
            number = lines[0][0]
            self._shell([(number, each) for each in self._values.filled(text).split("\n")], lines, into)
