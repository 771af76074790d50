"""Renames that a package announces: in deprecation decorators, and in warning messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from compat.interfaces.source.records import Rename
from compat.interfaces.source.scopes import dotted, identifiers, text_of, walk

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
    if not isinstance(node, ast.Call) or "deprecat" not in (dotted(node.func) or "").lower():
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


# --- Decorators that accept keywords the decorated function does not: old names that they translate, or drop with a warning.


_LOOKS = frozenset(("items", "keys", "values", "copy"))
_READS = frozenset(("pop", "get", "setdefault"))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def wrappers_in(tree: ast.Module) -> dict[str, tuple[str, ...] | None]:
    """Return the decorators defined in a module that inspect ``**kwargs``, with the keywords that they may consume.

    All strings that could be names count; ``None`` if unknown. Decorators that pass ``**kwargs`` on unchanged are omitted, and
    so are decorator factories: their own arguments name the keywords.
    """
    functions = {each.name: each for each in tree.body if isinstance(each, _FUNCTIONS)}
    found: dict[str, tuple[str, ...] | None] = {}
    for name, function in functions.items():
        for inner in _inside(function):
            if inner.args.kwarg is not None:
                looks = _Looks(inner.args.kwarg.arg, functions)
                looks.read(inner)
                if not looks.plain:
                    found[name] = None
                elif looks.any and name not in found:
                    found[name] = tuple(sorted({*identifiers(function), *looks.names}))
    return found


def _inside(function: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions defined directly in a function."""
    waiting: list[ast.AST] = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            yield node
        elif not isinstance(node, (ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)


class _Looks:
    """How a wrapper uses ``**kwargs``. ``any``: it inspects them; not ``plain``: the use cannot be followed."""

    def __init__(self, name: str, functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef]) -> None:
        self._name, self._functions = name, functions
        self.any, self.plain = False, True
        self.names: list[str] = []
        self._understood = 0

    def read(self, wrapper: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        seen = 0
        for statement in wrapper.body:
            for node in walk(statement):
                if self._is_it(node):
                    seen += 1
                    self._understood += isinstance(node.ctx, ast.Store)  # type: ignore[attr-defined]
                elif isinstance(node, ast.Call):
                    self._call(node)
                elif isinstance(node, ast.Subscript) and self._is_it(node.value):
                    self._key(node.slice)
                elif isinstance(node, ast.Compare) and any(self._is_it(each) for each in node.comparators):
                    self._key(node.left)
        self.plain = self.plain and seen <= self._understood

    def _is_it(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == self._name

    def _call(self, node: ast.Call) -> None:
        called = node.func
        if isinstance(called, ast.Attribute) and self._is_it(called.value):
            if called.attr in _READS and node.args:
                self._key(node.args[0])
            elif called.attr in _LOOKS:
                self._look()
        for keyword in node.keywords:
            if keyword.arg is None:
                self._understood += self._is_it(keyword.value)
                self.plain = self.plain and self._is_it(keyword.value)
        for given in (*node.args, *(keyword.value for keyword in node.keywords if keyword.arg is not None)):
            helper = self._functions.get(dotted(called) or "")
            if self._is_it(given) and helper is not None:
                self.names += identifiers(helper)
                self._look()

    def _key(self, node: ast.AST) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._look()

    def _look(self) -> None:
        self.any = True
        self._understood += 1
