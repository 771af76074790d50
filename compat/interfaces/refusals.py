"""The conditions under which releases refuse to work, mined from their source (``matrix/guards/``).

Compiled to one file with a block per package, opened only if the package is used. ``scripts/guards/tables.py`` writes the rows.
"""

from __future__ import annotations

import marshal
import os

from compat.files import read_table
from compat.interfaces.conditions import Both, Condition, Either, FactTest, Opposite
from compat.records import record
from compat.versions import is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "guards.bin")
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
        self._content, self._start = content, start

    @property
    def packages(self) -> frozenset[str]:
        return frozenset(self._index)

    def of(self, package: str, version: str) -> Iterator[Refusal]:
        """Yield the rows of one release; none for development versions."""
        if package not in self._index or not is_version(version):
            return
        first, end = self._index[package]
        at = key_of(version.partition("+")[0])
        if at[5] != _RELEASED:
            return
        for runs, module, function, kind, error, reach, condition, message in marshal.loads(
            self._content[self._start + first : self._start + end]
        ):
            if any(low <= at <= high for low, high in runs):
                yield Refusal(package, module, function, kind, error, reach, _opened(condition), message)


def _opened(value: Any) -> Condition:
    form, *rest = value
    if form == "test":
        return FactTest(*rest)
    if form == "not":
        return Opposite(_opened(rest[0]))
    parts = tuple(map(_opened, rest))
    return Both(parts) if form == "both" else Either(parts)


# --- For the build.


def packed(rows: Iterable[dict[str, str]], names: frozenset[str]) -> bytes:
    """Compile the rows of ``matrix/guards/*.csv``; ``names`` are the distributions that modules may refer to."""
    from compat.interfaces.guards import condition_of

    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        runs = tuple((key_of(run.partition("..")[0]), key_of(run.rpartition("..")[2])) for run in row["releases"].split())
        condition = _closed_up(condition_of(row["condition"], names))
        found.setdefault(row["package"], []).append(
            (
                runs, row["module"], row["function"], row["kind"], row["error"], tuple(row["reach"].split("|")), condition,
                row["message"],
            )
        )  # fmt: skip
    index, blocks, end = {}, [], 0
    for package in sorted(found):
        block = marshal.dumps(tuple(found[package]), 4)
        index[package] = (end, end + len(block))
        blocks.append(block)
        end += len(block)
    head = marshal.dumps(index, 4)
    return b"".join((len(head).to_bytes(8, "big"), head, *blocks))


def _closed_up(condition: Condition) -> tuple[Any, ...]:
    if isinstance(condition, FactTest):
        return ("test", condition.fact, condition.name, condition.operator, condition.value)
    if isinstance(condition, Opposite):
        return ("not", _closed_up(condition.part))
    return ("both" if isinstance(condition, Both) else "either", *map(_closed_up, condition.parts))
