"""The public modules of names that only one package has: where a class or function may be from that an error names alone.

Made from the surface files when the tables are compiled (``scripts/pack_mined.py``): to search those takes seconds.
"""

from __future__ import annotations

import os

from compat.files import read_table
from compat.interfaces.table import FOLDER, value_of
from compat.records import cached

FILE = os.path.join(FOLDER, "homes.bin")


def public_homes(name: str) -> tuple[str, ...]:
    """Return the public modules with a name, the shortest first; none if several packages have it."""
    modules, by_name = _opened()
    return tuple(modules[at] for at in by_name.get(name, ()))


@cached
def _opened() -> tuple[list[str], dict[str, list[int]]]:
    modules, groups = value_of(read_table(FILE))
    return modules, {name: places for places, names in groups for name in names}
