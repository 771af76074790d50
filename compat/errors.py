"""Errors for unusable input: one line with the location and what was expected."""

from __future__ import annotations

import os

from compat.redact import redacted


class InputError(Exception):
    """Unusable input: the command prints this one line and exits with code 2.

    ``message`` states what was expected, ``file`` and ``line`` (1-based) where it was read.
    """

    def __init__(self, message: str, file: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line

    def __str__(self) -> str:
        if self.file is None:
            return printable(self.message)
        where = f"{self.file}:{self.line}" if self.line else self.file
        return printable(f"{where}: {self.message}")


def printable(text: str) -> str:
    """One line that is safe to print: credentials are redacted and non-printable characters escaped."""
    text = redacted(text)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def unexpected(problem: Exception, file: str | None = None) -> InputError:
    """Convert an unexpected exception to an :class:`InputError`; prints the traceback if ``COMPAT_TRACEBACK`` is set."""
    if os.environ.get("COMPAT_TRACEBACK"):
        import traceback

        traceback.print_exc()
    if isinstance(problem, MemoryError):
        return InputError("out of memory", file)
    if isinstance(problem, OSError) and problem.strerror:
        where = f": {os.fsdecode(problem.filename)}" if isinstance(problem.filename, (str, bytes)) else ""
        return InputError(f"{problem.strerror}{where}", file)
    what = f"{type(problem).__name__}: {str(problem).partition(chr(10))[0][:200]}"
    return InputError(f"unexpected {what} (a bug in compat: please report it with the output of COMPAT_TRACEBACK=1)", file)


class Undecided(Exception):
    """The question could not be decided (exit code 3): something required could not be reached."""
