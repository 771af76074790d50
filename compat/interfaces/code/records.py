"""Records of the user's code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.records import record

if TYPE_CHECKING:
    from compat.interfaces.source.records import Module


@record(frozen=True)
class Bound:
    """A requirement stated in code: ``check_min_version``, ``require_version``, inline metadata."""

    package: str
    specifier: str
    path: str
    line: int


@record(frozen=True)
class Field:
    """A read of ``attribute`` on an object of class ``of``; ``sure``: unconditional."""

    of: str
    attribute: str
    line: int
    sure: bool


@record(frozen=True)
class CodeFile:
    """One file: its record, and ``place``, which formats a line number (``train.py:12``, ``run.ipynb cell 3, line 2``)."""

    path: str
    module: Module
    place: Callable[[int], str]
    bounds: tuple[Bound, ...] = ()
    fields: tuple[Field, ...] = ()
    is_notebook: bool = False


@record(frozen=True)
class Code:
    """Files that are checked together. ``problems`` are the errors of files that could not be read.

    ``shadowed`` are top-level modules next to the code: imports resolve to these instead of the installed package.
    """

    files: tuple[CodeFile, ...]
    problems: tuple[InputError, ...] = ()
    notes: tuple[str, ...] = ()
    shadowed: frozenset[str] = frozenset()

    @property
    def tops(self) -> frozenset[str]:
        """The top-level modules of this code."""
        return frozenset(each.module.name.partition(".")[0] for each in self.files)
