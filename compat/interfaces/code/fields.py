"""Requirements that a script enforces itself, and the configuration attributes that it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from compat.errors import InputError
from compat.interfaces.code.needs import OFFERED, Bound, Field
from compat.interfaces.source.records import Imported, Module

_OF_PACKAGE = {"transformers": "transformers", "diffusers": "diffusers", "accelerate": "accelerate"}
_LEAST = "check_min_version"
_REQUIRED = ("require_version", "require_version_core")


def bounds_in(tree: ast.Module, source: bytes, path: str) -> tuple[Bound, ...]:
    """Return the requirements in a script's source: from calls, and from inline metadata (PEP 723)."""
    found: tuple[Bound, ...] = ()
    if b"check_min_version" in source or b"require_version" in source:
        found = bounds_of(tree, path)
    if b"# /// script" in source:
        found = (*found, *_inline(source, path))
    return found


def bounds_of(tree: ast.Module, path: str) -> tuple[Bound, ...]:
    """Return the bounds of ``check_min_version("4.46.0")`` and ``require_version("datasets>=2.14")`` calls that always run."""
    package, found = "transformers", []
    calls = []
    for node in _always(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == _LEAST for alias in node.names):
            package = _OF_PACKAGE.get((node.module or "").partition(".")[0], "")
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            calls.append(node)
    for call in calls:
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        assert isinstance(call.args[0], ast.Constant)
        value = call.args[0].value
        if not isinstance(value, str):
            continue
        if name == _LEAST and package:
            found.append(Bound(package, f">={value}", path, call.lineno))
        elif name in _REQUIRED:
            found += _requirement(value, path, call.lineno)
    return tuple(each for each in found if _readable(each))


def _always(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes that run with the script, skipping bodies of classes and of functions other than ``main``."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop(0)
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name != "main":
            continue
        waiting.extend(ast.iter_child_nodes(node))


def _requirement(text: str, path: str, line: int) -> list[Bound]:
    from compat.model import normalized

    text = text.partition(";")[0]
    at = next((at for at, sign in enumerate(text) if sign in "<>=!~[ "), len(text))
    name, rest = text[:at], text[at:]
    if rest.startswith("["):
        rest = rest.partition("]")[2]
    rest = rest.strip()
    return [Bound(normalized(name.strip()), rest, path, line)] if rest and name.strip() else []


def _readable(bound: Bound) -> bool:
    from compat.versions import ranges_of

    try:
        ranges_of(bound.specifier)
    except ValueError:
        return False
    return True


def _inline(source: bytes, path: str) -> list[Bound]:
    from compat.formats.project.inline import read_inline_script

    try:
        listings = read_inline_script(path, source.decode("utf-8", "replace")) or ()
    except InputError:
        return []
    stated = []
    for listing in listings:
        for entry in listing.entries:
            each = entry.distribution
            specifier = f"=={each.version}" if each.version else each.specifier
            if specifier and not each.marker:
                stated.append(Bound(each.name, specifier, path, entry.line or 1))
    return [each for each in stated if _readable(each)]


# --- Attributes that a script reads from configuration objects: created by a call, or parsed from the command line.
#
# ``model_args.torch_dtype`` where ``model_args`` comes from ``HfArgumentParser((ScriptArguments, ModelConfig))``. A name that
# is also bound to something else is ignored, and so is an attribute that the script sets or tests with ``hasattr``.


_PARSERS = ("HfArgumentParser", "TrlParser", "H4ArgumentParser")
_PARSES = ("parse_args_into_dataclasses", "parse_args_and_config", "parse_json_file", "parse_yaml_file", "parse_dict", "parse")
_CONFIGURATIONS = ("Config", "Arguments", "Args", "Cache")
_FACTORIES = ("from_pretrained", "from_config")
_OF_MODULES = ("train", "eval", "to", "cuda", "cpu", "half", "float", "double", "bfloat16", "type", "apply", "forward")
"""Methods of torch's modules that some releases of transformers' models override."""
_ASKS = ("hasattr", "getattr", "setattr", "delattr")


def fields_of(tree: ast.Module, module: Module) -> tuple[Field, ...]:
    """Return the attributes read from objects whose class is certain."""
    reading = _Reading(tree, module)
    return tuple(sorted(reading.fields(), key=lambda each: each.line))


class _Reading:
    def __init__(self, tree: ast.Module, module: Module) -> None:
        self._tree, self._module = tree, module
        self._nodes = list(_conditioned(tree))
        self._parsers: dict[str, tuple[str, ...]] = {}
        self._types: dict[str, set[str]] = {}
        self._left_alone: set[tuple[str, str]] = set()
        self._called = {id(node.func) for node, _ in self._nodes if isinstance(node, ast.Call)}
        for node, _ in self._nodes:
            self._parser(node)
        for node, _ in self._nodes:
            self._bind(node)
        self._parameters()

    def fields(self) -> Iterator[Field]:
        for node, sure in self._nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name):
                of = self._types.get(node.value.id, set())
                if len(of) != 1 or "" in of or (node.value.id, node.attr) in self._left_alone:
                    continue
                kind = next(iter(of))
                if kind not in OFFERED or (id(node) in self._called and node.attr not in _OF_MODULES):
                    yield Field(kind, node.attr, node.lineno, sure)

    def _class(self, node: ast.expr | None) -> str:
        """Return the dotted name of an imported class; "" for anything else."""
        found = self._module.definitions.get(node.id) if isinstance(node, ast.Name) else None
        if not isinstance(found, Imported) or not found.name or found.flags:
            return ""
        return f"{found.module}.{found.name}"

    def _parser(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            classes = self._classes_of_parser(node.value)
            if classes:
                name = node.targets[0].id
                self._parsers[name] = classes if self._parsers.get(name, classes) == classes else ("",)

    def _classes_of_parser(self, node: ast.expr) -> tuple[str, ...]:
        if isinstance(node, ast.Name):
            return self._parsers.get(node.id, ())
        if not isinstance(node, ast.Call) or _last(node.func) not in _PARSERS:
            return ()
        given = [*node.args[:1], *(each.value for each in node.keywords if each.arg == "dataclass_types")]
        if not given:
            return ()
        listed = given[0].elts if isinstance(given[0], (ast.Tuple, ast.List)) else [given[0]]
        return tuple(self._class(each) for each in listed)

    def _parsed(self, node: ast.expr) -> tuple[str, ...]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PARSES:
            return self._classes_of_parser(node.func.value)
        return ()

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            self._types.setdefault(node.id, set())
        elif isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name):
            self._left_alone.add((node.value.id, node.attr))
        elif isinstance(node, ast.Call) and _last(node.func) in _ASKS and len(node.args) > 1:
            of, name = node.args[:2]
            if isinstance(of, ast.Name) and isinstance(name, ast.Constant) and isinstance(name.value, str):
                self._left_alone.add((of.id, name.value))

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            classes = self._parsed(value)
            for at, each in enumerate(target.elts):
                if isinstance(each, ast.Name):
                    self._types.setdefault(each.id, set()).add(classes[at] if at < len(classes) else "")
        elif isinstance(target, ast.Name):
            if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant) and value.slice.value == 0:
                classes = self._parsed(value.value)
                self._types.setdefault(target.id, set()).add(classes[0] if classes else "")
                return
            self._types.setdefault(target.id, set()).add(self._made(value) if isinstance(value, ast.Call) else "")

    def _made(self, call: ast.Call) -> str:
        """Return the class of the object that a call creates, or the common name of the classes; "" if unknown."""
        made = self._class(call.func)
        # configurations of transformers accept any attribute
        if made.endswith(_CONFIGURATIONS) and not (made.startswith("transformers.") and made.endswith("Config")):
            return made
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _FACTORIES:
            return ""
        module, _, name = self._class(call.func.value).rpartition(".")
        if module != "transformers" or any(each.arg in (None, "trust_remote_code") for each in call.keywords):
            return ""  # code of the model's repository may add methods
        if name.endswith(("Tokenizer", "TokenizerFast")):
            return "transformers.PreTrainedTokenizerBase"
        return "transformers.PreTrainedModel" if name.startswith("AutoModel") or "For" in name else ""

    def _parameters(self) -> None:
        """Process bindings other than assignments; a parameter keeps the type of a variable passed under the same name."""
        passed = {
            (node.func.id, at, each.id)
            for node, _ in self._nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            for at, each in enumerate(node.args) if isinstance(each, ast.Name)
        }  # fmt: skip
        stored: dict[str, int] = {}
        for node, _ in self._nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stored[node.id] = stored.get(node.id, 0) + 1
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._of_function(node, passed)
        assigned = [name for node, _ in self._nodes if isinstance(node, ast.Assign) for name in _names(node)]
        for name, count in stored.items():
            if count != assigned.count(name):  # a loop, a with statement, an import, an annotation …
                self._types.setdefault(name, set()).add("")

    def _of_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, passed: set[tuple[str, int, str]]) -> None:
        given = node.args
        for at, each in enumerate((*given.posonlyargs, *given.args)):
            if (node.name, at, each.arg) not in passed:
                self._types.setdefault(each.arg, set()).add("")  # may be a subclass of the annotation
        for each in (*given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))):
            self._types.setdefault(each.arg, set()).add("")


def _names(node: ast.Assign) -> list[str]:
    return [
        each.id
        for target in node.targets
        for each in (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target])
        if isinstance(each, ast.Name)
    ]


def _last(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _conditioned(tree: ast.Module) -> Iterator[tuple[ast.AST, bool]]:
    """Yield every node and whether it is unconditional."""
    waiting: list[tuple[ast.AST, bool]] = [(tree, True)]
    while waiting:
        node, sure = waiting.pop()
        yield node, sure
        for name, value in ast.iter_fields(node):
            inner = sure and not (isinstance(node, (ast.If, ast.IfExp, ast.Try)) and name in ("body", "orelse", "handlers"))
            below = value if isinstance(value, list) else [value]
            waiting.extend((each, inner) for each in below if isinstance(each, ast.AST))
