"""The parts of a script that may run, in order, with what is told from the text about when they do."""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    Scope: TypeAlias = tuple[int, ...]
    """The functions around a place, from the outermost; empty at module level."""
    Decider: TypeAlias = Callable[[ast.expr, Scope], bool | None]

_SIGNS = (ast.expr_context, ast.operator, ast.cmpop, ast.unaryop, ast.boolop)


class Visit:
    """A node, whether it is reached only under a condition, and the functions it stands in."""

    __slots__ = ("conditional", "node", "scope")

    def __init__(self, node: ast.AST, conditional: bool, scope: Scope) -> None:
        self.node = node
        self.conditional = conditional
        self.scope = scope


def visits(tree: ast.Module, decided: Decider) -> Iterator[Visit]:
    """Every node that may run, in the order of the source; ``decided`` tells the answer of a test that is a constant."""
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
    """What runs in dependence of a test; the body of a loop is taken to run."""
    unsure = visit.conditional or (answer is None and not isinstance(node, ast.While))
    for part, skipped in ((node.body, answer is False), (node.orelse, answer is True)):
        for each in (part if isinstance(part, list) else [part]) if not skipped else []:
            yield Visit(each, unsure, visit.scope)


def literal_test(test: ast.expr, scope: Scope = ()) -> bool | None:
    """The answer of ``if`` where it does not depend on anything: constants, ``TYPE_CHECKING``, the main guard."""
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
    """The module a ``from`` import names; relative ones begin with dots."""
    return "." * node.level + (node.module or "")
