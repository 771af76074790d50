"""``pip list --format=json`` somewhere in a text."""

from __future__ import annotations

import re

from compat.environment import Source, normalized
from compat.read.pasted.findings import LISTED, Findings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from compat.read.pasted.plain_lines import Line

_START = re.compile(r"\[\s{0,40}\{\s{0,40}\"name\"\s{0,8}:")
_MOST = 10


def read_json_lists(lines: Sequence[Line], found: Findings) -> None:
    """Every such list; one that is cut off is read as far as it goes."""
    if not any('"name"' in line.text for line in lines):
        return
    text = "\n".join(line.text for line in lines)
    for number, match in enumerate(_START.finditer(text)):
        if number >= _MOST:
            return
        rows, whole = _rows(text, match.start())
        names = [name for row in rows if (name := _row(row, found)) is not None]
        if whole and len(names) == len(rows) >= 10 and "pip" in names:
            found.whole_lists.append(frozenset(names))


def _rows(text: str, start: int) -> tuple[list[Any], bool]:
    """The objects of a list, one after the other, and whether its end was reached."""
    import json

    decoder, space = json.JSONDecoder(), re.compile(r"[\s,]*")
    rows: list[Any] = []
    at = start + 1
    while True:
        skipped = space.match(text, at)
        at = skipped.end() if skipped else at
        if text[at : at + 1] != "{":
            return rows, text[at : at + 1] == "]"
        try:
            row, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return rows, False
        rows.append(row)


def _row(row: Any, found: Findings) -> str | None:
    name, version = row.get("name"), row.get("version")
    if not isinstance(name, str) or not isinstance(version, str) or not 0 < len(name) < 100:
        return None
    folder = row.get("editable_project_location")
    source = Source("directory", {"path": folder, "editable": True}) if isinstance(folder, str) and folder else None
    found.package(name, version, LISTED, source)
    return normalized(name)
