"""Jupyter notebooks: what the cells install, in order and with their branches, and the training that the code runs.

Nothing is run.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from compat.errors import InputError, printable
from compat.formats.edit.files import Mapped
from compat.formats.installs.command import install_of
from compat.formats.installs.edit import InstallScript
from compat.formats.installs.files import InstallFiles, InstallFormat, Opened
from compat.formats.installs.shell import ShellSteps
from compat.formats.installs.steps import Installs, Step, alternatives
from compat.formats.installs.unread import mentions_install
from compat.formats.installs.values import Values
from compat.formats.installs.words import Command, Line, is_release
from compat.formats.listing import Listing
from compat.formats.pins import pins_in
from compat.model import Accelerator, Environment, Workload
from compat.records import replace
from compat.redact import excerpt, without_secrets
from compat.syntax.json import letters
from compat.syntax.python import Cell, code_cells, parsed, translated
from compat.syntax.shell_commands import ShellCommand
from compat.workload.command import starts_a_job
from compat.workload.script import ScriptFacts, read_script
from compat.workload.script_names import literal_test
from compat.workload.wrappers import handed_to_shell

LONGEST = 1 << 18
"""Most characters of code read."""
_MOST = 5000
"""Most shell commands read."""
_RUNS = ("run", "call", "check_call", "check_output", "Popen", "getoutput", "getstatusoutput")
_SYSTEM = ("system", "popen")
_MAGICS = ("run_line_magic", "run_cell_magic")
_TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))  # Python 3.10 lacks the second


_WRITING = ("%%writefile", "%%file")


class NotebookSteps:
    """What the cells do, in order.

    ``steps`` are the install commands, ``others`` the other shell commands with the number of their cell, ``variables``
    those that ``%env`` certainly sets, ``unread`` what was not read, by cell; ``size`` is the length of the code.
    ``written`` are the files that ``%%writefile`` cells create, by name; ``files`` are those of the project.
    """

    def __init__(self, path: str) -> None:
        self.steps: list[Step] = []
        self.others: list[tuple[ShellCommand, int]] = []
        self.variables: dict[str, str] = {}
        self.unread: dict[int, str] = {}
        self.written: dict[str, Opened] = {}
        self.files = InstallFiles(path)
        self.size = 0
        self._left = _MOST
        self._path = path
        self._values = Values()
        self._cell: Cell
        self._ends: dict[int, int] = {}
        self._certain = True

    def read(self, cell: Cell) -> None:
        """Read the next code cell."""
        self._cell = cell
        self.size += sum(map(len, cell.lines)) + len(cell.lines)
        if self.size > LONGEST:
            self.unread[cell.number] = f"more than {LONGEST // 1024} KiB of code: the rest was not read"
            return
        if cell.lines[0].startswith(_WRITING):
            # the lines of the file that it writes are those of the notebook
            name = next((word for word in cell.lines[0].split()[1:] if not word.startswith("-")), "")
            content = "\n".join(cell.lines[1:])
            if name and len(cell.places) > 1:
                self.written[posixpath.basename(name)] = Opened(
                    self._path, content.encode("utf-8", "replace"), cell.places[1] - 1
                )
        code = translated(cell.lines)
        if code.shell is not None:
            lines = list(zip(cell.places[code.shell :], cell.lines[code.shell :]))
            self._shell(lines, None, self.steps)
        elif code.source is None and mentions_install("\n".join(cell.lines)):
            self.unread[cell.number] = f"what the cell installs was not read ({excerpt(cell.lines[0], 40)})"
        elif code.source is not None and code.source.strip():
            self._ends = {first: last for first, last, _ in code.commands}
            try:
                tree = parsed(code.source, self._path)
            except InputError:  # the workload reader reports it
                for first, last, text in code.commands:
                    written = self._lines(first, last)
                    self._shell([(written[0][0], self._values.filled(text))], written, self.steps)
                return
            self._body(tree.body, self.steps)

    def alternatives(self) -> frozenset[tuple[str, str]]:
        """Return the pins of which the code chooses one."""
        return frozenset(pins_in("\n".join(self._values.alternatives)))

    def _lines(self, first: int, last: int) -> tuple[Line, ...]:
        return tuple(zip(self._cell.places[first - 1 : last], self._cell.lines[first - 1 : last]))

    def _where(self, _line: int = 0) -> str:
        return f"{self._path} cell {self._cell.number}"

    def _shell(self, lines: Sequence[Line], written: tuple[Line, ...] | None, into: list[Step]) -> None:
        self._left -= 1
        if lines and self._left < 0:
            self.unread[self._cell.number] = f"only {_MOST} shell commands of a notebook are read"
        elif lines:
            read = ShellSteps(lines, self._where, written=written, computed=self._values.computed, opened=self.files.text)
            into.extend(read.steps)
            self.files.loose += read.loose
            for _, problem in read.unread:
                self.unread[self._cell.number] = problem
            for _, remark in read.elsewhere:
                self.files.not_here(self._where(), remark)
            self.others += [(command, self._cell.number) for command, _ in read.others]

    def _body(self, body: Sequence[ast.stmt], into: list[Step]) -> None:
        for node in body:
            if isinstance(node, ast.If):
                self._choice(node, into)
            elif isinstance(node, _TRIES):
                self._body(node.body, into)
                handlers = [self._branch(handler.body) for handler in node.handlers]
                into.extend(alternatives([*handlers, self._branch(node.orelse)]))
                self._body(node.finalbody, into)
            elif isinstance(node, ast.Match):
                into.extend(alternatives([*(self._branch(case.body) for case in node.cases), []]))
            elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                if not isinstance(node, ast.While):
                    self._values.assign(node.target, None)
                self._body([*node.body, *node.orelse], into)
            elif isinstance(node, (ast.With, ast.AsyncWith)):
                for item in node.items:
                    if item.optional_vars is not None:
                        self._values.assign(item.optional_vars, None)
                self._body(node.body, into)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):  # as if it were called where it is defined
                given = node.args
                self._values.hide(each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs))
                self._body(node.body, into)
            elif isinstance(node, ast.ClassDef):
                self._body(node.body, into)
            else:
                self._simple(node, into)

    def _branch(self, body: Sequence[ast.stmt]) -> list[Step]:
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
                branches.append(self._branch(body))
            if answer:
                break
        else:
            if not branches:
                self._body(rest, into)
                return
            branches.append(self._branch(rest))
        into.extend(alternatives(branches))

    def _simple(self, node: ast.stmt, into: list[Step]) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._values.assign(target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._values.assign(node.target, node.value)
        elif isinstance(node, ast.AugAssign):
            self._values.assign(node.target, None)
        for each in ast.walk(node):
            if isinstance(each, ast.Call):
                self._values.change(each, certain=self._certain)
            if isinstance(each, ast.Call) and isinstance(each.func, (ast.Attribute, ast.Name)) and each.args:
                self._call(each, each.func, into)

    def _call(self, node: ast.Call, function: ast.Attribute | ast.Name, into: list[Step]) -> None:
        owner = function.value if isinstance(function, ast.Attribute) else None
        name, operand = function.attr if isinstance(function, ast.Attribute) else function.id, node.args[0]
        lines = self._lines(node.lineno, self._ends.get(node.lineno, node.end_lineno or node.lineno))
        named = isinstance(owner, ast.Name) and owner.id
        if name in _MAGICS or (isinstance(owner, ast.Call) and getattr(owner.func, "id", "") == "get_ipython"):
            texts = (each.value if isinstance(each, ast.Constant) else None for each in node.args)
            written = [text if isinstance(text, str) else self._values.text(each) for text, each in zip(texts, node.args)]
            self._notebook_call(name, written, lines, into)
        elif name in (*_RUNS, *_SYSTEM, "main"):
            words = self._values.words(operand)
            if name == "main":  # of pip
                words = ["pip", *words] if words and words[0] == "install" else []
            certain = (named == "os" and name in _SYSTEM) or (named in ("subprocess", "sp") and name in _RUNS)
            command = " ".join(words) if words is not None else self._values.text(operand)
            if not certain and not mentions_install(command):  # a function of the same name
                return
            if isinstance(operand, ast.Call) and isinstance(operand.func, ast.Attribute) and operand.func.attr == "split":
                operand = operand.func.value
            if words is None:
                self._shell([(lines[0][0], self._values.text(operand))], lines, into)
            elif (install := install_of(words)) is not None:
                into.append(Command(install, self._where(), lines, computed=self._values.computed))
            elif (text := handed_to_shell(words)) is not None:
                self._shell([(lines[0][0], each) for each in text.split("\n")], lines, into)
            elif words:
                self.others.append((ShellCommand(words, {}, {}, None), self._cell.number))

    def _notebook_call(self, name: str, operands: list[str], lines: tuple[Line, ...], into: list[Step]) -> None:
        """Handle IPython's calls for shell lines and magics, which a cell may also contain literally."""
        text = operands[0]
        if name in ("run_line_magic", "run_cell_magic"):
            name, text = ("set_env" if text in ("env", "set_env") else "system"), " ".join(operands)
            if operands[0] == "run":
                text = f"python {' '.join(operands[1:])}"
            elif operands[0] in ("bash", "sh"):
                text = "\n".join(operands[2:])
        if name == "set_env":
            variable, _, value = text.removeprefix("set_env ").removeprefix("env ").replace("=", " ", 1).strip().partition(" ")
            if self._certain and value.strip() and "{" not in value:
                self.variables[variable] = value.strip()
        elif name in ("system", "getoutput", "system_raw", "system_piped") and self._left >= 0:
            number = lines[0][0]
            self._shell([(number, each) for each in self._values.filled(text).split("\n")], lines, into)


# --- The listing.


_PYTHON = ("python", "python3", "ipython", "xpython", "")
_DEVICES = {"T4": "Tesla T4", "P100": "Tesla P100", "V100": "Tesla V100", "G4": "RTX PRO 6000 Blackwell Server Edition"}
"""Colab's GPU names that differ from the product name."""


def _facts(path: str, files: InstallFiles) -> ScriptFacts | None:
    """Return what the script reader finds in the code of the cells."""
    if not path.lower().endswith(".ipynb") or not os.path.isfile(path):
        files.note(path, "its code was not searched for the workload: the file name does not end in .ipynb")
        return None
    try:
        return read_script(path)
    except InputError as problem:
        if problem.message != "has no code":
            files.not_read("", str(problem))
        return None


def _launched(workload: Workload, *, alone: bool) -> Workload:
    """Return the workload, launched by the kernel as one plain process unless something else starts the training."""
    if workload.launcher is not None or workload.processes is not None or not (alone or workload.trainer):
        return workload
    origins = {**workload.origins, "launcher": "the notebook", "processes": "the notebook"}
    return replace(workload, launcher="python", processes=1, origins=origins)


def _table(metadata: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = metadata.get(name)
    return found if isinstance(found, dict) else {}


def _word(table: Mapping[str, object], name: str) -> str:
    found = table.get(name)
    return found.strip() if isinstance(found, str) else ""


def _accelerators(metadata: Mapping[str, object]) -> tuple[Accelerator, ...] | None:
    """Return the single GPU that is requested from Colab."""
    kind = _word(_table(metadata, "colab"), "gpuType").upper()
    if _word(metadata, "accelerator").upper() != "GPU":
        return None
    if not kind or kind == "NONE" or not kind.isalnum() or len(kind) > 20:
        return (Accelerator(vendor="nvidia"),)
    return (Accelerator(vendor="nvidia", name=_DEVICES.get(kind, kind)),)


# --- Edits of the shell lines in the cells.


_LEAD = re.compile(r"\s*(?:\w{1,100}\s*=\s*)?[!%]*\s*(?:(?:sx|system)\s+)?(?:\{sys\.executable\}\s+-m\s+)?")
"""What precedes the command in a shell line, with the interpreter that runs pip."""


def _source(text: str, cell: Cell) -> Mapped:
    """Return the source of a cell with its place in the JSON text."""
    found = [each for start, end in cell.spans for each in letters(text, start, end) if each[0] != "\r"]
    wide = {at: width for _, at, width in found if width > 1}
    return Mapped("".join(letter for letter, _, _ in found), [at for _, at, _ in found], wide)


def _shell_parts(cell: Cell, source: Mapped) -> Iterator[Mapped]:
    """Yield the shell lines of a cell, or all of a shell cell."""
    code, lines = translated(cell.lines), source.text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    if code.shell is not None:
        yield source.part(starts[code.shell], len(source.text))
    for first, last, _ in code.commands:
        lead = _LEAD.match(lines[first - 1])
        yield source.part(starts[first - 1] + (lead.end() if lead else 0), starts[last] - 1)


class Notebook(InstallFormat):
    """A Jupyter notebook, whose shell lines and shell cells are edited; calls of Python that install are not."""

    kind = "notebook"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        """Return the listing of a notebook; it is never complete, because its image has further packages.

        ``context`` has the workload of its code, the Python it was saved with, and the GPU it requests from Colab. Raises
        :class:`InputError` if the text is not a valid notebook.
        """
        cells, metadata = code_cells(path, text.removeprefix("\ufeff"))
        info = _table(metadata, "language_info")
        language = (_word(info, "name") or _word(_table(metadata, "kernelspec"), "language")).lower()
        if language not in _PYTHON:
            return (
                Listing(path, "notebook", unread=(printable(f"{path}: its cells are not Python but {excerpt(language, 40)}"),)),
            )
        steps = NotebookSteps(path)
        for cell in cells:
            steps.read(cell)
        files = steps.files
        files.written.update(steps.written)
        installs = Installs(files)
        installs.run(steps.steps)
        for number, problem in list(steps.unread.items())[:20]:
            files.not_read(f"{path} cell {number}", problem)
        facts = _facts(path, files) if steps.size <= LONGEST else None
        started = [(command, number) for command, number in steps.others if starts_a_job(command.words)]
        for command, number in started[:20]:
            files.note(
                f"{path} cell {number}", f"{excerpt(' '.join(command.words), 80)} is not checked; only the code of the cells is"
            )
        workload = None if facts is None else _launched(facts.workload, alone=not started)
        entries, edges = installs.listed()
        branches = installs.branches()
        version = _word(info, "version")
        variables: dict[str, str | None] = {**without_secrets({**(facts.variables if facts else {}), **steps.variables})}
        return (
            Listing(
                path, "notebook", entries, edges,
                context=Environment(
                    python=version if is_release(version, 3) else None, accelerators=_accelerators(metadata),
                    variables=variables or None, workload=workload,
                ),
                notes=tuple(dict.fromkeys((*map(printable, files.notes), *(facts.notes if facts else ())))),
                unread=tuple(map(printable, files.unread)),
                elsewhere=tuple(map(printable, files.elsewhere)), together=installs.together(),
                stated=installs.stated() | steps.alternatives(), branches=branches, loose=tuple(files.loose),
                indexes=installs.indexes(),
            ),
        )  # fmt: skip

    def commands_in(self, path: str, text: str) -> Iterable[tuple[int, str]] | None:
        cells, _ = code_cells(path, text.removeprefix("\ufeff"))
        return (
            (place, line)
            for cell in cells
            for place, line in zip(cell.places, cell.lines)
            if not line.lstrip().startswith(("#", "print(", "raise "))
        )

    def collect(self, script: InstallScript) -> None:
        import json

        script.escape = lambda text: json.dumps(text)[1:-1]
        mark = len(script.text) - len(script.text.removeprefix("\ufeff"))
        cells, _ = code_cells(script.path, script.text[mark:])
        for cell in cells:
            spans = tuple((start + mark, end + mark) for start, end in cell.spans)
            source = _source(script.text, replace(cell, spans=spans))
            for part in _shell_parts(cell, source) if spans else ():
                script.read(part)
