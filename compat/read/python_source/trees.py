"""Small questions to syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """The node and everything below it, in no order; deep trees are no problem."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        for value in node.__dict__.values():
            if type(value) is list:
                waiting += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST):
                waiting.append(value)


def dotted(node: ast.AST) -> str | None:
    """``a.b.c`` of a plain chain of names, ``super().m`` of one that starts there; ``None`` for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    elif parts and isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
        parts.append("super()")
    else:
        return None
    return ".".join(reversed(parts))


def decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> tuple[str, ...]:
    """The last name of each decorator, called or not; ``?`` where it is an expression."""
    called = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    return tuple((dotted(each) or "?").rpartition(".")[2] for each in called)


def strings(node: ast.AST) -> list[str]:
    """Every string below a node."""
    return [each.value for each in walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def identifiers(node: ast.AST) -> list[str]:
    """Every string below a node that could be a name."""
    return [text for text in strings(node) if text.isidentifier()]


def text_of(node: ast.AST) -> str | None:
    """The text of a string, of an f-string (what it inserts left out as ``…``) or of strings added up."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "…" for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left), text_of(node.right)
        return left + right if left is not None and right is not None else None
    return None
