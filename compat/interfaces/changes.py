"""What changed between releases inside packages: arguments, members and names that some releases have and some do not.

The tables of packages (:mod:`compat.interfaces.table`) show everything that scripts use. This one has what the errors of
plugins and of other packages name as well, by its own name: an error says ``enable_reasoning``, and seldom which module the
function is in. ``scripts/surface/changes.py`` writes the file: a header, and chunks in the order of the terms.

The registries of models (:func:`support`) are containers among the accepted strings. A model that is in none of the rows is
supported by every release that was read, or by none.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import TypeAlias, cast

from compat.files import read_table
from compat.interfaces.table import FOLDER, header_of, value_of
from compat.records import cached, kept, record
from compat.versions import is_final, key_of

MAGIC = b"changes1"
KEYWORD, REQUIRED, MEMBER, FIELD, NAME, MODULE, NEW, VALUE, ASSERTION = "krmfnMNva"
"""What changed: an argument that is accepted or required, a member of a class, one that is a data class's field, a name of a
module, a module; a member of a public class that is new since some release; a string that a container holds; an assertion
without a message."""
SETS, READS, EXTENDS = "srx"
"""What a package does with objects of others: an attribute that it sets on them (``owner``: another package whose classes have
it, if any), one that it reads from them, one that a class of its own adds to another package's class (``owner``:
``SFTConfig(TrainingArguments)``)."""

_Row: TypeAlias = tuple[str, int, str, str, list[int], list[int]]
"""Kind, number of the package, module, owner, and the runs of releases that have it and that lack it."""


@record(frozen=True)
class Change:
    """``name`` of ``owner``, a class, function or method in ``module``, or of the module itself (``""``).

    ``has`` and ``lacks``: releases in order; in those of ``known`` that are in neither, there is no such owner.
    """

    kind: str
    package: str
    module: str
    owner: str
    name: str
    has: tuple[str, ...]
    lacks: tuple[str, ...]
    known: tuple[str, ...]


class Changes:
    """The table in a file's content."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        header, start = header_of(content, MAGIC)
        self.packages: list[tuple[str, list[str]]] = header["packages"]
        self._terms: list[str] = header["terms"]
        self._starts = list(accumulate(header["chunks"], initial=start))

    def of(self, name: str) -> list[Change]:
        """Return what changed under a name, in all packages."""
        at = bisect_right(self._terms, name) - 1
        return [self._change(name, row) for row in self._part(at).get(name, ())] if at >= 0 else []

    def all(self) -> Iterator[tuple[str, list[_Row]]]:
        """Yield the rows of every name."""
        for at in range(len(self._terms)):
            yield from self._part(at).items()

    @kept
    def _part(self, at: int) -> dict[str, list[_Row]]:
        return cast("dict[str, list[_Row]]", value_of(self._content[self._starts[at] : self._starts[at + 1]]))

    def _change(self, name: str, row: _Row) -> Change:
        kind, package, module, owner, has, lacks = row
        title, known = self.packages[package]
        return Change(kind, title, module, owner, name, releases_in(known, has), releases_in(known, lacks), tuple(known))


def releases_in(known: Sequence[str], spans: list[int]) -> tuple[str, ...]:
    """Return a set of releases that is given as the first and the last index of each run."""
    return tuple(version for first, last in zip(spans[::2], spans[1::2]) for version in known[first : last + 1])


def changes() -> Changes:
    """Return the shipped table of changes, opened once."""
    return _table("changes.bin")


def values() -> Changes:
    """Return the shipped table of accepted strings, whose owners are the containers that hold them, opened once.

    An owner that begins with ``=`` is a variable or a field that is compared with them, in any module; one that ends with
    ``()`` a function that registers them. ``lacks``: the releases that have the container without the string.
    """
    return _table("values.bin")


def assertions() -> Changes:
    """Return the shipped table of assertions without a message, by their first line, opened once.

    ``owner``: the function that has it. ``lacks``: the releases whose module does not have the line there.
    """
    return _table("assertions.bin")


def foreign() -> Changes:
    """Return the shipped table of attributes that packages set on, read from and add to objects of others, opened once.

    ``module``: the one that does so in the most releases. ``lacks``: the releases of the package that do not.
    """
    return _table("foreign.bin")


@cached
def _table(file: str) -> Changes:
    return Changes(read_table(os.path.join(FOLDER, file)))


_REGISTRIES = {
    "vllm": re.compile(
        r"vllm\.model_executor\.(?:models(?:\.registry)? _(?!ROCM|CPU|PREVIOUSLY)\w*MODELS|model_loader _MODEL_REGISTRY)\Z"
    ),
    "sglang": re.compile(r" EntryClass\(\)\Z"),
    "transformers": re.compile(r"transformers\.models\.auto\.(?:configuration_auto|auto_mappings) CONFIG_MAPPING_NAMES\Z"),
}
"""Module and name of the containers."""


@record(frozen=True)
class Support:
    """The releases of a package that support a model, and all that were read, in order."""

    having: tuple[str, ...]
    known: tuple[str, ...]


@cache
def support(package: str, model: str) -> Support | None:
    """Return the releases of an engine, or of transformers, that support an architecture or a model type."""
    found = [each for each in values().of(model) if _registers(package, each)]
    if not found:
        return None
    has = {version for each in found for version in each.has}
    known = tuple(version for version in found[0].known if is_final(key_of(version)))
    return Support(tuple(version for version in known if version in has), known)


def _registers(package: str, change: Change) -> bool:
    return change.package == package and _REGISTRIES[package].search(f"{change.module} {change.owner}") is not None
