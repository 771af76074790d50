"""The public modules of names that only one package has: where a class or function may be from that an error names alone.

Made from the surface files when the tables are compiled: to search those takes seconds.
"""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Iterator

from compat.files import read_table
from compat.interfaces.table import FILTERS, FOLDER, open_table, tracked, value_of
from compat.records import cached

FILE = os.path.join(FOLDER, "homes.bin")
_DEPTH = 1
"""Dots in the name of a module that users import from."""


def public_homes(name: str) -> tuple[str, ...]:
    """Return the public modules with a name, the shortest first; none if several packages have it."""
    modules, by_name = _opened()
    return tuple(modules[at] for at in by_name.get(name, ()))


@cached
def _opened() -> tuple[list[str], dict[str, list[int]]]:
    modules, groups = value_of(read_table(FILE))
    return modules, {name: places for places, names in groups for name in names}


def packed() -> bytes:
    """Return the content of the file, from the compiled surface files."""
    found: dict[str, dict[str, list[str]]] = {}
    for package, module, name in _public_names():
        found.setdefault(name, {}).setdefault(package, []).append(module)
    homes = {name: next(iter(packages.values())) for name, packages in found.items() if len(packages) == 1}
    modules = sorted({module for each in homes.values() for module in each}, key=lambda module: (module.count("."), module))
    place = {module: at for at, module in enumerate(modules)}
    groups: dict[tuple[int, ...], list[str]] = {}
    for name in sorted(homes):
        groups.setdefault(tuple(sorted({place[module] for module in homes[name]})), []).append(name)
    text = json.dumps([modules, list(groups.items())], separators=(",", ":"))
    return lzma.compress(text.encode("ascii"), lzma.FORMAT_RAW, filters=FILTERS)


def _public_names() -> Iterator[tuple[str, str, str]]:
    """Yield every name of a public module of any release, with the package and the module."""
    for top, package in tracked().items():
        table = open_table(package)
        for module in table.modules() if table is not None else ():
            if module.partition(".")[0] == top and module.count(".") <= _DEPTH and "._" not in module:
                yield from ((package, module, name) for name in table.names_in(module)) if table is not None else ()
