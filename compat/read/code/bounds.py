"""Requirements that a script states itself: it refuses to run where they do not hold."""

from __future__ import annotations

import ast

from compat.read.code.records import Bound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_OF_PACKAGE = {"transformers": "transformers", "diffusers": "diffusers", "accelerate": "accelerate"}
_LEAST = "check_min_version"
_REQUIRED = ("require_version", "require_version_core")


def bounds_in(tree: ast.Module, source: bytes, path: str) -> tuple[Bound, ...]:
    """What the source of a script states: in calls, and in inline metadata (PEP 723)."""
    found: tuple[Bound, ...] = ()
    if b"check_min_version" in source or b"require_version" in source:
        found = bounds_of(tree, path)
    if b"# /// script" in source:
        found = (*found, *_inline(source, path))
    return found


def bounds_of(tree: ast.Module, path: str) -> tuple[Bound, ...]:
    """What calls of ``check_min_version("4.46.0")`` and ``require_version("datasets>=2.14")`` state that are always made."""
    package, found = "transformers", []
    calls = []
    for node in _always(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == _LEAST for alias in node.names):
            package = _OF_PACKAGE.get((node.module or "").partition(".")[0], "")
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            calls.append(node)
    for call in calls:
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        assert isinstance(call.args[0], ast.Constant)
        value = call.args[0].value
        if not isinstance(value, str):
            continue
        if name == _LEAST and package:
            found.append(Bound(package, f">={value}", path, call.lineno))
        elif name in _REQUIRED:
            found += _requirement(value, path, call.lineno)
    return tuple(each for each in found if _readable(each))


def _always(tree: ast.Module) -> Iterator[ast.AST]:
    """What runs with the script: not what is inside functions (but ``main``) and classes."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop(0)
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name != "main":
            continue
        waiting.extend(ast.iter_child_nodes(node))


def _requirement(text: str, path: str, line: int) -> list[Bound]:
    from compat.environment import normalized

    text = text.partition(";")[0]
    at = next((at for at, sign in enumerate(text) if sign in "<>=!~[ "), len(text))
    name, rest = text[:at], text[at:]
    if rest.startswith("["):
        rest = rest.partition("]")[2]
    rest = rest.strip()
    return [Bound(normalized(name.strip()), rest, path, line)] if rest and name.strip() else []


def _readable(bound: Bound) -> bool:
    from compat.versions import ranges_of

    try:
        ranges_of(bound.specifier)
    except ValueError:
        return False
    return True


def _inline(source: bytes, path: str) -> list[Bound]:
    from compat.errors import InputError
    from compat.read.files.project.inline_script import read_inline_script

    try:
        listings = read_inline_script(path, source.decode("utf-8", "replace")) or ()
    except InputError:
        return []
    stated = []
    for listing in listings:
        for entry in listing.entries:
            each = entry.distribution
            specifier = f"=={each.version}" if each.version else each.specifier
            if specifier and not each.marker:
                stated.append(Bound(each.name, specifier, path, entry.line or 1))
    return [each for each in stated if _readable(each)]
