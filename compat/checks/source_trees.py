"""Packages installed from source: names that they import at package import and other installed releases do not have."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from compat.files import place_in_cache, read_cache, write_cache
from compat.interfaces.at_once import importable
from compat.interfaces.code.releases import Releases
from compat.interfaces.imports import Eager
from compat.interfaces.release import Meaning, SourceSurface
from compat.interfaces.source.records import Module
from compat.interfaces.world import World
from compat.model import Environment, Finding

TREE = "tree"
"""The key in a source's details for the folder that contains its modules."""


def trees_in(environment: Environment, tracked: Mapping[str, str]) -> dict[str, SourceSurface]:
    """The source of each package that was installed from source, if its folder is known."""
    found: dict[str, SourceSurface] = {}
    for copy in environment.distributions or ():
        root = copy.source.details.get(TREE) if copy.source is not None else None
        if isinstance(root, str):
            tops = tuple(top for top, package in tracked.items() if package == copy.name)
            surface = tree_of(copy.name, f"{copy.version or ''} (source)".strip(), root, tops)
            if surface is not None:
                found[copy.name] = surface
    return found


def of_trees(trees: Mapping[str, SourceSurface], installed: Mapping[str, str], releases: Releases) -> Iterator[Finding]:
    """Yield findings for names that a source tree imports at import time and an installed release certainly does not have."""
    surfaces = [table.surface(version) for name, version in installed.items() if (table := releases.table(name)) is not None]
    world = World([*trees.values(), *(each for each in surfaces if each is not None)])
    here = importable((*installed, *trees))
    for package, tree in trees.items():
        eager = Eager(tree).run(sorted(tree.tops))
        for (module, name), asks in eager.outside.items():
            if not asks <= here:
                continue
            meaning = world.imported(module, name if name != "*" else None)
            if meaning.kind == "absent" and meaning.surface is not None:
                yield _finding(package, tree, module, name, meaning, eager)


def _finding(package: str, tree: SourceSurface, module: str, name: str | None, meaning: Meaning, eager: Eager) -> Finding:
    assert meaning.surface is not None
    other, there = meaning.surface.package, meaning.surface.version
    what = f"{module}.{name}" if name else module
    place = _place(tree, module, name, eager)
    return Finding(
        rule=f"surface-{package}-{other}", origin="surface",
        title=f"{package} {tree.version} imports {what}, which {other} {there} does not have",
        why=f"{place} always runs when {package} is imported.",
        packages={package: tree.version.partition(" ")[0] or None, other: there.partition(" ")[0]}, facts=("install",),
        evidence=(f"{package} {place}", f"{other} {there} {meaning.module} has no {meaning.name}"),
        here=f"{package} {tree.version}, {other} {there}",
    )  # fmt: skip


def _place(tree: SourceSurface, module: str, name: str | None, eager: Eager) -> str:
    for each in eager.modules:
        record = tree.module(each)
        if record is None:
            continue
        for imported in record.imports:
            if (imported.module, imported.name) == (module, name) and not imported.flags:
                return f"{record.path}:{imported.line}"
    return module


# --- The source of an installed package: modules are read on demand and cached by content.


_MOST_MODULES = 20_000
_COMPILED = (".so", ".pyd", ".pyx")
_LARGEST = 2 << 20


def tree_of(package: str, version: str, root: str, tops: tuple[str, ...]) -> SourceSurface | None:
    """The modules of a package below ``root``, given its top-level modules; ``None`` if there are none."""
    names: dict[str, str] = {}
    opaque: list[str] = []
    for top in tops:
        _collect(root, top, names, opaque)
    if not names:
        return None

    def read(name: str) -> Module | None:
        return _kept_module(package, names[name], name)

    return SourceSurface(package, version, names, read, opaque)


def _collect(root: str, top: str, names: dict[str, str], opaque: list[str]) -> None:
    if os.path.isfile(f"{root}/{top}.py"):
        names[top] = f"{root}/{top}.py"
        return
    for folder, folders, files in os.walk(f"{root}/{top}"):  # links to folders are not followed
        folders[:] = sorted(each for each in folders if each.isidentifier() and each != "__pycache__")
        place = os.path.relpath(folder, root).replace(os.sep, ".")
        for file in sorted(files):
            stem, dot, ending = file.partition(".")
            if file == "__init__.py":
                names[place] = os.path.join(folder, file)
            elif file.endswith(".py") and stem.isidentifier() and ending == "py":
                names[f"{place}.{stem}"] = os.path.join(folder, file)
            elif dot and file.endswith(_COMPILED):
                opaque.append(f"{place}.{stem}")
        if len(names) > _MOST_MODULES:
            return


def _kept_module(package: str, path: str, name: str) -> Module | None:
    """The record of a file, cached by content in the user's cache; ``None`` if the file cannot be read."""
    import zlib
    from hashlib import sha256

    from compat.interfaces.source.module import FORM, read_module
    from compat.interfaces.source.records import pack_module, unpack_module

    try:
        with open(path, "rb") as file:
            source = file.read(_LARGEST + 1)
    except OSError:
        return None
    is_package = path.endswith("__init__.py")
    key = sha256(b"%d %s %d " % (FORM, name.encode(), is_package) + source).hexdigest()
    place = place_in_cache("source", package, key[:2], key[2:])
    packed = read_cache(place)
    if packed is not None:
        try:
            return unpack_module(packed)
        except (ValueError, EOFError, TypeError, KeyError, IndexError, zlib.error):
            pass
    module = read_module(source, name, is_package=is_package)
    write_cache(place, pack_module(module))
    return module
