"""Python source as a syntax tree, without opening any file."""

from __future__ import annotations

import ast
import warnings


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
