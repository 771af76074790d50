"""Errors for unusable input: one line with the location and what was expected."""

from __future__ import annotations

import os
import sys

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
        where = "" if self.file is None else f"{self.file}:{self.line}: " if self.line else f"{self.file}: "
        text = printable(f"{where}{self.message}")
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} … {text[-_LONGEST // 4 :]}"


_LONGEST = 2_000
"""Characters of an error: one that quotes an option or a name of 100 kB is no line that anybody reads."""


CI_COMMANDS = ("##[", "##vso[", "##teamcity[")
"""What runners obey anywhere in a line (GitHub, Azure Pipelines, TeamCity)."""


def in_ci_log() -> bool:
    """Whether a runner that obeys commands in its log reads what is printed."""
    return any(os.environ.get(name) for name in ("GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION"))


def printable(text: str) -> str:
    """One line that is safe to print: credentials are redacted, non-printable characters and commands of CI runners escaped."""
    text = redacted(text)
    if "##" in text and in_ci_log():
        for command in CI_COMMANDS:
            text = text.replace(command, f"#\\x23{command[2:]}")
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


# --- Standard error. It may be closed, or a file on a full disk: nothing that is said there is worth ending a job for.


def complain(text: str, end: str = "\n") -> None:
    """Print to standard error if that is possible."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(f"{text}{end}")
            sys.stderr.flush()
    except UnicodeEncodeError:
        complain(text.encode("ascii", "backslashreplace").decode("ascii"), end)
    except (OSError, ValueError):
        pass


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:
        return False


class Undecided(Exception):
    """The question could not be decided (exit code 3): something required could not be reached."""
