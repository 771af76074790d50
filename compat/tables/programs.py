"""The commands that distributions install (``matrix/facts/programs.csv``), compiled."""

from __future__ import annotations

import marshal
import os

from compat.files import DATA, read_table

FILE = os.path.join(DATA, "programs.bin")


def installers_of(program: str) -> tuple[tuple[str, str], ...]:
    """Return (distribution, module for ``python -m`` or "") of each distribution that installs a command."""
    known: dict[str, tuple[tuple[str, str], ...]] = marshal.loads(read_table(FILE))
    return known.get(program, ())
