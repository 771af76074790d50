"""What was read of the user's code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.records import record

if TYPE_CHECKING:
    from compat.interfaces.source.records import Module


@record(frozen=True)
class Bound:
    """A requirement that code states itself: ``check_min_version``, ``require_version``, inline metadata."""

    package: str
    specifier: str
    path: str
    line: int


@record(frozen=True)
class Field:
    """``attribute`` of an object of class ``of`` is read; ``sure``: under no condition."""

    of: str
    attribute: str
    line: int
    sure: bool


@record(frozen=True)
class CodeFile:
    """One file: its record, and how a line of the record is called (``train.py:12``, ``run.ipynb cell 3, line 2``)."""

    path: str
    module: Module
    place: Callable[[int], str]
    bounds: tuple[Bound, ...] = ()
    fields: tuple[Field, ...] = ()
    is_notebook: bool = False


@record(frozen=True)
class Code:
    """Files that are judged together. ``problems`` are those that could not be read, each with its reason.

    ``shadowed`` are top-level modules next to the code: an import finds those, not the installed package.
    """

    files: tuple[CodeFile, ...]
    problems: tuple[InputError, ...] = ()
    notes: tuple[str, ...] = ()
    shadowed: frozenset[str] = frozenset()

    @property
    def tops(self) -> frozenset[str]:
        """The top-level modules of the code itself."""
        return frozenset(each.module.name.partition(".")[0] for each in self.files)
