"""Conditions of published source that facts of an environment decide: versions, devices, Python, the system, variables.

:func:`condition_of` reads a condition's source text; what it does not understand is a :class:`FactTest` of nothing, which no
fact decides. A comparison with a value that is no constant is not understood either.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from typing import TypeAlias

from compat.records import record

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "==", ast.IsNot: "!=",
}  # fmt: skip
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_WORDED = {"less_than": "<", "greater_or_equal": ">=", "greater_than": ">", "at_least": ">="}


@record(frozen=True)
class FactTest:
    """A fact compared with a value. ``fact``: package, installed, capability, devices, python, os, variable or feature.

    ``name`` is the distribution, the variable or the feature. ``fact`` is empty where nothing is known of the condition.
    """

    fact: str = ""
    name: str = ""
    operator: str = ""
    value: str = ""


@record(frozen=True)
class Both:
    parts: tuple[Condition, ...]


@record(frozen=True)
class Either:
    parts: tuple[Condition, ...]


@record(frozen=True)
class Opposite:
    part: Condition


_OPEN = FactTest()


def condition_of(text: str, distributions: Collection[str]) -> Condition:
    """The condition that a text states. ``distributions`` are the names that modules and variables can stand for."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _OPEN
    return _Reader(distributions).read(tree)


def fact_tests(condition: Condition) -> Iterator[FactTest]:
    """The tests of facts in a condition."""
    if isinstance(condition, FactTest):
        if condition.fact:
            yield condition
    elif isinstance(condition, Opposite):
        yield from fact_tests(condition.part)
    else:
        for part in condition.parts:
            yield from fact_tests(part)


_VERSION_NAME = re.compile(r"_*(?P<name>[a-z][a-z0-9_]*?)_version_*$", re.IGNORECASE)
_ASKED_NAME = re.compile(
    r"is_(?P<name>\w+?)_(?:version_)?(?P<how>less_than|greater_or_equal|greater_than|at_least)(?:_than)?(?P<number>(?:_\d+)*)$"
)
_MODULES = {"awq": "autoawq", "flash_attn": "flash-attn", "flashinfer": "flashinfer-python", "hf_hub": "huggingface-hub"}
_FEATURES = {"is_deepspeed_zero3_enabled": "zero-3", "is_fsdp_enabled": "fsdp", "is_deepspeed_enabled": "deepspeed"}
_PASSED = frozenset(("parse", "Version", "LegacyVersion", "parse_version", "str", "tuple", "int", "split", "LooseVersion"))
_PLAIN_PARTS = frozenset(("base_version", "release", "public"))


class _Reader:
    """Reads expressions; a *side* of a comparison is (fact, name), or ("value", text)."""

    def __init__(self, distributions: Collection[str]) -> None:
        self._distributions = distributions

    def read(self, node: ast.expr) -> Condition:
        if isinstance(node, ast.BoolOp):
            parts = tuple(map(self.read, node.values))
            return Both(parts) if isinstance(node.op, ast.And) else Either(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return Opposite(self.read(node.operand))
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            parts = tuple(self._comparison(sides[at], operator, sides[at + 1]) for at, operator in enumerate(node.ops))
            return parts[0] if len(parts) == 1 else Both(parts)
        if isinstance(node, ast.Call):
            return self._call(node)
        asked = _ASKED_NAME.match(node.id) if isinstance(node, ast.Name) else None
        return self._asked(asked, None) if asked is not None else _OPEN

    def _comparison(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Condition:
        if isinstance(operator, (ast.In, ast.NotIn)):
            if isinstance(left, ast.Constant) and isinstance(left.value, str) and _dotted(right) == "os.environ":
                return FactTest("variable", left.value, "set" if isinstance(operator, ast.In) else "unset")
            return _OPEN
        symbol = _OPERATORS[type(operator)]
        one, other = self._side(left), self._side(right)
        if one[0] == "value":
            one, other, symbol = other, one, _MIRRORED[symbol]
        if one[0] in ("", "value") or other[0] != "value":
            return _OPEN
        if one[0] in ("package", "python", "capability", "devices") and not re.fullmatch(r"\d+(\.\w+)*", other[1]):
            return _OPEN
        return FactTest(*one, symbol, other[1])

    def _call(self, node: ast.Call) -> Condition:
        name = _dotted(node.func)
        last = name.rpartition(".")[2]
        values = [self._side(each)[1] for each in (*node.args, *(word.value for word in node.keywords))]
        if name == "torch.cuda.is_available":
            return FactTest("devices", "", ">=", "1")
        if last in _FEATURES:
            return FactTest("feature", _FEATURES[last])
        if last.startswith("is_") and last.endswith("_version") and len(values) == 2:
            return self._version(last[3:-8], *values)
        if last == "compare_versions" and len(values) == 3:
            return self._version(*values)
        asked = _ASKED_NAME.match(last)
        if asked is not None:
            return self._asked(asked, values[0] if values else None)
        if last.startswith("is_") and last.endswith("_available") and self._distribution(last[3:-10]):
            package = self._distribution(last[3:-10])
            return self._version(package, ">=", values[0]) if values and values[0] else FactTest("installed", package)
        return _OPEN

    def _asked(self, found: re.Match[str], given: str | None) -> Condition:
        number = given or found["number"].strip("_").replace("_", ".")
        return self._version(found["name"], _WORDED[found["how"]], number)

    def _version(self, name: str, operator: str, number: str) -> Condition:
        package = self._distribution(name)
        if not package or operator not in _MIRRORED or not re.fullmatch(r"\d+(\.\w+)*", number):
            return _OPEN
        return FactTest("package", package, operator, number)

    def _side(self, node: ast.expr) -> tuple[str, str]:
        if isinstance(node, ast.Constant):
            return "value", str(node.value)
        if isinstance(node, (ast.Tuple, ast.List)):
            parts = [self._side(each) for each in node.elts]
            return ("value", ".".join(part[1] for part in parts)) if all(part[0] == "value" for part in parts) else ("", "")
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.Call):
            return self._called(node)
        name = _dotted(node)
        if name in ("sys.version_info", "sys.platform", "os.name"):
            return ("python" if name == "sys.version_info" else "os"), ""
        owner, _, last = name.rpartition(".")
        if last in _PLAIN_PARTS and isinstance(node, ast.Attribute):
            return self._side(node.value)
        if last == "__version__" and (package := self._distribution(owner.partition(".")[0])):
            return "package", package
        found = _VERSION_NAME.match(last)
        package = self._distribution(found["name"]) if found is not None else ""
        return ("package", package) if package else ("", "")

    def _subscript(self, node: ast.Subscript) -> tuple[str, str]:
        if _dotted(node.value) == "os.environ" and isinstance(node.slice, ast.Constant):
            return "variable", str(node.slice.value)
        fact, name = self._side(node.value)
        if fact == "capability" and isinstance(node.slice, ast.Constant):
            return ("capability", "major") if node.slice.value == 0 else ("", "")
        return (fact, name) if fact in ("package", "python") else ("", "")

    def _called(self, node: ast.Call) -> tuple[str, str]:
        name = _dotted(node.func)
        last = name.rpartition(".")[2] or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
        first = node.args[0] if node.args else None
        text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
        if name in ("os.environ.get", "os.getenv", "environ.get", "getenv") and text:
            return "variable", text
        if last == "get_device_capability":
            return "capability", ""
        if last == "device_count" and name.startswith("torch.cuda"):
            return "devices", ""
        if name == "platform.system":
            return "os", ""
        if last == "version" and "metadata" in name and (package := self._distribution(text)):
            return "package", package
        if last in _PASSED:
            inside = node.func.value if last == "split" and isinstance(node.func, ast.Attribute) else first
            return ("", "") if inside is None else self._side(inside)
        return "", ""

    def _distribution(self, name: str) -> str:
        """The distribution that a module or a part of a variable's name stands for; empty where it is none."""
        name = name.lower().strip("_")
        found = _MODULES.get(name, name.replace("_", "-"))
        return found if found in self._distributions else ""


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


Condition: TypeAlias = "FactTest | Both | Either | Opposite"
