"""What releases declare (``matrix/facts/releases.csv``, ``requirements.csv``), compiled: a block a package, read late."""

from __future__ import annotations

import marshal
import os

from compat.environment import EMPTY
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from compat.versions import Ranges

    Block: TypeAlias = tuple[tuple[tuple[str, ...], ...], tuple[tuple[Any, ...], ...], dict[str, Ranges | None]]

FILE = os.path.join(os.path.dirname(__file__), "compiled", "declared.bin")
_MAGIC = b"compat-declared-1\n"


@record(frozen=True)
class Requirement:
    """One requirement of a release; ``ranges`` is ``None`` for any version, or a specifier that no range can hold."""

    name: str
    specifier: str
    ranges: Ranges | None
    marker: str | None
    extra: str | None


@record(frozen=True)
class Published:
    """What the index says about a release; ``yanked`` is the reason (perhaps empty), ``None`` where it was not withdrawn."""

    version: str
    requires_python: str
    pythons: Ranges | None
    glibc: str
    yanked: str | None


class Package:
    """The followed releases of one distribution, oldest first."""

    def __init__(self, block: Block) -> None:
        releases, self._requirements, pythons = block
        self.releases = tuple(
            Published(version, python, pythons[python], glibc, reason if yanked else None)
            for version, python, glibc, yanked, reason in releases
        )
        self._required: dict[int, tuple[Requirement, ...]] = {}
        self.asked: dict[tuple[str | None, ...], dict[str, list[Requirement]]] = {}
        """Kept by those who ask: what applies in a place."""
        self._places = {each.version: number for number, each in enumerate(self.releases)}

    def published(self, version: str) -> Published | None:
        place = self._places.get(_public(version))
        return None if place is None else self.releases[place]

    def requirements(self, version: str) -> tuple[Requirement, ...]:
        """What a release requires; nothing where the release is not known."""
        place = self._places.get(_public(version))
        if place is None:
            return ()
        if place not in self._required:
            self._required[place] = tuple(Requirement(*values) for *values, runs in self._requirements if _within(runs, place))
        return self._required[place]

    def accepting(self, name: str, extra: str | None, accepts: Callable[[Ranges], bool]) -> list[str]:
        """The releases that are not withdrawn and whose requirements of a distribution under an extra are all accepted."""
        asked = [
            runs for other, _, ranges, _, under, runs in self._requirements
            if other == name and under == extra and ranges is not None and not accepts(ranges)
        ]  # fmt: skip
        return [
            each.version for place, each in enumerate(self.releases)
            if each.yanked is None and not any(_within(runs, place) for runs in asked)
        ]  # fmt: skip


def _within(runs: tuple[tuple[int, int], ...], place: int) -> bool:
    return any(first <= place <= last for first, last in runs)


class Declared:
    """The opened file; empty where there is none (a source tree that was never built)."""

    def __init__(self) -> None:
        self._index: Mapping[str, tuple[int, int]] = EMPTY
        self._packages: dict[str, Package] = {}
        try:
            self._file = open(FILE, "rb")  # noqa: SIM115 (kept open: blocks are read when they are needed)
        except FileNotFoundError:
            return
        if self._file.read(len(_MAGIC)) == _MAGIC:
            self._index = marshal.loads(self._file.read(int.from_bytes(self._file.read(8), "big")))
            self._start = self._file.tell()

    def __contains__(self, name: str) -> bool:
        return name in self._index

    @property
    def names(self) -> frozenset[str]:
        """Every distribution whose releases are known."""
        return frozenset(self._index)

    def package(self, name: str) -> Package | None:
        if name not in self._packages and name in self._index:
            start, end = self._index[name]
            self._file.seek(self._start + start)
            self._packages[name] = Package(marshal.loads(self._file.read(end - start)))
        return self._packages.get(name)


def _public(version: str) -> str:
    """Without the local label; as the index writes it."""
    return version.partition("+")[0]


def packed(folder: str) -> bytes:
    """The compiled form of the fact files in a folder, for the build."""
    import csv

    from packaging.requirements import Requirement as Written

    releases: dict[str, list[tuple[str, ...]]] = {}
    with open(os.path.join(folder, "releases.csv"), encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            releases.setdefault(row["package"], []).append(
                (row["version"], row["requires_python"], row["glibc"], row["yanked"], row["reason"])
            )
    asked: dict[str, list[tuple[Any, ...]]] = {name: [] for name in releases}
    with open(os.path.join(folder, "requirements.csv"), encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            written = Written(row["requirement"])
            specifier = str(written.specifier)
            ranges = _ranges(specifier)
            marker, extra = _without_extra(str(written.marker) if written.marker else "")
            places = {version: number for number, (version, *_) in enumerate(releases[row["package"]])}
            runs = tuple((places[run.partition("..")[0]], places[run.rpartition("..")[2]]) for run in row["releases"].split())
            asked[row["package"]].append((written.name, specifier, ranges, marker, extra, runs))
    index, blocks, end = {}, [], 0
    for name, rows in releases.items():
        pythons = {row[1]: _ranges(row[1]) for row in rows}
        block = marshal.dumps((tuple(rows), tuple(asked[name]), pythons), 4)
        index[name] = (end, end + len(block))
        end += len(block)
        blocks.append(block)
    header = marshal.dumps(index, 4)
    return b"".join((_MAGIC, len(header).to_bytes(8, "big"), header, *blocks))


def _ranges(specifier: str) -> Ranges | None:
    """The ranges of a specifier set; ``None`` where it is empty or no range can hold it."""
    from compat.versions import ranges_of

    try:
        return ranges_of(specifier) if specifier else None
    except ValueError:
        return None


def _without_extra(text: str) -> tuple[str | None, str | None]:
    """(the rest of a marker, the extra it asks for); a marker that asks in another way keeps its text and has no extra."""
    import re

    found = re.fullmatch(r'(?:\(?(?P<before>.*?)\)? and )?extra == "(?P<extra>[^"]+)"(?: and (?P<after>.*))?', text)
    if not found or (found["before"] and " or " in found["before"] and not text.startswith("(")):
        return text or None, None
    rest = " and ".join(f"({part})" for part in (found["before"], found["after"]) if part)
    if "extra" in rest:
        return text, None
    return rest or None, found["extra"]
