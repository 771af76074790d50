"""TOML parsing, with the standard library if available (Python 3.11) and with tomlkit otherwise."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from typing import Any

from compat.errors import InputError
from compat.files import content_of, decode_utf8
from compat.records import record

_LIMIT = 64 * 1024 * 1024
_MOST_PARTS, _MANY_PARTS, _MOST_LONG_PARTS = 200, 20, 20_000
"""Parts of one dotted key; keys with more than ``_MANY_PARTS`` may not have more than ``_MOST_LONG_PARTS`` together."""
_QUOTED = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'")
_LONG_NUMBER = re.compile(r"[=\[,][ \t]*[+-]?0[xob][0-9A-Fa-f_]{300}")
"""An integer too long for Python to print."""


def parse_toml(path: str) -> tuple[str, dict[str, Any]]:
    """Return the text of a TOML file and its content; :class:`InputError` with the line if it is invalid."""
    text = decode_utf8(path, content_of(path, _LIMIT)).replace("\r\n", "\n")
    return text, parse_text(text, path)


def parse_text(text: str, path: str) -> dict[str, Any]:
    """Parse a TOML text; :class:`InputError` with the line if it is invalid, and for a merge conflict."""
    try:
        return _parsed(text, path)
    except RecursionError:
        raise InputError("cannot be parsed: nested too deeply", path) from None
    except InputError as problem:
        refuse_conflict(text, path)
        raise problem from None


def refuse_conflict(text: str, path: str) -> None:
    """Raise :class:`InputError` with the line if a text has an unresolved merge conflict."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            raise InputError("has an unresolved merge conflict", path, number) from None


def _endless_key(text: str) -> int | None:
    """Return the line with a key of hundreds of parts (``a.a.a…``), which takes parsers superlinear time and memory."""
    together = 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") < _MANY_PARTS:
            continue
        run = longest = 0
        for part in _QUOTED.sub("q", line).split("."):
            run = run + 1 if len(part) < 40 and not set(part) & set("=,{[") else 0
            longest = max(longest, run)
        together += longest if longest > _MANY_PARTS else 0
        if longest > _MOST_PARTS or together > _MOST_LONG_PARTS:
            return number
    return None


def _parsed(text: str, path: str) -> dict[str, Any]:
    if text.startswith("\ufeff"):
        raise InputError("is not TOML: it begins with a byte order mark", path, 1)
    number = _endless_key(text)
    if number is not None:
        raise InputError("cannot be parsed: a key has too many parts", path, number)
    found = _LONG_NUMBER.search(text) if "0x" in text or "0o" in text or "0b" in text else None
    if found is not None:
        raise InputError("cannot be parsed: a number is too long", path, text.count("\n", 0, found.end()) + 1)
    if sys.version_info >= (3, 11):
        import tomllib

        try:
            return tomllib.loads(text)
        except ValueError as problem:  # TOMLDecodeError, or a number that is too long
            reason, _, place = str(problem).partition(" (at ")
            at = re.match(r"line (\d+)", place)
            last = text.rstrip().count("\n") + 1 if place else None  # "at end of document"
            raise InputError(f"is not TOML: {reason}", path, int(at[1]) if at else last) from None
    else:
        import tomlkit
        from tomlkit.exceptions import ParseError

        try:
            return tomlkit.parse(text).unwrap()
        except ParseError as problem:
            raise InputError(f"is not TOML: {problem}", path, problem.line) from None
        except ValueError as problem:
            raise InputError(f"is not TOML: {problem}", path) from None


# --- The lines of tables, keys and strings in a TOML text, for errors and findings; ``None`` if unknown.


@record(frozen=True)
class Slot:
    """Where a parsed document holds a value: ``owner[key]``; ``name`` is what a table says it is about."""

    owner: Any
    key: str | int
    name: str = ""


class Places:
    """Lines of a TOML text, found in one pass. Only the usual notations are recognised."""

    def __init__(self, text: str) -> None:
        self._keys: dict[tuple[str, str], int] = {}
        self._strings: dict[str, list[int]] = {}
        header = ""
        for number, line in enumerate(text.split("\n"), 1):
            stripped = line.strip()
            if not stripped or stripped[0] == "#":
                continue
            if stripped[0] == "[" and (name := _header(stripped)) is not None:
                header = name
                self._keys.setdefault((header, ""), number)
                continue
            before, equals, _ = stripped.partition("=")
            if equals and before[:1] not in ("{", "]", ","):
                self._keys.setdefault((header, _bare(before)), number)
            for quote in ('"', "'"):
                if quote in stripped:
                    for string in stripped.split(quote)[1::2]:
                        self._strings.setdefault(string, []).append(number)

    def key(self, header: str, key: str = "") -> int | None:
        """Return the line of a key under a header such as ``tool.uv``, else of the key's own header, else of the header."""
        own = f"{header}.{key}" if key else header
        return self._keys.get((header, key)) or self._keys.get((own, "")) or self._keys.get((header, ""))

    def string(self, text: str, start: int | None) -> int | None:
        """Return the first line from ``start`` on that contains a string; else ``start``."""
        lines = self._strings.get(text, [])
        at = bisect_left(lines, start or 1)
        return lines[at] if at < len(lines) else start


def _header(line: str) -> str | None:
    """``[ tool."poetry".dependencies ]  # …`` → ``tool.poetry.dependencies``; ``None`` for a line of an array."""
    name, closed, rest = line.lstrip("[").partition("]")
    rest = rest.lstrip("] \t")
    if not closed or "," in name or "{" in name or (rest and rest[0] != "#"):
        return None
    return ".".join(_bare(part) for part in name.split("."))


def _bare(key: str) -> str:
    return key.strip().strip("\"'").strip()
