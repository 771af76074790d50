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
    """A table is not what it must be; the text names file and line."""


def load(path: Path, columns: tuple[str, ...], key: tuple[str, ...]) -> dict[tuple[str, ...], dict[str, str]]:
    """The rows of a table by their key; empty where there is no such file.

    :class:`TableError` for another header, a short row, a missing source, an unknown ``known``, or two rows of one key.
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
    """The table as it is written to its file."""
    output = io.StringIO()
    writer = csv.DictWriter(output, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted(rows, key=order))  # type: ignore[arg-type]
    return output.getvalue()


def changed(
    old: Mapping[tuple[str, ...], Row], new: Mapping[tuple[str, ...], Row], may_change: tuple[str, ...] = PROVENANCE
) -> list[str]:
    """What a new table says otherwise than the old one about the same key: a line for each, empty where nothing does.

    Published files do not change, so this is an error of the index, of the reading, or of the table.
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
