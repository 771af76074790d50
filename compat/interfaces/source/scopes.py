"""Helpers for syntax trees, and the scopes, class drafts and uses collected while walking one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compat.interfaces.source.records import Call, Class, Function, Import, SelfCall


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the node and all its descendants in arbitrary order, without recursion."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        for value in node.__dict__.values():
            if type(value) is list:
                waiting += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST):
                waiting.append(value)


def dotted_name(node: ast.AST) -> str | None:
    """Return ``a.b.c`` for a plain chain of names, ``super().m`` for one that starts with ``super()``; ``None`` otherwise."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    elif parts and isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super":
        parts.append("super()")
    else:
        return None
    return ".".join(reversed(parts))


def decorators(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> tuple[str, ...]:
    """Return the last name of each decorator, called or not; ``?`` for an expression."""
    called = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    return tuple((dotted_name(each) or "?").rpartition(".")[2] for each in called)


def strings(node: ast.AST) -> list[str]:
    """Return every string constant below a node."""
    return [each.value for each in walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def identifiers(node: ast.AST) -> list[str]:
    """Return every string constant below a node that is a valid identifier."""
    return [text for text in strings(node) if text.isidentifier()]


def text_of(node: ast.AST) -> str | None:
    """Return the text of a string, an f-string (with ``…`` for inserted values) or concatenated strings, else ``None``."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(str(each.value) if isinstance(each, ast.Constant) else "…" for each in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left), text_of(node.right)
        return left + right if left is not None and right is not None else None
    return None


# --- The meaning of a name at a place in a module: imports, local classes, objects created from classes.


UNKNOWN = ""


class Scope:
    """One namespace. ``names`` maps to dotted places (:data:`UNKNOWN` for a variable), ``types`` to the class of an object."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.names: dict[str, str] = {}
        self.types: dict[str, tuple[str, str]] = {}
        self.tables: dict[str, list[tuple[str, int]]] = {}
        """Keys of local dictionaries, with the flags under which each is set."""


class Scopes:
    """The namespaces enclosing a place, outermost (the module's) first."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.all = [Scope("module")]

    @property
    def here(self) -> Scope:
        return self.all[-1]

    def bind(self, name: str, place: str = UNKNOWN, *, kind: str | None = None, of: str = "") -> None:
        """Bind a name in the innermost scope; ``kind`` marks an object ``made`` from or ``typed`` as class ``of``."""
        here = self.here
        here.names[name] = place
        here.tables.pop(name, None)
        if kind is not None:
            here.types[name] = (kind, of)
        else:
            here.types.pop(name, None)

    def place(self, dotted: str) -> str | None:
        """Resolve a chain of names to an absolute name; ``None`` if it starts with a variable or an unknown name."""
        first, _, rest = dotted.partition(".")
        found = self._scope_of(first)
        place = found.names[first] if found is not None else UNKNOWN
        if not place:
            return None
        return f"{place}.{rest}" if rest else place

    def type_of(self, name: str) -> tuple[str, str] | None:
        """Return how the class of the object in a variable is known (``made`` or ``typed``), and the class."""
        found = self._scope_of(name)
        return found.types.get(name) if found is not None else None

    def keys_of(self, name: str) -> list[tuple[str, int]] | None:
        found = self._scope_of(name)
        return found.tables.get(name) if found is not None else None

    def _scope_of(self, name: str) -> Scope | None:
        """Return the scope that binds a name; names of a class body are visible only in that body."""
        for scope in reversed(self.all):
            if name in scope.names and (scope.kind != "class" or scope is self.all[-1]):
                return scope
        return None


# --- A class as it is collected while its body is walked.


class ClassDraft:
    """Collects a class: bases and class-level names on creation, methods and attributes of ``self`` during the walk."""

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
    chain = dotted_name(node.value if isinstance(node, ast.Subscript) else node)
    if chain is None:
        return "?"
    return scopes.place(chain) or (f"builtins.{chain}" if "." not in chain else "?")


def _statements(node: ast.ClassDef) -> list[ast.stmt]:
    """Return the statements of the class body, including those under conditions."""
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


# --- What a module uses, recorded as its tree is walked: imports, calls, dotted names and assignments to other packages.


class Conditions:
    """The state of the walk: flags, the packages tested for, the enclosing classes and functions."""

    def __init__(self) -> None:
        self.flags = 0
        self.asks: tuple[str, ...] = ()
        self.where: list[str] = []
        self.classes: list[ClassDraft] = []

    @property
    def scope(self) -> str:
        return ".".join(self.where[:2])


class Uses:
    """Collects imports, calls and names, except names of the module's own package."""

    def __init__(self, module: str, scopes: Scopes, now: Conditions) -> None:
        self._own = module.partition(".")[0] + "."
        self._scopes, self._now = scopes, now
        self.imports: list[Import] = []
        self.calls: list[Call] = []
        self.names: dict[tuple[str, int, str, bool, tuple[str, ...]], int] = {}
        """(target, flags, scope, whether it is assigned to, packages tested for) → the first line."""

    def note_import(self, module: str, name: str | None, line: int) -> None:
        self.imports.append(Import(module, name, self._now.flags, line, self._now.scope, self._now.asks))

    def note_name(self, node: ast.Attribute) -> bool:
        """Record a name that is read; return whether its chain resolves to an absolute name."""
        place = self._place(node)
        if place is not None and not place.startswith(self._own):
            self._note(place, node.lineno, stored=False)
        return place is not None

    def note_stored(self, node: ast.Attribute) -> bool:
        place = self._place(node)
        if place is not None:
            self._note(place, node.lineno, stored=True)
        return place is not None

    def note_call(self, node: ast.Call) -> None:
        chain = dotted_name(node.func)
        if chain is None:
            return
        callee = self._callee(chain)
        if callee is not None:
            self._call(node, *callee)
        if chain in ("setattr", "monkeypatch.setattr") and len(node.args) > 1:
            place, name = self._place(node.args[0]), node.args[1]
            if place is not None and isinstance(name, ast.Constant) and isinstance(name.value, str):
                self._note(f"{place}.{name.value}", node.lineno, stored=True)

    def _place(self, node: ast.AST) -> str | None:
        chain = dotted_name(node)
        return self._scopes.place(chain) if chain else None

    def _note(self, place: str, line: int, *, stored: bool) -> None:
        self.names.setdefault((place, self._now.flags, self._now.scope, stored, self._now.asks), line)

    def _call(self, node: ast.Call, kind: str, target: str, of: str) -> None:
        now = self._now
        keywords = tuple(keyword.arg for keyword in node.keywords if keyword.arg)
        star = any(isinstance(argument, ast.Starred) for argument in node.args)
        positional = sum(not isinstance(argument, ast.Starred) for argument in node.args)
        spread = [keyword.value for keyword in node.keywords if keyword.arg is None]
        if kind == "self" and "." not in target:
            now.classes[-1].add_call(SelfCall(target, positional, keywords, star, bool(spread), now.flags, node.lineno))
        shape = positional, keywords, star, bool(spread), now.flags, node.lineno, now.scope
        self.calls.append(Call(kind, target, of, *shape))
        for table in spread:
            for key, flags in (self._scopes.keys_of(table.id) if isinstance(table, ast.Name) else None) or ():
                one = 0, (key,), True, True, now.flags | flags, node.lineno, now.scope
                self.calls.append(Call(kind, target, of, *one))

    def _callee(self, chain: str) -> tuple[str, str, str] | None:
        """Return ``kind``, ``target`` and ``of`` as in :class:`records.Call`; ``None`` for calls that are not recorded."""
        first, _, rest = chain.partition(".")
        classes = self._now.classes
        if first in ("super()", "self"):
            if not classes or not rest or not classes[0].at_top:
                return None
            return ("super" if first == "super()" else "self"), rest, classes[-1].name
        typed = self._scopes.type_of(first)
        if typed is not None:
            return (typed[0], rest, typed[1]) if rest and "." not in rest else None
        place = self._scopes.place(chain)
        return ("name", place, "") if place is not None and not place.startswith(self._own) else None
