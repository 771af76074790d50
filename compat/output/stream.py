"""Writing text and JSON to standard output: broken pipes, full disks, encodings, and control characters from files."""

from __future__ import annotations

import os
import sys

from compat.errors import CI_COMMANDS, InputError, in_ci_log
from compat.redact import redacted


def emit(text: str, *, utf_8: bool = False) -> None:
    """Print a text with credentials redacted. A closed pipe is ignored; raises :class:`InputError` if writing fails.

    Characters missing from the output encoding become escapes. ``utf_8``: the text is workflow commands, which are
    read as UTF-8 regardless of the output encoding.
    """
    text = harmless(redacted(text), commands=utf_8)
    try:
        if utf_8 and not is_utf_8() and hasattr(sys.stdout, "buffer"):
            sys.stdout.flush()
            sys.stdout.buffer.write(f"{text}\n".encode("utf-8", "backslashreplace"))
        else:
            sys.stdout.write(_encodable(f"{text}\n"))
        sys.stdout.flush()
    except BrokenPipeError:
        _discard()
    except (OSError, ValueError) as problem:
        _discard()
        raise InputError(f"cannot write the output: {getattr(problem, 'strerror', None) or problem}") from None


def emit_json(value: object) -> None:
    """Print a JSON value, indented, with its keys in their order."""
    emit(to_json(value))


def to_json(value: object) -> str:
    """Return indented JSON for standard output. JSON is UTF-8: for another output encoding, and for lone surrogates,
    all non-ASCII characters are escaped. Credentials are redacted before quotes and backslashes are escaped, which hides some.
    """
    import json

    value = _redacted(value, {})
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode("utf-8" if is_utf_8() else "ascii")
    except UnicodeEncodeError:
        return json.dumps(value, indent=2)
    return text


def _redacted(value: object, known: dict[str, str]) -> object:
    """Return a JSON value with the texts redacted that :func:`emit` would see escaped."""
    if isinstance(value, str):
        if '"' not in value and "\\" not in value and value.isprintable():
            return value
        if value not in known:
            known[value] = redacted(value)
        return known[value]
    if isinstance(value, dict):
        return {key: _redacted(each, known) for key, each in value.items()}
    return [_redacted(each, known) for each in value] if isinstance(value, (list, tuple)) else value


_ORDERS = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""Marks that change the direction of a text, and Unicode's own line ends."""
_CONTROLS = {each: f"\\u{each:04x}" for each in (*range(9), *range(11, 32), *range(0x7F, 0xA0), *_ORDERS)}
_CONTROLS |= {0xE0000 + each: f"\\udb40\\u{0xDC00 + each:04x}" for each in range(0x80)}
"""Tag characters are invisible, and hide text from whoever reviews it; JSON writes them as two escapes."""
_COLOURS = ("[0m", "[1m", *(f"[1;{each}m" for each in range(30, 38)))
"""The only terminal commands that compat itself writes."""


def harmless(text: str, *, commands: bool = False) -> str:
    """Neutralize text that a terminal or a CI log would run as a command; control characters become escapes (also in JSON).

    GitHub's runner obeys a line that begins with ``::`` after blanks, and ``##[`` anywhere. ``commands``: keep such lines.
    """
    if not text.replace("\n", "").isprintable():
        text = "\r\n".join(_without_controls(part) for part in text.split("\r\n"))
    if not commands and ("::" in text or "##" in text) and in_ci_log():
        hash_sign = {"{": "\\u0023", "[": "\\u0023", "<": "&#35;"}.get(text[:1], "#\u200b")
        for command in CI_COMMANDS:
            text = text.replace(command, f"{hash_sign}{command[1:]}")
        text = "\n".join(_no_command(line) for line in text.split("\n"))
    return text


def _without_controls(text: str) -> str:
    first, *rest = text.split("\x1b")
    escaped = ((each, "\x1b" if each.startswith(_COLOURS) else "\\u001b") for each in rest)
    return "".join((first.translate(_CONTROLS), *(f"{sign}{each.translate(_CONTROLS)}" for each, sign in escaped)))


def _no_command(line: str) -> str:
    stripped = line.lstrip()
    return f"{line[: len(line) - len(stripped)]}\u200b{stripped}" if stripped.startswith("::") else line


def is_utf_8() -> bool:
    """Return whether standard output is encoded as UTF-8."""
    return encoding() in ("utf-8", "utf-8-sig")


def encoding() -> str:
    """Return Python's canonical name for the encoding of standard output."""
    import codecs

    try:
        return codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name
    except LookupError:
        return "ascii"


def _encodable(text: str) -> str:
    name = encoding()
    try:
        text.encode(name)
    except UnicodeEncodeError:
        return text.encode(name, "backslashreplace").decode(name)
    return text


def _discard() -> None:
    """Discard buffered output, so that the flush at exit does not fail again."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
