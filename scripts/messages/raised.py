"""The exceptions, warnings and log messages of a module: each message's template, function and enclosing conditions."""

from __future__ import annotations

import ast
import re
import warnings
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from compat.interfaces.messages import HOLE
from compat.interfaces.source.guards import is_dead, leaves
from compat.interfaces.source.scopes import dotted_name
from scripts.messages.templates import normal, percent, template_of

FORM = 1002
"""Of the records; to be raised when what is read of a module changes. Records of other kinds have forms below 1000."""
_SAYS = re.compile(rb"\b(raise|assert|_check\w*|exit)\b|warn|\.(error|critical|exception|fatal)\b")
_LOGS = {
    "warning": "warning", "warn": "warning", "warning_once": "warning", "warn_once": "warning", "warning_rank0": "warning",
    "warning_rank0_once": "warning", "error": "error", "error_once": "error", "exception": "error", "critical": "error",
    "fatal": "error",
}  # fmt: skip
_OWN_LOG = re.compile(r"\w*log\w*_(warn|warning)")
"""Functions of packages that log, such as ``hlog_warn`` and ``log_warning``."""
_TEXTS = ("msg", "message", "detail", "reason")
LONGEST_GUARD, LONGEST_OUTER, MOST_OUTER = 180, 80, 2


@dataclass(frozen=True)
class Message:
    """``kind``: raise (also ``assert``), warn or log; ``name``: the class or the level; ``guards``: innermost first."""

    kind: str
    name: str
    template: str
    function: str
    guards: tuple[str, ...]


def messages_of(source: bytes) -> list[Message]:
    """Return every message of a module with at least partly known text; none if the module cannot be parsed."""
    if not _SAYS.search(source):
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    walker = Walker(texts_at_top(tree))
    walker.block(tree.body)
    return list(dict.fromkeys(walker.found))


def texts_at_top(tree: ast.Module) -> dict[str, str]:
    """Return the module's string constants; functions run when all of them are defined."""
    texts: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            text = template_of(node.value, texts)
            if text is not None:
                texts[node.targets[0].id] = text
    return texts


@dataclass(frozen=True)
class _Guard:
    """``raised``: it is the negation of an earlier test whose block does nothing but raise."""

    test: ast.expr | str
    negated: bool = False
    raised: bool = False

    def __str__(self) -> str:
        test, negated = self.test, self.negated
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, negated = test.operand, not negated
        text = test if isinstance(test, str) else " ".join(ast.unparse(test).split())
        if not negated:
            return text
        simple = isinstance(test, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        return f"not {text}" if simple else f"not ({text})"


class Walker:
    """Visits statements in order; expressions are read only in statements that emit a message."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.found: list[Message] = []
        self._names: list[str] = []
        self._guards: list[_Guard] = []
        self._texts: ChainMap[str, str] = ChainMap(texts)
        self._visitors: dict[type[ast.AST], Callable[[Any], None]] = {
            ast.If: self._if, ast.Raise: self._raise, ast.Assert: self._assert, ast.Expr: self._expression,
            ast.FunctionDef: self._function, ast.AsyncFunctionDef: self._function, ast.ClassDef: self._class,
            ast.Assign: self._assign, ast.AugAssign: self._augmented, ast.Try: self._try, ast.For: self._body,
            ast.AsyncFor: self._body, ast.While: self._body, ast.With: self._body, ast.AsyncWith: self._body,
            ast.Match: self._match,
        }  # fmt: skip

    def block(self, body: Iterable[ast.stmt]) -> None:
        depth = len(self._guards)
        for statement in body:
            visitor = self._visitors.get(type(statement))
            if visitor is not None:
                visitor(statement)
            if isinstance(statement, ast.If) and leaves(statement.body) and not statement.orelse:
                raised = all(isinstance(each, (ast.Raise, ast.Assign)) for each in statement.body)
                self._guards.append(_Guard(statement.test, negated=True, raised=raised))
        del self._guards[depth:]

    @contextmanager
    def _under(self, *guards: _Guard) -> Iterator[None]:
        self._guards += guards
        yield
        del self._guards[len(self._guards) - len(guards) :]

    def _if(self, node: ast.If) -> None:
        if not is_dead(node.test):
            with self._under(_Guard(node.test)):
                self.block(node.body)
        with self._under(_Guard(node.test, negated=True)):
            self.block(node.orelse)

    def _try(self, node: ast.Try) -> None:
        self.block(node.body)
        for handler in node.handlers:
            kind = "" if handler.type is None else f" {ast.unparse(handler.type)}"
            with self._under(_Guard(f"except{kind}")):
                self.block(handler.body)
        self.block(node.orelse)
        self.block(node.finalbody)

    def _body(self, node: Any) -> None:
        self.block(node.body)
        self.block(getattr(node, "orelse", ()))

    def _match(self, node: ast.Match) -> None:
        for case in node.cases:
            with self._under(_Guard(f"{ast.unparse(node.subject)} matches {ast.unparse(case.pattern)}")):
                self.block(case.body)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        guards, self._guards = self._guards, []  # functions defined under a condition are called elsewhere
        self._texts = self._texts.new_child()
        self._class(node)
        self._texts = self._texts.parents
        self._guards = guards

    def _class(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._names.append(node.name)
        self.block(node.body)
        self._names.pop()

    def _assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self._know(node.targets[0].id, template_of(node.value, self._texts))

    def _augmented(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and node.target.id in self._texts:
            more = template_of(node.value, self._texts) or HOLE
            self._know(node.target.id, self._texts[node.target.id] + (more if isinstance(node.op, ast.Add) else HOLE))

    def _know(self, name: str, text: str | None) -> None:
        if text is not None:
            self._texts[name] = text
        elif name in self._texts:
            self._texts[name] = HOLE

    def _raise(self, node: ast.Raise) -> None:
        if isinstance(node.exc, ast.Call):
            name = (dotted_name(node.exc.func) or "").rpartition(".")[2]
            given = [*node.exc.args[:3], *(each.value for each in node.exc.keywords if each.arg in _TEXTS)]
            self._say("raise", name if name[:1].isupper() else "", given)

    def _assert(self, node: ast.Assert) -> None:
        if node.msg is not None:
            with self._under(_Guard(node.test, negated=True)):
                self._say("raise", "AssertionError", [node.msg])

    def _expression(self, node: ast.Expr) -> None:
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if not isinstance(call, ast.Call) or not (call.args or call.keywords):
            return
        name = dotted_name(call.func) or (f".{call.func.attr}" if isinstance(call.func, ast.Attribute) else "")
        owner, _, last = name.rpartition(".")
        given = [*call.args[:1], *(each.value for each in call.keywords if each.arg in _TEXTS)]
        if last == "warn" and (not owner or owner.endswith("warnings")):
            kinds = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "category")]
            kind = next((found for each in kinds if (found := dotted_name(each))), "UserWarning")
            self._say("warn", kind.rpartition(".")[2], given)
        elif last in _LOGS and owner.endswith("parser"):
            self._say("raise", "SystemExit", given)
        elif last in _LOGS and owner:
            self._say("log", _LOGS[last], given, formatted=len(call.args) > 1)
        elif _OWN_LOG.fullmatch(name):
            self._say("log", "warning", given)
        elif name in ("sys.exit", "exit"):
            self._say("raise", "SystemExit", given)
        elif last.startswith("_check") and len(call.args) == 2 and isinstance(call.args[1], ast.Lambda):
            with self._under(_Guard(call.args[0], negated=True)):
                self._say("raise", "RuntimeError", [call.args[1].body])

    def _say(self, kind: str, name: str, given: list[ast.expr], *, formatted: bool = False) -> None:
        texts = [text for each in given if (text := template_of(each, self._texts)) is not None]
        if not texts:
            return
        text = max(texts, key=len)
        template = normal(percent(text) if formatted else text)
        if re.search(r"[A-Za-z]{3}", template):
            self.say(kind, name, template)

    def say(self, kind: str, name: str, template: str) -> None:
        """Record a message at the visited place."""
        self.found.append(Message(kind, name, template, ".".join(self._names), self._guard_texts()))

    def _guard_texts(self) -> tuple[str, ...]:
        """Return the innermost condition, truncated, and outer ones that are short."""
        if not self._guards:
            return ()
        inner = str(self._guards[-1])
        if len(inner) > LONGEST_GUARD:
            inner = inner[:LONGEST_GUARD].rpartition(" ")[0] + " …"
        outer = [text for each in reversed(self._guards[:-1]) if len(text := str(each)) <= LONGEST_OUTER]
        return (inner, *outer[:MOST_OUTER])
