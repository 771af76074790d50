"""TOML files, read with the standard library where it can (Python 3.11) and with tomlkit before."""

from __future__ import annotations

import sys

from compat.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_MOST_PARTS = 200


def parse_toml(path: str) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file and what it holds; :class:`InputError` names the line where it is not TOML."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except UnicodeDecodeError as problem:
        raise InputError(f"is not UTF-8 (byte {problem.start})", path) from None
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror}", path) from None
    return text, parse_text(text, path)


def parse_text(text: str, path: str) -> dict[str, Any]:
    """What a TOML text holds; :class:`InputError` names the line where it is not TOML, and a merge conflict as such."""
    try:
        return _parsed(text, path)
    except RecursionError:
        raise InputError("is not TOML that can be read: nested too deeply", path) from None
    except InputError as problem:
        raise _conflict(text, path) or problem from None


def _conflict(text: str, path: str) -> InputError | None:
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            return InputError("has an unresolved merge conflict", path, number)
    return None


def _endless_key(text: str) -> int | None:
    """The line with a key of hundreds of parts (``a.a.a…``), for which parsers need more than linear time."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") < _MOST_PARTS:
            continue
        run = 0
        for part in line.split("."):
            run = run + 1 if len(part) < 40 and not set(part) & set("=,{[") else 0
            if run > _MOST_PARTS:
                return number
    return None


def _parsed(text: str, path: str) -> dict[str, Any]:
    if text.startswith("\ufeff"):
        raise InputError("is not TOML: it begins with a byte order mark", path, 1)
    number = _endless_key(text)
    if number is not None:
        raise InputError("is not TOML that can be read: a key has too many parts", path, number)
    if sys.version_info >= (3, 11):
        import re

        import tomllib

        try:
            return tomllib.loads(text)
        except ValueError as problem:  # TOMLDecodeError, or a number that is too long
            place = re.search(r"\(at line (\d+), column \d+\)", str(problem))
            reason = str(problem).partition(" (at ")[0]
            raise InputError(f"is not TOML: {reason}", path, int(place[1]) if place else None) from None
    else:
        import tomlkit
        from tomlkit.exceptions import ParseError

        try:
            return tomlkit.parse(text).unwrap()
        except ParseError as problem:
            raise InputError(f"is not TOML: {problem}", path, problem.line) from None
        except ValueError as problem:
            raise InputError(f"is not TOML: {problem}", path) from None
