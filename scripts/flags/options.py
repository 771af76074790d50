"""The options that a module adds through ``add_argument``, read from its syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

_INSTEAD = re.compile(r"(?:[Uu]se|[Ss]et|renamed to|replaced by|in favor of)\s+[`'\"]{0,2}--([a-z][\w-]+)")


@dataclass
class Options:
    """``names`` without leading dashes; ``instead``: replacements for deprecated options; ``open``: there may be more."""

    names: set[str] = field(default_factory=set)
    instead: dict[str, str] = field(default_factory=dict)
    open: bool = False


def options_of(source: bytes, classes: Collection[str]) -> Options:
    """Return the options of a module. ``classes``: those whose fields are added one by one, through an f-string of the name."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return Options(open=True)
    found = Options()
    own = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            _add(found, node, tree, classes)
        elif isinstance(node.func, ast.Name) and node.func.id.startswith("add_") and node.func.id not in own:
            found.open = found.open or any(isinstance(each, ast.Name) and each.id == "parser" for each in node.args)
    return found


def _add(found: Options, node: ast.Call, tree: ast.Module, classes: Collection[str]) -> None:
    assert isinstance(node.func, ast.Attribute)
    if isinstance(node.func.value, ast.Call) or not node.args:
        return  # super().add_argument in a parser class
    texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    if not texts:
        computed = any(isinstance(each, ast.JoinedStr) for each in node.args)
        several = {*_fields(tree, classes)} if computed else _looped_over(tree, node)
        found.names |= several
        found.open = found.open or not several
        return
    names = [normal(text) for text in texts if text.startswith("--")]
    found.names.update(names)
    said = " ".join(each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str))
    instead = _INSTEAD.search(said) if "deprecat" in said.lower() else None
    if instead is not None and names and normal(instead[1]) not in names:
        found.instead.update(dict.fromkeys(names, normal(instead[1])))


def _looped_over(tree: ast.Module, node: ast.Call) -> set[str]:
    """Return the options of ``for name in ("--one", "--two"): parser.add_argument(name)``."""
    loops = (each for each in ast.walk(tree) if isinstance(each, ast.For) and any(inner is node for inner in ast.walk(each)))
    texts = (each.value for loop in loops for each in ast.walk(loop.iter) if isinstance(each, ast.Constant))
    return {normal(text) for text in texts if isinstance(text, str) and text.startswith("--")}


def _fields(tree: ast.Module, classes: Collection[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name in classes:
            for each in node.body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    yield normal(each.target.id)


def normal(name: str) -> str:
    """Normalize an option's name: no leading dashes, ``-`` for ``_`` (parsers that distinguish the two do not matter here)."""
    return name.lstrip("-").replace("_", "-")
