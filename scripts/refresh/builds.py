"""Tables of compiled code, brought up to the index: what is new is read from the wheels, what is old is held to what they say.

By default the releases behind the newest one of the table are read, and one old release again, another each day: a row that
then reads differently is an error of the index, of the reading, or of the table, and somebody has to look. A row without code
says that nobody has read it yet (it was too large, or only the names of the libraries were read) and may be filled in.
"""

from __future__ import annotations

import datetime
import functools
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version
from pypi_simple import DistributionPackage

from scripts.refresh.index import Index, Release
from scripts.refresh.packages import FLOORS
from scripts.refresh.tables import PROVENANCE, Row, changed, load, text_of
from scripts.refresh.updates import MIB, THREADS, Request, Update
from scripts.refresh.wheel import UnreadableError, Wheel

Open = Callable[[DistributionPackage], AbstractContextManager[Wheel]]
Key = tuple[str, ...]


@dataclass(frozen=True)
class Reading:
    """The rows of a release, and what could not be read; both empty without compiled code."""

    rows: tuple[Row, ...] = ()
    unread: tuple[str, ...] = ()


Reader = Callable[[Release, Open, str], Reading]
"""Reads a release, opening the wheels it needs, on a day; raises ``UnreadableError``."""


@dataclass(frozen=True)
class Table:
    """A table file, and the reader for each package's releases."""

    file: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    version: str
    """The column with the release."""
    order: Callable[[Row], object]
    readers: Mapping[str, Reader]

    def package(self, row: Row) -> str:
        return row["package"] if "package" in self.columns else next(iter(self.readers))


@dataclass
class _Package:
    """The rows of one package during an update."""

    table: Table
    name: str
    rows: dict[Key, Row]
    differences: list[str]
    unread: list[str]
    received: int = 0

    def of(self, release: Release) -> dict[Key, Row]:
        return {key: row for key, row in self.rows.items() if _version(row[self.table.version]) == release.key}

    def open(self, release: Release) -> bool:
        """Return whether the table is incomplete for a release; torch builds without CUDA have no code to record."""
        rows = self.of(release).values()
        return not all((row["sm"] or row.get("default")) and row["known"] != "inferred" for row in rows) or not rows

    def checkable(self, release: Release) -> bool:
        return any(row["known"] == "read" and (row["sm"] or row.get("default")) for row in self.of(release).values())

    def merge(self, release: Release, found: Iterable[Row]) -> None:
        """Merge the new reading: new rows, missing code, and readings in place of inferences."""
        new = {tuple(row[each] for each in self.table.key): row for row in found}
        for key, row in self.of(release).items():
            if row["known"] == "inferred" and not row["sm"]:
                del self.rows[key]  # it was only a placeholder
            elif row["known"] != "curated" or key in new:
                pending = not row["sm"] or (key in new and not new[key]["sm"])
                lines = changed({key: row}, new, (*PROVENANCE, "sm", "ptx") if pending else PROVENANCE)
                self.differences += [f"{self.table.file}: {line}" for line in lines]
        for key, row in new.items():
            old = self.rows.get(key)
            if old is None or (row["sm"] and (not old["sm"] or (row["known"] == "read" and old["known"] != "read"))):
                self.rows[key] = row


def update(table: Table, folder: Path, request: Request) -> Update:
    """Return the new text of a table; see :data:`scripts.refresh.updates.Kind`."""
    rows: dict[str, dict[Key, Row]] = {name: {} for name in table.readers}
    for key, row in load(folder / table.file, table.columns, table.key).items():
        rows.setdefault(table.package(row), {})[key] = row
    chosen = [name for name in request.packages if name in table.readers]
    with ThreadPoolExecutor(THREADS) as pool:
        done = list(pool.map(lambda name: _brought_up(_Package(table, name, dict(rows[name]), [], []), request), chosen))
    rows.update({package.name: package.rows for package in done})
    text = text_of((row for found in rows.values() for row in found.values()), table.columns, table.order)
    return Update(
        {table.file: text},
        tuple(line for package in done for line in package.differences),
        tuple(line for package in done for line in package.unread),
        sum(package.received for package in done),
    )


def _brought_up(package: _Package, request: Request) -> _Package:
    index = Index()
    floor = Version(FLOORS[package.name])
    releases = [release for release in index.releases(package.name) if release.key >= floor]
    new, again = _due(package, releases, request)
    for release in [*new, *again]:
        where = f"{package.name} {release.version}{' (again)' if release in again else ''}"
        try:
            reading = _read(package.table.readers[package.name], index, release, request)
        except UnreadableError as problem:
            package.unread.append(f"{where}: {problem}")
            continue
        package.unread += [f"{where}: {line}" for line in reading.unread]
        if reading.rows:
            package.merge(release, reading.rows)
    package.received = index.received
    print(
        f"{package.table.file}: {package.name}: {len(new)} releases read, {len(again)} again, "
        f"{package.received / MIB:.1f} MiB received",
        file=sys.stderr,
    )
    return package


def _read(reader: Reader, index: Index, release: Release, request: Request) -> Reading:
    def opened(file: DistributionPackage) -> AbstractContextManager[Wheel]:
        return index.wheel(file, request.budget)

    return index.tried(lambda: reader(release, opened, request.today), release.version)


def _due(package: _Package, releases: Sequence[Release], request: Request) -> tuple[list[Release], list[Release]]:
    """Return releases missing from the table, and old ones to read again."""
    if request.releases:
        return [release for release in releases if release.version in request.releases], []
    lacking = [release for release in releases if package.open(release)]
    known = [_version(row[package.table.version]) for row in package.rows.values()]
    newest = max(known) if known else releases[-2].key if len(releases) > 1 else Version("0")
    new = [release for release in lacking if release.key > newest]
    gaps = [release for release in reversed(lacking) if release.key <= newest][: request.gaps]
    checkable = [release for release in releases if package.checkable(release) and release not in gaps]
    day = datetime.date.fromisoformat(request.today).toordinal()
    again = [checkable[(day + number) % len(checkable)] for number in range(min(request.again, len(checkable)))]
    return [*new, *gaps], again


_version = functools.cache(Version)
