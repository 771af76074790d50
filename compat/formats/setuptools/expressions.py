"""The values of expressions in packaging code, without running it; what is not understood is unknown."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from compat.formats.requirements.requirement import name_at_start
from compat.formats.setuptools.builtins import of_text, path_function
from compat.formats.setuptools.values import (
    ByName,
    Function,
    Text,
    Unknown,
    Value,
    Variables,
    conditional,
    derived,
    has_unknown,
    is_true,
    items_of,
    joined,
    merged,
    path_of,
    size_of,
    texts_in,
)
from compat.model import normalized

_BUDGET = 60_000
"""Expressions and statements that are followed, and values that are copied."""
_DEEPEST = 30
"""Calls inside each other, and nested expressions."""
_METHODS = ("strip", "rstrip", "lstrip", "lower")
_PLAIN = (str, int, bool, type(None))


class Expressions:
    """Evaluates expressions with the variables of the code; calls are added by the derived class."""

    def __init__(self, variables: Variables) -> None:
        self.left = _BUDGET
        self._depth = 0
        self.frames: list[Variables] = [variables]
        """The variables of the module, and those of the function that is followed."""

    @property
    def is_too_deep(self) -> bool:
        return self._depth > _DEEPEST or len(self.frames) > _DEEPEST

    def value(self, node: ast.expr) -> Value:
        """Return the value of an expression."""
        self.left -= 1
        evaluate: Callable[[ast.expr], Value] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if self.left < 0 or self._depth > _DEEPEST or evaluate is None:
            return Unknown(node.lineno)
        self._depth += 1
        try:
            found = evaluate(node)
        finally:
            self._depth -= 1
        self.left -= size_of(found)
        return found

    def named(self, name: str, line: int) -> Value:
        """Return the value of a variable."""
        return next((frame[name] for frame in reversed(self.frames) if name in frame), Unknown(line))

    def bind(self, target: ast.expr, value: Value) -> None:
        """Assign a value to a variable, to several, or to an entry of a table."""
        if isinstance(target, ast.Name):
            self.frames[-1][target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            several = value if isinstance(value, list) and len(value) == len(target.elts) else None
            lost = value if isinstance(value, Unknown) else Unknown(target.lineno)
            for at, each in enumerate(target.elts):
                self.bind(each, lost if several is None else several[at])
        elif isinstance(target, ast.Subscript):
            table, name = self.value(target.value), self.value(target.slice)
            if isinstance(table, dict):
                table[_key(name, target.lineno)] = value

    def arguments(self, nodes: Sequence[ast.expr], line: int) -> list[Value]:
        """Return the values of arguments or items, with ``*lists`` expanded."""
        found: list[Value] = []
        for each in nodes:
            if isinstance(each, ast.Starred):
                found += items_of(self.value(each.value), line)
            else:
                found.append(self.value(each))
        return found

    # --- One method for each kind of expression, with its name.

    def _name(self, node: ast.Name) -> Value:
        return self.named(node.id, node.lineno)

    def _list(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        return self.arguments(node.elts, node.lineno)

    _tuple = _set = _list

    def _lambda(self, node: ast.Lambda) -> Value:
        return Function(node, self.frames[-1])

    def _joinedstr(self, node: ast.JoinedStr) -> Value:
        return joined([self.value(part) for part in node.values], node.lineno)

    def _namedexpr(self, node: ast.NamedExpr) -> Value:
        found = self.value(node.value)
        self.bind(node.target, found)
        return found

    def _constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, str):
            return Text(node.value, node.lineno, node=node)
        return node.value if node.value is None or isinstance(node.value, (bool, int, float)) else Unknown(node.lineno)

    def _dict(self, node: ast.Dict) -> Value:
        table: dict[str | Unknown, Value] = {}
        for key, value in zip(node.keys, node.values):
            found = self.value(value)
            if key is not None:
                table[_key(self.value(key), key.lineno)] = found
            else:
                table.update(found if isinstance(found, dict) else {Unknown(node.lineno): found})
        return table

    def _formattedvalue(self, node: ast.FormattedValue) -> Value:
        plain = node.conversion == -1 and node.format_spec is None
        return self.value(node.value) if plain else Unknown(node.lineno)

    def _binop(self, node: ast.BinOp) -> Value:
        line, operator = node.lineno, node.op
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(operator, (ast.Add, ast.BitOr)):
            if isinstance(left, list) or isinstance(right, list):
                return [*items_of(left, line), *items_of(right, line)]
            if isinstance(left, dict) and isinstance(right, dict):
                return {**left, **right}
            if isinstance(left, Unknown) and isinstance(right, Unknown):
                return [left, right]
            return joined([left, right], line) if isinstance(operator, ast.Add) else Unknown(line)
        if isinstance(operator, ast.Sub) and isinstance(left, list) and isinstance(right, list):
            gone = {each.value for each in texts_in(right)}
            return [each for each in left if not isinstance(each, Text) or each.value not in gone]
        if isinstance(operator, ast.Div):
            return path_of([left, right], line)
        if isinstance(operator, ast.Mod) and isinstance(left, Text):
            form = Text(left.value.replace("%s", "{}"), left.line)
            return of_text(form, "format", right if isinstance(right, list) else [right], line)
        return Unknown(line)

    def _ifexp(self, node: ast.IfExp) -> Value:
        decided = is_true(self.value(node.test))
        if decided is None:
            return merged(self.value(node.body), self.value(node.orelse), node.lineno, {})
        return self.value(node.body if decided else node.orelse)

    def _boolop(self, node: ast.BoolOp) -> Value:
        found: Value = None
        for each in node.values:
            found = self.value(each)
            decided = is_true(found)
            if decided is None:
                return Unknown(node.lineno)
            if decided == isinstance(node.op, ast.Or):
                break
        return found

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        found = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            decided = is_true(found)
            return Unknown(node.lineno) if decided is None else not decided
        return -found if isinstance(node.op, ast.USub) and isinstance(found, int) else Unknown(node.lineno)

    def _compare(self, node: ast.Compare) -> Value:
        line, operator = node.lineno, node.ops[0]
        left, right = self.value(node.left), self.value(node.comparators[0])
        if len(node.ops) > 1:
            return Unknown(line)
        if isinstance(operator, (ast.In, ast.NotIn)):
            if not isinstance(left, Text) or has_unknown(right):
                return Unknown(line)
            if isinstance(right, Text):
                return (left.value in right.value) == isinstance(operator, ast.In)
            if not isinstance(right, (list, dict)):
                return Unknown(line)
            inside = any(isinstance(each, Text) and each.value == left.value for each in items_of(right, line))
            return inside == isinstance(operator, ast.In)
        one, two = ((each.value if isinstance(each, Text) else each) for each in (left, right))
        equal = isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot))
        if equal and isinstance(one, _PLAIN) and isinstance(two, _PLAIN):
            return (one == two) == isinstance(operator, (ast.Eq, ast.Is))
        return Unknown(line)

    def _subscript(self, node: ast.Subscript) -> Value:
        owner, line = self.value(node.value), node.lineno
        if isinstance(node.slice, ast.Slice):
            bounds = [None if each is None else self.value(each) for each in (node.slice.lower, node.slice.upper)]
            start, stop = (each if isinstance(each, int) else None for each in bounds)
            if node.slice.step is not None or not all(each is None or isinstance(each, int) for each in bounds):
                return Unknown(line)
            if isinstance(owner, Text):
                return derived(owner, owner.value[start:stop])
            return owner[start:stop] if isinstance(owner, list) else Unknown(line)
        at = self.value(node.slice)
        if isinstance(owner, dict) and isinstance(at, Text):
            return owner.get(normalized(at.value) if isinstance(owner, ByName) else at.value, Unknown(line))
        if isinstance(owner, list) and isinstance(at, int) and -len(owner) <= at < len(owner):
            return owner[at]
        if isinstance(owner, Text) and isinstance(at, int) and -len(owner.value) <= at < len(owner.value):
            return derived(owner, owner.value[at])
        return owner if isinstance(owner, Unknown) and owner.file is not None else Unknown(line)

    def _attribute(self, node: ast.Attribute) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id == "str" and node.attr in _METHODS:
            method = ast.parse(f"lambda text: text.{node.attr}()", mode="eval").body
            assert isinstance(method, ast.Lambda)
            return Function(method, self.frames[0])
        found = self.value(node.value)
        if isinstance(found, Text):
            if node.attr == "parent":
                return path_function("dirname", [found], node.lineno)
            if node.attr in ("req", "requirement"):  # of what pip's own parser returns
                return found
        return Unknown(node.lineno)

    def _listcomp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        result: list[Value] = []
        self._comprehend(node.generators, lambda sure: result.append(self._unless(sure, node.elt)))
        return result

    _setcomp = _generatorexp = _listcomp

    def _unless(self, sure: bool, node: ast.expr) -> Value:
        found = self.value(node)
        return found if sure else conditional(found, node.lineno)

    def _comprehend(self, loops: Sequence[ast.comprehension], found: Callable[[bool], None], sure: bool = True) -> None:
        """Call ``found`` for each item, with whether every condition is decided."""
        first, *rest = loops
        for each in items_of(self.value(first.iter), first.target.lineno):
            self.bind(first.target, each)
            tests = [is_true(self.value(test)) for test in first.ifs]
            if False in tests:
                continue
            if rest:
                self._comprehend(rest, found, sure and None not in tests)
            else:
                found(sure and None not in tests)

    def _dictcomp(self, node: ast.DictComp) -> Value:
        """Return the table of a comprehension; requirements taken apart by a regular expression are a table by name."""
        over = node.generators[0].iter
        inner = over.generators[0].iter if isinstance(over, (ast.GeneratorExp, ast.ListComp)) else over
        if inner is not over and any(isinstance(each, ast.Name) and each.id == "re" for each in ast.walk(over)):
            names = {name_at_start(each.value): each for each in texts_in(self.value(inner))}
            return ByName((normalized(name), each) for name, each in names.items() if name is not None)
        table: dict[str | Unknown, Value] = {}

        def add(sure: bool) -> None:
            table[_key(self.value(node.key), node.lineno)] = self._unless(sure, node.value)

        self._comprehend(node.generators, add)
        return table


def _key(name: Value, line: int) -> str | Unknown:
    return name.value if isinstance(name, Text) else Unknown(line)
