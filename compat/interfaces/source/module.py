"""Parse source into a :class:`Module` record; see the package docstring."""

from __future__ import annotations

import ast
import warnings

from compat.interfaces.source.deprecations import renames_in, wrappers_in
from compat.interfaces.source.lazy import Lazy, aliases_in, given_to_others
from compat.interfaces.source.records import Module, Rename, Use
from compat.interfaces.source.scopes import ClassDraft
from compat.interfaces.source.walker import Walker

FORM = 4
"""Version of the record format; a change invalidates all stored records."""
LARGEST = 8 << 20
"""Maximum size in bytes; larger files are generated, and parsing one would take gigabytes of memory."""


def read_module(source: bytes, name: str, *, is_package: bool = False, stub: bool = False) -> Module:
    """Return what a module defines and uses; for a ``stub`` only what it defines. Raises nothing."""
    if len(source) > LARGEST:
        return Module(name, is_package, f"larger than {LARGEST >> 20} MB")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in third-party source
            tree = ast.parse(source)
        return module_of(tree, source, name, is_package=is_package, stub=stub)
    except SyntaxError as problem:
        return Module(name, is_package, f"line {problem.lineno or 0}: {problem.msg}")
    except (ValueError, OverflowError) as problem:
        return Module(name, is_package, str(problem)[:80] or "no Python source")
    except (RecursionError, MemoryError):
        return Module(name, is_package, "nested too deeply")


def module_of(tree: ast.Module, source: bytes, name: str, *, is_package: bool = False, stub: bool = False) -> Module:
    """Return what a parsed tree defines and uses. Raises :class:`RecursionError` if it is nested too deeply."""
    walker = Walker(name, is_package)
    walker.run(tree)
    lazy = Lazy(name, is_package=is_package)
    lazy.read(tree, source)
    renames: list[Rename] = []
    if b"deprecat" in source or b"renamed" in source:
        for node in tree.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                renames += renames_in(node, node.name)
    used = tuple(
        Use(target, flags, line, scope, stored, asks)
        for (target, flags, scope, stored, asks), line in walker.uses.names.items()
    )
    return Module(
        name, is_package, None,
        {key: each.done() if isinstance(each, ClassDraft) else each for key, each in walker.definitions.items()},
        tuple(walker.stars), None if walker.all is None else tuple(dict.fromkeys(walker.all)),
        lazy.names, lazy.listed, lazy.open,
        () if stub else tuple(walker.uses.imports), () if stub else tuple(walker.uses.calls), () if stub else used,
        tuple(renames), wrappers_in(tree) if b"**" in source else {}, aliases_in(tree, source, name),
        getter=lazy.getter, gives=given_to_others(tree, source),
    )  # fmt: skip
