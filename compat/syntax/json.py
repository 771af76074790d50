"""JSON parsing without importing :mod:`re` when CPython's own scanner can be used directly.

``json`` compiles regular expressions on import, which costs more than checking an environment. The scanner below is the
one ``json`` uses; errors and anything it cannot parse fall back to ``json``.
"""

from __future__ import annotations

from compat.errors import InputError
from compat.files import decoded, readable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_SPACE = " \t\n\r"


class _Options:
    """The options that the scanner reads from its decoder."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}  # noqa: RUF012 (the pure-Python scanner's cache; the C scanner has its own)

    @staticmethod
    def parse_constant(word: str) -> Any:
        raise ValueError(f"{word} is not JSON")


def scanner() -> Callable[[str, int], tuple[Any, int]]:
    """Return CPython's own scanner: text and position → value and next position; ``ImportError`` if it is unavailable."""
    from _json import make_scanner

    return make_scanner(_Options)  # type: ignore[arg-type]


def parse_json(text: str, file: str) -> Any:
    """Parse a JSON text; :class:`InputError` with the line if it is invalid."""
    try:
        stripped = text.strip(_SPACE)
        value, end = scanner()(stripped, 0)
        if end == len(stripped):
            return value
    except (ImportError, ValueError, StopIteration, RecursionError, TypeError, SystemError):
        pass  # SystemError: Python 3.10 and 3.11 cannot raise the error before json is imported
    return _parse_slowly(text, file)


def _parse_slowly(text: str, file: str) -> Any:
    import json

    try:
        return json.loads(text, parse_constant=_Options.parse_constant)
    except json.JSONDecodeError as problem:
        raise InputError(f"is not JSON: {problem.msg} (column {problem.colno})", file, problem.lineno) from None
    except RecursionError:
        raise InputError("cannot be parsed: nested too deeply", file) from None
    except ValueError as problem:
        raise InputError(f"is not JSON: {problem}", file) from None


def read_text(path: str, limit: int = 64 * 1024 * 1024) -> str:
    """Read a UTF-8 file; :class:`InputError` if it cannot be read, is not UTF-8 or is larger than ``limit`` bytes."""
    try:
        with open(readable(path), "rb") as file:
            content = file.read(limit + 1)
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", path) from None
    return _decoded(content, path, limit)


def read_standard_input(limit: int = 64 * 1024 * 1024) -> str:
    """Like :func:`read_text`, from standard input."""
    import sys

    return _decoded(sys.stdin.buffer.read(limit + 1), "standard input", limit)


def _decoded(content: bytes, path: str, limit: int) -> str:
    if len(content) > limit:
        raise InputError(f"is larger than {limit // 1024 // 1024} MiB", path)
    return decoded(path, content).removeprefix("\ufeff")


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    """Return the line on which the value at ``path`` (keys and indices) starts; ``None`` if it cannot be found."""
    import json
    import re

    decoder, space = json.JSONDecoder(), re.compile(r"[ \t\n\r]*")

    def skip(at: int) -> int:
        found = space.match(text, at)
        return found.end() if found else at

    def step(at: int, wanted: str | int) -> int:
        position: int = 0
        at = skip(at + 1)
        while text[at] not in "}]":
            key: Any = position
            if isinstance(wanted, str):
                key, at = decoder.raw_decode(text, at)
                at = skip(skip(at) + 1)
            if key == wanted:
                return at
            at = skip(decoder.raw_decode(text, at)[1])
            at = skip(at + 1) if text[at] == "," else at
            position += 1
        raise ValueError(wanted)

    try:
        at = skip(0)
        for wanted in path:
            at = step(at, wanted)
    except (ValueError, IndexError):
        return None
    return text.count("\n", 0, at) + 1
