"""Read scripts, notebooks and package folders into records."""

from __future__ import annotations

import marshal
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from compat.errors import InputError
from compat.files import content_of, place_in_cache, read_cache, stamp_of, write_cache
from compat.interfaces.code.fields import bounds_in, bounds_of, fields_of
from compat.interfaces.code.needs import Bound, Code, CodeFile, Field
from compat.interfaces.source.module import module_of
from compat.interfaces.source.records import Module, pack_module, unpack_module
from compat.records import values_of
from compat.syntax.python import Notebook, parsed

LIMIT = 2 << 20
"""Maximum size of a script in bytes; larger files are generated."""
MOST_FILES = 2000
"""Maximum number of Python files read from one folder."""
_MOST_ENTRIES = 50_000
_NOT_CODE = frozenset(("__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "env", "wandb"))


def read_code(paths: Iterable[str]) -> Code:
    """Read the given ``.py`` files, notebooks and folders.

    Unreadable files are listed in :attr:`Code.problems`. Raises :class:`InputError` for a folder without Python files.
    """
    files: list[CodeFile] = []
    problems: list[InputError] = []
    notes: list[str] = []
    shadowed: set[str] = set()
    taken: set[str] = set()
    for path in paths:
        found, more = _python_files(path)
        notes += more
        for each, name, is_package in found:
            unique = name
            while unique in taken:
                unique = f"{name}_{len(taken)}"
            taken.add(unique)
            try:
                files.append(read_file(each, unique, is_package=is_package))
            except InputError as problem:
                problems.append(problem)
        shadowed |= beside(path)
    notes += [note for each in files for note in each.notes]
    return Code(tuple(files), tuple(problems), tuple(dict.fromkeys(notes)), frozenset(shadowed))


def read_file(path: str, name: str, *, is_package: bool = False) -> CodeFile:
    """Read one script or notebook. Raises :class:`InputError` with line and reason if it is not valid Python."""
    if path.lower().endswith(".ipynb"):
        return read_notebook(path, name)
    source = content_of(path, LIMIT, f"has more than {LIMIT >> 20} MB of code: it is not read")
    record = kept_record(
        source, name, path, lambda: _read_source(source, name, path, is_package=is_package), is_package=is_package
    )
    return CodeFile(path, record[0], lambda line: f"{path}:{line}", *record[1:])


def _read_source(source: bytes, name: str, path: str, *, is_package: bool) -> Record:
    tree = parsed(source, path)
    try:
        module = module_of(tree, source, name, is_package=is_package)
    except (RecursionError, MemoryError):
        raise InputError("cannot be parsed: nested too deeply", path) from None
    return module, bounds_in(tree, source, path), fields_of(tree, module)


def _python_files(path: str) -> tuple[list[tuple[str, str, bool]], list[str]]:
    """Return (path, module name, whether it is a package's ``__init__``) of each Python file under a path, and notes."""
    if not os.path.isdir(path):
        return [(path, _identifier(os.path.basename(path)), False)], []
    is_package = os.path.isfile(os.path.join(path, "__init__.py"))
    outer = [os.path.basename(os.path.abspath(path))] if is_package else []
    found: list[tuple[str, str, bool]] = []
    notes: list[str] = []
    for folder, name in _walked(path, notes):
        inner = os.path.relpath(folder, path)
        parts = [*outer, *([] if inner == os.curdir else inner.split(os.sep))]
        if name == "__init__.py":
            found.append((os.path.join(folder, name), ".".join(parts) or "__init__", bool(parts)))
        else:
            found.append((os.path.join(folder, name), ".".join((*parts, _identifier(name))), False))
        if len(found) >= MOST_FILES:
            notes.append(f"{path} has more than {MOST_FILES} Python files: the first {MOST_FILES} were read")
            break
    if not found:
        raise InputError("has no Python files", path)
    return found, notes


def _walked(path: str, notes: list[str]) -> Iterator[tuple[str, str]]:
    seen = 0
    for folder, folders, names in os.walk(path):  # does not follow links to folders: they may form a cycle
        kept = (each for each in folders if not each.startswith(".") and each not in _NOT_CODE)
        folders[:] = sorted(each for each in kept if not os.path.isfile(os.path.join(folder, each, "pyvenv.cfg")))
        seen += len(names) + len(folders)
        yield from ((folder, name) for name in sorted(names) if name.endswith((".py", ".ipynb")))
        if seen > _MOST_ENTRIES:
            notes.append(f"{path} has more than {_MOST_ENTRIES} files: only part of it was read")
            return


def _identifier(name: str) -> str:
    stem = name.rpartition(".")[0] or name
    return "".join(sign if sign.isalnum() or sign == "_" else "_" for sign in stem)


def beside(path: str) -> frozenset[str]:
    """Return the modules and packages in a script's own folder, which shadow installed ones."""
    folder = path if os.path.isdir(path) else os.path.dirname(path) or os.curdir
    own = None if os.path.isdir(path) else os.path.basename(path)
    found = set()
    try:
        with os.scandir(folder) as entries:
            for at, entry in enumerate(entries):
                if at > _MOST_ENTRIES:
                    break
                stem, dot, ending = entry.name.rpartition(".")
                if dot and ending == "py" and entry.name != own:
                    found.add(stem)
                elif not dot and os.path.isfile(os.path.join(folder, entry.name, "__init__.py")):
                    found.add(entry.name)
    except OSError:
        return frozenset()
    return frozenset(found)


# --- A notebook as one module, with lines reported by cell.


def read_notebook(path: str, name: str) -> CodeFile:
    """Read a notebook's code cells as one script. Raises :class:`InputError` if it cannot be read."""
    notebook = Notebook(path)
    try:
        module = module_of(notebook.tree, b"", name)
    except (RecursionError, MemoryError):
        raise InputError("cannot be parsed: nested too deeply", path) from None

    def place(line: int) -> str:
        cell = notebook.cell(line)
        return f"{path} cell {cell}, line {line - notebook.first_line(cell) + 1}"

    return CodeFile(
        path, module, place, bounds_of(notebook.tree, path), fields_of(notebook.tree, module), is_notebook=True,
        notes=notebook.notes,
    )  # fmt: skip


# --- Records of scripts, stored in the user's cache with the hash of the source.


Stamp: TypeAlias = "tuple[str | None, str, bool, bytes]"
Record: TypeAlias = tuple[Module, tuple[Bound, ...], tuple[Field, ...]]


def kept_record(source: bytes, name: str, path: str, read: Callable[[], Record], *, is_package: bool = False) -> Record:
    """Return the record of a source from the cache, or else the result of ``read``, which is then cached."""
    here = os.path.dirname(__file__)
    whose = os.path.abspath(path).encode(errors="surrogateescape")
    place = place_in_cache("scripts", f"{zlib.crc32(whose):08x}")  # one entry per path, so the cache stays small
    stamp = stamp_of(here, os.path.join(os.path.dirname(here), "source")), name, is_package, _hash(source)
    found = _opened(read_cache(place), stamp, path)
    if found is None:
        module, bounds, fields = found = read()
        plain = [values_of(each) for each in bounds], [values_of(each) for each in fields]
        write_cache(place, marshal.dumps((stamp, pack_module(module), *plain), 4))
    return found


def _hash(source: bytes) -> bytes:
    try:
        from _blake2 import blake2b  # hashlib loads OpenSSL, which takes as long as reading the script
    except ImportError:
        from hashlib import blake2b
    return blake2b(source, digest_size=32).digest()


def _opened(content: bytes | None, stamp: Stamp, path: str) -> Record | None:
    """Return the cached record; ``None`` if it is invalid or its stamp differs (source, name or version of this code)."""
    try:
        before, module, bounds, fields = marshal.loads(content or b"")
        if before != stamp:
            return None
        stated = tuple(Bound(package, specifier, path, line) for package, specifier, _, line in bounds)
        return unpack_module(module), stated, tuple(Field(*each) for each in fields)
    except (ValueError, EOFError, TypeError, KeyError, IndexError, zlib.error):
        return None
