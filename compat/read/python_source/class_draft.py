"""A class as it is put together while its body is walked."""

from __future__ import annotations

import ast

from compat.read.python_source.records import Class, Function, SelfCall
from compat.read.python_source.scopes import Scopes
from compat.read.python_source.trees import decorators, dotted, walk


class ClassDraft:
    """Bases and class-level names at once, methods and what is set on ``self`` as they come."""

    def __init__(self, node: ast.ClassDef, scopes: Scopes, *, at_top: bool) -> None:
        self.name, self.line, self.at_top = node.name, node.lineno, at_top
        self.bases = tuple(_base(base, scopes) for base in node.bases)
        self.dynamic = bool(node.keywords)
        self.decorators = decorators(node)
        self.fields: list[tuple[str, bool]] = []
        self.attributes: set[str] = set()
        for statement in _statements(node):
            self._attribute(statement)
        self.methods: dict[str, Function] = {}
        self.instance: set[str] = set()
        self.made: dict[str, str] = {}
        self._calls: list[SelfCall] = []

    def _attribute(self, statement: ast.AST) -> None:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            self.attributes.add(statement.target.id)
            if not any(isinstance(each, ast.Name) and each.id == "ClassVar" for each in walk(statement.annotation)):
                self.fields.append((statement.target.id, statement.value is not None))
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                self.attributes |= {each.id for each in walk(target) if isinstance(each, ast.Name)}
        elif isinstance(statement, ast.ClassDef):
            self.attributes.add(statement.name)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            self.attributes |= {alias.asname or alias.name for alias in statement.names}

    def add_call(self, call: SelfCall) -> None:
        self._calls.append(call)

    def done(self) -> Class:
        return Class(
            self.line, self.bases, self.methods, tuple(self.fields), tuple(sorted(self.attributes)),
            tuple(sorted(self.instance)), self.made, tuple(self._calls), self.decorators,
            self.dynamic or "__getattr__" in self.methods or "__getattribute__" in self.methods,
        )  # fmt: skip


def _base(node: ast.expr, scopes: Scopes) -> str:
    chain = dotted(node.value if isinstance(node, ast.Subscript) else node)
    if chain is None:
        return "?"
    return scopes.place(chain) or (f"builtins.{chain}" if "." not in chain else "?")


def _statements(node: ast.ClassDef) -> list[ast.stmt]:
    """The class body, with what is under conditions in it."""
    found: list[ast.stmt] = []
    waiting: list[ast.stmt] = list(node.body)
    while waiting:
        statement = waiting.pop(0)
        if isinstance(statement, ast.If):
            waiting += [*statement.body, *statement.orelse]
        elif isinstance(statement, ast.Try):
            waiting += [*statement.body, *(each for handler in statement.handlers for each in handler.body), *statement.orelse]
        elif isinstance(statement, ast.With):
            waiting += statement.body
        else:
            found.append(statement)
    return found
