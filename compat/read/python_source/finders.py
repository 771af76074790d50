"""Modules that exist without a file: a finder in ``sys.meta_path``, or an entry in ``sys.modules``, gives them."""

from __future__ import annotations

import ast

from compat.read.python_source.trees import dotted, strings, walk

_SIGNS = (b"sys.meta_path", b"sys.modules[")


def aliases_in(tree: ast.Module, source: bytes, module: str) -> tuple[str, ...]:
    """The dotted names of the module's own package that it may make importable: all that its text spells out."""
    if not any(sign in source for sign in _SIGNS) or not any(_puts_modules(node) for node in walk(tree)):
        return ()
    top = module.partition(".")[0]
    return tuple(sorted({text for text in strings(tree) if text.startswith(f"{top}.") and _is_dotted(text)}))


def _puts_modules(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return dotted(node) == "sys.meta_path"
    return (
        isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and dotted(node.value) == "sys.modules"
        and not (isinstance(node.slice, ast.Name) and node.slice.id == "__name__")
    )  # fmt: skip


def _is_dotted(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))
