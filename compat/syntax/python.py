"""Python source as a syntax tree, without opening any file."""

from __future__ import annotations

import ast
import re
import warnings
from itertools import accumulate


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
