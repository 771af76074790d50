"""What releases declare (``matrix/facts/releases.csv``, ``requirements.csv``), compiled: one lazy block per package.

:func:`fits` reads the Pythons and systems that a release has wheels for (``linux:3.8..3.11 darwin-arm64:3.9.. sdist``);
``matrix/facts/wheels.csv`` has them for further compiled packages, of which nothing else is known.
"""

from __future__ import annotations

import marshal
import os

from compat.files import DATA, read_table
from compat.model import Distribution
from compat.records import cached, kept, record
from compat.versions import Key, Ranges, contains, key_of, recorded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Set
    from typing import TypeAlias

    from compat.markers import Marker


FILE = os.path.join(DATA, "declared.bin")


FIRST_DAY = 733773
"""The day from which the days of releases are counted: 2010-01-01, as its ordinal in the Gregorian calendar."""


@record(frozen=True)
class Published:
    """A release's metadata on the index; ``yanked`` is the reason (possibly empty), ``None`` if it was not yanked.

    ``wheels``: the Pythons that have wheels, by system (``linux:3.9..3.13 windows:3.9 sdist``), with the processor where only
    one has any (``darwin-arm64``); empty if that is no limit.
    """

    version: str
    requires_python: str
    pythons: Ranges | None
    glibc: str
    yanked: str | None
    wheels: str

    def is_offered(self, python: str | None) -> bool:
        """Whether installers take it without being asked for it: not yanked, and for this Python (``None``: any)."""
        return self.yanked is None and self.supports(python)

    def has_files_for(self, system: str | None, python: str | None, machine: str | None = None) -> bool:
        """Whether it has a wheel for a Python on a system and processor (``None``: any), or a source distribution."""
        return has_file(self.wheels, system, python, machine)

    def supports(self, python: str | None) -> bool:
        """Whether its Requires-Python accepts this Python (``None``: any)."""
        return python is None or self.pythons is None or contains(self.pythons, key_of(python))


class Package:
    """The recorded releases of one distribution, oldest first."""

    def __init__(self, block: Block) -> None:
        versions, self._yanked, self._pythons, self._glibcs, self._packed, self._extras, self._wheels, days = block
        self.versions: list[str] = versions.split(" ")
        self._places = {version: place for place, version in enumerate(self.versions)}
        self._asked: dict[tuple[str, int], tuple[Requirement, ...]] = {}
        self._days = memoryview(days).cast("H")
        self._by_extra: dict[str, tuple[tuple[str, Runs], ...]] | None = None

    @property
    def releases(self) -> tuple[Published, ...]:
        """Return all recorded releases."""
        return tuple(map(self._published, range(len(self.versions))))

    @property
    def asks(self) -> Set[str]:
        """Return the distributions of which some release requires a range."""
        return self._packed.keys()

    def place(self, version: str) -> int | None:
        """Return the index of a release among the recorded ones."""
        return self._places.get(recorded(version, self._places))

    def published(self, version: str) -> Published | None:
        place = self.place(version)
        return None if place is None else self._published(place)

    def within(self, ranges: Ranges) -> list[str]:
        """Return the recorded releases in ranges, oldest first; only a few of the others are parsed."""
        found = []
        for low, with_low, high, with_high in ranges:
            first = 0 if low is None else self._first(low, after=not with_low)
            found += self.versions[first : None if high is None else self._first(high, after=with_high)]
        return found

    def _first(self, key: Key, *, after: bool) -> int:
        """Return the index of the first release from a version on, or after it."""
        low, high = 0, len(self.versions)
        while low < high:
            middle = (low + high) // 2
            here = key_of(self.versions[middle])
            low, high = (middle + 1, high) if here < key or (after and here == key) else (low, middle)
        return low

    def day(self, version: str) -> int:
        """Return when a release was uploaded, in days since :data:`FIRST_DAY`; 0 if that is not known."""
        place = self.place(version)
        return 0 if place is None else self._days[place]

    @kept
    def _published(self, place: int) -> Published:
        none: tuple[str, Ranges | None] = "", None
        python, ranges = next((row[:2] for row in self._pythons if _within(row[2], place)), none)
        glibc = next((version for version, runs in self._glibcs if _within(runs, place)), "")
        wheels = next((files for files, runs in self._wheels if _within(runs, place)), "")
        return Published(self.versions[place], python, ranges, glibc, self._yanked.get(place), wheels)

    def extra(self, place: int, name: str) -> tuple[str, ...]:
        """Return the distributions that an extra of a release adds; with ``""`` those it always requires."""
        if self._by_extra is None:
            self._by_extra = marshal.loads(self._extras)
        rows = self._by_extra.get(name, ())
        return tuple(asked for asked, runs in rows if _within(runs, place))

    def requirements(self, place: int, name: str) -> tuple[Requirement, ...]:
        """Return what the release at an index requires of one distribution."""
        found = self._asked.get((name, place))
        if found is None:
            found = tuple(row[:4] for row in self._of(name) if _within(row[4], place))
            self._asked[name, place] = found
        return found

    @kept
    def _of(self, name: str) -> tuple[RequirementRow, ...]:
        rows: tuple[RequirementRow, ...] = marshal.loads(self._packed[name]) if name in self._packed else ()
        return rows

    def accepting(self, place: int, name: str, extra: str | None, accepts: Callable[[Ranges], bool]) -> str | None:
        """Return the nearest release that is not yanked and accepts a distribution under an extra, preferring later ones."""
        refused = 0  # the places of releases, as a bit mask
        for _, ranges, _, under, runs in self._of(name):
            if under == extra and not accepts(ranges):
                for first, last in runs:
                    refused |= (1 << last + 1) - (1 << first)
        for other in (*range(place + 1, len(self.versions)), *range(place - 1, -1, -1)):
            if not refused >> other & 1 and other not in self._yanked:
                version: str = self.versions[other]
                return version
        return None


def _within(runs: Runs, place: int) -> bool:
    for first, last in runs:  # noqa: SIM110 (asked thousands of times, and any() with a generator takes three times as long)
        if first <= place <= last:
            return True
    return False


@cached
def open_declared() -> Declared:
    """Return the shipped file, opened once."""
    return Declared()


class Declared:
    """The opened file."""

    def __init__(self) -> None:
        self._content = read_table(FILE)
        self._start = 8 + int.from_bytes(self._content[:8], "big")
        self._index: Mapping[str, tuple[int, int]]
        self._names: str
        self._index, self._names = marshal.loads(self._content[8 : self._start])
        self._packages: dict[str, Package] = {}

    @property
    def names(self) -> frozenset[str]:
        """Return every recorded distribution, and every one that a recorded one requires."""
        return frozenset(self._names.split(" "))

    def __contains__(self, name: str) -> bool:
        return name in self._index

    def package(self, name: str) -> Package | None:
        if name not in self._packages and name in self._index:
            start, end = (self._start + place for place in self._index[name])
            self._packages[name] = Package(marshal.loads(self._content[start:end]))
        return self._packages.get(name)

    def always(self, copy: Distribution) -> tuple[str, ...]:
        """Return the distributions that an installed release requires without extras; empty if it is not recorded."""
        package = self.package(copy.name)
        place = None if package is None else package.place(copy.version or "")
        return () if package is None or place is None else package.extra(place, "")


Block: TypeAlias = (
    "tuple[str, dict[int, str], tuple[PythonRow, ...], tuple[TextRow, ...], dict[str, bytes], bytes,"
    " tuple[TextRow, ...], bytes]"
)
"""(space-separated versions, reasons of yanked releases, Requires-Python by runs, glibc by runs, requirements on each
distribution, names required by each extra and by "", wheels by runs, days of upload in two bytes each). Those of bytes are
unpacked on first use."""
Requirement: TypeAlias = "tuple[str, Ranges, Marker | None, str | None]"
"""(specifier, its ranges, marker without the comparison with the extra, the extra); a plain tuple, because hundreds are
checked to find a violated one."""
RequirementRow: TypeAlias = "tuple[str, Ranges, Marker | None, str | None, Runs]"
"""A requirement and the releases that have it."""
PythonRow: TypeAlias = "tuple[str, Ranges | None, Runs]"
TextRow: TypeAlias = "tuple[str, Runs]"
"""A glibc or the wheels, and the releases that have it."""
Runs: TypeAlias = "tuple[tuple[int, int], ...]"
"""Runs of release indices, first and last of each."""


WHEELS_FILE = os.path.join(DATA, "wheels.bin")


@record(frozen=True)
class Run:
    """Consecutive releases, ``first`` to ``last``, that have wheels for the same Pythons and systems."""

    first: str
    last: str
    wheels: str


@cached
def open_wheels() -> Mapping[str, list[tuple[str, str, str]]]:
    """Return the fields of the runs of each package, oldest first."""
    rows: Mapping[str, list[tuple[str, str, str]]] = marshal.loads(read_table(WHEELS_FILE))
    return rows


def wheels_of(name: str) -> tuple[Run, ...]:
    """Return the runs of a package of which only the wheels are known, oldest first; none for any other."""
    return tuple(Run(*each) for each in open_wheels().get(name, ()))


def fits(wheels: str, system: str | None, python: str | None, machine: str | None = None) -> bool:
    """Whether a wheel is among them for a Python (``3.12.4``) on a system (``linux``) and processor; ``None`` for any."""
    for offer in wheels.split(" "):
        place, _, spans = offer.partition(":")
        name, _, only = place.partition("-")
        here = system in (None, name) and (not only or machine is None or is_arm(only) == is_arm(machine))
        if spans and here and (python is None or any(_in_span(span, python) for span in spans.split("+"))):
            return True
    return False


def has_file(wheels: str, system: str | None, python: str | None, machine: str | None = None) -> bool:
    """Whether there is a wheel as in :func:`fits`, or a source distribution; "" is no limit."""
    return not wheels or "sdist" in wheels.split(" ") or fits(wheels, system, python, machine)


def is_arm(machine: str) -> bool:
    """Whether a processor (as :func:`platform.machine` names it) is a 64-bit Arm one."""
    return machine.lower() in ("aarch64", "arm64")


def newest_python(wheels: str, system: str | None) -> str:
    """Return the newest Python that they are for on a system; of wheels for any later one, the first."""
    spans = [
        span
        for offer in wheels.split(" ")
        if offer.partition(":")[0].partition("-")[0] in (system, "linux" if system is None else system)
        for span in offer.partition(":")[2].split("+")
    ]
    return max((span.partition("..")[2] or span.partition("..")[0] for span in spans), key=key_of)


def _in_span(span: str, python: str) -> bool:
    first, _, last = span.partition("..")
    here = key_of(".".join(python.split(".")[:2]))
    return key_of(first) <= here and (here <= key_of(last) if last else ".." in span or here == key_of(first))
