"""JSON parsing without importing :mod:`re` when CPython's own scanner can be used directly.

``json`` compiles regular expressions on import, which costs more than checking an environment. The scanner below is the
one ``json`` uses; errors and anything it cannot parse fall back to ``json``.
"""

from __future__ import annotations

import sys

from compat.errors import InputError
from compat.files import decode_utf8, readable_path
from compat.records import record
from compat.redact import excerpt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any, NoReturn, TypeAlias

    Scanner: TypeAlias = Callable[[str, int], tuple[Any, int]]
    """Text and position → the JSON value there and the position after it."""

_SPACE = " \t\n\r"
_LIMIT = 64 * 1024 * 1024


class _Options:
    """The options that the scanner reads from its decoder."""

    strict = True
    object_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}  # noqa: RUF012 (the pure-Python scanner's cache; the C scanner has its own)

    @staticmethod
    def object_pairs_hook(pairs: list[tuple[str, object]]) -> dict[str, object]:
        """Refuse a key that occurs twice: readers disagree on which value counts, and one of them would hide the other."""
        found = dict(pairs)
        if len(found) < len(pairs):
            seen: set[str] = set()
            twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise ValueError(f"the key {excerpt(twice, 60)!r} occurs twice")
        return found

    @staticmethod
    def parse_constant(word: str) -> NoReturn:
        raise ValueError(f"{word} is not JSON")


def scanner() -> Scanner:
    """Return CPython's own scanner; ``ImportError`` if it is unavailable."""
    from _json import make_scanner

    return make_scanner(_Options)  # type: ignore[arg-type]


def decoder() -> Scanner:
    """Return CPython's own scanner, or the one that ``json`` has if that is unavailable."""
    try:
        return scanner()
    except ImportError:
        import json

        return json.JSONDecoder().raw_decode


def parse_json(text: str, file: str) -> Any:
    """Parse a JSON text; :class:`InputError` with the line if it is invalid."""
    try:
        stripped = text.strip(_SPACE)
        value, end = scanner()(stripped, 0)
        if end == len(stripped):
            return value
    except (ImportError, ValueError, StopIteration, RecursionError, TypeError, SystemError):
        pass  # SystemError: Python 3.10 and 3.11 cannot raise the error before json is imported
    import json

    try:
        return json.loads(text, parse_constant=_Options.parse_constant, object_pairs_hook=_Options.object_pairs_hook)
    except json.JSONDecodeError as problem:
        raise InputError(f"is not JSON: {problem.msg} (column {problem.colno})", file, problem.lineno) from None
    except RecursionError:
        raise InputError("cannot be parsed: nested too deeply", file) from None
    except ValueError as problem:
        raise InputError(f"is not JSON: {problem}", file) from None


def read_text(path: str, limit: int = _LIMIT) -> str:
    """Read a UTF-8 file; :class:`InputError` if it cannot be read, is not UTF-8 or is larger than ``limit`` bytes."""
    try:
        with open(readable_path(path), "rb") as file:
            content = file.read(limit + 1)
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", path) from None
    return _decoded(content, path, limit)


def read_standard_input() -> str:
    """Like :func:`read_text`, from standard input."""
    return _decoded(standard_input(_LIMIT), "standard input", _LIMIT)


def standard_input(limit: int) -> bytes:
    """Return what standard input holds, up to one byte more than ``limit``; :class:`InputError` if there is none."""
    if sys.stdin is None:
        raise InputError("cannot be read: there is none", "standard input")
    try:
        return sys.stdin.buffer.read(limit + 1)
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", "standard input") from None


def _decoded(content: bytes, path: str, limit: int) -> str:
    if len(content) > limit:
        raise InputError(f"is larger than {limit // 1024 // 1024} MiB", path)
    return decode_utf8(path, content).removeprefix("\ufeff")


@record(frozen=True)
class Child:
    """A value in an object or an array: its key or position, and where it starts and ends in the text."""

    key: str | int
    start: int
    end: int


def children(text: str, at: int) -> Iterator[Child]:
    """Yield the values in the object or array of a valid text that starts at ``at``; ``ValueError`` if there is none."""
    decode = decoder()
    if text[at] not in "{[":
        raise ValueError("no container")
    is_table = text[at] == "{"
    at = after_space(text, at + 1)
    key: str | int = 0
    while text[at] not in "}]":
        if is_table:
            key, at = decode(text, at)
            at = after_space(text, after_space(text, at) + 1)
        _, end = decode(text, at)
        yield Child(key, at, end)
        key = 0 if isinstance(key, str) else key + 1
        at = after_space(text, end)
        if text[at] == ",":
            at = after_space(text, at + 1)


def after_space(text: str, at: int) -> int:
    """Return the index of the next letter that is no white space."""
    while text[at] in _SPACE:
        at += 1
    return at


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    """Return the line on which the value at ``path`` (keys and indices) starts; ``None`` if it cannot be found."""
    try:
        at = after_space(text, 0)
        for wanted in path:
            at = next(each.start for each in children(text, at) if each.key == wanted)
    except (IndexError, RecursionError, StopIteration, ValueError):
        return None
    return text.count("\n", 0, at) + 1


_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def letters(text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yield the letters of the string between ``start`` and ``end``, quotes included, each with its place and its width there.

    Half of a surrogate pair counts as a separate letter.
    """
    at = start + 1
    while at < end - 1:
        letter, width = text[at], 1
        if letter == "\\":
            letter = text[at + 1]
            width = 6 if letter == "u" else 2
            letter = chr(int(text[at + 2 : at + 6], 16)) if letter == "u" else _SHORT.get(letter, letter)
        yield letter, at, width
        at += width
