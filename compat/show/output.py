"""Writing to standard output, where the reader may have left or the disk be full."""

from __future__ import annotations

import os
import sys

from compat.errors import InputError


def emit(text: str) -> None:
    """Prints a text. A reader that has left is no failure of ours; output that cannot be written is (exit code 2)."""
    try:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _discard()
    except (OSError, ValueError) as problem:
        _discard()
        raise InputError(f"cannot write the output: {getattr(problem, 'strerror', None) or problem}") from None


def _discard() -> None:
    """What is still buffered goes nowhere, instead of failing again at the end."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
