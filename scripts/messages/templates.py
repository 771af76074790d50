"""The text of an expression, with a placeholder for each part known only at run time."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Mapping

from compat.interfaces.messages import HOLE

LONGEST = 400
"""Characters; what follows in a longer message is a hole."""
_PERCENT = re.compile(r"%(?:\(\w+\))?[#0\- +]*(?:\d+|\*)?(?:\.(?:\d+|\*))?[hlL]?([a-zA-Z%])")
_SAME_TEXT = frozenset(("strip", "lstrip", "rstrip", "dedent", "cleandoc", "fill"))


def template_of(node: ast.expr, names: Mapping[str, str]) -> str | None:
    """Return the template of a string expression; ``None`` if no part is known. ``names`` are variables with known texts."""
    if isinstance(node, ast.Constant):
        return node.value.replace(HOLE, "") if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(template_of(each, names) or HOLE for each in node.values)
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.BinOp):
        return _of_operation(node, names)
    if isinstance(node, ast.Call):
        return _of_call(node, names)
    return None


def _of_operation(node: ast.BinOp, names: Mapping[str, str]) -> str | None:
    left = template_of(node.left, names)
    if isinstance(node.op, ast.Mod):
        return None if left is None else percent(left)
    right = template_of(node.right, names) if isinstance(node.op, ast.Add) else None
    return None if left is None and right is None else (left or HOLE) + (right or HOLE)


def _of_call(node: ast.Call, names: Mapping[str, str]) -> str | None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id if isinstance(node.func, ast.Name) else ""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if name == "format" and owner is not None:
        text = template_of(owner, names)
        return None if text is None else _formatted(text)
    if name in _SAME_TEXT:
        inside = owner if owner is not None and not node.args else next(iter(node.args), None)
        return None if inside is None else template_of(inside, names)
    if name == "join" and owner is not None and len(node.args) == 1 and isinstance(node.args[0], (ast.List, ast.Tuple)):
        between = template_of(owner, names)
        parts = [template_of(each, names) or HOLE for each in node.args[0].elts]
        return None if between is None else between.join(parts)
    return None


def percent(text: str) -> str:
    """Return the template of a ``%`` format."""
    return _PERCENT.sub(lambda found: "%" if found[1] == "%" else HOLE, text)


def _formatted(text: str) -> str:
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError:
        return text
    return "".join(literal + (HOLE if field is not None else "") for literal, field, _, _ in parsed)


def normal(template: str) -> str:
    """Normalize a template for comparison: collapsed whitespace and placeholders, at most :data:`LONGEST` characters."""
    text = re.sub(rf"{HOLE}(?: ?{HOLE})+", HOLE, " ".join(template.split()))
    return text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] + HOLE
