"""Walk a module's tree once, collecting its top-level definitions and everything it uses."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from compat.interfaces.source.guards import asked_by, guard_of, guard_of_try, guard_of_with, is_dead, is_negated, leaves
from compat.interfaces.source.records import (
    AVAILABLE,
    BRANCH,
    FUNCTION,
    HANDLER,
    TRY,
    TYPES,
    VERSION,
    Definition,
    Function,
    Imported,
    Value,
)
from compat.interfaces.source.scopes import ClassDraft, Conditions, Scope, Scopes, Uses, dotted_name, identifiers
from compat.interfaces.source.signatures import FunctionNode, signature_of


class Walker:
    """Collects definitions and uses; call :meth:`run` once."""

    def __init__(self, module: str, is_package: bool) -> None:
        self.module, self.is_package = module, is_package
        self.definitions: dict[str, Definition | ClassDraft] = {}
        self.stars: list[str] = []
        self.all: list[str] | None = None
        self.scopes = Scopes(module)
        self._now = Conditions()
        self.uses = Uses(module, self.scopes, self._now)
        self._saved: list[int] = []
        self._visitors: dict[type[ast.AST], Callable[[Any], None]] = {
            ast.Import: self._import, ast.ImportFrom: self._import_from, ast.If: self._if, ast.IfExp: self._if_expression,
            ast.BoolOp: self._boolean, ast.Try: self._try, ast.With: self._with, ast.AsyncWith: self._with,
            ast.FunctionDef: self._function, ast.AsyncFunctionDef: self._function, ast.Lambda: self._lambda,
            ast.ClassDef: self._class, ast.Assign: self._assign, ast.AnnAssign: self._annotated, ast.AugAssign: self._augmented,
            ast.For: self._for, ast.AsyncFor: self._for, ast.While: self._while, ast.NamedExpr: self._named,
            ast.ExceptHandler: self._handler, ast.Attribute: self._attribute, ast.Call: self._call, ast.Global: self._nothing,
            ast.Constant: self._nothing, ast.Name: self._nothing, ast.ListComp: self._comprehension,
            ast.SetComp: self._comprehension, ast.GeneratorExp: self._comprehension, ast.DictComp: self._comprehension,
        }  # fmt: skip
        if hasattr(ast, "TryStar"):
            self._visitors[ast.TryStar] = self._try

    def run(self, tree: ast.Module) -> None:
        here = self.scopes.here
        for statement in tree.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                here.names[statement.name] = f"{self.module}.{statement.name}"  # functions may refer to later definitions
        self._block(tree.body)

    # Statements in order

    def _visit(self, node: ast.AST) -> None:
        visitor = self._visitors.get(type(node))
        if visitor is not None:
            visitor(node)
            return
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                for each in value:
                    if isinstance(each, ast.AST):
                        self._visit(each)
            elif isinstance(value, ast.AST):
                self._visit(value)

    def _each(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self._visit(node)

    def _block(self, body: Iterable[ast.stmt], flags: int = 0, asks: tuple[str, ...] = ()) -> None:
        before = self._now.flags, self._now.asks
        self._now.flags |= flags
        self._now.asks += asks
        for statement in body:
            self._visit(statement)
            if isinstance(statement, ast.If) and leaves(statement.body) and not statement.orelse:
                self._after_leaving(statement.test)
        self._now.flags, self._now.asks = before

    def _after_leaving(self, test: ast.expr) -> None:
        """Apply the negated test to the code after ``if version < …: return``."""
        guard = guard_of(test)
        if guard & AVAILABLE and is_negated(test):
            self._now.asks += asked_by(test)
        self._now.flags |= guard & (VERSION | AVAILABLE) if is_negated(test) or guard & VERSION else 0

    def _nothing(self, node: ast.AST) -> None:
        pass

    # Conditions

    def _if(self, node: ast.If) -> None:
        self._visit(node.test)
        guard = guard_of(node.test)
        body, other = guard, guard
        if guard in (TYPES, FUNCTION):
            other = 0
        elif guard == AVAILABLE:
            body, other = (BRANCH, AVAILABLE) if is_negated(node.test) else (AVAILABLE, BRANCH)
        asks = asked_by(node.test) if guard == AVAILABLE else ()
        if is_dead(node.test):
            self._block(node.orelse)
            return
        self._block(node.body, body, asks if body == AVAILABLE else ())
        self._block(node.orelse, other, asks if other == AVAILABLE else ())

    def _if_expression(self, node: ast.IfExp) -> None:
        self._visit(node.test)
        before = self._now.flags
        self._now.flags |= guard_of(node.test)
        self._each((node.body, node.orelse))
        self._now.flags = before

    def _boolean(self, node: ast.BoolOp) -> None:
        before = self._now.flags
        for value in node.values:
            self._visit(value)
            self._now.flags |= guard_of(value)
        self._now.flags = before

    def _while(self, node: ast.While) -> None:
        if not is_dead(node.test):
            self._visit(node.test)
            self._block(node.body)
        self._block(node.orelse)

    def _try(self, node: Any) -> None:
        self._block(node.body, guard_of_try(node))
        self._each(node.handlers)
        self._block(node.orelse)
        self._block(node.finalbody)

    def _handler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.scopes.bind(node.name)
        self._block(node.body, TRY | HANDLER)

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self._visit(item.context_expr)
            if item.optional_vars is not None:
                self._target(item.optional_vars, None)
        self._block(node.body, guard_of_with(node))

    # Imports

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            place = alias.name if alias.asname else bound
            self._define(bound, Imported(node.lineno, place, None, self._now.flags))
            self._bind_import(bound, place)
            self.uses.note_import(alias.name, None, node.lineno)

    def _import_from(self, node: ast.ImportFrom) -> None:
        module = self._absolute(node.level, node.module or "")
        for alias in node.names:
            self.uses.note_import(module, alias.name, node.lineno)
            if alias.name == "*":
                if not self._now.where and module not in self.stars and not self._now.flags & TYPES:
                    self.stars.append(module)
                continue
            bound = alias.asname or alias.name
            self._define(bound, Imported(node.lineno, module, alias.name, self._now.flags))
            self._bind_import(bound, f"{module}.{alias.name}")

    def _absolute(self, level: int, module: str) -> str:
        if not level:
            return module
        parts = self.module.split(".")
        keep = len(parts) - level + self.is_package
        parts = parts[: max(keep, 0)]
        return ".".join((*parts, module) if module else parts)

    def _bind_import(self, name: str, place: str) -> None:
        if not (self._now.flags & HANDLER and self.scopes.here.names.get(name)):
            self.scopes.bind(name, place)

    def _define(self, name: str, definition: Definition | ClassDraft) -> None:
        """Record a definition: the first one wins, but an unconditional class or function replaces an import.

        Later definitions also replace plain values and overloads.
        """
        if self._now.where:
            return
        before = self.definitions.get(name)
        own = isinstance(definition, (Function, ClassDraft))
        replaced = isinstance(before, Value) or (own and isinstance(before, Imported) and not self._now.flags)
        if before is None or replaced or _is_overload(before):
            self.definitions[name] = definition

    # Functions and classes

    def _function(self, node: FunctionNode) -> None:
        made = Function(node.lineno, signature_of(node))
        if not self._now.where:
            self._define(node.name, made)
        elif self.scopes.here.kind == "class":
            methods = self._now.classes[-1].methods
            if _is_overload(methods.get(node.name)):
                methods[node.name] = made
            methods.setdefault(node.name, made)
        else:
            self.scopes.bind(node.name)
        given = node.args
        self._each((*node.decorator_list, *given.defaults, *given.kw_defaults))
        parameters = (*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg)))
        types = [(each.arg, self._annotated_type(each.annotation)) for each in parameters]
        self._inside("function", node.name, FUNCTION)
        for name, of in types:
            self.scopes.bind(name, kind="typed" if of else None, of=of or "")
        self._block(node.body)
        self._outside()

    def _inside(self, kind: str, name: str, flags: int = 0) -> None:
        self._saved.append(self._now.flags)
        self._now.flags |= flags
        self._now.where.append(name)
        self.scopes.all.append(Scope(kind))

    def _outside(self) -> None:
        self._now.flags = self._saved.pop()
        self._now.where.pop()
        self.scopes.all.pop()

    def _annotated_type(self, node: ast.expr | None) -> str | None:
        """Return the class that an annotation names: ``X``, ``"X"``, ``X | None``, ``Optional[X]``."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            try:
                node = ast.parse(node.value, mode="eval").body
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return None
        if isinstance(node, ast.Subscript) and (dotted_name(node.value) or "").rpartition(".")[2] == "Optional":
            node = node.slice
        if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) and node.right.value is None:
            node = node.left
        chain = dotted_name(node) if node is not None else None
        return self.scopes.place(chain) if chain else None

    def _lambda(self, node: ast.Lambda) -> None:
        given = node.args
        self._each((*given.defaults, *given.kw_defaults))
        self._inside("function", "<lambda>", FUNCTION)
        for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))):
            self.scopes.bind(each.arg)
        self._visit(node.body)
        self._outside()

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        self.scopes.all.append(Scope("function"))
        for generator in node.generators:
            self._visit(generator.iter)
            self._target(generator.target, None)
            self._each(generator.ifs)
        self._each((node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,))
        self.scopes.all.pop()

    def _class(self, node: ast.ClassDef) -> None:
        draft = ClassDraft(node, self.scopes, at_top=not self._now.where)
        self._each((*node.bases, *node.decorator_list, *(keyword.value for keyword in node.keywords)))
        if not self._now.where:
            self._define(node.name, draft)
        else:
            self.scopes.bind(node.name)
        self._inside("class", node.name)
        self._now.classes.append(draft)
        self._block(node.body)
        self._now.classes.pop()
        self._outside()

    # Assignments

    def _assign(self, node: ast.Assign) -> None:
        self._visit(node.value)
        for target in node.targets:
            self._target(target, node.value)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._visit(node.value)
        if not self._now.flags & FUNCTION:
            self._visit(node.annotation)
        if node.value is not None or self.scopes.here.kind == "module":
            self._target(node.target, node.value)

    def _augmented(self, node: ast.AugAssign) -> None:
        self._visit(node.value)
        if isinstance(node.target, ast.Name) and node.target.id == "__all__" and not self._now.where and self.all is not None:
            self.all += identifiers(node.value)

    def _named(self, node: ast.NamedExpr) -> None:
        self._visit(node.value)
        self._target(node.target, node.value)

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self._visit(node.iter)
        self._target(node.target, None)
        self._block(node.body)
        self._block(node.orelse)

    def _target(self, target: ast.AST, value: ast.expr | None) -> None:
        if isinstance(target, ast.Name):
            self._name(target, value)
        elif isinstance(target, ast.Attribute):
            self._stored(target, value)
        elif isinstance(target, ast.Subscript):
            if (
                isinstance(target.value, ast.Name)
                and isinstance(target.slice, ast.Constant)
                and isinstance(target.slice.value, str)
            ):
                table = self.scopes.keys_of(target.value.id)
                if table is not None:
                    table.append((target.slice.value, self._now.flags))
            self._each((target.value, target.slice))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for each in target.elts:
                self._target(each, None)
        elif isinstance(target, ast.Starred):
            self._target(target.value, None)

    def _name(self, target: ast.Name, value: ast.expr | None) -> None:
        name = target.id
        if not self._now.where:
            self._define(name, Value(target.lineno))
            if name == "__all__" and value is not None:
                self.all = identifiers(value) if self.all is None else [*self.all, *identifiers(value)]
        made = self._made_of(value)
        if made is not None:
            self.scopes.bind(name, kind="made", of=made)
        elif (
            not (self.scopes.here.kind == "module" and (self._now.flags or isinstance(value, ast.Constant)))
            or name not in self.scopes.here.names
        ):
            self.scopes.bind(name)
        if isinstance(value, ast.Dict):
            keys = [key.value for key in value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
            self.scopes.here.tables[name] = [(key, self._now.flags) for key in keys]

    def _made_of(self, value: ast.expr | None) -> str | None:
        """Return the class whose call created a value; a capital letter distinguishes classes from functions."""
        chain = dotted_name(value.func) if isinstance(value, ast.Call) else None
        if not chain or not chain.rpartition(".")[2][:1].isupper() or chain.startswith(("super()", "self.")):
            return None
        return self.scopes.place(chain)

    def _stored(self, target: ast.Attribute, value: ast.expr | None) -> None:
        if isinstance(target.value, ast.Name) and target.value.id == "self" and self._now.classes:
            self._now.classes[-1].instance.add(target.attr)
            made = self._made_of(value)
            if made is not None:
                self._now.classes[-1].made[target.attr] = made
            return
        if not self.uses.note_stored(target):
            self._visit(target.value)

    # Uses

    def _attribute(self, node: ast.Attribute) -> None:
        if not self.uses.note_name(node) and dotted_name(node) is None:
            self._visit(node.value)

    def _call(self, node: ast.Call) -> None:
        if self._now.classes and node.args and isinstance(node.args[0], ast.Constant) and dotted_name(node.func) in _REGISTERS:
            self._now.classes[-1].instance |= {*identifiers(node.args[0])}
        self.uses.note_call(node)
        self._visit(node.func)
        self._each(node.args)
        self._each(keyword.value for keyword in node.keywords)


_REGISTERS = frozenset(("self.register_buffer", "self.register_parameter", "self.register_module", "self.add_module"))
"""Methods of torch's modules whose first argument becomes an attribute of the object."""


def _is_overload(definition: object) -> bool:
    return isinstance(definition, Function) and "overload" in definition.signature.decorators
