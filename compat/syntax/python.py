"""Python source as a syntax tree, and the code cells of notebooks, translated to Python and joined to one such tree.

Shell lines and magics of a notebook become calls, as in IPython. Cells know their lines in the file.
"""

from __future__ import annotations

import ast
import bisect
import itertools
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from itertools import accumulate

from compat.errors import InputError
from compat.files import regular_path
from compat.records import record
from compat.syntax.json import Child, after_space, children, parse_json, read_text


def syntax_tree(source: str | bytes, flags: int = 0) -> ast.Module:
    """Parse a module; nothing is executed and no warning is printed.

    CPython opens the named file to quote the line of a syntax error, and ``ast.parse`` names it ``<unknown>``, which
    blocks forever if a pipe of this name is in the working directory. The empty name cannot be opened.

    Raises what :func:`compile` raises: :class:`SyntaxError`, :class:`ValueError` (NUL characters), :class:`OverflowError`,
    and :class:`RecursionError` or :class:`MemoryError` for code that is nested too deeply.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes in the source
        tree = compile(source, "", "exec", ast.PyCF_ONLY_AST | flags, dont_inherit=True)
    if not isinstance(tree, ast.Module):
        raise SyntaxError("not a module")
    return tree


class Positions:
    """Offsets in a source text of the nodes of its syntax tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)  # Python also ends lines at a lone carriage return
        self._starts = list(accumulate(map(len, self._lines), initial=0))

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a line from 1 and a column in UTF-8 bytes, as nodes have them."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode(errors="replace"))

    def span(self, node: ast.expr) -> tuple[int, int]:
        """Return start and end of an expression."""
        end = node.end_lineno or node.lineno
        return self.offset(node.lineno, node.col_offset), self.offset(end, node.end_col_offset or 0)

    def quoted(self, node: ast.expr) -> tuple[int, int] | None:
        """Return start and end of a string on one line, with its quotes; ``None`` if its text is written in another way."""
        if not isinstance(node, ast.Constant) or node.lineno != node.end_lineno:
            return None
        start, end = self.span(node)
        written = self.text[start:end]
        return (start, end) if written[1:-1] == node.value and written[:1] == written[-1:] != "" else None


CELLS = 5000
"""Code cells; more than in any real notebook."""


@record(frozen=True)
class Cell:
    """A code cell: its number among the code cells (from 1), its source lines, and their lines in the file.

    ``spans`` are the start and end of each piece of source in the JSON text, quotes included; empty if they are unknown.
    """

    number: int
    lines: tuple[str, ...]
    places: tuple[int, ...]
    spans: tuple[tuple[int, int], ...] = ()


def code_cells(path: str, text: str) -> tuple[list[Cell], Mapping[str, object]]:
    """Return the code cells and the metadata; :class:`InputError` if the text is not a valid notebook."""
    document = parse_json(text, path)
    if not isinstance(document, dict):
        raise InputError("is not a Jupyter notebook: expected a JSON object", path, 1)
    cells = document.get("cells")
    where: tuple[object, ...] = ("cells",)
    if cells is None:  # version 3 of the format
        sheets = document.get("worksheets")
        cells = sheets[0].get("cells") if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict) else None
        where = ("worksheets", 0, "cells")
    if not isinstance(cells, list):
        raise InputError("is not a Jupyter notebook: expected a list of cells", path, 1)
    places = _Places(text, where)
    found: list[Cell] = []
    for index, cell in enumerate(cells):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            if len(found) == CELLS:
                raise InputError(f"has more than {CELLS} code cells", path)
            key = "source" if "source" in cell else "input"
            found.append(_cell(len(found) + 1, cell.get(key, ""), places.of(index, key), path))
    metadata = document.get("metadata")
    return found, metadata if isinstance(metadata, dict) else {}


def _cell(number: int, source: object, written: _Written, path: str) -> Cell:
    """Return a cell; ``written`` is where its source is in the file."""
    places = written.lines
    pieces = [source] if isinstance(source, str) else source
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        line = places[0] if places else None
        raise InputError("is not a Jupyter notebook: expected text in every code cell", path, line)
    lines: list[str] = [""]
    at: list[int] = [places[0] if places else 1]
    own = places[1:] if len(places) == len(pieces) + 1 else [at[0]] * len(pieces)
    for piece, line in zip(pieces, own):
        first, *others = piece.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if not lines[-1]:
            at[-1] = line
        lines[-1] += first
        lines += others
        at += [line] * len(others)
    return Cell(number, tuple(lines), tuple(at), written.spans if len(written.spans) == len(pieces) else ())


@record(frozen=True)
class _Written:
    """The lines that a cell's source and then each of its pieces start on, and the start and end of each piece."""

    lines: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()


class _Places:
    """The lines of each cell's pieces of source in the text, found in one pass."""

    def __init__(self, text: str, path: tuple[object, ...]) -> None:
        self._text = text
        self._line, self._counted = 1, 0
        self._cells: list[Child] = []
        try:
            at = after_space(text, 0)
            for step in path:
                at = next(each.start for each in children(text, at) if each.key == step)
            self._cells = list(children(text, at))
        except (IndexError, RecursionError, StopIteration, ValueError):
            pass

    def of(self, index: int, key: str) -> _Written:
        """Return where the cell's source is, and every piece if it is a list; empty if it is unknown."""
        try:
            *_, source = (each for each in children(self._text, self._cells[index].start) if each.key == key)
            pieces = list(children(self._text, source.start)) if self._text[source.start] == "[" else [source]
        except (IndexError, RecursionError, ValueError):
            return _Written()
        lines = tuple(self._line_of(each.start) for each in (source, *pieces))
        return _Written(lines, tuple((each.start, each.end) for each in pieces))

    def _line_of(self, at: int) -> int:
        if at > self._counted:
            self._line += self._text.count("\n", self._counted, at)
            self._counted = at
        return self._line


# --- A cell → plain Python.


_PYTHON_CELLS = ("capture", "time", "timeit", "prun", "memit", "mprun", "lprun", "python", "python3")
_SHELL_CELLS = ("bash", "sh", "shell", "zsh", "system", "sx", "!")
_STATEMENTS = ("time", "timeit", "prun", "memit")
_INSTALLERS = ("pip", "pip3", "conda", "mamba", "micromamba", "uv")
"""Magics that run the program of that name; IPython also accepts them without ``%``."""


@record(frozen=True)
class Code:
    """What a cell contains: Python ``source`` line by line, or a ``shell`` script from that line on (from 0).

    ``commands`` are its shell lines: (first line from 1, last line, text). Both are ``None`` for other languages.
    """

    source: str | None = None
    shell: int | None = None
    commands: tuple[tuple[int, int, str], ...] = ()


def translated(lines: Sequence[str]) -> Code:
    """Translate the code of one cell."""
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
        parts = [text.removesuffix("\\")]
        at += 1
        while lines[at - 1].rstrip().endswith("\\") and at < len(lines):
            parts.append(lines[at].strip().removesuffix("\\"))
            at += 1
        text = " ".join(parts)
        if function == "system":
            commands.append((first + 1, at, text))
        call = parts[0] if function == "" else f"get_ipython().{function}({text!r})"
        result += [line[: len(line) - len(line.lstrip())] + call, *[""] * (at - first - 1)]
    return Code("\n".join(result), None, tuple(commands))


def _call(text: str) -> tuple[str, str] | None:
    """Return (shell method, operand) for a line that is not Python; without a method the operand is Python."""
    if text.startswith("!"):
        return "system", text.lstrip("!").strip()
    if text.startswith("%"):
        name, _, rest = text.lstrip("%").partition(" ")
        if name in _INSTALLERS:
            return "system", text.lstrip("%")
        if name in ("sx", "system"):
            return "system", rest.strip()
        if name == "run" and rest.strip():
            return "system", f"python {rest.strip()}"
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
    """Whether the next line of Python continues a string, a bracket or a statement."""

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


LIMIT = 64 * 1024 * 1024
"""Maximum size in bytes; notebooks embed their images."""
LONGEST = 1 << 20
"""Maximum number of characters of Python in one file."""
NODES = 100_000
"""Nodes of a syntax tree: some ten thousand lines."""


class Notebook:
    """The code of a notebook as one syntax tree, and the code cell (from 1) of each line.

    Cells run one by one, so one that this interpreter cannot parse is skipped, with a note; a notebook without any
    readable cell raises :class:`InputError`.
    """

    def __init__(self, path: str) -> None:
        cells: list[str] = []
        for each in code_cells(path, read_text(regular_path(path), LIMIT))[0]:
            source = translated(each.lines).source
            cells.append("\n" * (len(each.lines) - 1) if source is None else source)
        self.notes: tuple[str, ...] = ()
        self._starts: list[int] = []
        line = 1
        for cell in cells:
            self._starts.append(line)
            line += cell.count("\n") + 1
        try:
            self.tree = parsed("\n".join(cells), path)
        except InputError:
            problems: list[str] = []
            for at, cell in enumerate(cells):
                try:
                    parsed(cell, path)
                except InputError as problem:
                    where = f", line {problem.line}" if problem.line else ""
                    problems.append(f"cell {at + 1}{where}: {problem.message}")
                    cells[at] = "\n" * cell.count("\n")
            if not any(cell.strip() for cell in cells):
                raise InputError(problems[0] if problems else "has no code", path) from None
            self.notes = tuple(f"{path} {problem}; the cell was skipped" for problem in problems)
            self.tree = parsed("\n".join(cells), path)

    def cell(self, line: int) -> int:
        """Return the code cell of a line of the tree."""
        return max(1, bisect.bisect_right(self._starts, line))

    def first_line(self, cell: int) -> int:
        """Return the first line of a cell in the tree."""
        return self._starts[cell - 1]


def parsed(source: str | bytes, path: str) -> ast.Module:
    """Parse source text into a syntax tree; :class:`InputError` with line and reason if it is not valid Python."""
    if len(source) > LONGEST:
        raise InputError(f"has more than {LONGEST // 1024} KiB of code", path)
    try:
        tree = syntax_tree(source, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as problem:
        running = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise InputError(f"is not Python {running}: {problem.msg}", path, problem.lineno or None) from None
    except (RecursionError, MemoryError):
        raise InputError("cannot be parsed: nested too deeply", path) from None
    except (ValueError, OverflowError) as problem:
        raise InputError(f"is not Python: {problem}", path) from None
    if next(itertools.islice(ast.walk(tree), NODES, None), None) is not None:
        raise InputError(f"has too much code: more than {NODES} syntax nodes", path)
    return tree
