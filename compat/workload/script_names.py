"""Walk the parts of a script that may run, in order, and resolve names and conditions from its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from compat.syntax.builtins import CHANGING
from compat.syntax.expressions import Expressions
from compat.syntax.values import Text, Unknown, Value
from compat.workload.draft import UNKNOWN, precision_word
from compat.workload.trainers import CONFIGS, TASKS

if TYPE_CHECKING:
    Scope: TypeAlias = tuple[int, ...]
    """The functions around a place, from the outermost; empty at module level."""
    Decider: TypeAlias = Callable[[ast.expr, Scope], bool | None]


_SIGNS = (ast.expr_context, ast.operator, ast.cmpop, ast.unaryop, ast.boolop)


class Visit:
    """A node, whether it is conditional, and its enclosing functions."""

    __slots__ = ("conditional", "node", "scope")

    def __init__(self, node: ast.AST, conditional: bool, scope: Scope) -> None:
        self.node = node
        self.conditional = conditional
        self.scope = scope


def visits(tree: ast.Module, decided: Decider) -> Iterator[Visit]:
    """Yield every node that may run, in source order; ``decided`` returns the result of a constant test, else ``None``."""
    waiting = [Visit(tree, conditional=False, scope=())]
    while waiting:
        visit = waiting.pop()
        yield visit
        waiting.extend(reversed([*_followed(visit, decided)]))


def _followed(visit: Visit, decided: Decider) -> Iterator[Visit]:
    node, conditional, scope = visit.node, visit.conditional, visit.scope
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield Visit(node.test, conditional, scope)
        yield from _branches(node, visit, decided(node.test, scope))
        return
    certain: list[ast.AST]
    unsure: list[ast.AST]
    if isinstance(node, ast.Try):
        certain, unsure = [*node.body, *node.orelse, *node.finalbody], [*node.handlers]
    elif isinstance(node, ast.Match):
        certain, unsure = [node.subject], [*node.cases]
    elif isinstance(node, ast.BoolOp):
        certain, unsure = [*node.values[:1]], [*node.values[1:]]
    else:
        certain, unsure = [child for child in ast.iter_child_nodes(node) if not isinstance(child, _SIGNS)], []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            scope = (*scope, id(node))
    for each in certain:
        yield Visit(each, conditional, scope)
    for each in unsure:
        yield Visit(each, conditional=True, scope=scope)


def _branches(node: ast.If | ast.IfExp | ast.While, visit: Visit, answer: bool | None) -> Iterator[Visit]:
    """Yield the branches of a test that may run; the body of a loop is assumed to run."""
    unsure = visit.conditional or (answer is None and not isinstance(node, ast.While))
    for part, skipped in ((node.body, answer is False), (node.orelse, answer is True)):
        for each in (part if isinstance(part, list) else [part]) if not skipped else []:
            yield Visit(each, unsure, visit.scope)


def literal_test(test: ast.expr, scope: Scope = ()) -> bool | None:
    """Return the result of a constant test: a literal, ``TYPE_CHECKING`` or the main guard; otherwise ``None``."""
    negated = False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, negated = test.operand, not negated
    answer = _plain_test(test)
    return None if answer is None else answer is not negated


def _plain_test(test: ast.expr) -> bool | None:
    if isinstance(test, ast.Constant):
        return bool(test.value)
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else None
    if name == "TYPE_CHECKING":
        return False
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__" and len(test.ops) == 1:
        other = test.comparators[0]
        if isinstance(test.ops[0], ast.Eq) and isinstance(other, ast.Constant):
            return other.value == "__main__"
    return None


def module_of(node: ast.ImportFrom) -> str:
    """Return the module of a ``from`` import; relative ones begin with dots."""
    return "." * node.level + (node.module or "")


# --- Resolving names in a script: imports, classes and constants, from its syntax tree alone


_DEPTH = 6
"""Maximum length of a chain of classes that derive from each other."""
_BINDINGS = 20
"""Maximum number of bindings considered per name."""
_STARRED = ("trl", "transformers", "unsloth", "vllm", "peft")


class Names:
    """The names of one script: their imports, base classes and assigned values."""

    def __init__(self, tree: ast.Module) -> None:
        self._imported: dict[str, str | None] = {}
        self._stars: list[str] = []
        self._bases: dict[str, list[ast.expr]] = {}
        self._bound: dict[tuple[Scope, str], list[tuple[ast.expr | None, Scope]]] = {}
        self._constants = _Constants(self)
        self._scope: Scope = ()
        """That of the expression that is evaluated."""
        for visit in visits(tree, literal_test):
            self._collect(visit.node, visit.scope)

    def test(self, test: ast.expr, scope: Scope) -> bool | None:
        """Like :func:`literal_test`, but also resolves names of constants."""
        answer = literal_test(test)
        if answer is None and isinstance(test, (ast.Name, ast.UnaryOp)):
            value = self.value(test, scope)
            answer = value if isinstance(value, bool) else None
        return answer

    def _collect(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._collect_import(node)
        elif isinstance(node, ast.ClassDef):
            self._bases[node.name] = node.bases
            for line in node.body:
                self._collect_attribute(node.name, line, scope)
        elif isinstance(node, ast.Assign):
            for each in node.targets:
                self._bind(each, node.value, scope)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            if node.value is not None:
                self._bind(node.target, node.value, scope)
        elif isinstance(node, (ast.AugAssign, ast.For, ast.AsyncFor, ast.comprehension)):
            self._bind(node.target, None, scope)
        elif isinstance(node, ast.withitem):
            if node.optional_vars is not None:
                self._bind(node.optional_vars, None, scope)
        else:
            for name, place in _unsettled(node, scope):
                self._bound.setdefault((place, name), []).append((None, place))

    def _collect_import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                name = alias.asname or alias.name.partition(".")[0]
                dotted = alias.name if alias.asname else name
            elif alias.name == "*":
                self._stars.append(module_of(node))
                continue
            else:
                name, dotted = alias.asname or alias.name, f"{module_of(node)}.{alias.name}"
            known = self._imported.get(name, dotted)
            same = known is not None and known.rpartition(".")[2] == dotted.rpartition(".")[2]
            self._imported[name] = dotted if same else None

    def _collect_attribute(self, owner: str, line: ast.stmt, scope: Scope) -> None:
        if isinstance(line, ast.Assign):
            pairs = [(each, line.value) for each in line.targets]
        elif isinstance(line, ast.AnnAssign) and line.value is not None:
            pairs = [(line.target, line.value)]
        else:
            return
        for each, value in pairs:
            if isinstance(each, ast.Name):
                self._bound.setdefault(((), f"{owner}.{each.id}"), []).append((value, scope))

    def _bind(self, place: ast.expr, value: ast.expr | None, scope: Scope) -> None:
        if isinstance(place, ast.Name):
            self._bound.setdefault((scope, place.id), []).append((value, scope))
        elif isinstance(place, (ast.Tuple, ast.List)):
            for each in place.elts:
                self._bind(each, None, scope)
        elif isinstance(place, ast.Starred):
            self._bind(place.value, None, scope)
        elif isinstance(place, ast.Subscript) and isinstance(place.value, ast.Name):
            name = place.value.id
            self._bound.setdefault((self._home(name, scope), name), []).append((None, scope))
        elif isinstance(place, ast.Attribute) and isinstance(place.value, ast.Name):
            self._bound.setdefault(((), f"{place.value.id}.{place.attr}"), []).append((value, scope))

    def _home(self, name: str, scope: Scope) -> Scope:
        """Return the innermost scope that binds a name; the module scope if none does."""
        while scope and (scope, name) not in self._bound:
            scope = scope[:-1]
        return scope

    def dotted(self, node: ast.expr) -> str | None:
        """Return the qualified name an expression refers to (``"trl.SFTTrainer"``), or ``None`` if it cannot be resolved."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) < 20:
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        if node.id in self._imported:
            first = self._imported[node.id]
        elif node.id in self._bases:
            first = node.id
        else:
            star = next((module for module in self._stars if module.partition(".")[0] in _STARRED), None)
            first = None if star is None or ((), node.id) in self._bound else f"{star}.{node.id}"
        return None if first is None else ".".join((first, *reversed(parts)))

    def library_class(self, dotted: str | None) -> str | None:
        """Return the library class that a class derives from, or the class itself if the script does not define it."""
        for _ in range(_DEPTH):
            if dotted is None or dotted not in self._bases:
                return dotted
            found = [name for base in self._bases[dotted] if (name := self.dotted(base)) is not None and name != dotted]
            telling = [name for name in found if name.rpartition(".")[2] in TASKS or name.rpartition(".")[2] in CONFIGS]
            dotted = next(iter(telling or found), None)
        return None

    def value(self, node: ast.expr | None, scope: Scope) -> object:
        """Evaluate a constant, or return :data:`UNKNOWN`; mappings may hold unknown values, a torch dtype yields its name."""
        return UNKNOWN if node is None else _plain(self._within(node, scope))

    def keywords(self, call: ast.Call, scope: Scope) -> dict[str, object]:
        """Return the keyword arguments of a call, with ``**table`` expanded if the table is a constant."""
        found: dict[str, object] = {}
        for keyword in call.keywords:
            value = self.value(keyword.value, scope)
            if keyword.arg is not None:
                found[keyword.arg] = value
            elif isinstance(value, dict):
                found.update(value)
        return found

    def agreed(self, name: str, line: int) -> Value:
        """Return the value of a name, if all that is assigned to it anywhere in its scope is equal."""
        return self._agreed((self._home(name, self._scope), name), line)

    def attribute_of(self, node: ast.Attribute) -> Value:
        """Return the value of ``Class.attribute``, or the name of a torch dtype."""
        dotted = self.dotted(node)
        if dotted is not None and ((), dotted) in self._bound:
            return self._agreed(((), dotted), node.lineno)
        is_type = dotted is not None and dotted.startswith("torch.") and precision_word(dotted)
        return Text(dotted, node.lineno) if dotted is not None and is_type else Unknown(node.lineno)

    def decided(self, test: ast.expr) -> bool | None:
        return self.test(test, self._scope)

    def _within(self, node: ast.expr, scope: Scope) -> Value:
        around, self._scope = self._scope, scope
        found = self._constants.value(node)
        self._scope = around
        return found

    def _agreed(self, key: tuple[Scope, str], line: int) -> Value:
        bound = self._bound.get(key, [])
        values = [Unknown(line) if each is None else self._within(each, place) for each, place in bound[:_BINDINGS]]
        if not values or len(bound) > _BINDINGS:
            return Unknown(line)
        first, *others = map(_plain, values)
        same = first is not UNKNOWN and all(type(each) is type(first) and each == first for each in others)
        return values[0] if same else Unknown(line)


class _Constants(Expressions):
    """The constants of a script: a name that has several values, or one that is only known at run time, is unknown."""

    budget = 300_000
    deepest = 6

    def __init__(self, names: Names) -> None:
        super().__init__({})
        self._names = names

    def named(self, name: str, line: int) -> Value:
        known = next((frame[name] for frame in reversed(self.frames) if name in frame), None)  # of a comprehension
        return self._names.agreed(name, line) if known is None else known

    def decided(self, test: ast.expr) -> bool | None:
        return self._names.decided(test)

    def either(self, left: Value, right: Value, line: int) -> Value:
        first, second = _plain(left), _plain(right)
        return left if type(first) is type(second) and first == second else Unknown(line)

    def _attribute(self, node: ast.Attribute) -> Value:
        return self._names.attribute_of(node)


def _plain(value: Value) -> object:
    """Return a value as Python has it, with :data:`UNKNOWN` for what is unknown, and without the unknown keys of tables."""
    if isinstance(value, Text):
        return value.value
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items() if isinstance(key, str)}
    return value if value is None or isinstance(value, (bool, int, float)) else UNKNOWN


def _unsettled(node: ast.AST, scope: Scope) -> list[tuple[str, Scope]]:
    """Return the names that a node binds to unknown values, with their scope."""
    if isinstance(node, ast.arg):
        return [(node.arg, scope)]
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return [(name, scope[:at]) for name in node.names for at in range(len(scope))]
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING):
        return []
    owner = node.func.value
    return [(owner.id, scope[:at]) for at in range(len(scope) + 1)] if isinstance(owner, ast.Name) else []
