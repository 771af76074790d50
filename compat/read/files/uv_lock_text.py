"""The text of a uv.lock as tables, read line by line in the one form uv writes.

A lock of 3 MB is mostly addresses and hashes of wheels, which nobody here needs. This reader passes over them and takes a
tenth of the time of the fastest TOML parser; anything that is not written exactly as uv does goes to the TOML parser.
"""

from __future__ import annotations

from compat.read.json_text import scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Table = dict[str, Any]

_UNUSED = ("wheels", "metadata.requires-dist", "sdist")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")

_SIGNS = ("{", "}", "[", "]", ",")


class _NotUvs(Exception):
    """The text is not in the form uv writes."""


def tables_of(text: str) -> tuple[Table, list[int]] | None:
    """The document without ``wheels`` and ``sdist``, and the 1-based line of every ``[[package]]``.

    ``None`` where the text is not in uv's own form: that says nothing about whether it is TOML.
    """
    if "\\" in text or "\r" in text or "\t" in text or "'''" in text:
        return None  # escapes and other line ends: never in a name, a version, a marker or an address
    try:
        return _Lines(text.split("\n")).document()
    except (_NotUvs, ImportError, ValueError, IndexError, AttributeError, StopIteration, RecursionError, SystemError):
        return None


class _Lines:
    """A walk down the lines; ``at`` is the line to be read next."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0
        self._inline = _Inline()

    def document(self) -> tuple[Table, list[int]]:
        root: Table = {}
        places: list[int] = []
        table = root
        prefix = ""
        lines = self.lines
        end = len(lines)
        while self.at < end:
            line = lines[self.at]
            self.at += 1
            if not line or line.startswith("# "):
                continue
            if line[0] == "[":
                if line == "[[package]]":
                    places.append(self.at)
                table, prefix = self._opened(root, line)
                continue
            key, equals, value = line.partition(" = ")
            if not equals or key in table or not _is_key(key):
                raise _NotUvs
            if key in _UNUSED or f"{prefix}{key}" in _UNUSED:
                self._pass_over(value)
            else:
                table[key] = self._value(value)
        return root, places

    def _opened(self, root: Table, line: str) -> tuple[Table, str]:
        """The table a header opens, and its name below the package (``metadata.``)."""
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
        opened: Table = {}
        if several:
            table.setdefault(last, []).append(opened)
        elif last in table:
            raise _NotUvs
        else:
            table[last] = opened
        return opened, "" if len(outer) < 1 or outer[0] != "package" else f"{last}."

    def _pass_over(self, value: str) -> None:
        """Goes behind a value nobody needs, as long as it looks the way uv writes it."""
        if value != "[":
            if value[0] not in "{[" or value[-1] not in "}]":
                raise _NotUvs
            return
        lines, at = self.lines, self.at
        while lines[at].startswith("    { ") and lines[at].endswith(" },"):
            at += 1
        if lines[at] != "]":
            raise _NotUvs
        self.at = at + 1

    def _value(self, value: str) -> Any:
        if '" # ' in value and value[0] == '"':  # uv explains one of its options behind the value
            end = value.index('"', 1) + 1
            value = value[:end] if value.startswith(" # ", end) else value
        if value == "[":
            return self._array("]")
        if value == "[[":
            return self._arrays()
        return self._inline.value(value)

    def _array(self, closing: str) -> list[Any]:
        found: list[Any] = []
        while True:
            line = self.lines[self.at]
            self.at += 1
            if line == closing:
                return found
            if not line.startswith("    ") or line[-1] != ",":
                raise _NotUvs
            found.append(self._inline.value(line[4:-1]))

    def _arrays(self) -> list[list[Any]]:
        """``[[`` … ``], [`` … ``]]``: how uv writes its conflicts."""
        groups: list[list[Any]] = [[]]
        while True:
            line = self.lines[self.at]
            self.at += 1
            if line == "]]":
                return groups
            if line == "], [":
                groups.append([])
            elif line.startswith("    ") and line[-1] == ",":
                groups[-1].append(self._inline.value(line[4:-1]))
            else:
                raise _NotUvs


def _is_key(text: str) -> bool:
    return bool(text) and _PLAIN.issuperset(text)


def _keys(value: Any) -> int:
    """How many keys there are in a value, with those in the tables inside it."""
    if isinstance(value, dict):
        return len(value) + sum(map(_keys, value.values()))
    return sum(map(_keys, value)) if isinstance(value, list) else 0


class _Inline:
    """Values that stand on one line: between the quotes of TOML and JSON only the names differ."""

    def __init__(self) -> None:
        self._scan = scanner()
        self._known: dict[str, Any] = {}
        self._between: dict[str, str] = {}

    def value(self, text: str) -> Any:
        """The value; equal texts share one value, which nobody may change."""
        found = self._known.get(text)
        if found is None:
            pieces = text.split('"')
            if len(pieces) % 2 == 0:
                raise _NotUvs
            between = self._between
            for at in range(0, len(pieces), 2):
                piece = pieces[at]
                pieces[at] = between[piece] if piece in between else self._in_json(piece)
            written = '"'.join(pieces)
            found, end = self._scan(written, 0)
            if end != len(written) or ("}" in written and written.count('":') != _keys(found)):
                raise _NotUvs  # something is left, or a key was given twice
            self._known[text] = found
        return found

    def _in_json(self, piece: str) -> str:
        """What stands between two quoted texts, such as ``, source = { registry = ``, with names in quotes."""
        words: list[str] = []
        for word in _spaced(piece).split():
            if word == "=":
                if not words or not _is_key(words[-1]):
                    raise _NotUvs
                words[-1] = f'"{words[-1]}":'
                continue
            if words and word not in _SIGNS and words[-1] not in _SIGNS and words[-1][-1] != ":":
                raise _NotUvs  # two words with nothing between them
            if word == "null":
                raise _NotUvs
            words.append(word)
        written = self._between[piece] = "".join(words)
        return written


def _spaced(piece: str) -> str:
    for sign in _SIGNS:
        piece = piece.replace(sign, f" {sign} ")
    return piece
