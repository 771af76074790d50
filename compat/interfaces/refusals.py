"""The conditions under which releases refuse to work: typed values, and the table mined from source (``matrix/guards/``).

The table is one file with a block per package, opened only if the package is used. ``scripts/guards/tables.py`` writes its
rows; :mod:`compat.interfaces.guards` parses their conditions when the table is compiled, so that a check imports no parser.
"""

from __future__ import annotations

import marshal
import os

from compat.files import DATA, read_table
from compat.records import kept, record
from compat.versions import is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, TypeAlias


@record(frozen=True)
class FactTest:
    """A fact compared with a value.

    ``fact``: package, installed, capability, devices, python, os, variable, feature or precision; empty if the condition
    was not understood. ``name`` is the distribution, the variable or the feature.
    """

    fact: str = ""
    name: str = ""
    operator: str = ""
    value: str = ""


@record(frozen=True)
class Both:
    parts: tuple[Condition, ...]


@record(frozen=True)
class Either:
    parts: tuple[Condition, ...]


@record(frozen=True)
class Opposite:
    part: Condition


Condition: TypeAlias = "FactTest | Both | Either | Opposite"


def polarized(condition: Condition, *, wanted: bool = True) -> Iterator[tuple[FactTest, bool]]:
    """Yield the tests of a condition, each with the result that makes the condition hold."""
    if isinstance(condition, FactTest):
        if condition.fact:
            yield condition, wanted
    elif isinstance(condition, Opposite):
        yield from polarized(condition.part, wanted=not wanted)
    else:
        for part in condition.parts:
            yield from polarized(part, wanted=wanted)


def fact_tests(condition: Condition) -> Iterator[FactTest]:
    return (test for test, _ in polarized(condition))


# --- The table of guards.


FILE = os.path.join(DATA, "guards.bin")
IMPORT = "import"
"""The ``reach`` of code that runs on import of the package."""
_RELEASED = key_of("1")[5]


@record(frozen=True)
class Refusal:
    """An error that a release raises (or a warning) if a condition holds.

    ``reach`` lists alternatives, of which the workload must match one: ``import``, or a fact and its value (``task=lora``).
    """

    package: str
    module: str
    function: str
    kind: str
    error: str
    reach: tuple[str, ...]
    condition: Condition
    message: str


class Refusals:
    """The shipped rows."""

    def __init__(self, content: bytes | None = None) -> None:
        content = read_table(FILE) if content is None else content
        start = 8 + int.from_bytes(content[:8], "big")
        self._index: dict[str, tuple[int, int]] = marshal.loads(content[8:start])
        self.packages = frozenset(self._index)
        self._content, self._start = content, start

    @kept
    def of(self, package: str, version: str) -> tuple[Refusal, ...]:
        """The rows of one release; none for development versions."""
        if package not in self._index or not is_version(version):
            return ()
        at = key_of(version.partition("+")[0])
        if at[5] != _RELEASED:
            return ()
        return tuple(
            Refusal(package, module, function, kind, error, reach, _opened(condition), message)
            for runs, module, function, kind, error, reach, condition, message in self._rows(package)
            if any(low <= at <= high for low, high in runs)
        )

    @kept
    def tested(self, package: str, version: str) -> frozenset[str]:
        """The names of everything that the rows of a release test."""
        return frozenset(test.name for row in self.of(package, version) for test in fact_tests(row.condition))

    @kept
    def _rows(self, package: str) -> list[Any]:
        first, end = self._index[package]
        rows: list[Any] = marshal.loads(self._content[self._start + first : self._start + end])
        return rows


def _opened(value: Any) -> Condition:
    form, *rest = value
    if form == "test":
        return FactTest(*rest)
    if form == "not":
        return Opposite(_opened(rest[0]))
    parts = tuple(map(_opened, rest))
    return Both(parts) if form == "both" else Either(parts)
