"""The strings that a module accepts: members of enumerations, keys of registries, choices of options, compared values.

What a release does not accept it mostly tells by the value and the name of what it was given for: ``Unknown quantization
method: moe_wna16``, ``'adalomo' is not a valid OptimizerNames``, ``KeyError: 'flash_attention_3'``. So every string is read
with the name of the container that holds it, wherever a program chooses between strings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

_VALUE = re.compile(r"[A-Za-z][\w.+:/-]{1,39}\Z")
_OF_A_FUNCTION = re.compile(r"support|valid|allow|choice|method|backend|mapping|known|available|parser|format", re.IGNORECASE)
"""Lists inside functions that hold what is accepted, by their names; other lists hold anything."""
_SAYS_NOTHING = frozenset(
    (
        "args", "attr", "attrs", "cls", "column", "columns", "command", "config", "content", "data", "default",
        "ext", "extension", "field", "file", "filename", "format", "func", "function", "idx", "item", "items",
        "key", "keys", "kind", "label", "lang", "language", "level", "line", "mode", "model", "module", "msg",
        "name", "names", "ops", "output", "param", "params", "part", "parts", "path", "platform", "prefix",
        "python_type", "result", "role", "source", "split", "src", "state", "status", "str", "string", "suffix",
        "system", "tag", "target", "term", "text", "title", "token", "type", "types", "val", "value", "values",
        "version", "word", "words",
    )
)  # fmt: skip
"""Names of variables that tell nothing about what a string means."""
_ENTRY = "EntryClass"
"""Under this name SGLang's modules register the classes of their models."""
_COLLECTING = ("list", "set", "tuple", "dict", "frozenset", "OrderedDict", "MappingProxyType")

Accepted = tuple[str, str]
"""The container, qualified by its class, and a string. Containers that belong to no module end with ``()`` (registrations) or
begin with ``=`` (comparisons)."""


def accepted_by(body: bytes) -> set[Accepted]:
    """Return the strings that a module's source accepts; empty for a source that is no Python."""
    try:
        tree = ast.parse(body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    found = _of_body(tree.body, "")
    return {(container, value) for container, value in found if container.strip("=") and _VALUE.match(value)}


def _of_body(body: Iterable[ast.stmt], owner: str, *, local: bool = False) -> Iterator[Accepted]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from _of_class(statement, owner)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _of_decorators(statement)
            arguments = statement.args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                if argument.annotation is not None:
                    yield from ((f"={argument.arg}", value) for value in _literals(argument.annotation))
            yield from _of_body(statement.body, owner, local=True)
        else:
            yield from _of_assignment(statement, owner, local=local)
            yield from _of_expressions(statement)
            for part in ("body", "orelse", "finalbody"):
                yield from _of_body(getattr(statement, part, ()), owner, local=local)
            for handler in getattr(statement, "handlers", ()):
                yield from _of_body(handler.body, owner, local=local)
            for case in getattr(statement, "cases", ()):
                yield from _of_body(case.body, owner, local=local)


def _of_class(made: ast.ClassDef, owner: str) -> Iterator[Accepted]:
    name = f"{owner}.{made.name}" if owner else made.name
    yield from _of_decorators(made)
    if any(_last(base).endswith("Enum") for base in made.bases):
        for statement in made.body:
            if isinstance(statement, ast.Assign) and (text := _text(statement.value)) is not None:
                yield name, text
    yield from _of_body(made.body, name)


def _of_decorators(made: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Accepted]:
    for decorator in made.decorator_list:
        yield from _of_expressions(decorator)


def _of_assignment(statement: ast.stmt, owner: str, *, local: bool) -> Iterator[Accepted]:
    if isinstance(statement, ast.Assign):
        targets, value = statement.targets, statement.value
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets, value = [statement.target], statement.value or ast.Constant(None)
    else:
        return
    for target in targets:
        if isinstance(target, ast.Subscript) and (key := _text(target.slice)) is not None and not local:
            yield _qualified(owner, _last(target.value)), key
        name = _last(target)
        if not name or name == "__all__" or name.startswith("_import_structure") or (local and not _OF_A_FUNCTION.search(name)):
            continue
        container = _qualified(owner, name)
        if container == _ENTRY:
            yield from ((f"{_ENTRY}()", each.id) for each in ast.walk(value) if isinstance(each, ast.Name))
        yield from ((container, text) for text in _collected(value))
        field = container if owner and not local else f"={name}"
        yield from ((field, text) for text in _literals(value))
        if isinstance(statement, ast.AnnAssign):
            yield from ((field, text) for text in _literals(statement.annotation))
        if isinstance(value, ast.Call):
            yield from ((field, text) for text in _choices(value))


def _of_expressions(statement: ast.AST) -> Iterator[Accepted]:
    """Yield what the expressions of a statement compare, register or offer, without those of statements inside it."""
    roots = [statement] if isinstance(statement, ast.expr) else ast.iter_child_nodes(statement)
    waiting: list[ast.AST] = [root for root in roots if isinstance(root, ast.expr)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Compare):
            yield from _compared(node)
        elif isinstance(node, ast.Call):
            yield from _called(node)
        waiting.extend(child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.expr, ast.keyword)))


def _compared(node: ast.Compare) -> Iterator[Accepted]:
    if len(node.ops) != 1 or not isinstance(node.ops[0], (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
        return
    left, right = node.left, node.comparators[0]
    texts = [_text(right)] if isinstance(node.ops[0], (ast.Eq, ast.NotEq)) else list(_collected(right))
    name = (_text(left.slice) if isinstance(left, ast.Subscript) else None) or _last(left)
    if name and name not in _SAYS_NOTHING and len(name) > 2:
        yield from ((f"={name}", text) for text in texts if text is not None)


def _called(node: ast.Call) -> Iterator[Accepted]:
    called = _last(node.func)
    if called == "update" and isinstance(node.func, ast.Attribute) and node.args:
        yield from ((_last(node.func.value), text) for text in _collected(node.args[0]))
    elif "register" in called and not called.startswith(("register_buffer", "register_parameter", "unregister")):
        receiver = _last(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        given = [*node.args[:1], *(each.value for each in node.keywords if each.arg in ("name", "names", "module_name", "key"))]
        if receiver not in ("self", "torch", "atexit"):
            for each in given:
                texts = [_text(each)] if _text(each) is not None else list(_collected(each))
                yield from ((f"{receiver}.{called}()".lstrip("."), text) for text in texts if text is not None)
    elif called == "add_argument" and node.args:
        names = [text for text in map(_text, node.args) if text is not None and text.startswith("--")]
        if names:
            yield from ((f"={names[0][2:].replace('-', '_')}", text) for text in _choices(node))


def _choices(node: ast.Call) -> Iterator[str]:
    for keyword in node.keywords:
        if keyword.arg == "choices":
            yield from _collected(keyword.value)
        elif keyword.arg == "metadata" and isinstance(keyword.value, ast.Dict):
            for key, value in zip(keyword.value.keys, keyword.value.values):
                if key is not None and _text(key) == "choices":
                    yield from _collected(value)


def _collected(node: ast.expr) -> Iterator[str]:
    """Yield the strings of a display, the keys of a dictionary, the first of pairs, also inside a call that collects them."""
    if isinstance(node, ast.Dict):
        yield from (text for key in node.keys if key is not None and (text := _text(key)) is not None)
    elif isinstance(node, (ast.List, ast.Set, ast.Tuple)):
        for each in node.elts:
            first = each.elts[0] if isinstance(each, ast.Tuple) and each.elts else each
            if (text := _text(first)) is not None:
                yield text
    elif isinstance(node, ast.Call):
        made = _last(node.func.value if isinstance(node.func, ast.Subscript) else node.func)  # OrderedDict[str, str]([…])
        if node.args and (made in _COLLECTING or made[:1].isupper()):
            yield from _collected(node.args[0])
        if made == "dict":
            yield from (keyword.arg for keyword in node.keywords if keyword.arg is not None)
    elif isinstance(node, ast.BinOp):
        yield from _collected(node.left)
        yield from _collected(node.right)


def _literals(node: ast.expr) -> Iterator[str]:
    """Yield the strings of every ``Literal[…]`` in an annotation."""
    for each in ast.walk(node):
        if isinstance(each, ast.Subscript) and _last(each.value) == "Literal":
            parts = each.slice.elts if isinstance(each.slice, ast.Tuple) else [each.slice]
            yield from (text for part in parts if (text := _text(part)) is not None)


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _last(node: ast.expr) -> str:
    """Return the last name of a dotted expression; "" for any other."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _qualified(owner: str, name: str) -> str:
    return f"{owner}.{name}" if owner else name
