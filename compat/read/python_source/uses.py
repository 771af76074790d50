"""What a module uses, noted as its tree is walked: imports, calls, dotted names and what it assigns to in other packages."""

from __future__ import annotations

import ast

from compat.read.python_source.class_draft import ClassDraft
from compat.read.python_source.records import Call, Import, SelfCall
from compat.read.python_source.scopes import Scopes
from compat.read.python_source.trees import dotted


class Conditions:
    """Under what the walk is now: flags, the packages asked for, the classes and functions around."""

    def __init__(self) -> None:
        self.flags = 0
        self.asks: tuple[str, ...] = ()
        self.where: list[str] = []
        self.classes: list[ClassDraft] = []

    @property
    def scope(self) -> str:
        return ".".join(self.where[:2])


class Uses:
    """Collects; names of the module's own package are left out."""

    def __init__(self, module: str, scopes: Scopes, now: Conditions) -> None:
        self._own = module.partition(".")[0] + "."
        self._scopes, self._now = scopes, now
        self.imports: list[Import] = []
        self.calls: list[Call] = []
        self.names: dict[tuple[str, int, str, bool, tuple[str, ...]], int] = {}
        """(target, flags, scope, whether it is assigned to, what is asked for) → the first line."""

    def note_import(self, module: str, name: str | None, line: int) -> None:
        self.imports.append(Import(module, name, self._now.flags, line, self._now.scope, self._now.asks))

    def note_name(self, node: ast.Attribute) -> bool:
        """Whether the chain starts at something known by name."""
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
        chain = dotted(node.func)
        if chain is None:
            return
        callee = self._callee(chain)
        if callee is not None:
            self._call(node, *callee)
        if chain in ("setattr", "monkeypatch.setattr") and len(node.args) > 1:
            self._patched(node)

    def _place(self, node: ast.AST) -> str | None:
        chain = dotted(node)
        return self._scopes.place(chain) if chain else None

    def _note(self, place: str, line: int, *, stored: bool) -> None:
        self.names.setdefault((place, self._now.flags, self._now.scope, stored, self._now.asks), line)

    def _patched(self, node: ast.Call) -> None:
        place, name = self._place(node.args[0]), node.args[1]
        if place is not None and isinstance(name, ast.Constant) and isinstance(name.value, str):
            self._note(f"{place}.{name.value}", node.lineno, stored=True)

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
        """The kind, the target and what it is of, as :class:`records.Call` has them."""
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
