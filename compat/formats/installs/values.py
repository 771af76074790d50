"""The strings that a Python expression may evaluate to, as far as the preceding code shows."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable

from compat.formats.installs.words import leading_name

HOLE = "\x03"
"""A part of a text that is only known at run time."""
_UNKNOWN = (HOLE,)
_MOST = 8
"""Most texts per expression."""
_BINDINGS = 20
_DEEPEST = 8
_LONGEST = 4000
_BUDGET = 50_000
"""Most expressions evaluated per notebook; the rest are unknown."""
_WIDEST = 1 << 14
"""Characters of a shell line; longer ones are not read."""
_TRIES = 100
"""Most braces examined per line."""
_EXPRESSION = 300
"""Characters of an expression in braces."""


class Values:
    """The possible texts of a notebook's names, from the assignments seen so far."""

    def __init__(self) -> None:
        self._bound: dict[str, list[tuple[ast.expr | None, int | None]]] = {}
        self._left = _BUDGET
        self.computed = {"..."}
        """The names that the code sets, and that of any other expression: unless known, they are computed."""

    def bind(self, target: ast.expr, value: ast.expr | None) -> None:
        """Record an assignment; ``None`` for a value that is only known at run time."""
        if isinstance(target, ast.Name):
            self._add(target.id, value, None)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, None)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for at, each in enumerate(target.elts):
                if isinstance(each, ast.Name):
                    self._add(each.id, value, at)
                else:
                    self.bind(each, None)

    def hide(self, names: Iterable[str]) -> None:
        """Mark names as assigned at run time: parameters, imports."""
        for name in names:
            self._add(name, None, None)

    def _add(self, name: str, value: ast.expr | None, position: int | None) -> None:
        bound = self._bound.setdefault(name, [])
        self.computed.add(name)
        if len(bound) <= _BINDINGS:
            bound.append((value, position))

    def text(self, node: ast.expr) -> str:
        """Return the text of an expression, with ``sys.executable`` as ``python``; unknown parts become a shell variable."""
        return _shown(self._texts(node, 0), node.id if isinstance(node, ast.Name) else "...")

    def words(self, node: ast.expr) -> list[str] | None:
        """Return a list of words; ``None`` if the expression is not a list."""
        if not isinstance(node, (ast.List, ast.Tuple)):
            return None
        return ["${...}" if isinstance(each, ast.Starred) else self.text(each) for each in node.elts]

    def listed(self, node: ast.expr) -> list[str] | None:
        """Return the words of a list, or of a name that is set to one once; ``None`` if they are unknown."""
        items = self._list(node)
        return None if items is None else ["${...}" if isinstance(each, ast.Starred) else self.text(each) for each in items]

    def filled(self, line: str) -> str:
        """Substitute ``{expression}`` and ``$name`` in a shell line, as IPython does."""
        if len(line) > _WIDEST:
            return line
        result: list[str] = []
        at = 0
        tries = _TRIES
        while at < len(line):
            letter = line[at]
            if letter == "{" and tries and line[at - 1 : at] != "$":
                tries -= 1
                end = _closing(line, at)
                value = self._expression(line[at + 1 : end]) if end else None
                result.append(line[at : end + 1] if value is None and end else value or letter)
                at = end or at
            elif letter == "$" and self._name_at(line, at + 1) in self._bound:
                name = self._name_at(line, at + 1)
                result.append(_shown(self._named(name, 0), name))
                at += len(name)
            else:
                result.append(letter)
            at += 1
        return "".join(result)

    def _name_at(self, line: str, at: int) -> str:
        end = at
        while end < len(line) and end - at < 100 and (line[end].isalnum() or line[end] == "_"):
            end += 1
        return line[at:end]

    def _expression(self, text: str) -> str | None:
        """Return the value of an expression in braces; ``None`` if it is invalid or uses unknown names."""
        if not text.strip() or len(text) > _EXPRESSION:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                node = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
        return self.text(node) if _is_python(node) or any(name in self._bound for name in names) else None

    def _texts(self, node: ast.expr | None, depth: int) -> tuple[str, ...]:
        """Return the possible texts of an expression."""
        self._left -= 1
        if node is None or depth > _DEEPEST or self._left < 0:
            return _UNKNOWN
        if _is_python(node):
            return ("python",)
        match node:
            case ast.Constant(str() | int() | float() as value):
                return (str(value),)
            case ast.Name(name):
                return self._named(name, depth + 1)
            case ast.JoinedStr(parts):
                return _product([self._texts(part, depth + 1) for part in parts])
            case ast.FormattedValue(inner, -1, None):
                return self._texts(inner, depth + 1)
            case ast.BinOp(left, ast.Add(), right):
                return _product([self._texts(left, depth + 1), self._texts(right, depth + 1)])
            case ast.IfExp():
                return _united(self._texts(each, depth + 1) for each in (node.body, node.orelse))
            case ast.Call(ast.Attribute(between, "join"), [joined]):
                items = self._list(joined)
                if items is not None and len(items) <= 200:
                    texts = [text for each in items for text in (self._texts(between, depth + 1), self._texts(each, depth + 1))]
                    return _product(texts[1:])
        return _UNKNOWN

    def _named(self, name: str, depth: int) -> tuple[str, ...]:
        bound = self._bound.get(name, [])
        if not bound or len(bound) > _BINDINGS:
            return _UNKNOWN
        return _united(self._element(value, position, depth) for value, position in bound)

    def _element(self, value: ast.expr | None, position: int | None, depth: int) -> tuple[str, ...]:
        """Return a value, or an item of it."""
        if position is None or depth > _DEEPEST:
            return self._texts(value, depth + 1)
        if isinstance(value, ast.IfExp):
            return _united(self._element(each, position, depth + 1) for each in (value.body, value.orelse))
        if isinstance(value, (ast.Tuple, ast.List)) and position < len(value.elts):
            return self._texts(value.elts[position], depth + 1)
        return _UNKNOWN

    def _list(self, node: ast.expr) -> list[ast.expr] | None:
        if isinstance(node, ast.Name):
            bound = self._bound.get(node.id, [])
            node = bound[0][0] or node if len(bound) == 1 and bound[0][1] is None else node
        return node.elts if isinstance(node, (ast.List, ast.Tuple)) else None


def _is_python(node: ast.expr) -> bool:
    """Whether an expression is ``sys.executable``."""
    return isinstance(node, ast.Attribute) and node.attr == "executable"


def _united(ways: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(text for texts in ways for text in texts))
    return found if 0 < len(found) <= _MOST else _UNKNOWN


def _product(parts: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the concatenations of the parts' texts."""
    found: tuple[str, ...] = ("",)
    for texts in parts:
        if len(found) * len(texts) > _MOST or len(found[0]) > _LONGEST:
            texts = _UNKNOWN
        found = tuple(text + each for text in found for each in texts)
    return tuple(dict.fromkeys(found))


def _shown(texts: tuple[str, ...], label: str) -> str:
    """Return one text for all of them: if they name one distribution, its version becomes a variable."""
    variable = f"${{{label}}}"
    if len(texts) == 1:
        text = texts[0]
        if HOLE not in text:
            return text
        if text.count(HOLE) == 1:
            return text.replace(HOLE, variable)
    names = {leading_name(text.replace(HOLE, "$")) for text in texts}
    name = names.pop() if len(names) == 1 else None
    return f"{name}=={variable}" if name else variable


def _closing(line: str, at: int) -> int:
    """Return the index that closes the brace opened at ``at``; 0 if it is not closed, or too far away."""
    depth = 0
    for end in range(at, min(len(line), at + _EXPRESSION)):
        depth += (line[end] == "{") - (line[end] == "}")
        if depth == 0:
            return end
    return 0
