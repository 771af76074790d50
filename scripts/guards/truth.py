"""``python -m scripts.guards.truth``: random rows of ``matrix/guards/`` triggered in the code of the releases they are about.

The function that a row names is run, alone and as it was published, with stand-ins for everything around it: once with facts
under which the row says that it refuses, once with facts that differ in one. It has to raise (or warn) the first time, and
not the second. What cannot be run this way is counted apart and is to be read by hand. An import that nothing declares is
looked up among the statements that the module always runs.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import csv
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

from packaging import requirements, specifiers, version

from compat.interfaces.guards import condition_of
from compat.interfaces.messages import HOLE, plain
from compat.rules.facts import Facts
from compat.tables.declared import open_declared
from scripts.guards.refusals import contents_of
from scripts.guards.sides import facts_on_both_sides
from scripts.guards.tables import ELSEWHERE, FOLDER
from scripts.messages.extract import modules_of
from scripts.surface.store import Store

CONFIRMED, REFUTED, NOT_RUN = "confirmed", "refuted", "not run"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.guards.truth", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all)")
    parser.add_argument("--rows", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    words = parser.parse_args(arguments)
    chosen = random.Random(words.seed)
    rows = [row for path in sorted(FOLDER.glob("*.csv")) for row in csv.DictReader(path.open(encoding="utf-8", newline=""))]
    rows = [row for row in rows if row["package"] in (words.packages or (row["package"],))]
    store, counts = Store(words.store), Counter[str]()
    for row in sorted(chosen.sample(rows, min(words.rows, len(rows))), key=lambda each: (each["package"], each["module"])):
        release = chosen.choice(row["releases"].split()).partition("..")[0]
        result, why = answered(row, release, store)
        counts[result] += 1
        print(
            result, row["package"], release, row["module"], row["function"], row["condition"][:160], why, sep=" | ", flush=True
        )
    print(", ".join(f"{count} {result}" for result, count in counts.most_common()))
    return int(counts[REFUTED] > 0)


def answered(row: Mapping[str, str], release: str, store: Store) -> tuple[str, str]:
    """Check one row against a release; returns the verdict and the reason."""
    found = store.release(row["package"], release)
    source = None if found is None else modules_of(found).get(row["module"])
    if found is None or source is None:
        return NOT_RUN, "the release is not in the store"
    undeclared = _UNDECLARED.fullmatch(row["condition"]) if not row["function"] else None
    if undeclared is not None:
        always = _always_imported(store.body(source).decode("utf-8", "replace"))
        return (CONFIRMED, "") if undeclared[1] in always else (REFUTED, "not always imported")
    condition = condition_of(row["condition"], open_declared().names)
    pair = facts_on_both_sides(condition)
    if pair is None:
        return REFUTED, "no facts decide it"
    least: dict[str, str] = {}
    for each in modules_of(found).values() if "available()" in row["condition"] or "_available" in row["condition"] else ():
        body = store.body(each)
        if b"min_version" in body and b"_available" in body:
            least.update(contents_of(body).least)
    text = store.body(source).decode("utf-8", "replace")
    try:
        bad = _says(_Trial(text, row, pair[0], least), strictly=True)
    except Exception as problem:
        if not (bad := _says(_Trial(text, row, pair[0], least), apart=True)):
            return NOT_RUN, f"{type(problem).__name__}: {problem}"[:120]
    good = _says(_Trial(text, row, pair[1], least), apart=True)
    if bad and not good:
        return CONFIRMED, ""
    return REFUTED, "both sides refuse" if bad else "does not refuse"


_UNDECLARED = re.compile(r"\(importlib\.util\.find_spec\('(\w+)'\) is None\)")


def _always_imported(source: str) -> set[str]:
    """Return the top-level modules that the statements of a module import under no condition."""
    found: set[str] = set()
    for each in ast.parse(source).body:
        if isinstance(each, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in each.names)
        elif isinstance(each, ast.ImportFrom) and not each.level:
            found.add((each.module or "").partition(".")[0])
    return found


# --- Running a single function of a release.


class _Trial:
    """The stubs for one row and one set of facts."""

    def __init__(self, source: str, row: Mapping[str, str], facts: Facts, least: Mapping[str, str]) -> None:
        self.source, self.row, self.facts, self.least = source, row, facts, least

    def version(self, name: str) -> str | None:
        copies = self.facts.package(name.replace("_", "-"))
        return copies[0].version if isinstance(copies, list) else None

    def metadata(self, name: str) -> str:
        found = self.version(name)
        if found is None:
            raise ModuleNotFoundError(name)
        return found

    def available(self, name: str, least: str | None) -> bool:
        found = self.version(_NAMES.get(name, name))
        least = least or self.least.get(name)
        return found is not None and (not least or version.parse(found) >= version.parse(least))

    def required(self, text: str, *_: Any) -> None:
        wanted = requirements.Requirement(text)
        if f"'{wanted.name}'" not in self.row["condition"]:
            return
        if not wanted.specifier.contains(self.metadata(wanted.name), prereleases=True):
            raise ImportError(text)

    def named(self, name: str) -> Any:
        """Return the value of a module's name."""
        plain: dict[str, Any] = {
            "version": version, "Version": version.Version, "parse": version.parse,
            "packaging": SimpleNamespace(version=version),
            "importlib": self._importlib(), "importlib_metadata": self._importlib().metadata, "sys": self._sys(),
            "metadata": self._importlib().metadata, "os": self._os(), "torch": self._torch(),
            "pkg_version": version, "SpecifierSet": specifiers.SpecifierSet, "find_spec": self._spec, "warnings": warnings,
            "require_version": self.required, "check_version": self.required, "importlib_version": self.metadata,
            "dep_version_check": lambda name, *_: self.required(self.listed(name)),
            "assert_pkg_version": lambda name, least, *_: self.required(f"{name}>={least}"), "platform": _Stub(),
            "logger": _Stub(), "logging": _Stub(),
            "get_bool_env_var": lambda name: (self.facts.environment.variables or {}).get(name) in ("true", "1"),
            "is_cuda": lambda: bool(self.facts.accelerators()), "compare_versions": self._compares,
            "_is_package_available": lambda name, **_: (self.version(name) is not None, self.version(name) or "N/A"),
        }  # fmt: skip
        if name in plain:
            return plain[name]
        asked = re.fullmatch(r"_?is_(\w+)_available", name)
        if asked is not None:
            return lambda *given, **words: self.available(asked[1], next((each for each in (*given, *words.values())), None))
        there = re.fullmatch(r"_(\w+)_available", name)
        if there is not None:
            return self.version(_NAMES.get(there[1], there[1])) is not None
        stated = re.fullmatch(r"_*(\w+?)_version_*", name)
        if stated is not None and self.version(stated[1]):
            return self.version(stated[1])
        if self.version(name):
            return SimpleNamespace(__version__=self.version(name))
        if ELSEWHERE.match(f"{name}()"):
            return lambda *_, **__: False
        compared = re.fullmatch(r"is_(\w+)_version", name)
        if compared is not None:
            return partial(self._compares, compared[1])
        if name.startswith("is_"):
            raise LookupError(f"{name} is not known")
        return _Stub(name=name)

    def _compares(self, name: str, operator: str, number: str) -> bool:
        return specifiers.SpecifierSet(f"{operator}{number}").contains(self.metadata(name), prereleases=True)

    def listed(self, name: str) -> str:
        ranges = re.findall(r"\) ([<>=!]+) '([^']+)'", self.row["condition"])
        return name + ",".join(f"{operator}{number}" for operator, number in ranges)

    def _spec(self, name: str, *_: Any, **__: Any) -> object | None:
        return object() if self.version(name) else None

    def _importlib(self) -> Any:
        return SimpleNamespace(
            metadata=SimpleNamespace(version=self.metadata, PackageNotFoundError=ModuleNotFoundError),
            util=SimpleNamespace(find_spec=self._spec),
        )

    def _sys(self) -> Any:
        python = tuple(int(part) for part in str(self.facts.value("python")).split("."))
        system = str(self.facts.value("os"))
        return SimpleNamespace(version_info=python, platform="win32" if system == "windows" else system)

    def _os(self) -> Any:
        environ = {name: each for name, each in (self.facts.environment.variables or {}).items() if each is not None}
        return SimpleNamespace(environ=environ, getenv=environ.get, name="posix")

    def _torch(self) -> Any:
        devices = self.facts.accelerators() or ()
        number = _Capability(int(part) for part in str(devices[0].compute_capability).split(".")) if devices else (0, 0)
        torch = _Stub()
        torch.__version__ = self.version("torch") or "2.6.0"
        torch.cuda.is_available = lambda: bool(devices)
        torch.cuda.device_count = lambda: len(devices)
        torch.cuda.get_device_capability = lambda *_: number
        torch.bfloat16, torch.float16 = "bf16", "fp16"
        return torch

    def argument(self) -> Any:
        """A stub for every argument, which answers queries about features and precision."""
        answers = _Stub()
        precision = self.facts.workload.precision
        answers.use_vllm = self.facts.feature("vllm")
        answers.use_liger_kernel = answers.use_liger = self.facts.feature("liger")
        answers.use_liger_loss = self.facts.feature("liger-loss")
        answers.torch_compile = self.facts.feature("torch-compile")
        answers.rlhf_type = "grpo"  # what the reach of these rows implies
        answers.bf16, answers.fp16 = precision == "bf16", precision == "fp16"
        devices = self.facts.accelerators() or ()
        number = _Capability(int(part) for part in str(devices[0].compute_capability).split(".")) if devices else (0, 0)
        answers.has_device_capability = lambda asked, *_: number >= (asked if isinstance(asked, tuple) else divmod(asked, 10))
        answers.get_device_capability = lambda *_: number
        return answers


def _answered(answer: object, *_: object) -> object:
    return answer


class _Stub(MagicMock):
    """Stands for a value that nothing depends on: no comparison of sizes holds, and it is shown as a number."""

    def __init__(self, *given: Any, **words: Any) -> None:
        super().__init__(*given, **words)
        for operator, answer in (*dict.fromkeys(("__lt__", "__le__", "__gt__", "__ge__"), False).items(), ("__format__", "0")):
            setattr(self, operator, partial(_answered, answer))


class _Capability(tuple[int, ...]):
    """The return value of vLLM's platforms."""

    def as_version_str(self) -> str:
        return ".".join(map(str, self))


_NAMES = {
    "awq": "autoawq", "liger": "liger-kernel", "hf_hub": "huggingface-hub", "flash_attn": "flash-attn",
}  # fmt: skip


class _Globals(dict[str, Any]):
    def __init__(self, trial: _Trial) -> None:
        super().__init__(__builtins__=builtins)
        self._trial = trial

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            raise KeyError(name)
        self[name] = self._trial.named(name)
        return self[name]


def _says(trial: _Trial, *, strictly: bool = False, apart: bool = False) -> bool:
    """Return whether the code rejects the facts; ``strictly``: other errors do not count.

    ``apart``: the function goes on after other errors, which stand-ins cause, or what it refuses before.
    """
    tree = ast.parse(trial.source)
    if trial.row["function"].endswith(".get_min_capability"):
        return _floor(tree, trial)
    parameters, body = _statements(tree, trial.row["function"])
    text = trial.row["message"].removesuffix(" is required for a normal functioning").removesuffix(" is required")
    wanted = re.compile(".*?".join(re.escape(part) for part in plain(text).split(HOLE)))
    namespace = _Globals(trial)
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(node.value, (ast.Constant, ast.Call)):
            with suppress(Exception):
                exec(compile(ast.Module([node], []), "module", "exec"), namespace)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            if apart:
                namespace[_PASS_ON] = partial(_pass_on, trial, wanted)
                body = _Apart().block(body)
            _run(body, parameters, namespace, trial)
        except Exception as problem:
            if _is_wanted(trial, wanted, problem):
                return True
            if strictly:
                raise
    return any(wanted.search(plain(str(each.message))) for each in warned)


def _is_wanted(trial: _Trial, wanted: re.Pattern[str], problem: Exception) -> bool:
    alike = not trial.row["error"] or type(problem).__name__ == trial.row["error"]
    return alike and wanted.search(plain(str(problem))) is not None


def _pass_on(trial: _Trial, wanted: re.Pattern[str], problem: Exception) -> None:
    if _is_wanted(trial, wanted, problem):
        raise problem


_PASS_ON = "pass_on"


class _Apart:
    """Puts each statement of a block into a ``try`` of its own; what leaves the block is left out."""

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return [ast.fix_missing_locations(self._alone(node)) for node in body]

    def _alone(self, node: ast.stmt) -> ast.stmt:
        if isinstance(node, (ast.Return, ast.FunctionDef, ast.ClassDef)):
            return ast.Pass()
        if isinstance(node, ast.If):
            node = ast.If(node.test, self.block(node.body), self.block(node.orelse))
        call = ast.Call(ast.Name(_PASS_ON, ast.Load()), [ast.Name("problem_", ast.Load())], [])
        handler = ast.ExceptHandler(ast.Name("Exception", ast.Load()), "problem_", [ast.Expr(call)])
        return ast.Try([node], [handler], [], [])


def _run(body: list[ast.stmt], parameters: list[str], namespace: dict[str, Any], trial: _Trial) -> None:
    names = {node.id for each in body for node in ast.walk(each) if isinstance(node, ast.Name)}
    for each in names & _PARAMETERS:
        namespace[each] = trial.argument()
    if "data" in names:  # a configuration for which the reach of the row holds
        namespace["data"] = {"fsdp_config": {"reshard_after_forward": True}, "fsdp_version": 2}
    for each in names & {"dtype", "torch_dtype"}:
        namespace[each] = trial.facts.workload.precision or "fp32"
    if "current_platform" in names:
        namespace["current_platform"] = trial.argument()
    if not trial.row["function"]:
        exec(compile(ast.Module(body, []), "module", "exec"), namespace)
        return
    namespace["super"] = _Stub()
    given = sorted({*(names & (_PARAMETERS | {"dtype", "torch_dtype"})), *parameters})
    arguments = ast.arguments([], [ast.arg(name) for name in given], None, [], [], None, [])
    function = ast.FunctionDef("tried", arguments, body, [])
    exec(compile(ast.fix_missing_locations(ast.Module([function], [])), "function", "exec"), namespace)
    namespace["tried"](*(namespace[name] if name in namespace else _Stub() for name in given))


_PARAMETERS = frozenset(("self", "args", "cls", "config", "training_args"))


def _statements(tree: ast.Module, function: str) -> tuple[list[str], list[ast.stmt]]:
    """Return the parameters and body of a function, or a module's top-level statements without imports and definitions."""
    body, parameters = tree.body, []
    for name in filter(None, function.split(".")):
        found = next(
            node for outer in body for node in ast.walk(outer)
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)) and node.name == name
        )  # fmt: skip
        body = found.body
        if not isinstance(found, ast.ClassDef):
            parameters = [each.arg for each in (*found.args.args, *found.args.kwonlyargs)]
    dropped = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef)
    kept = [node for node in body if not isinstance(node, dropped)] or [ast.Pass()]
    return parameters, [ast.fix_missing_locations(_WithoutImports().visit(node)) for node in kept]


class _WithoutImports(ast.NodeTransformer):
    def visit_Import(self, node: ast.Import) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node)


def _floor(tree: ast.Module, trial: _Trial) -> bool:
    """Call the class's own method and compare its result with the device, as the engine does."""
    name, _, method = trial.row["function"].partition(".")
    owner = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name)
    body = next(node.body for node in owner.body if isinstance(node, ast.FunctionDef) and node.name == method)
    function = ast.FunctionDef("tried", ast.arguments([], [], None, [], [], None, []), body, [])
    namespace: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(ast.Module([function], [])), "function", "exec"), namespace)
    major, minor = str((trial.facts.accelerators() or ())[0].compute_capability).split(".")
    return 10 * int(major) + int(minor) < int(namespace["tried"]())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
