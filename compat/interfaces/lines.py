"""The lines of functions that releases of a package have and its newest one does not, to find the fix of a line that failed.

A line is found by the name of its function and its text, as a traceback shows them, in whichever module of the package it is.
``scripts/surface/lines.py`` writes the file: a header; for each package its sets of releases, as the first and the last of each
run; and its lines by the last bits of their key, each part as (set, number of lines, distances between their keys).
"""

from __future__ import annotations

import os
import zlib
from itertools import accumulate

from compat.files import read_table
from compat.interfaces.changes import releases_in
from compat.interfaces.table import FOLDER, header_of, value_of
from compat.records import cached

MAGIC = b"lines001"
PARTS = 16
"""Parts in which the lines of a package are kept: a query decodes one."""


def key_of_line(function: str, line: str) -> int:
    """Return the key of a line in a function, 32 bits. ``line`` is without indentation, ``function`` without its class."""
    return zlib.crc32(f"{function}\0{line}".encode("utf-8", "replace"))


class Lines:
    """The table in a file's content."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        header, start = header_of(content, MAGIC)
        self._known: dict[str, list[str]] = {}
        self._starts: dict[str, list[int]] = {}
        for package, known, sizes in header["packages"]:
            self._known[package], self._starts[package] = known, list(accumulate(sizes, initial=start))
            start = self._starts[package][-1]

    @property
    def packages(self) -> tuple[str, ...]:
        return tuple(self._known)

    def known(self, package: str) -> tuple[str, ...]:
        """Return the releases of a package that were read, oldest first; empty if the table does not have it."""
        return tuple(self._known.get(package, ()))

    def having(self, package: str, function: str, line: str) -> tuple[str, ...]:
        """Return the releases with a line that the newest one does not have; empty for any other line."""
        if package not in self._known:
            return ()
        key = key_of_line(function, line)
        wanted, part = divmod(key, PARTS)
        number = next((number for number, found in self._groups(package, part) if wanted in found), None)
        if number is None:
            return ()
        return releases_in(self._known[package], self.sets(package)[number])

    def lines(self, package: str) -> dict[int, int]:
        """Return the number of the set of releases of each line's key."""
        return {
            found * PARTS + part: number
            for part in range(PARTS)
            for number, group in self._groups(package, part)
            for found in group
        }

    def sets(self, package: str) -> list[list[int]]:
        """Return the sets of releases, each as the first and the last index of each run."""
        found: list[list[int]] = value_of(self._part(package, PARTS))
        return found

    def _part(self, package: str, at: int) -> bytes:
        first, end = self._starts[package][at : at + 2]
        return self._content[first:end]

    def _groups(self, package: str, part: int) -> list[tuple[int, set[int]]]:
        numbers = decoded(self._part(package, part))
        groups, at = [], 0
        while at < len(numbers):
            number, size = numbers[at : at + 2]
            found, key = set(), 0
            for distance in numbers[at + 2 : at + 2 + size]:
                key += distance
                found.add(key)
            groups.append((number, found))
            at += 2 + size
        return groups


def encoded(numbers: list[int]) -> bytes:
    """Return non-negative numbers as bytes of seven bits each, lowest first; the high bit says that more follow."""
    out = bytearray()
    for number in numbers:
        while number >= 0x80:
            out.append(0x80 | number & 0x7F)
            number >>= 7
        out.append(number)
    return bytes(out)


def decoded(content: bytes) -> list[int]:
    """Return the numbers that :func:`encoded` wrote."""
    numbers, number, shift = [], 0, 0
    for byte in content:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    return numbers


def lines() -> Lines:
    """Return the shipped table, opened once."""
    return _table(os.path.join(FOLDER, "lines.bin"))


@cached
def _table(path: str) -> Lines:
    return Lines(read_table(path))
