"""Decorators that take keywords the functions below them do not: old names that they translate, or drop with a warning."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compat.read.python_source.trees import dotted, identifiers, walk

_LOOKS = frozenset(("items", "keys", "values", "copy"))
_READS = frozenset(("pop", "get", "setdefault"))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def wrappers_in(tree: ast.Module) -> dict[str, tuple[str, ...] | None]:
    """Functions of a module that, used as decorators, look into ``**kwargs``: the keywords they may take out of it.

    All texts that could be names count; ``None`` where it cannot be told. Decorators that hand ``**kwargs`` on as it is are
    left out, and so are those that are called first: their own arguments name what they take.
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
    """The functions defined in a function, not those in these."""
    waiting: list[ast.AST] = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            yield node
        elif not isinstance(node, (ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)


class _Looks:
    """What a wrapper does with ``**kwargs``: ``any``: it looks inside; not ``plain``: nobody can follow it."""

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
