"""The request of a run, and its result for one kind of table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

MIB = 1024 * 1024
THREADS = 3


@dataclass(frozen=True)
class Request:
    """The packages, the day, and the read budget."""

    packages: tuple[str, ...]
    today: str
    budget: int = 96 * MIB
    """Bytes of one wheel at most."""
    again: int = 1
    """Old releases of each package whose compiled code is read once more, others each day."""
    gaps: int = 0
    """Older releases of each package without compiled code in the table that are read too, newest first."""
    releases: tuple[str, ...] = ()
    """The releases whose compiled code is read, whatever the table says about them; empty for the above."""


@dataclass(frozen=True)
class Update:
    """The new text of each file, changed readings of old rows, what could not be read and why, and the bytes received."""

    texts: Mapping[str, str]
    differences: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    received: int = 0


Kind = Callable[[Path, Request], Update]
"""Brings the files of one kind in a folder up to date, and writes nothing; raises ``TableError`` and ``UnreadableError``."""
