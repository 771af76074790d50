"""The source of a package as it is installed, or checked out: modules are read when they are asked for, and kept by content."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from compat.files import keep, kept, place_in_cache
from compat.interfaces.release import SourceSurface

if TYPE_CHECKING:
    from compat.interfaces.source.records import Module


_MOST_MODULES = 20_000
_COMPILED = (".so", ".pyd", ".pyx")
_LARGEST = 2 << 20


def tree_of(package: str, version: str, root: str, tops: tuple[str, ...]) -> SourceSurface | None:
    """The modules below ``root`` of a package with these top-level modules; ``None`` where they are not there."""
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
    """The record of a file, kept by its content in the user's cache; ``None`` where it cannot be read."""
    import zlib
    from hashlib import sha256

    from compat.interfaces.source.module import FORM, read_module
    from compat.interfaces.source.packed import pack_module, unpack_module

    try:
        with open(path, "rb") as file:
            source = file.read(_LARGEST + 1)
    except OSError:
        return None
    is_package = path.endswith("__init__.py")
    key = sha256(b"%d %s %d " % (FORM, name.encode(), is_package) + source).hexdigest()
    place = place_in_cache("source", package, key[:2], key[2:])
    packed = kept(place)
    if packed is not None:
        try:
            return unpack_module(packed)
        except (ValueError, EOFError, TypeError, KeyError, IndexError, zlib.error):
            pass
    module = read_module(source, name, is_package=is_package)
    keep(place, pack_module(module))
    return module
