"""The one way bad input is reported: a line that says where, and what was expected."""

from __future__ import annotations


class InputError(Exception):
    """Input that cannot be used: the command ends with exit code 2 and this one line.

    ``message`` says what was expected, ``file`` and ``line`` (1-based) where it was read.
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
    """One line that no terminal takes for a command: what is not printable is shown as an escape."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class Undecided(Exception):
    """The question could not be decided (exit code 3): something that was needed could not be reached."""
