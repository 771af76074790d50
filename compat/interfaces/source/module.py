"""Parse source into a :class:`Module` record; see the package docstring."""

from __future__ import annotations

import ast
import re

from compat.interfaces.source.lazy import Lazy, aliases_in, given_to_others
from compat.interfaces.source.records import Module, Rename, Use
from compat.interfaces.source.scopes import ClassDraft, dotted_name, text_of, walk
from compat.interfaces.source.signatures import wrappers_in
from compat.interfaces.source.walker import Walker
from compat.syntax.python import syntax_tree

FORM = 6
"""Version of the record format; a change invalidates all stored records."""
LARGEST = 8 << 20
"""Maximum size in bytes; larger files are generated, and parsing one would take gigabytes of memory."""


def read_module(source: bytes, name: str, *, is_package: bool = False, stub: bool = False) -> Module:
    """Return what a module defines and uses; for a ``stub`` only what it defines. Raises nothing."""
    if len(source) > LARGEST:
        return Module(name, is_package, f"larger than {LARGEST >> 20} MB")
    try:
        tree = syntax_tree(source)
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


# --- Renames that a package announces: in deprecation decorators, and in warning messages.


_QUOTED = r"[`'\"‘“]+([A-Za-z_][\w.]*)(?:\(\)|=[^`'\"]*)?[`'\"’”]+"
# Plain strings that re compiles and caches on first use: compiling them takes 10 ms, and user scripts rarely need them.
_OLD = (
    r"(?<![`'\"‘“])"
    + _QUOTED
    + r"(?:\s+\w+){0,4}?\s+(?:is|are|was|were|has been|have been|will be|argument|parameter|keyword|attribute)\b"
)
_NEW = (
    r"(?i)(?:\buse|\bin favou?r of|\binstead of|\brenamed(?: to)?|\breplaced (?:by|with)|\bmoved to|\bpass|\bset|\bspecify"
    r"|\bconsider using|\busing)"
    r"\s+(?:(?:the|a|new|argument|parameter|keyword|it as|them as|through|via|by)\s+){0,3}" + _QUOTED
)
_SAYS_SO = r"(?i)deprecat|renamed|no longer (?:supported|used|accepted)|has been (?:removed|replaced)|was removed"
_UNTIL = (
    r"(?:removed|dropped|deprecated|unsupported|error|disappear|deleted)\D{0,60}?(?:v|version |release )?(\d+\.\d+(?:\.\d+)*)"
)
_VERSION = r"v?(\d+(?:\.\d+)+)$"
_LONGEST = 2000
_OLD_NAMES = frozenset(("old_name", "old", "old_arg", "deprecated_args", "deprecated_arg", "arg", "name"))
_NEW_NAMES = frozenset(("new_name", "new", "new_arg", "new_args", "replacement"))


def renames_in(node: ast.AST, owner: str) -> list[Rename]:
    """Return every rename announced by decorators and messages in a function or class."""
    found: dict[tuple[str, str | None], Rename] = {}
    for each in walk(node):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            made = [rename for decorator in each.decorator_list for rename in _by_decorator(decorator, owner)]
        elif isinstance(each, ast.Call):
            made = [rename for text, line in _texts(each) for rename in _by_text(text, owner, line)]
        else:
            continue
        for rename in made:
            found.setdefault((rename.old, rename.new), rename)
    return list(found.values())


def _by_decorator(node: ast.expr, owner: str) -> list[Rename]:
    """Parse ``@deprecate_kwarg("tokenizer", version="0.16.0", new_name="processing_class")`` and similar decorators."""
    if not isinstance(node, ast.Call) or "deprecat" not in (dotted_name(node.func) or "").lower():
        return []
    olds: list[str] = []
    news: list[str] = []
    until = None
    plain: list[str] = []
    for argument in node.args:
        text = text_of(argument)
        if text is not None and re.match(_VERSION, text):
            until = until or text.lstrip("v")
        elif text is not None and text.isidentifier():
            plain.append(text)
    for keyword in node.keywords:
        texts = [each.value for each in walk(keyword.value) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        names = [text for text in texts if text.isidentifier()]
        if keyword.arg in _OLD_NAMES:
            olds += names
        elif keyword.arg in _NEW_NAMES:
            news += names
        elif keyword.arg and "version" in keyword.arg and texts and re.match(_VERSION, texts[0]):
            until = texts[0].lstrip("v")
    olds, plain = olds or plain[:1], plain[1:] if not olds else plain
    news = news or plain[:1]
    return [Rename(owner, old, news[0] if len(olds) == 1 and news else None, until, node.lineno) for old in olds]


def _texts(call: ast.Call) -> list[tuple[str, int]]:
    texts = []
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        text = text_of(argument)
        if text is not None and 20 < len(text) < _LONGEST and re.search(_SAYS_SO, text):
            texts.append((text, argument.lineno))
    return texts


def _by_text(text: str, owner: str, line: int) -> list[Rename]:
    """Parse ``"`max_seq_length` is deprecated and will be removed in 0.20. Use `max_length` instead."``."""
    old = re.search(_OLD, text)
    if old is None:
        return []
    new = next((found[1] for found in re.finditer(_NEW, text) if _last(found[1]) != _last(old[1])), None)
    until = re.search(_UNTIL, text)
    return [Rename(owner, _last(old[1]), _last(new) if new else None, until[1] if until else None, line)]


def _last(name: str) -> str:
    return name.rpartition(".")[2]
