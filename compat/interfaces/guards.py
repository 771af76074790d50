"""Conditions in published source that depend on the environment: versions, devices, Python, the platform, variables.

:func:`condition_of` parses a condition's source text; parts that it does not understand become an empty :class:`FactTest`,
whose result is unknown. Comparisons with a value that is not a constant are not understood either.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from compat.interfaces.refusals import Both, Condition, Either, FactTest, Opposite
from compat.syntax.expressions import dotted_name

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "==", ast.IsNot: "!=",
}  # fmt: skip
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_WORDED = {"less_than": "<", "greater_or_equal": ">=", "greater_than": ">", "at_least": ">="}


_OPEN = FactTest()


def condition_of(text: str, distributions: Collection[str]) -> Condition:
    """Parse a condition. ``distributions`` are the distribution names that modules and variables can refer to."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _OPEN
    return _Reader(distributions).read(tree)


_VERSION_NAME = re.compile(r"_*(?P<name>[a-z][a-z0-9_]*?)_version_*$", re.IGNORECASE)
_ASKED_NAME = re.compile(
    r"is_(?P<name>\w+?)_(?:version_)?(?P<how>less_than|greater_or_equal|greater_than|at_least)(?:_than)?(?P<number>(?:_\d+)*)$"
)
_MODULES = {
    "awq": "autoawq", "flash_attn": "flash-attn", "flashinfer": "flashinfer-python", "hf_hub": "huggingface-hub",
    "liger": "liger-kernel",
}  # fmt: skip
_FEATURES = {"is_deepspeed_zero3_enabled": "zero-3", "is_fsdp_enabled": "fsdp", "is_deepspeed_enabled": "deepspeed"}
_SWITCHES = {
    "use_vllm": "vllm", "use_liger_kernel": "liger", "use_liger_loss": "liger-loss", "use_liger": "liger",
    "torch_compile": "torch-compile",
}  # fmt: skip
"""Arguments that enable a feature."""
_PRECISIONS = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16"}
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
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return Both(()) if node.value else Either(())
        # the condition that a name used as a truth value represents
        name = dotted_name(node).rpartition(".")[2]
        asked = _ASKED_NAME.match(name)
        if asked is not None:
            return self._asked(asked, None)
        if name in _SWITCHES:
            return FactTest("feature", _SWITCHES[name])
        if name in ("bf16", "fp16"):
            return FactTest("precision", "", "==", name)
        there = re.fullmatch(r"_(?:is_)?(\w+)_available", name)
        package = self._distribution(there[1]) if there is not None else ""
        return FactTest("installed", package) if package else _OPEN

    def _comparison(self, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> Condition:
        if isinstance(operator, (ast.In, ast.NotIn)):
            if isinstance(left, ast.Constant) and isinstance(left.value, str) and dotted_name(right) == "os.environ":
                return FactTest("variable", left.value, "set" if isinstance(operator, ast.In) else "unset")
            return _OPEN
        symbol = _OPERATORS[type(operator)]
        if symbol in ("==", "!=") and dotted_name(right).startswith("torch."):
            precision = _PRECISIONS.get(dotted_name(right)[6:])
            return FactTest("precision", "", symbol, precision) if precision else _OPEN
        if isinstance(left, ast.Call) and dotted_name(left.func).endswith("find_spec") and _is_none(right):
            package = self._distribution(str(self._side(left.args[0])[1])) if len(left.args) == 1 else ""
            found = FactTest("installed", package) if package else _OPEN
            return Opposite(found) if symbol == "==" else found
        one, other = self._side(left), self._side(right)
        if symbol == "==" and dotted_name(left) == "DEVICE_TYPE" and other == ("value", "cuda"):
            return FactTest("devices", "", ">=", "1")
        if one[0] == "value":
            one, other, symbol = other, one, _MIRRORED[symbol]
        if one[0] in ("", "value") or other[0] != "value":
            return _OPEN
        if one[0] in ("package", "python", "capability", "devices") and not re.fullmatch(r"\d+(\.\w+)*", other[1]):
            return _OPEN
        return FactTest(*one, symbol, other[1])

    def _call(self, node: ast.Call) -> Condition:
        name = dotted_name(node.func)
        last = name.rpartition(".")[2]
        values = [self._side(each)[1] for each in (*node.args, *(word.value for word in node.keywords))]
        if name == "torch.cuda.is_available" or (last == "is_cuda" and not values):
            return FactTest("devices", "", ">=", "1")
        if last == "get_bool_env_var" and len(values) == 1 and values[0]:
            return FactTest("variable", values[0], "==", "1")
        if last in _FEATURES:
            return FactTest("feature", _FEATURES[last])
        if last.startswith("is_") and last.endswith("_version") and len(values) == 2:
            return self._version(last[3:-8], *values)
        if last == "compare_versions" and len(values) == 3:
            return self._version(*values)
        if last == "has_device_capability" and len(values) == 1:
            number = values[0] if "." in values[0] else f"{values[0][:-1]}.{values[0][-1:]}"
            return FactTest("capability", "", ">=", number) if re.fullmatch(r"\d+\.\d", number) else _OPEN
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
        if isinstance(node, ast.Attribute) and node.attr in _PLAIN_PARTS:
            return self._side(node.value)
        name = dotted_name(node)
        if name in ("sys.version_info", "sys.platform", "os.name"):
            return ("python" if name == "sys.version_info" else "os"), ""
        owner, _, last = name.rpartition(".")
        if last == "__version__" and (package := self._distribution(owner.partition(".")[0])):
            return "package", package
        found = _VERSION_NAME.match(last)
        package = self._distribution(found["name"]) if found is not None else ""
        return ("package", package) if package else ("", "")

    def _subscript(self, node: ast.Subscript) -> tuple[str, str]:
        if dotted_name(node.value) == "os.environ" and isinstance(node.slice, ast.Constant):
            return "variable", str(node.slice.value)
        fact, name = self._side(node.value)
        if fact == "capability" and isinstance(node.slice, ast.Constant):
            return ("capability", "major" if node.slice.value == 0 else "minor") if node.slice.value in (0, 1) else ("", "")
        return (fact, name) if fact in ("package", "python") else ("", "")

    def _called(self, node: ast.Call) -> tuple[str, str]:
        name = dotted_name(node.func)
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
        """Return the distribution that a module or a part of a variable name refers to; empty if there is none."""
        name = name.lower().strip("_")
        found = _MODULES.get(name, name.replace("_", "-"))
        return found if found in self._distributions else ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
