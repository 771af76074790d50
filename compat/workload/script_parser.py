"""The dataclasses that a script hands to the argument parser of transformers or trl, read from its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compat.records import record

_PARSERS = ("transformers.HfArgumentParser", "trl.TrlParser", "trl.commands.cli_utils.TrlParser")
_TOLERANT = frozenset(("parse_known_args", "parse_known_intermixed_args"))
"""Methods that leave what they do not know to somebody else."""


@record(frozen=True)
class ScriptParser:
    """``classes`` are dotted names of dataclasses in packages, ``own`` the options that the script defines itself."""

    classes: tuple[str, ...]
    own: frozenset[str]


def parser_of(tree: ast.Module) -> ScriptParser | None:
    """What the parser of a script takes; ``None`` where it has none, several, or one of which not everything is known."""
    imported = dict(_imported(tree))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    parsers = [call for call in calls if imported.get(_name(call.func)) in _PARSERS]
    if len(parsers) != 1 or any(_tolerates(call) for call in calls):
        return None
    given = parsers[0].args[0] if parsers[0].args else next((each.value for each in parsers[0].keywords if each.arg), None)
    listed = given.elts if isinstance(given, (ast.Tuple, ast.List)) else [given]
    outside: list[str] = []
    own = {_text(call.args[0]) for call in calls if _name(call.func) == "add_argument" and call.args}
    for each in listed:
        if not isinstance(each, ast.Name) or not _resolve(each.id, imported, classes, outside, own, set()):
            return None
    return ScriptParser(tuple(outside), frozenset(name.lstrip("-") for name in own))


def _resolve(
    name: str, imported: dict[str, str], classes: dict[str, ast.ClassDef], outside: list[str], own: set[str], seen: set[str]
) -> bool:
    """Adds the fields of a class of the script, or the class of a package; whether it is one of the two."""
    if name in imported:
        outside.append(imported[name])
        return True
    node = classes.get(name)
    if node is None or name in seen:
        return False
    own |= {each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)}
    return all(
        isinstance(base, ast.Name)
        and (base.id == "object" or _resolve(base.id, imported, classes, outside, own, {*seen, name}))
        for base in node.bases
    )


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)


def _tolerates(call: ast.Call) -> bool:
    rest = any(each.arg == "return_remaining_strings" for each in call.keywords)
    return rest or _name(call.func) in _TOLERANT


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
