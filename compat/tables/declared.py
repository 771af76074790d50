"""What releases declare (``matrix/facts/releases.csv``, ``requirements.csv``), compiled: a block a package, read late."""

from __future__ import annotations

import marshal
import os

from compat.files import read_table
from compat.model import Distribution
from compat.records import record
from compat.versions import Ranges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any, TypeAlias

    from compat.markers import Marker


FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "declared.bin")


@record(frozen=True)
class Published:
    """What the index says about a release; ``yanked`` is the reason (perhaps empty), ``None`` where it was not yanked."""

    version: str
    requires_python: str
    pythons: Ranges | None
    glibc: str
    yanked: str | None


class Package:
    """The followed releases of one distribution, oldest first."""

    def __init__(self, block: Block) -> None:
        versions, self._yanked, self._pythons, self._glibcs, self._packed, self._extras = block
        self.versions: list[str] = versions.split(" ")
        self._places = {version: place for place, version in enumerate(self.versions)}
        self._opened: dict[str, tuple[Any, ...]] = {}
        self._asked: dict[tuple[str, int], tuple[Requirement, ...]] = {}

    @property
    def releases(self) -> tuple[Published, ...]:
        """All of them."""
        return tuple(map(self._published, range(len(self.versions))))

    @property
    def asks(self) -> Collection[str]:
        """The distributions of which some release requires a range."""
        return self._packed.keys()

    def place(self, version: str) -> int | None:
        """The index of a release among the followed ones."""
        return self._places.get(version.partition("+")[0])

    def published(self, version: str) -> Published | None:
        place = self.place(version)
        return None if place is None else self._published(place)

    def _published(self, place: int) -> Published:
        python, ranges = next((tuple(told) for *told, runs in self._pythons if _within(runs, place)), ("", None))
        glibc = next((told for told, runs in self._glibcs if _within(runs, place)), "")
        return Published(self.versions[place], python, ranges, glibc, self._yanked.get(place))

    def extra(self, place: int, name: str) -> tuple[str, ...]:
        """The distributions that an extra of a release adds; with ``""`` those it always requires."""
        rows = marshal.loads(self._extras[name]) if name in self._extras else ()
        return tuple(asked for asked, runs in rows if _within(runs, place))

    def requirements(self, place: int, name: str) -> tuple[Requirement, ...]:
        """What the release at a place requires of one distribution."""
        found = self._asked.get((name, place))
        if found is None:
            found = tuple(row[:4] for row in self._of(name) if _within(row[4], place))
            self._asked[name, place] = found
        return found

    def _of(self, name: str) -> tuple[Any, ...]:
        if name not in self._opened:
            self._opened[name] = marshal.loads(self._packed[name]) if name in self._packed else ()
        return self._opened[name]

    def accepting(self, place: int, name: str, extra: str | None, accepts: Callable[[Ranges], bool]) -> str | None:
        """The nearest release that is not yanked and accepts a distribution under an extra; a later one, if there is one."""
        refusing = [runs for _, ranges, _, under, runs in self._of(name) if under == extra and not accepts(ranges)]
        for other in (*range(place + 1, len(self.versions)), *range(place - 1, -1, -1)):
            if other not in self._yanked and not any(_within(runs, other) for runs in refusing):
                version: str = self.versions[other]
                return version
        return None


def _within(runs: Runs, place: int) -> bool:
    for first, last in runs:  # noqa: SIM110 (asked thousands of times, and any() with a generator takes three times as long)
        if first <= place <= last:
            return True
    return False


_opened: list[Declared] = []


def open_declared() -> Declared:
    """The file this package ships, opened once."""
    if not _opened:
        _opened.append(Declared())
    return _opened[0]


class Declared:
    """The opened file. ``names``: every distribution that is followed, or that a followed one requires."""

    def __init__(self) -> None:
        self._content = read_table(FILE)
        self._start = 8 + int.from_bytes(self._content[:8], "big")
        self._index: Mapping[str, tuple[int, int]]
        self.names: frozenset[str]
        self._index, self.names = marshal.loads(self._content[8 : self._start])
        self._packages: dict[str, Package] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._index

    def package(self, name: str) -> Package | None:
        if name not in self._packages and name in self._index:
            start, end = (self._start + place for place in self._index[name])
            self._packages[name] = Package(marshal.loads(self._content[start:end]))
        return self._packages.get(name)

    def always(self, copy: Distribution) -> tuple[str, ...]:
        """The distributions that an installed release requires, without extras; nothing where it is not followed."""
        package = self.package(copy.name)
        place = None if package is None else package.place(copy.version or "")
        return () if package is None or place is None else package.extra(place, "")


Block: TypeAlias = "tuple[str, dict[int, str], tuple[Any, ...], tuple[Any, ...], dict[str, bytes], dict[str, bytes]]"
"""(versions with a space between, reasons of the yanked, Requires-Python by runs, glibc by runs, what is asked of
each distribution, names that each extra and "" ask for); the last two are opened when they are looked at."""
Requirement: TypeAlias = "tuple[str, Ranges, Marker | None, str | None]"
"""(specifier, its ranges, marker without the comparison that asks for the extra, the extra); a plain tuple, as hundreds
are looked at to find one that is violated."""
Runs: TypeAlias = tuple[tuple[int, int], ...]
"""Places of releases, first and last of each run."""
