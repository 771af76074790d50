"""A notebook's JSON → its code cells, each line with the line of the file that it stands on, and its metadata."""

from __future__ import annotations

from compat.errors import InputError
from compat.read.json_text import parse_json, scanner
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    Decode: TypeAlias = Callable[[str, int], tuple[Any, int]]
    Place: TypeAlias = tuple[Any, int, int]
    """(key or position, where the value begins, behind it)."""

CELLS = 5000
"""Code cells; no notebook that anybody ran has more."""
_SPACE = " \t\n\r"


@record(frozen=True)
class Cell:
    """A code cell: its number among the code cells (from 1), its source lines, and their lines in the file."""

    number: int
    lines: tuple[str, ...]
    places: tuple[int, ...]


def code_cells(path: str, text: str) -> tuple[list[Cell], Mapping[str, Any]]:
    """The code cells and the metadata; :class:`InputError` where the text is no notebook."""
    document = parse_json(text, path)
    if not isinstance(document, dict):
        raise InputError("is no Jupyter notebook: expected a JSON object", path, 1)
    cells = document.get("cells")
    where: tuple[Any, ...] = ("cells",)
    if cells is None:  # the third version of the format
        sheets = document.get("worksheets")
        cells = sheets[0].get("cells") if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict) else None
        where = ("worksheets", 0, "cells")
    if not isinstance(cells, list):
        raise InputError("is no Jupyter notebook: expected a list of cells", path, 1)
    places = _Places(text, where)
    found: list[Cell] = []
    for index, cell in enumerate(cells):
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            if len(found) == CELLS:
                raise InputError(f"has more than {CELLS} code cells", path)
            key = "source" if "source" in cell else "input"
            found.append(_cell(len(found) + 1, cell.get(key, ""), places.of(index, key), path))
    metadata = document.get("metadata")
    return found, metadata if isinstance(metadata, dict) else {}


def _cell(number: int, source: Any, places: list[int], path: str) -> Cell:
    """A cell; ``places`` are the lines its pieces of source begin on, the whole cell's line first."""
    pieces = [source] if isinstance(source, str) else source
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        line = places[0] if places else None
        raise InputError("is no Jupyter notebook: expected text in every code cell", path, line)
    lines: list[str] = [""]
    at: list[int] = [places[0] if places else 1]
    own = places[1:] if len(places) == len(pieces) + 1 else [at[0]] * len(pieces)
    for piece, line in zip(pieces, own):
        first, *others = piece.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if not lines[-1]:
            at[-1] = line
        lines[-1] += first
        lines += others
        at += [line] * len(others)
    return Cell(number, tuple(lines), tuple(at))


class _Places:
    """Where the pieces of source of each cell stand in the text; goes through it once."""

    def __init__(self, text: str, path: tuple[Any, ...]) -> None:
        self._text = text
        self._line, self._counted = 1, 0
        self._cells: list[Place] = []
        self._decode = _decoder()
        try:
            at = self._skip(0)
            for step in path:
                at = next(start for key, start, _ in self._children(at) if key == step)
            self._cells = self._children(at)
        except (IndexError, RecursionError, StopIteration, ValueError):
            pass

    def of(self, index: int, key: str) -> list[int]:
        """The line of the cell's source, and of every piece where it is a list; empty where they cannot be told."""
        try:
            start = next(start for name, start, _ in reversed(self._children(self._cells[index][1])) if name == key)
            pieces = self._children(start) if self._text[start] == "[" else [(0, start, start)]
        except (IndexError, RecursionError, StopIteration, ValueError):
            return []
        return [self._line_of(start), *(self._line_of(at) for _, at, _ in pieces)]

    def _line_of(self, at: int) -> int:
        if at < self._counted:
            return self._line
        self._line += self._text.count("\n", self._counted, at)
        self._counted = at
        return self._line

    def _skip(self, at: int) -> int:
        while self._text[at] in _SPACE:
            at += 1
        return at

    def _children(self, at: int) -> list[Place]:
        """The values in an object or an array that begins at ``at``."""
        opened = self._text[at]
        if opened not in "{[":
            raise ValueError("no container")
        found: list[Place] = []
        at = self._skip(at + 1)
        while self._text[at] not in "}]":
            key: Any = len(found)
            if opened == "{":
                key, at = self._decode(self._text, at)
                at = self._skip(self._skip(at) + 1)
            start = at
            _, at = self._decode(self._text, at)
            found.append((key, start, at))
            at = self._skip(at)
            if self._text[at] == ",":
                at = self._skip(at + 1)
        return found


def _decoder() -> Decode:
    try:
        return scanner()
    except ImportError:
        import json

        return json.JSONDecoder().raw_decode
