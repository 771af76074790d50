"""The values of Python expressions, computed from their syntax tree; nothing is run, and what is not understood is unknown.

Packaging code, notebooks and training scripts are evaluated here. What a name stands for, and what else may be called, is the
business of the class derived for each of them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from compat.syntax.builtins import built_in, of_file, of_list, of_table, of_text, path_function
from compat.syntax.values import (
    File,
    Function,
    Table,
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

_METHODS = ("strip", "rstrip", "lstrip", "lower")
_PLAIN = (str, int, bool, type(None))
_WIDEST = 1 << 60
"""The largest numbers that are calculated with."""


class Expressions:
    """Evaluates expressions with the variables of the code.

    ``budget`` is how many expressions are evaluated at most, including the cost of going through large values; ``deepest`` is
    how deeply expressions, and names that refer to names, may be nested. The rest is unknown.
    """

    budget = 60_000
    deepest = 30

    def __init__(self, variables: Variables) -> None:
        self.left = self.budget
        self.depth = 0
        self.frames: list[Variables] = [variables]
        """The variables of the module, and those of the functions and comprehensions that are followed."""

    @property
    def is_too_deep(self) -> bool:
        return self.depth > self.deepest or len(self.frames) > self.deepest

    def value(self, node: ast.expr) -> Value:
        self.left -= 1
        evaluate: Callable[[ast.expr], Value] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if self.left < 0 or self.depth > self.deepest or evaluate is None:
            return Unknown(node.lineno)
        self.depth += 1
        try:
            found = evaluate(node)
        finally:
            self.depth -= 1
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
                table[key_of(name, target.lineno)] = value

    def joined(self, parts: Sequence[Value], line: int, between: str = "") -> Value:
        """Concatenate texts."""
        return joined(parts, line, between)

    def either(self, left: Value, right: Value, line: int) -> Value:
        """Return what is known of a value that is one of two."""
        return merged(left, right, line, {})

    def decided(self, test: ast.expr) -> bool | None:
        """Return the outcome of a condition; ``None`` if it is undecided."""
        return is_true(self.value(test))

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
        return Function(node, tuple(self.frames))

    def _joinedstr(self, node: ast.JoinedStr) -> Value:
        return self.joined([self.value(part) for part in node.values], node.lineno)

    def _constant(self, node: ast.Constant) -> Value:
        if isinstance(node.value, str):
            return Text(node.value, node.lineno, node=node)
        return node.value if node.value is None or isinstance(node.value, (bool, int, float)) else Unknown(node.lineno)

    def _dict(self, node: ast.Dict) -> Value:
        table: Table = {}
        for key, value in zip(node.keys, node.values):
            found = self.value(value)
            if key is not None:
                table[key_of(self.value(key), key.lineno)] = found
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
            if isinstance(operator, ast.Add) and not (isinstance(left, (int, float)) and isinstance(right, (int, float))):
                return self.joined([left, right], line)
        if type(left) is int and type(right) is int and max(abs(left), abs(right)) <= _WIDEST:
            return _calculated(left, operator, right, line)
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
        decided = self.decided(node.test)
        if decided is None:
            return self.either(self.value(node.body), self.value(node.orelse), node.lineno)
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
        return -found if isinstance(node.op, ast.USub) and isinstance(found, (int, float)) else Unknown(node.lineno)

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
            return owner.get(at.value, Unknown(line))
        if isinstance(owner, list) and isinstance(at, int) and -len(owner) <= at < len(owner):
            return owner[at]
        if isinstance(owner, Text) and isinstance(at, int) and -len(owner.value) <= at < len(owner.value):
            return derived(owner, owner.value[at])
        return owner if isinstance(owner, Unknown) and owner.file is not None else Unknown(line)

    def _attribute(self, node: ast.Attribute) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id == "str" and node.attr in _METHODS:
            method = ast.parse(f"lambda text: text.{node.attr}()", mode="eval").body
            assert isinstance(method, ast.Lambda)
            return Function(method, ())
        return self.attribute(self.value(node.value), node.attr, node.lineno)

    def attribute(self, owner: Value, name: str, line: int) -> Value:
        return path_function("dirname", [owner], line) if isinstance(owner, Text) and name == "parent" else Unknown(line)

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
        items = items_of(self.value(first.iter), first.target.lineno)
        self.frames.append({})
        for each in items:
            self.bind(first.target, each)
            tests = [is_true(self.value(test)) for test in first.ifs]
            if False in tests:
                continue
            if rest:
                self._comprehend(rest, found, sure and None not in tests)
            else:
                found(sure and None not in tests)
        self.frames.pop()

    def _dictcomp(self, node: ast.DictComp) -> Value:
        table: Table = {}

        def add(sure: bool) -> None:
            table[key_of(self.value(node.key), node.lineno)] = self._unless(sure, node.value)

        self._comprehend(node.generators, add)
        return table

    # --- Calls: methods of values, and functions of Python itself.

    def _call(self, node: ast.Call) -> Value:
        line, name = node.lineno, dotted_name(node.func)
        args = self.arguments(node.args, line)
        of_module = name and isinstance(self.named(name.partition(".")[0], line), Unknown)
        if isinstance(node.func, ast.Attribute) and not of_module:
            return self.method(self.value(node.func.value), node.func.attr, args, self.keywords(node), line)
        return self.function(name, args, self.keywords(node), line)

    def keywords(self, node: ast.Call) -> Table:
        """Return the keyword arguments of a call, with ``**tables`` expanded."""
        found: Table = {}
        for given in node.keywords:
            value = self.value(given.value)
            if given.arg is not None:
                found[given.arg] = value
            else:
                found.update(value if isinstance(value, dict) else {Unknown(node.lineno): value})
        return found

    def method(self, owner: Value, name: str, args: list[Value], options: Table, line: int) -> Value:
        """Return what a method of a value returns."""
        if isinstance(owner, Text):
            if name == "join" and args:
                return self.joined(items_of(args[0], line), line, owner.value)
            return of_text(owner, name, args, line)
        self.left -= size_of(owner)
        if isinstance(owner, list):
            return of_list(owner, name, args, line)
        if isinstance(owner, dict):
            return of_table(owner, name, [*args, *([options] if options and name == "update" else [])], line)
        return of_file(owner, name, line) if isinstance(owner, File) else Unknown(line)

    def function(self, name: str, args: list[Value], options: Table, line: int) -> Value:
        """Return what a function returns that the code does not define itself, by its dotted name."""
        return built_in(name, args, options, line, lambda each, given: self.run(each, given, {}, line))

    def run(self, function: Value, args: Sequence[Value], options: Table, line: int) -> Value:
        """Return what a function of the code returns: unknown, unless a derived class follows it."""
        return Unknown(line)


def key_of(name: Value, line: int) -> str | Unknown:
    """Return the key of a table for a value."""
    return name.value if isinstance(name, Text) else Unknown(line)


def dotted_name(node: ast.expr) -> str:
    """Return ``os.path.join`` for such an expression, else ""."""
    if isinstance(node, ast.Name):
        return node.id
    owner = dotted_name(node.value) if isinstance(node, ast.Attribute) else ""
    return f"{owner}.{node.attr}" if owner and isinstance(node, ast.Attribute) else ""


def _calculated(left: int, operator: ast.operator, right: int, line: int) -> Value:
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.Mult):
        return left * right
    return left // right if isinstance(operator, ast.FloorDiv) and right else Unknown(line)
