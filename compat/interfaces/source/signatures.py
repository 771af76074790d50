"""The parameters of functions, how they use their ``**kwargs``, and the decorators that change what they accept."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compat.interfaces.source.records import Signature
from compat.interfaces.source.scopes import decorators, dotted_name, identifiers, walk

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_READS = frozenset(("pop", "get", "setdefault"))
_LOOKS = frozenset(("items", "keys", "values", "copy"))


def signature_of(node: FunctionNode) -> Signature:
    given = node.args
    extra: list[str] = []
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call):
            extra += identifiers(decorator)
    forwards = None
    if given.kwarg is not None:
        followed = _Forwarded(given.kwarg.arg)
        followed.read(node)
        extra += followed.keys
        forwards = tuple(sorted(followed.targets)) if followed.plain else None
    return Signature(
        tuple(each.arg for each in (*given.posonlyargs, *given.args)), len(given.defaults),
        tuple(each.arg for each in given.kwonlyargs),
        tuple(each.arg for each, default in zip(given.kwonlyargs, given.kw_defaults) if default is None),
        given.vararg is not None, given.kwarg is not None, tuple(sorted(set(extra))), forwards, decorators(node),
    )  # fmt: skip


class _Kwargs:
    """Follows ``**kwargs`` through a body. ``plain``: every use of it is understood."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.plain = True
        self._understood = 0

    def read(self, function: FunctionNode) -> None:
        seen = 0
        for statement in function.body:
            for node in walk(statement):
                if isinstance(node, ast.Name) and node.id == self._name:
                    seen += 1
                    self._bound(node)
                elif isinstance(node, ast.Call):
                    self._call(node)
                elif isinstance(node, ast.Subscript) and self._is_it(node.value):
                    self._key(node.slice)
                elif isinstance(node, ast.Compare):
                    self._compare(node)
        self.plain = self.plain and seen <= self._understood

    def _is_it(self, node: ast.AST) -> bool:
        return isinstance(node, ast.Name) and node.id == self._name

    def _bound(self, node: ast.Name) -> None:
        """Read an occurrence of the name alone."""

    def _call(self, node: ast.Call) -> None:
        raise NotImplementedError

    def _key(self, node: ast.AST) -> None:
        raise NotImplementedError

    def _compare(self, node: ast.Compare) -> None:
        raise NotImplementedError


class _Forwarded(_Kwargs):
    """The callees that receive ``**kwargs``, and the keys that are read from it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.targets: set[str] = set()
        self.keys: list[str] = []

    def _call(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg is None and self._is_it(keyword.value):
                self._understood += 1
                target = dotted_name(node.func)
                if target is None:
                    self.plain = False
                else:
                    self.targets.add(target)
        method = node.func
        if isinstance(method, ast.Attribute) and self._is_it(method.value) and method.attr in _READS and node.args:
            self._key(node.args[0])

    def _compare(self, node: ast.Compare) -> None:
        """Read ``"key" in kwargs``; strings compared with other values may be keys in a loop over it."""
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            self._understood += any(self._is_it(each) for each in node.comparators)
            self.keys.append(node.left.value)

    def _key(self, node: ast.AST) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._understood += 1
            self.keys.append(node.value)


# --- Decorators that accept keywords the decorated function does not: old names that they translate, or drop with a warning.


def wrappers_in(tree: ast.Module) -> dict[str, tuple[str, ...] | None]:
    """Return the decorators defined in a module that inspect ``**kwargs``, with the keywords that they may consume.

    All strings that could be names count; ``None`` if unknown. Decorators that pass ``**kwargs`` on unchanged are omitted, and
    so are decorator factories: their own arguments name the keywords.
    """
    functions = {each.name: each for each in tree.body if isinstance(each, FunctionNode)}
    found: dict[str, tuple[str, ...] | None] = {}
    for name, function in functions.items():
        for inner in _inside(function):
            if inner.args.kwarg is not None:
                looks = _Inspected(inner.args.kwarg.arg, functions)
                looks.read(inner)
                if not looks.plain:
                    found[name] = None
                elif looks.any and name not in found:
                    found[name] = tuple(sorted({*identifiers(function), *looks.names}))
    return found


def _inside(function: ast.AST) -> Iterator[FunctionNode]:
    """Yield the functions defined directly in a function."""
    waiting: list[ast.AST] = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, FunctionNode):
            yield node
        elif not isinstance(node, (ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)


class _Inspected(_Kwargs):
    """Whether a wrapper inspects ``**kwargs`` (``any``), and the ``names`` in the helpers that it passes it to."""

    def __init__(self, name: str, functions: dict[str, FunctionNode]) -> None:
        super().__init__(name)
        self._functions = functions
        self.any = False
        self.names: list[str] = []

    def _bound(self, node: ast.Name) -> None:
        self._understood += isinstance(node.ctx, ast.Store)

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
            helper = self._functions.get(dotted_name(called) or "")
            if self._is_it(given) and helper is not None:
                self.names += identifiers(helper)
                self._look()

    def _compare(self, node: ast.Compare) -> None:
        if any(self._is_it(each) for each in node.comparators):
            self._key(node.left)

    def _key(self, node: ast.AST) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._look()

    def _look(self) -> None:
        self.any = True
        self._understood += 1
