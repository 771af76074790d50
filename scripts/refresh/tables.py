"""Fact tables as text: CSV with sorted rows, each with its source, its date and how it is known."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

Row = Mapping[str, str]
KNOWN = ("read", "declared", "curated", "inferred")
PROVENANCE = ("known", "source", "date")


class TableError(Exception):
    """A table is invalid; the message names file and line."""


def load(path: Path, columns: tuple[str, ...], key: tuple[str, ...]) -> dict[tuple[str, ...], dict[str, str]]:
    """Return the rows of a table by key; empty if the file does not exist.

    Raises :class:`TableError` for a wrong header, a short row, a missing source, an unknown ``known``, or a duplicate key.
    """
    if not path.exists():
        return {}
    found: dict[tuple[str, ...], dict[str, str]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != columns:
            raise TableError(f"{path.name}:1: expected the columns {','.join(columns)}")
        for row in reader:
            where = f"{path.name}:{reader.line_num}"
            if None in row or None in row.values():
                raise TableError(f"{where}: expected {len(columns)} values")
            if not row["source"] or not row["date"] or row["known"] not in KNOWN:
                raise TableError(f"{where}: expected a source, a date, and known as one of {', '.join(KNOWN)}")
            name = tuple(row[each] for each in key)
            if name in found:
                raise TableError(f"{where}: {', '.join(name)} is there twice")
            found[name] = row
    return found


def text_of(rows: Iterable[Row], columns: tuple[str, ...], order: Callable[[Row], object]) -> str:
    """Return the table as file text."""
    output = io.StringIO()
    writer = csv.DictWriter(output, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted(rows, key=order))  # type: ignore[arg-type]
    return output.getvalue()


def changed(
    old: Mapping[tuple[str, ...], Row], new: Mapping[tuple[str, ...], Row], may_change: tuple[str, ...] = PROVENANCE
) -> list[str]:
    """Return a line for each key whose row differs between the old and the new table.

    Published files do not change, so a difference is an error in the index, the reading, or the table.
    """
    lines = []
    for key, row in old.items():
        other = new.get(key)
        if other is None:
            lines.append(f"{', '.join(key)}: gone")
            continue
        lines += [
            f"{', '.join(key)}: {column} was {row[column]!r} and is {other[column]!r}"
            for column in row
            if column not in may_change and row[column] != other[column]
        ]
    return lines
