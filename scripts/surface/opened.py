"""The mined tables of ``matrix/surface``; those that the package ships are copies with a seal."""

from __future__ import annotations

from pathlib import Path

from compat.interfaces import rows, table
from compat.interfaces.rows import Rows
from compat.interfaces.table import Table


def table_in(path: Path) -> Table | None:
    """Open the table of a package; ``None`` if there is none, or one of another format."""
    content = path.read_bytes() if path.exists() else b""
    return Table(content) if content.startswith(table.MAGIC) else None


def rows_in(path: Path) -> Rows | None:
    """Open the file of rows; ``None`` if there is none, or one of another format."""
    content = path.read_bytes() if path.exists() else b""
    return Rows(content) if content.startswith(rows.MAGIC) else None
