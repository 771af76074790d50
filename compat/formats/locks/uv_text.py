"""A line-by-line reader of uv.lock for the exact form that uv writes.

A 3 MB lock is mostly addresses and hashes of wheels, which are not needed here. This reader skips them and takes a tenth of
the time of the fastest TOML parser; a file in any other form goes to the TOML parser.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat.syntax.json import scanner

Table = dict[str, Any]


_UNUSED = ("wheels", "metadata.requires-dist", "sdist")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")

_SIGNS = ("{", "}", "[", "]", ",")


class _NotUvs(Exception):
    """The text is not in the form that uv writes."""


def tables_of(text: str) -> tuple[Table, list[int]] | None:
    """Return the document without ``wheels`` and ``sdist``, and the 1-based line of every ``[[package]]``.

    ``None`` if the text is not in uv's form; it may still be valid TOML.
    """
    if "\\" in text or "\r" in text or "\t" in text:
        return None  # escapes and other line ends: never in a name, a version, a marker or an address
    try:
        return _Lines(text.split("\n")).document()
    except (_NotUvs, ImportError, ValueError, IndexError, AttributeError, StopIteration, RecursionError, SystemError):
        return None


class _Lines:
    """Iterates over the lines of a file."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self._inline = _Inline()
        self._keys: set[str] = set()

    def document(self) -> tuple[Table, list[int]]:
        root: Table = {}
        places: list[int] = []
        table, prefix = root, ""
        lines, keys = self.lines, self._keys
        at, end = 0, len(self.lines)
        while at < end:  # the hot loop over every line of a lock: avoid calls
            line = lines[at]
            at += 1
            if not line or line.startswith("# "):
                continue
            if line[0] == "[":
                if line == "[[package]]":
                    places.append(at)
                    table, prefix = {}, ""
                    root.setdefault("package", []).append(table)
                else:
                    table, prefix = self._opened(root, line)
                continue
            key, equals, value = line.partition(" = ")
            if key not in keys:
                if not _is_key(key):
                    raise _NotUvs
                keys.add(key)
            if not equals or key in table:
                raise _NotUvs
            if key in _UNUSED or (prefix and prefix + key in _UNUSED):
                at = self._behind(value, at)
            elif value == "[":
                table[key], at = self._array(at)
            elif value[0] == '"' and value.find('"', 1) == len(value) - 1:
                table[key] = value[1:-1]
            else:
                table[key], at = self._value(value, at)
        return root, places

    def _opened(self, root: Table, line: str) -> tuple[Table, str]:
        """Return the table that a header opens, and its name below the package (``metadata.``)."""
        several = line.startswith("[[")
        name = line.strip("[]")
        if line != (f"[[{name}]]" if several else f"[{name}]"):
            raise _NotUvs
        *outer, last = name.split(".")
        if not all(map(_is_key, (*outer, last))):
            raise _NotUvs
        table = root
        for part in outer:
            below = table.get(part)
            if below is None:
                below = table[part] = {}
            table = below[-1] if isinstance(below, list) else below
            if not isinstance(table, dict):
                raise _NotUvs  # a header below a value
        opened: Table = {}
        if several:
            table.setdefault(last, []).append(opened)
        elif last in table:
            raise _NotUvs
        else:
            table[last] = opened
        return opened, "" if len(outer) < 1 or outer[0] != "package" else f"{last}."

    def _behind(self, value: str, at: int) -> int:
        """Return the line after a value to skip; ``_NotUvs`` if it is not in uv's form."""
        if value != "[":
            if value[0] not in "{[" or value[-1] not in "}]":
                raise _NotUvs
            return at
        lines = self.lines
        line = lines[at]
        while line.startswith("    { ") and line.endswith(" },"):
            at += 1
            line = lines[at]
        if line != "]":
            raise _NotUvs
        return at + 1

    def _value(self, value: str, at: int) -> tuple[object, int]:
        if '" # ' in value and value[0] == '"':  # uv adds a comment to one of its options
            end = value.index('"', 1) + 1
            value = value[:end] if value.startswith(" # ", end) else value
        return self._arrays(at) if value == "[[" else (self._inline.value(value), at)

    def _array(self, at: int) -> tuple[list[object], int]:
        found: list[object] = []
        lines, known, value = self.lines, self._inline.known, self._inline.value
        line = lines[at]
        while line != "]":
            if line[-1] != "," or not line.startswith("    "):
                raise _NotUvs
            text = line[4:-1]
            found.append(known[text] if text in known else value(text))
            at += 1
            line = lines[at]
        return found, at + 1

    def _arrays(self, at: int) -> tuple[list[list[object]], int]:
        """Parse ``[[`` … ``], [`` … ``]]``, uv's form of conflicts."""
        groups: list[list[object]] = [[]]
        while self.lines[at] != "]]":
            line = self.lines[at]
            at += 1
            if line == "], [":
                groups.append([])
            elif line.startswith("    ") and line[-1] == ",":
                groups[-1].append(self._inline.value(line[4:-1]))
            else:
                raise _NotUvs
        return groups, at + 1


def _is_key(text: str) -> bool:
    return bool(text) and _PLAIN.issuperset(text)


def _flat(pieces: list[str]) -> Table | None:
    """Return a table of plain texts, the common case; ``None`` for any other."""
    if pieces[-1] != " }" or len(pieces) % 2 == 0:
        return None
    found: Table = {}
    start = "{ "
    for at in range(0, len(pieces) - 1, 2):
        piece = pieces[at]
        key = piece[2:-3]
        if piece[:2] != start or piece[-3:] != " = " or not _is_key(key) or key in found:
            return None
        found[key] = pieces[at + 1]
        start = ", "
    return found


def _keys(value: object) -> int:
    """Count the keys in a value, including nested tables."""
    if isinstance(value, dict):
        return len(value) + sum(map(_keys, value.values()))
    return sum(map(_keys, value)) if isinstance(value, list) else 0


class _Inline:
    """Parses values on one line: outside of quotes, only the keys differ between TOML and JSON."""

    def __init__(self) -> None:
        self.known: dict[str, object] = {}
        self._between: dict[str, str] = {}
        self._scan: Callable[[str, int], tuple[object, int]] | None = None

    def value(self, text: str) -> object:
        """Return the value; equal texts share one object, which must not be modified."""
        found = self.known.get(text)
        if found is None:
            pieces = text.split('"')
            found = _flat(pieces) if text[0] == "{" else None
            if found is None:
                found = self._nested(pieces)
            self.known[text] = found
        return found

    def _nested(self, pieces: list[str]) -> object:
        if len(pieces) % 2 == 0:
            raise _NotUvs
        if self._scan is None:
            self._scan = scanner()
        between = self._between
        for at in range(0, len(pieces), 2):
            piece = pieces[at]
            pieces[at] = between[piece] if piece in between else self._in_json(piece)
        written = '"'.join(pieces)
        found, end = self._scan(written, 0)
        if end != len(written) or ("}" in written and written.count('":') != _keys(found)):
            raise _NotUvs  # trailing text, or a duplicate key
        return found

    def _in_json(self, piece: str) -> str:
        """Convert the text between two strings, such as ``, source = { registry = ``, to JSON by quoting the keys."""
        words: list[str] = []
        spaced = piece
        for sign in _SIGNS:
            spaced = spaced.replace(sign, f" {sign} ")
        for word in spaced.split():
            if word == "=":
                if not words or not _is_key(words[-1]):
                    raise _NotUvs
                words[-1] = f'"{words[-1]}":'
                continue
            if words and word not in _SIGNS and words[-1] not in _SIGNS and words[-1][-1] != ":":
                raise _NotUvs  # two words in a row
            if word == "null":
                raise _NotUvs
            words.append(word)
        written = self._between[piece] = "".join(words)
        return written
