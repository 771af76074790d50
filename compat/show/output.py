"""Writing to standard output, where the reader may have left, the disk be full, or the encoding have no such character."""

from __future__ import annotations

import os
import sys

from compat.errors import InputError


def emit(text: str, *, utf_8: bool = False) -> None:
    """Prints a text. A reader that has left is no failure of ours; output that cannot be written is (exit code 2).

    A character that the encoding of the output does not have becomes an escape. ``utf_8``: whoever reads this takes it for
    UTF-8, whatever the encoding of the output is.
    """
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


def is_utf_8() -> bool:
    """Whether standard output is written as UTF-8."""
    return encoding() in ("utf-8", "utf-8-sig")


def encoding() -> str:
    """The encoding of standard output by Python's own name for it."""
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
    """What is still buffered goes nowhere, instead of failing again at the end."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
