"""The strings that a Python expression may evaluate to, as far as the preceding code shows."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Sequence

from compat.formats.installs.words import leading_name
from compat.syntax.builtins import CHANGING
from compat.syntax.expressions import Expressions
from compat.syntax.values import MOST, Text, Unknown, Value, alternatives, joined, one_of

HOLE = "\x03"
"""A part of a text that is only known at run time."""
_BINDINGS = 20
_LONGEST = 4000
_WIDEST = 1 << 14
"""Characters of a shell line; longer ones are not read."""
_TRIES = 100
"""Most braces examined per line."""
_EXPRESSION = 300
"""Characters of an expression in braces."""


class Values(Expressions):
    """The possible texts of a notebook's names, from the assignments seen so far."""

    budget = 50_000
    deepest = 8

    def __init__(self) -> None:
        super().__init__({})
        self._bound: dict[str, list[tuple[ast.expr | None, int | None]]] = {}
        self.alternatives: set[str] = set()
        """The texts of expressions that have several."""
        self.computed = {"..."}
        """The names that the code sets, and that of any other expression: unless known, they are computed."""

    def _one(self, texts: tuple[str, ...], label: str) -> str:
        """Return one text for all of them, which are kept if there are several."""
        if len(texts) > 1:
            self.alternatives.update(texts)
        # if they name one distribution, its version becomes a variable
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

    def assign(self, target: ast.expr, value: ast.expr | None) -> None:
        """Record an assignment; ``None`` for a value that is only known at run time."""
        if isinstance(target, ast.Name):
            self._add(target.id, value, None)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, None)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for at, each in enumerate(target.elts):
                if isinstance(each, ast.Name):
                    self._add(each.id, value, at)
                else:
                    self.assign(each, None)

    def change(self, call: ast.Call, *, certain: bool) -> None:
        """Follow a call that changes a list: ``packages.append("trl")``. Any other change makes it unknown."""
        if (
            not isinstance(call.func, ast.Attribute)
            or call.func.attr not in CHANGING
            or not isinstance(call.func.value, ast.Name)
        ):
            return
        name, added = call.func.value.id, call.args[:1]
        bound = self._bound.get(name, [])
        known = bound[0][0] if len(bound) == 1 and bound[0][1] is None else None
        if certain and isinstance(known, ast.List) and added and call.func.attr in ("append", "extend"):
            more = added if call.func.attr == "append" else [ast.copy_location(ast.Starred(added[0], ast.Load()), call)]
            self._bound[name] = [(ast.copy_location(ast.List([*known.elts, *more], ast.Load()), call), None)]
        elif bound:
            self._add(name, None, None)

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
        return self._one(alternatives(self.value(node)) or (HOLE,), node.id if isinstance(node, ast.Name) else "...")

    def words(self, node: ast.expr) -> list[str] | None:
        """Return a list of words; ``None`` if the expression is not a list."""
        if not isinstance(node, (ast.List, ast.Tuple)):
            return None
        return ["${...}" if isinstance(each, ast.Starred) else self.text(each) for each in node.elts]

    def listed(self, node: ast.expr) -> list[str] | None:
        """Return the words of a list, or of a name that is set to one once; ``None`` if they are unknown."""
        bound = self._bound.get(node.id, []) if isinstance(node, ast.Name) else []
        return self.words(bound[0][0] or node if len(bound) == 1 and bound[0][1] is None else node)

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
                result.append(self._one(alternatives(self.named(name, 0)) or (HOLE,), name))
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

    # --- Evaluation. A name may have any of the values assigned to it so far; what is unknown leaves a hole in a text.

    def named(self, name: str, line: int) -> Value:
        if any(name in frame for frame in self.frames):  # of a comprehension
            return super().named(name, line)
        bound = self._bound.get(name, [])
        if not bound or len(bound) > _BINDINGS:
            return Unknown(line)
        self.depth += 1
        found = [self._element(value, position, line) for value, position in bound]
        self.depth -= 1
        return found[0] if len(found) == 1 else self._union(found, line)

    def _element(self, value: ast.expr | None, position: int | None, line: int) -> Value:
        """Return an assigned value, or an item of it."""
        if value is None:
            return Unknown(line)
        if position is None:
            return self.value(value)
        if isinstance(value, ast.IfExp):
            return self._union([self._element(each, position, line) for each in (value.body, value.orelse)], line)
        if isinstance(value, (ast.Tuple, ast.List)) and position < len(value.elts):
            return self.value(value.elts[position])
        return Unknown(line)

    def _union(self, values: Sequence[Value], line: int) -> Value:
        return one_of([text for value in values for text in alternatives(value) or (HOLE,)], line)

    def decided(self, test: ast.expr) -> bool | None:
        return None  # both outcomes are possible texts

    def either(self, left: Value, right: Value, line: int) -> Value:
        return self._union([left, right], line)

    def joined(self, parts: Sequence[Value], line: int, between: str = "") -> Value:
        count, length = 1, 0
        known: list[Value] = []
        for part in parts:
            texts = alternatives(part)
            if not texts or count * len(texts) > MOST or length > _LONGEST:
                part, texts = Text(HOLE, line), (HOLE,)
            known.append(part)
            count *= len(texts)
            length += len(texts[0])
        return joined(known, line, between)

    def _attribute(self, node: ast.Attribute) -> Value:
        return Text("python", node.lineno) if _is_python(node) else super()._attribute(node)


def _is_python(node: ast.expr) -> bool:
    """Whether an expression is ``sys.executable``."""
    return isinstance(node, ast.Attribute) and node.attr == "executable"


def _closing(line: str, at: int) -> int:
    """Return the index that closes the brace opened at ``at``; 0 if it is not closed, or too far away."""
    depth = 0
    for end in range(at, min(len(line), at + _EXPRESSION)):
        depth += (line[end] == "{") - (line[end] == "}")
        if depth == 0:
            return end
    return 0
