"""What a package says about names that changed: deprecation decorators, and the texts of warnings."""

from __future__ import annotations

import ast
import re

from compat.read.python_source.records import Rename
from compat.read.python_source.trees import dotted, text_of, walk

_QUOTED = r"[`'\"‘“]+([A-Za-z_][\w.]*)(?:\(\)|=[^`'\"]*)?[`'\"’”]+"
_OLD = re.compile(
    _QUOTED + r"(?:\s+\w+){0,4}?\s+(?:is|are|was|were|has been|have been|will be|argument|parameter|keyword|attribute)\b"
)
_NEW = re.compile(
    r"(?:\buse|\bin favou?r of|\binstead of|\brenamed(?: to)?|\breplaced (?:by|with)|\bmoved to|\bpass|\bset|\bspecify"
    r"|\bconsider using|\busing)"
    r"\s+(?:(?:the|a|new|argument|parameter|keyword|it as|them as|through|via|by)\s+){0,3}" + _QUOTED,
    re.IGNORECASE,
)
_SAYS_SO = re.compile(
    r"deprecat|renamed|no longer (?:supported|used|accepted)|has been (?:removed|replaced)|was removed", re.IGNORECASE
)
_UNTIL = re.compile(
    r"(?:removed|dropped|deprecated|unsupported|error|disappear|deleted)\D{0,60}?(?:v|version |release )?(\d+\.\d+(?:\.\d+)*)"
)
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)$")
_LONGEST = 2000
_OLD_NAMES = frozenset(("old_name", "old", "old_arg", "deprecated_args", "deprecated_arg", "arg", "name"))
_NEW_NAMES = frozenset(("new_name", "new", "new_arg", "new_args", "replacement"))


def renames_in(node: ast.AST, owner: str) -> list[Rename]:
    """Every rename that decorators and texts of a function or class state."""
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
    """``@deprecate_kwarg("tokenizer", version="0.16.0", new_name="processing_class")`` and its relatives."""
    if not isinstance(node, ast.Call) or "deprecat" not in (dotted(node.func) or "").lower():
        return []
    olds: list[str] = []
    news: list[str] = []
    until = None
    plain: list[str] = []
    for argument in node.args:
        text = text_of(argument)
        if text is not None and _VERSION.match(text):
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
        elif keyword.arg and "version" in keyword.arg and texts and _VERSION.match(texts[0]):
            until = texts[0].lstrip("v")
    olds, plain = olds or plain[:1], plain[1:] if not olds else plain
    news = news or plain[:1]
    return [Rename(owner, old, news[0] if len(olds) == 1 and news else None, until, node.lineno) for old in olds]


def _texts(call: ast.Call) -> list[tuple[str, int]]:
    texts = []
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        text = text_of(argument)
        if text is not None and 20 < len(text) < _LONGEST and _SAYS_SO.search(text):
            texts.append((text, argument.lineno))
    return texts


def _by_text(text: str, owner: str, line: int) -> list[Rename]:
    """``"`max_seq_length` is deprecated and will be removed in 0.20. Use `max_length` instead."``."""
    old = _OLD.search(text)
    if old is None:
        return []
    new = next((found[1] for found in _NEW.finditer(text) if _last(found[1]) != _last(old[1])), None)
    until = _UNTIL.search(text)
    return [Rename(owner, _last(old[1]), _last(new) if new else None, until[1] if until else None, line)]


def _last(name: str) -> str:
    return name.rpartition(".")[2]
