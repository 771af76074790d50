"""Jupyter notebooks as Python source: code cells joined, magics and shell lines left out."""

from __future__ import annotations

import ast
import bisect
import itertools
import warnings

from compat.errors import InputError
from compat.files import regular
from compat.syntax.json import parse_json, read_text

LIMIT = 64 * 1024 * 1024
"""Maximum size in bytes; notebooks embed their images."""
LONGEST = 1 << 20
"""Maximum number of characters of Python in one file."""
NODES = 100_000
"""Nodes of a syntax tree: some ten thousand lines."""
_PYTHON_CELLS = ("capture", "time", "timeit", "prun", "memit", "mprun", "lprun", "python", "python3")
_FLAGS = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Notebook:
    """The code of a notebook as one syntax tree, and the code cell (from 1) of each line.

    Cells run one by one, so one that this interpreter cannot parse is skipped, with a note; a notebook without any
    readable cell raises :class:`InputError`.
    """

    def __init__(self, path: str) -> None:
        cells = [_python_of(cell) for cell in _code_cells(path)]
        self.notes: tuple[str, ...] = ()
        self._starts: list[int] = []
        line = 1
        for cell in cells:
            self._starts.append(line)
            line += cell.count("\n") + 1
        try:
            self.tree = parsed("\n".join(cells), path)
        except InputError:
            self.tree = self._readable(cells, path)

    def _readable(self, cells: list[str], path: str) -> ast.Module:
        problems: list[str] = []
        for at, cell in enumerate(cells):
            try:
                parsed(cell, path)
            except InputError as problem:
                where = f", line {problem.line}" if problem.line else ""
                problems.append(f"cell {at + 1}{where}: {problem.message}")
                cells[at] = "\n" * cell.count("\n")
        if not any(cell.strip() for cell in cells):
            raise InputError(problems[0] if problems else "has no code", path)
        self.notes = tuple(f"{path} {problem}; the cell was skipped" for problem in problems)
        return parsed("\n".join(cells), path)

    def cell(self, line: int) -> int:
        """Return the code cell of a line of the tree."""
        return max(1, bisect.bisect_right(self._starts, line))

    def first_line(self, cell: int) -> int:
        """Return the first line of a cell in the tree."""
        return self._starts[cell - 1]


def parsed(source: str | bytes, path: str) -> ast.Module:
    """Parse source text into a syntax tree; :class:`InputError` with line and reason if it is not valid Python."""
    import sys

    if len(source) > LONGEST:
        raise InputError(f"has more than {LONGEST // 1024} KiB of code", path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = compile(source, path.replace("\0", ""), "exec", _FLAGS, dont_inherit=True)
    except SyntaxError as problem:
        running = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise InputError(f"is not Python {running}: {problem.msg}", path, problem.lineno or None) from None
    except (RecursionError, MemoryError):
        raise InputError("cannot be parsed: nested too deeply", path) from None
    except (ValueError, OverflowError) as problem:
        raise InputError(f"is not Python: {problem}", path) from None
    if not isinstance(tree, ast.Module):
        raise InputError("is not a Python module", path)
    if next(itertools.islice(ast.walk(tree), NODES, None), None) is not None:
        raise InputError(f"has too much code: more than {NODES} syntax nodes", path)
    return tree


def _code_cells(path: str) -> list[str]:
    document = parse_json(read_text(regular(path), LIMIT), path)
    cells = document.get("cells") if isinstance(document, dict) else None
    if cells is None and isinstance(document, dict):  # the third version of the format
        sheets = document.get("worksheets")
        cells = sheets[0].get("cells") if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict) else None
    if not isinstance(cells, list):
        raise InputError("is not a Jupyter notebook: expected a list of cells", path, 1)
    code = [cell for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]
    return [_text(cell.get("source", cell.get("input", "")), path) for cell in code]


def _text(source: object, path: str) -> str:
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        raise InputError("is not a Jupyter notebook: expected text in every code cell", path)
    return source.replace("\r\n", "\n").replace("\r", "\n")


def _python_of(cell: str) -> str:
    """Return a cell's Python, line by line; magics and shell lines become empty."""
    lines = cell.split("\n")
    first = next((at for at, line in enumerate(lines) if line.strip()), None)
    if first is not None and lines[first].startswith("%%"):
        words = lines[first][2:].split()
        if not words or words[0] not in _PYTHON_CELLS:
            return "\n" * (len(lines) - 1)
        lines[first] = ""
    source = "\n".join(lines)
    try:
        parsed(source, "cell")
    except InputError:
        return "\n".join(_without_magics(lines))
    return source


def _without_magics(lines: list[str]) -> list[str]:
    result: list[str] = []
    continued = False
    for line in lines:
        text = line.strip()
        if continued:
            result.append("")
        elif _is_magic(text):
            kept = text.partition(" ")[2] if text.startswith(("%time ", "%timeit ")) else "pass"
            result.append(line[: len(line) - len(line.lstrip())] + kept)
        else:
            result.append(line)
            continue
        continued = text.endswith("\\")
    return result


def _is_magic(text: str) -> bool:
    if text.startswith(("!", "%", "?")):
        return True
    if text.endswith("?") and "#" not in text:
        return True
    target, equals, value = text.partition("=")
    return bool(equals) and value.lstrip().startswith(("!", "%")) and target.strip().replace("_", "a").isalnum()
