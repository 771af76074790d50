"""What a module rejects, and under which conditions: every full guard around a message, with local names expanded.

The messages of :mod:`scripts.messages.raised` keep the innermost guard, truncated; whether a condition holds before a run can
only be decided if all of them are known.
"""

from __future__ import annotations

import ast
import copy
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from compat.interfaces.source.scopes import dotted_name
from scripts.messages.raised import Walker, texts_at_top

FORM = 2003
"""Of the records; to be raised when what is read of a module changes."""
_ASKS = re.compile(
    rb"version|^deps = \{|capability|_available|environ|getenv|device_count|platform|find_spec|require", re.MULTILINE
)
_REQUIRES = frozenset(("require_version", "require_version_core", "check_version"))
_NAMED = re.compile(rb"get_min_capability")
_WRITTEN_OUT = (ast.Constant, ast.Call, ast.Attribute, ast.Compare, ast.Subscript)
LONGEST = 700


@dataclass(frozen=True)
class Refusal:
    """``guards`` are all enclosing conditions, innermost first; ``function`` is a dotted name, empty at module level.

    ``reach`` is stated by the code itself: the quantization of a class with a minimum compute capability. ``earlier`` are the
    negated tests of refusals before it in the same block: where one of these holds, the code refuses as well.
    """

    kind: str
    name: str
    template: str
    function: str
    guards: tuple[str, ...]
    reach: str = ""
    earlier: tuple[str, ...] = ()


@dataclass(frozen=True)
class Contents:
    """The refusals of a module, the minimum release that each ``is_PACKAGE_available()`` accepts, and listed requirements."""

    refusals: tuple[Refusal, ...] = ()
    least: tuple[tuple[str, str], ...] = ()
    listed: tuple[tuple[str, str], ...] = ()


def contents_of(source: bytes) -> Contents:
    """Return the contents of a module; empty if it cannot be parsed or tests no fact of an environment."""
    if not _ASKS.search(source):
        return Contents()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Contents()
    constants = _constants(tree.body)
    walker = _Refusals(texts_at_top(tree), constants)
    walker.block(tree.body)
    found = [*walker.refusals, *(_floors(tree) if _NAMED.search(source) else ())]
    return Contents(tuple(dict.fromkeys(found)), tuple(_least(tree, constants)), tuple(_listed(tree)))


def _constants(body: list[ast.stmt]) -> dict[str, ast.expr | None]:
    """Return the values of names assigned once, and ``None`` for names assigned more often."""
    found: dict[str, ast.expr | None] = {}
    for node in body:
        target, value = _assigned(node)
        if target:
            found[target] = None if target in found else value
    return found


def _assigned(node: ast.AST) -> tuple[str, ast.expr | None]:
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, node.value
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id, node.value
    return "", None


class _Refusals(Walker):
    """Keeps guards in full, and expands names in them that a function or the module assigns once."""

    def __init__(self, texts: dict[str, str], constants: dict[str, ast.expr | None]) -> None:
        super().__init__(texts)
        self.refusals: list[Refusal] = []
        self._scopes = [constants]
        self._caught: list[frozenset[str]] = []
        self._visitors[ast.AnnAssign] = self._annotated

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._scopes.append({each.arg: None for each in (*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs)})
        caught, self._caught = self._caught, []  # of the definition, not of the calls
        super()._function(node)
        self._caught = caught
        self._scopes.pop()

    def _try(self, node: ast.Try) -> None:
        self._caught.append(_swallowed(node))
        self.block(node.body)
        self._caught.pop()
        super()._try(ast.Try([], node.handlers, node.orelse, node.finalbody))

    def _assign(self, node: ast.Assign) -> None:
        super()._assign(node)
        self._remember(node)

    def _annotated(self, node: ast.AnnAssign) -> None:
        self._remember(node)

    def _remember(self, node: ast.stmt) -> None:
        name, value = _assigned(node)
        if name and len(self._scopes) > 1:
            self._scopes[-1][name] = None if name in self._scopes[-1] else value

    def _expression(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Call):
            last = (dotted_name(call.func) or "").rpartition(".")[2]
            texts = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            if last in _REQUIRES and texts:
                self._require(texts[0])
                return
            if last == "dep_version_check" and texts:
                self._refuse(
                    "raise", "ImportError", f"{texts[0]} is required for a normal functioning", f"LISTED({texts[0]!r})"
                )
                return
            if last == "assert_pkg_version" and len(texts) >= 2:
                self._require(f"{texts[0]}>={texts[1]}")
                return
        super()._expression(node)

    def _require(self, text: str) -> None:
        condition = asks(text)
        if condition:
            self._refuse("raise", "ImportError", f"{text} is required", f"not ({condition})")

    def _refuse(self, kind: str, name: str, template: str, *inner: str) -> None:
        if kind == "raise" and any(not {name, "Exception", "BaseException"}.isdisjoint(each) for each in self._caught):
            return
        guards = (*inner, *(self._written_out(each) for each in reversed(self._guards) if not each.raised))
        earlier = tuple(self._written_out(each) for each in reversed(self._guards) if each.raised)
        if sum(map(len, guards)) <= LONGEST:
            self.refusals.append(Refusal(kind, name, template, ".".join(self._names), guards, "", earlier))

    def say(self, kind: str, name: str, template: str) -> None:
        self._refuse(kind, name, template)

    def _written_out(self, guard: Any) -> str:
        test = guard.test
        if isinstance(test, str):
            return str(guard)
        tree = ast.fix_missing_locations(_Writer(self._scopes).visit(copy.deepcopy(test)))
        return str(type(guard)(tree, guard.negated))


def _swallowed(node: ast.Try) -> frozenset[str]:
    """Return the exception classes that a statement catches without raising another."""
    names: set[str] = set()
    for handler in node.handlers:
        if any(isinstance(each, ast.Raise) for statement in handler.body for each in ast.walk(statement)):
            continue
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        names.update("BaseException" if kind is None else (dotted_name(kind) or "").rpartition(".")[2] for kind in kinds)
    return frozenset(names)


class _Writer(ast.NodeTransformer):
    """Replaces names with their values, up to three levels deep."""

    def __init__(self, scopes: list[dict[str, ast.expr | None]], depth: int = 3) -> None:
        self._scopes, self._depth = scopes, depth

    def visit_Name(self, node: ast.Name) -> ast.expr:
        scope = next((each for each in reversed(self._scopes) if node.id in each), None)
        value = None if scope is None else scope[node.id]
        if value is None or self._depth == 0 or not isinstance(value, _WRITTEN_OUT):
            return node
        deeper = _Writer(self._scopes, self._depth - 1)
        result: ast.expr = deeper.visit(copy.deepcopy(value))
        return result


def asks(text: str) -> str:
    """Return a requirement as a condition; empty if it is invalid or has no range."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return ""
    version = f"importlib.metadata.version({requirement.name!r})"
    ranges = sorted(requirement.specifier, key=str)
    if any(each.operator not in ("<", "<=", ">", ">=", "==", "!=") or "*" in each.version for each in ranges):
        return ""
    return " and ".join(f"{version} {each.operator} {each.version!r}" for each in ranges)


def _least(tree: ast.Module, constants: dict[str, ast.expr | None]) -> Iterator[tuple[str, str]]:
    for node in tree.body:
        name = re.fullmatch(r"is_(\w+)_available", node.name) if isinstance(node, ast.FunctionDef) else None
        if name is None or not isinstance(node, ast.FunctionDef):
            continue
        for argument, default in zip(reversed(node.args.args), reversed(node.args.defaults)):
            if isinstance(default, ast.Name):
                default = constants.get(default.id) or default
            if argument.arg == "min_version" and isinstance(default, ast.Constant) and isinstance(default.value, str):
                yield name[1], default.value


def _listed(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Read ``deps = {"accelerate": "accelerate>=0.26.0", …}`` of transformers and diffusers."""
    for node in tree.body:
        name, value = _assigned(node)
        if name == "deps" and isinstance(value, ast.Dict):
            for key, each in zip(value.keys, value.values):
                if isinstance(key, ast.Constant) and isinstance(each, ast.Constant):
                    yield str(key.value), str(each.value)


def _floors(tree: ast.Module) -> Iterator[Refusal]:
    """Read quantizations of serving engines: each class states its name and minimum compute capability."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        returned = {each.name: _returned(each) for each in node.body if isinstance(each, ast.FunctionDef)}
        name, floor = returned.get("get_name"), returned.get("get_min_capability")
        if isinstance(name, str) and isinstance(floor, int) and 50 <= floor < 200:
            text = f"The quantization method {name} is not supported for the current GPU. Minimum capability: {floor}."
            guard = f"torch.cuda.get_device_capability() < ({floor // 10}, {floor % 10})"
            yield Refusal("raise", "ValueError", text, f"{node.name}.get_min_capability", (guard,), f"quantization={name}")


def _returned(node: ast.FunctionDef) -> object:
    last = node.body[-1] if node.body else None
    plain = isinstance(last, ast.Return) and isinstance(last.value, ast.Constant) and len(node.body) <= 2
    return last.value.value if plain and isinstance(last, ast.Return) and isinstance(last.value, ast.Constant) else None
