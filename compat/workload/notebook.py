"""Jupyter notebooks as one syntax tree: code cells joined, magics and shell lines as calls."""

from __future__ import annotations

import ast
import bisect
import itertools

from compat.errors import InputError
from compat.files import regular
from compat.syntax.json import read_text
from compat.syntax.notebook import code_cells, translated
from compat.syntax.python import syntax_tree

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
        for each in code_cells(path, read_text(regular(path), LIMIT))[0]:
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
