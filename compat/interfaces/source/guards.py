"""Classify a condition around code: a test of versions, of installed packages, of type checking, or any other."""

from __future__ import annotations

import ast

from compat.interfaces.source.records import AVAILABLE, BRANCH, FUNCTION, TRY, TYPES, VERSION
from compat.interfaces.source.scopes import dotted_name, walk

_CATCHES = frozenset((
    "ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException", "TypeError", "RuntimeError",
    "OSError",
))  # fmt: skip
_ASKS = frozenset((
    "hasattr", "getattr", "signature", "find_spec", "parameters", "version_info", "platform", "getfullargspec", "__dict__",
    "dir",
))  # fmt: skip
_AT_LEAST = (
    "at_least", "version", "greater", "less_than", "min_ver", "compare", "_ge_", "_lt_", "_gt_", "_le_", ">=", "is_torch_",
)  # fmt: skip
_INSTALLED = ("available", "installed", "imported")
_OF_PLATFORM = frozenset(("PY3", "os.name", "sys.platform", "sys.version_info"))


def guard_of(test: ast.expr) -> int:
    """Return the flag of code that runs if ``test`` holds (or, except for type checking, if it does not)."""
    words = list(_words(test))
    if any(word == "TYPE_CHECKING" for word in words):
        return TYPES
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__":
        return FUNCTION
    if any(word in _ASKS or word in _OF_PLATFORM or _of_version(word) for word in words) or _asks_for_version(test):
        return VERSION
    if any(_of_installation(word) for word in words):
        return AVAILABLE
    return BRANCH


def _words(test: ast.expr) -> list[str]:
    words = []
    for node in walk(test):
        if isinstance(node, ast.Name):
            words.append(node.id)
        elif isinstance(node, ast.Attribute):
            words.append(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 40:
            words.append(node.value)
    return words


def _of_version(word: str) -> bool:
    low = word.lower()
    if low.startswith("is_") and low.endswith(_INSTALLED):
        return False
    return any(part in low for part in _AT_LEAST[:-1])


def _asks_for_version(test: ast.expr) -> bool:
    """Return whether a test is like ``is_torch_available("2.1")``: installed in at least that version."""
    return any(
        isinstance(node, ast.Call) and (node.args or node.keywords) and (dotted_name(node.func) or "").endswith(_INSTALLED)
        for node in walk(test)
    )


def _of_installation(word: str) -> bool:
    low = word.lower()
    return low.endswith(_INSTALLED) or low.startswith(("has_", "_has_", "is_installed", "have_")) or "_available" in low


def asked_by(test: ast.expr) -> tuple[str, ...]:
    """Return the packages a test requires: ``peft`` for ``is_peft_available()``, ``_PEFT_AVAILABLE`` and ``HAS_PEFT``."""
    found = []
    for word in _words(test):
        low = word.lower().strip("_")
        if _of_installation(word):
            for part in ("is_", "has_", "have_"):
                low = low.removeprefix(part)
            for part in (*_INSTALLED, "is", ""):
                low = low.removesuffix(part).strip("_") if part else low
            found.append(low)
    return tuple(found)


def is_negated(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def is_dead(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and not test.value


def leaves(body: list[ast.stmt]) -> bool:
    """Return whether a block ends by leaving the enclosing block."""
    return bool(body) and isinstance(body[-1], (ast.Raise, ast.Return, ast.Continue, ast.Break))


def guard_of_try(node: ast.Try) -> int:
    """Return :data:`TRY` if a failure in the body is caught and handled, 0 if not or if all handlers re-raise."""
    caught = any(_catches(handler) for handler in node.handlers)
    handled = not all(handler.body and isinstance(handler.body[-1], ast.Raise) for handler in node.handlers)
    return TRY if caught and handled else 0


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any((dotted_name(kind) or "").rpartition(".")[2] in _CATCHES for kind in kinds)


def guard_of_with(node: ast.With | ast.AsyncWith) -> int:
    for item in node.items:
        if any(word in ("suppress", "raises") for word in _words(item.context_expr)):
            return TRY
    return 0
