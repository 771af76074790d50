"""The modules that importing something runs, followed through the files of an installed environment.

Only import statements at the left margin are followed: nothing guards them. Text is searched rather than parsed, because a
script that imports a trainer runs hundreds of modules. A name is missing only if its module's file does not contain it at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Set

from compat.interfaces.import_statements import ANYWHERE, AT_MARGIN, CONDITION, HANDLED, Statement, imports_in, text_of
from compat.records import kept

Home = Callable[[str, str], "str | None"]
"""The module that a name of a lazily loading module comes from, where that is known."""

_DYNAMIC = re.compile(
    r"\b(?:__getattr__|globals\(|locals\(|vars\(|setattr\(|exec\(|sys\.modules|__path__|_LazyModule|lazy|attach\(|import_module)"
)
"""What may give a module names that its text does not contain."""
_ADDS_MODULES = re.compile(r"\b(?:sys\.modules|__path__|meta_path|extend_path|path_hooks|(?<!class )_LazyModule\(|exec\()")
"""What may make a module importable that has no file: names of the package, ``__getattr__`` included, do not."""
_CALLED = re.compile(r"^(\w+)\(", re.MULTILINE)
_LAZY = ("def __getattr__(", "_LazyModule", "_import_structure")
_LOADS = ("import_module", "_LazyModule", "__import__", "attach")
_OF_MODULES = frozenset(("__doc__", "__name__", "__file__", "__package__", "__spec__", "__loader__", "__path__", "__dict__"))
_OLD_PROTOBUF = "_descriptor.FieldDescriptor("
_LIMIT = 6000
"""Files that are read at most; what lies beyond them is unknown."""
_CLOSED = frozenset(("torch", "triton", "nvidia", "numpy"))
"""Packages whose own imports are not followed: they are many, and lead to nothing else."""


class Files:
    """The modules in some folders of an import path; those that are ``built_in`` are anywhere."""

    def __init__(self, folders: Iterable[str], built_in: frozenset[str] = frozenset()) -> None:
        self.folders, self._built_in = tuple(folders), built_in

    @kept
    def find(self, module: str) -> str | None:
        """The file of a module, ``""`` for a folder without ``__init__`` or compiled code, ``None`` if there is none."""
        if module.partition(".")[0] in self._built_in:
            return ""
        above, _, last = module.rpartition(".")
        found = None
        for folder in self._below(above) if above else self.folders:
            names = self.listed(folder)
            if last in names and os.path.isdir(os.path.join(folder, last)):
                inside = self.listed(os.path.join(folder, last))
                if "__init__.py" in inside:
                    return os.path.join(folder, last, "__init__.py")
                if any(each.startswith("__init__.") for each in inside):
                    return ""
            if f"{last}.py" in names:
                return os.path.join(folder, f"{last}.py")
            if any(each.startswith(f"{last}.") and each.endswith((".so", ".pyd", ".pyc")) for each in names):
                return ""
            if last in names and os.path.isdir(os.path.join(folder, last)):
                found = ""  # unless a later folder has its code
        return found

    def is_bare(self, module: str) -> bool:
        """Whether a module is folders without any code, so that it has no names but its modules."""
        above, _, last = module.rpartition(".")
        places = self._below(above) if above else list(self.folders)
        parts = [os.path.join(folder, last) for folder in places if last in self.listed(folder)]
        beside = (name for folder in places for name in self.listed(folder) if name.startswith(f"{last}."))
        inside = (name for folder in parts for name in self.listed(folder) if name.startswith("__init__."))
        code = any(name.endswith((".py", ".so", ".pyd", ".pyc")) for name in (*beside, *inside))
        return bool(parts) and not code and module.partition(".")[0] not in self._built_in and not self.hooked

    def _below(self, package: str) -> list[str]:
        parts = package.split(".")
        return [os.path.join(folder, *parts) for folder in self.folders if self._holds(folder, parts)]

    def _holds(self, folder: str, parts: list[str]) -> bool:
        for part in parts:
            if part not in self.listed(folder):
                return False
            folder = os.path.join(folder, part)
        return True

    @kept
    def listed(self, folder: str) -> frozenset[str]:
        try:
            return frozenset(os.listdir(folder))
        except OSError:
            return frozenset()

    def below(self, package: str) -> Iterator[str]:
        """The modules in the folder of a package."""
        path = self.find(package) or ""
        for name in sorted(self.listed(os.path.dirname(path))) if path.endswith("__init__.py") else ():
            if name.endswith(".py") and not name.startswith("__"):
                yield f"{package}.{name.removesuffix('.py')}"

    @property
    def hooked(self) -> bool:
        """Whether an editable install may provide modules that are in no folder."""
        return any(name.startswith("__editable__") for folder in self.folders for name in self.listed(folder))


class Followed:
    """What some imports run, in ``run``, and the modules and names that are ``missing``.

    With ``but`` also what runs if it is installed: imports under an ``if`` of the module, and under a ``try`` that does not
    go on without them, but not what a package can do without: pairs of top-level modules. Imports in functions and for type
    checkers are never followed.
    """

    def __init__(self, files: Files, home: Home, *, but: Set[tuple[str, str]] | None = None) -> None:
        self._files, self._home, self._but = files, home, but
        self.run: dict[str, Statement] = {}
        """Each module, with the statement that imports it first."""
        self.missing: list[Statement] = []
        """Statements whose module or name is not there."""
        self.unclear: set[str] = set()
        """Lazily loading modules of which a name is needed that cannot be followed."""
        self.lazily: set[str] = set()
        """Modules that were entered for a name of a lazily loading one."""
        self._statements: dict[str, tuple[Statement, ...]] = {}

    @property
    def complete(self) -> bool:
        """Whether there were not too many."""
        return len(self._statements) < _LIMIT

    def follow(self, statements: Iterable[Statement]) -> Followed:
        waiting = list(reversed(list(statements)))
        seen: set[tuple[str, str | None]] = set()
        while waiting and self.complete:
            each = waiting.pop()
            if (each.module, each.name) in seen:
                continue
            seen.add((each.module, each.name))
            steps = [step for module in self._loaded(each) for step in self._enter(module, each)]
            waiting += reversed(steps)
        return self

    def _loaded(self, each: Statement) -> Iterator[str]:
        """The modules that a statement loads: the parents, the module, and the one that a name is or comes from."""
        parts = each.module.split(".")
        for at in range(1, len(parts) + 1):
            module = ".".join(parts[:at])
            path = self._files.find(module)
            if path is None:
                if at == 1 or self._has_only_its_files(".".join(parts[: at - 1])):
                    self.missing.append(each)
                return
            yield module
        if each.name is None or each.name == "*":
            return
        below = f"{each.module}.{each.name}"
        if self._files.find(below) is not None:
            yield below
        elif self.lacks(each.module, each.name):
            self.missing.append(each)
        elif self._is_lazy(each.module):
            home = self._home(each.module, each.name)
            if home in (None, each.module):
                home = self._stated_home(each.module, each.name) or home
            if home is None and each.module.partition(".")[0] not in _CLOSED and not self._binds(each.module, each.name):
                self.unclear.add(each.module)
            if home is not None and home != each.module:
                self.lazily.add(home)
                yield home

    @kept
    def _is_lazy(self, module: str) -> bool:
        """Whether a module loads names when they are asked for."""
        text = self._text(module)
        return any(word in text for word in _LAZY)

    def _text(self, module: str) -> str:
        return text_of(self._files.find(module) or "")

    def _binds(self, module: str, name: str) -> bool:
        """Whether a module defines a name itself, or gets it from what it has imported already."""
        text = self._text(module)
        return (
            "import *" in text
            or not any(word in text for word in _LOADS)
            or re.search(rf"^[ \t]*(?:class |def |async def |){name}\b", text, re.MULTILINE) is not None
        )

    def _stated_home(self, module: str, name: str) -> str | None:
        """The module that a lazy one names for type checkers."""
        path = self._files.find(module)
        stated = (each for each in imports_in(module, path, ANYWHERE) if each.name == name) if path else ()
        return next((each.module for each in stated), None)

    def _enter(self, module: str, importer: Statement) -> tuple[Statement, ...]:
        if module in self.run:
            return ()
        self.run[module] = importer
        if module.partition(".")[0] in _CLOSED:
            return ()
        return self.statements(module)

    def statements(self, module: str) -> tuple[Statement, ...]:
        """The import statements of a module that are followed."""
        if module not in self._statements:
            path, own, but = self._files.find(module), module.partition(".")[0], self._but
            self._statements[module] = tuple(
                each
                for each in (imports_in(module, path, AT_MARGIN if but is None else ANYWHERE) if path else ())
                if not each.when or (each.when == CONDITION and (own, each.module.partition(".")[0]) not in (but or ()))
            )
        return self._statements[module]

    def dispensable(self) -> frozenset[tuple[str, str]]:
        """What packages that run can do without: pairs of a top-level module and one that it imports in a ``try``."""
        found: set[tuple[str, str]] = set()
        for module in self.run:
            path, own = self._files.find(module), module.partition(".")[0]
            if path and own not in _CLOSED:
                found |= {
                    (own, each.module.partition(".")[0]) for each in imports_in(module, path, ANYWHERE) if each.when == HANDLED
                }
        return frozenset(found)

    def chain(self, statement: Statement) -> tuple[Statement, ...]:
        """The statements that lead to one, the first one first."""
        found = [statement]
        while found[-1].importer in self.run and len(found) <= len(self.run):
            found.append(self.run[found[-1].importer])
        return tuple(reversed(found))

    def lacks(self, module: str, name: str) -> bool:
        """Whether a module certainly does not define a name."""
        return self._lacks(module, name, set())

    def _lacks(self, module: str, name: str, seen: set[str]) -> bool:
        path = self._files.find(module)
        if path == "" and name not in _OF_MODULES and module.partition(".")[0] not in _CLOSED:
            return self._has_only_its_files(module)
        if not path or module.partition(".")[0] in _CLOSED or module in seen:
            return module in seen
        seen.add(module)
        text = text_of(path)
        if not text or name in _OF_MODULES or _mentions(text, name) or _DYNAMIC.search(text):
            return False
        if _ADDS_MODULES.search(self._called(module, path)):
            return False
        stars = [each for each in imports_in(module, path, ANYWHERE) if each.name == "*"]
        return all(self._lacks(each.module, name, seen) for each in stars)

    def _has_only_its_files(self, package: str) -> bool:
        """Whether nothing adds modules to a package; folders without code add none, but the packages above may."""
        if not self._files.is_bare(package):
            path = self._files.find(package)
            if not path or not path.endswith("__init__.py") or package.partition(".")[0] in _CLOSED:
                return False
            return _ADDS_MODULES.search(text_of(path) + self._called(package, path)) is None
        above = package.rpartition(".")[0]
        return package not in _CLOSED and (not above or self._has_only_its_files(above))

    def _called(self, module: str, path: str) -> str:
        """The text of the modules that a module imports a function from and calls it at once, which may add modules."""
        called = frozenset(_CALLED.findall(text_of(path)))
        homes = {each.module for each in imports_in(module, path, AT_MARGIN) if each.name in called} if called else ()
        return "".join(text_of(self._files.find(home) or "") for home in homes)

    def registers(self, module: str, importer: str) -> bool:
        """Whether something that runs may provide a module: in ``sys.modules``, or a copy of it in the importer's package."""
        names = (f'sys.modules["{module}', f"sys.modules['{module}")
        if any(name in text for each in self.run if (text := text_of(self._files.find(each) or "")) for name in names):
            return True
        own = importer.partition(".")[0]
        root = self._files.find(own)
        if root is None or not root.endswith("__init__.py") or not _lies_below(os.path.dirname(root), module):
            return False
        mine = (text_of(self._files.find(each) or "") for each in self.run if each.partition(".")[0] == own)
        return any("sys.path" in text for text in mine)

    def old_protobuf(self) -> Iterator[str]:
        """The modules that run and were generated by a protoc that protobuf 4 refuses."""
        for module in self.run:
            if module.endswith("_pb2"):
                path = self._files.find(module)
                if path and _OLD_PROTOBUF in text_of(path):
                    yield module


def _lies_below(folder: str, module: str) -> bool:
    """Whether a module lies somewhere in a package's folder, from where it may be put on the path."""
    top = module.partition(".")[0]
    return any(top in folders or any(file.partition(".")[0] == top for file in files) for _, folders, files in os.walk(folder))


def _mentions(text: str, name: str) -> bool:
    """Whether a word occurs in a text; a pattern that starts at a word's boundary would be many times slower."""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not any(f"a{sign}".isidentifier() for sign in (text[at - 1 : at], text[end : end + 1]) if sign):
            return True
        at = text.find(name, end)
    return False
