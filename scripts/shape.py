"""``python -m scripts.shape [--list]``: how the code of ``compat/`` is built, as figures to hold it to.

Cycles and directions count imports of modules and inside functions; those under ``TYPE_CHECKING`` are counted apart. A module
is *executed* by a command where one of its functions ran. ``--list`` names what is counted.
"""

from __future__ import annotations

import argparse
import ast
import statistics
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from scripts.golden import answers, sandbox
from scripts.golden_inputs import GOLDEN, ROOT, Input, ours

PACKAGE = ROOT / "compat"
ROOMS = {
    "cli": ("cli", "integrations", "__main__"),
    "api": ("api",),
    "output": ("output",),
    "repair": ("repair",),
    "index": ("index",),
    "diagnosis": ("diagnosis",),
    "checks": ("checks",),
    "rules": ("rules",),
    "interfaces": ("interfaces",),
    "tables": ("tables",),
    "reports": ("reports",),
    "machine": ("machine",),
    "formats": ("formats",),
    "workload": ("workload",),
    "syntax": ("syntax",),
    "probe": ("probe",),
    "model": ("model", "errors", "redact", "files", "versions", "markers", "records"),
}
"""The rooms of the house, the upper ones first (docs/architecture.md), with the modules of ``compat`` that each holds. A room
imports from those below it; ``probe`` stands alone: it imports from ``model``, and the uppermost rooms from it."""
_LEVELS = {room: level for level, room in enumerate(ROOMS)}
_PREFIXES = {prefix: room for room, prefixes in ROOMS.items() for prefix in prefixes}
_ABOVE_PROBE = ("cli", "api", "output")
"""Who may import from ``probe``."""


@dataclass(frozen=True)
class Import:
    """One module imports another; ``typing``: for type checkers only."""

    importer: str
    imported: str
    typing: bool
    local: bool


def room_of(module: str) -> str | None:
    """Return the room of a module such as ``compat.checks.requirements``; ``None`` if the table has none."""
    return _PREFIXES.get(module.removeprefix("compat.").partition(".")[0])


def against(found: Import) -> bool:
    """Return whether an import violates the architecture's import direction."""
    importer, imported = room_of(found.importer), room_of(found.imported)
    if importer is None or imported is None or importer == imported:
        return False
    if imported == "probe":
        return importer not in _ABOVE_PROBE
    return _LEVELS[imported] < _LEVELS[importer]


def modules_of(package: Path) -> dict[str, ast.Module]:
    """Return every module below a package's folder, by its full name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return found


def imports_of(modules: Mapping[str, ast.Module], packages: Iterable[str]) -> list[Import]:
    """Return the imports between the modules. ``packages`` are folders, whose relative imports start at their own name."""
    folders = set(packages)
    found: set[Import] = set()
    for name, tree in modules.items():
        for node, typing, local in _import_statements(tree):
            for imported in _imported(node, name if name in folders else name.rpartition(".")[0], modules):
                if imported != name:
                    found.add(Import(name, imported, typing, local))
    return sorted(found, key=lambda each: (each.importer, each.imported, each.typing))


def imports_in(package: Path, modules: Mapping[str, ast.Module]) -> list[Import]:
    """Return the imports between the modules of a package's folder."""
    folders = (path.parent.relative_to(package.parent).parts for path in package.rglob("__init__.py"))
    return imports_of(modules, map(".".join, folders))


def _import_statements(
    node: ast.AST, *, typing: bool = False, local: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, typing, local
        elif isinstance(child, ast.If) and ast.unparse(child.test).rpartition(".")[2] == "TYPE_CHECKING":
            for each in child.body:
                yield from _import_statements(ast.Module([each], []), typing=True, local=local)
            for each in child.orelse:
                yield from _import_statements(ast.Module([each], []), typing=typing, local=local)
        else:
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
            yield from _import_statements(child, typing=typing, local=local or inside)


def _imported(node: ast.Import | ast.ImportFrom, package: str, modules: Mapping[str, ast.Module]) -> Iterator[str]:
    """Return the members of ``modules`` that a statement in ``package`` imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
        return
    start = node.module or ""
    if node.level:
        base = package.split(".")[: len(package.split(".")) - node.level + 1]
        start = ".".join([*base, *([node.module] if node.module else [])])
    for alias in node.names:
        full = f"{start}.{alias.name}"
        if full in modules or start in modules:
            yield full if full in modules else start


def below_the_facade(imports: Iterable[Import]) -> list[Import]:
    """Return the imports without those of ``compat/__init__``, which every module runs first.

    It provides the public functions through lazy imports, so these do not create real cycles.
    """
    return [each for each in imports if each.importer != PACKAGE.name]


def cycles_of(imports: Iterable[Import]) -> list[list[str]]:
    """Return groups of modules that import one another (strongly connected components), largest first."""
    edges: dict[str, set[str]] = {}
    for each in imports:
        edges.setdefault(each.importer, set()).add(each.imported)
    reached = {name: _reached(name, edges) for name in edges}
    groups = {
        frozenset([name, *(other for other in reached[name] if name in reached.get(other, ()))])
        for name in edges if name in reached[name]
    }  # fmt: skip
    return sorted((sorted(group) for group in groups), key=lambda group: (-len(group), group))


def _reached(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    todo = [start]
    while todo:
        new = edges.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


@dataclass(frozen=True)
class Functions:
    """The line count of every function, and how often a module refers to each of its private functions."""

    lengths: tuple[int, ...]
    private: Mapping[str, int]

    @property
    def once(self) -> int:
        return sum(count == 1 for count in self.private.values())


def functions_of(modules: Mapping[str, ast.Module]) -> Functions:
    lengths: list[int] = []
    private: dict[str, int] = {}
    for module, tree in modules.items():
        used: Counter[str] = Counter()
        defined: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lengths.append((node.end_lineno or node.lineno) - node.lineno + 1)
                if node.name.startswith("_") and not node.name.endswith("__"):
                    defined.add(node.name)
            elif isinstance(node, ast.Name):
                used[node.id] += 1
            elif isinstance(node, ast.Attribute):
                used[node.attr] += 1
        private.update({f"{module}.{name}": used[name] for name in defined})
    return Functions(tuple(lengths), private)


def uses_of_any(modules: Mapping[str, ast.Module]) -> int:
    names = (node for tree in modules.values() for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute)))
    return sum((node.id if isinstance(node, ast.Name) else node.attr) == "Any" for node in names)


COMMANDS = ("doctor", "fix")


def _input(command: str) -> Input:
    """Return ``doctor`` on a folder of three distributions, and the first plan of the recorded answers."""
    if command == "doctor":
        return Input("doctor", ("doctor", "--python", "site"), GOLDEN / "inputs" / "project")
    return next(each for each in ours()["repair"] if each.words[0] == "fix")


def executed(command: str) -> list[str]:
    """Return the files of ``compat/`` with a function that ran in this process during the command."""
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            seen.add(frame.f_code.co_filename)

    given = _input(command)
    with sandbox() as folder:
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            answers([given], folder)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    return sorted(path.relative_to(ROOT).as_posix() for path in map(Path, seen) if path.is_relative_to(PACKAGE))


def _executed_apart(command: str) -> list[str]:
    """Return the same for a fresh process."""
    words = [sys.executable, "-m", "scripts.shape", "--executed", command]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.shape", description="How the code of compat/ is built, as figures."
    )
    parser.add_argument("--list", action="store_true", help="name what is counted")
    parser.add_argument("--executed", choices=COMMANDS, help=argparse.SUPPRESS)
    words = parser.parse_args(arguments)
    if words.executed:
        print(*executed(words.executed), sep="\n")
        return 0
    paths = sorted(PACKAGE.rglob("*.py"))
    modules = modules_of(PACKAGE)
    imports = imports_in(PACKAGE, modules)
    real = [each for each in imports if not each.typing]
    cycles = cycles_of(below_the_facade(real))
    wrong = sorted({(each.importer, each.imported) for each in real if against(each)})
    homeless = [name for name in modules if name != "compat" and room_of(name) is None]
    functions = functions_of(modules)
    ran = {command: _executed_apart(command) for command in COMMANDS}
    figures = {
        "lines in compat/": f"{sum(len(path.read_text(encoding='utf-8').splitlines()) for path in paths):,}",
        "modules": len(modules),
        "imported by one module only": sum(count == 1 for count in Counter(b for _, b in _pairs(real)).values()),
        "import cycles (with those of TYPE_CHECKING)": f"{len(cycles)} ({len(cycles_of(below_the_facade(imports)))})",
        "imports against the direction (of TYPE_CHECKING)":
            f"{len(wrong)} ({len({(each.importer, each.imported) for each in imports if each.typing and against(each)})})",
        "modules without a room": len(homeless),
        "imports inside functions, under TYPE_CHECKING":
            f"{sum(each.local for each in imports)}, {sum(each.typing for each in imports)}",
        "uses of Any": uses_of_any(modules),
        "functions, median lines": f"{len(functions.lengths):,}, {statistics.median(functions.lengths):g}",
        "private functions named once in their module":
            f"{functions.once:,} of {len(functions.private):,} ({functions.once / max(1, len(functions.private)):.0%})",
        "modules executed by doctor, by fix": f"{len(ran['doctor'])}, {len(ran['fix'])}",
    }  # fmt: skip
    print("| figure | now |\n|---|---|", *(f"| {name} | {value} |" for name, value in figures.items()), sep="\n")
    if words.list:
        print("", *(f"cycle: {' '.join(group)}" for group in cycles), sep="\n")
        print(*(f"against: {room_of(a)} → {room_of(b)}: {a} imports {b}" for a, b in wrong), sep="\n")
        print(*(f"no room: {name}" for name in homeless), sep="\n")
        print(*(f"executed by {command}: {path}" for command, paths in ran.items() for path in paths), sep="\n")
    return 0


def _pairs(imports: Iterable[Import]) -> set[tuple[str, str]]:
    return {(each.importer, each.imported) for each in imports}


if __name__ == "__main__":
    sys.exit(main())
