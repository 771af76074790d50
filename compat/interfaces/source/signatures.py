"""The parameters of a function, and how it uses its ``**kwargs``."""

from __future__ import annotations

import ast

from compat.interfaces.source.records import Signature
from compat.interfaces.source.scopes import decorators, dotted, identifiers, walk

_READS = frozenset(("pop", "get", "setdefault"))


def signature_of(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Signature:
    given = node.args
    extra: list[str] = []
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            extra += identifiers(decorator)
    forwards = None
    if given.kwarg is not None:
        flow = _Flow(given.kwarg.arg)
        flow.read(node)
        extra += flow.read_keys
        forwards = tuple(sorted(flow.targets)) if flow.plain else None
    return Signature(
        tuple(each.arg for each in (*given.posonlyargs, *given.args)), len(given.defaults),
        tuple(each.arg for each in given.kwonlyargs),
        tuple(each.arg for each, default in zip(given.kwonlyargs, given.kw_defaults) if default is None),
        given.vararg is not None, given.kwarg is not None, tuple(sorted(set(extra))), forwards, decorators(node),
    )  # fmt: skip


class _Flow:
    """Follows ``**kwargs`` through a body. ``plain``: it is only read by key and forwarded."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.targets: set[str] = set()
        self.read_keys: list[str] = []
        self.plain = True
        self._understood = 0

    def read(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        seen = 0
        for statement in function.body:
            for node in walk(statement):
                if isinstance(node, ast.Name) and node.id == self.name:
                    seen += 1
                elif isinstance(node, ast.Call):
                    self._call(node)
                elif isinstance(node, ast.Subscript) and self._is_it(node.value):
                    self._subscript(node)
                elif isinstance(node, ast.Compare):
                    self._compare(node)
        if seen > self._understood:
            self.plain = False

    def _is_it(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == self.name

    def _call(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg is None and self._is_it(keyword.value):
                self._understood += 1
                target = dotted(node.func)
                if target is None:
                    self.plain = False
                else:
                    self.targets.add(target)
        method = node.func
        if isinstance(method, ast.Attribute) and self._is_it(method.value) and method.attr in _READS and node.args:
            self._key(node.args[0])

    def _subscript(self, node: ast.Subscript) -> None:
        self._key(node.slice)

    def _compare(self, node: ast.Compare) -> None:
        """Read ``"key" in kwargs``; strings compared with other values may be keys in a loop over it."""
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            if any(self._is_it(each) for each in node.comparators):
                self._understood += 1
            self.read_keys.append(node.left.value)

    def _key(self, node: ast.AST) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._understood += 1
            self.read_keys.append(node.value)
