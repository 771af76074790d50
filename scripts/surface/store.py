"""The Python source of releases in one SQLite file outside the tree: every distinct file once, by the hash of its content."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from compat.index.database import default_path

_TABLES = """
CREATE TABLE IF NOT EXISTS release (
    id INTEGER PRIMARY KEY, package TEXT NOT NULL, version TEXT NOT NULL, file TEXT NOT NULL, sha256 TEXT, uploaded TEXT,
    verified INTEGER NOT NULL, received INTEGER NOT NULL, seconds REAL NOT NULL, opaque TEXT NOT NULL, UNIQUE (package, version)
);
CREATE TABLE IF NOT EXISTS source (
    id INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, body BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS member (
    release INTEGER NOT NULL, path TEXT NOT NULL, source INTEGER NOT NULL, PRIMARY KEY (release, path)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS unread (package TEXT, version TEXT, reason TEXT, PRIMARY KEY (package, version)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS record (
    source INTEGER NOT NULL, place TEXT NOT NULL, form INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (source, place)
) WITHOUT ROWID;
"""
_NAME = "surface-1.sqlite"


@dataclass(frozen=True)
class Fetched:
    """The Python members of one release by path. ``opaque``: modules, or whole packages, of which no source was read."""

    package: str
    version: str
    file: str
    sha256: str | None
    uploaded: str | None
    verified: bool
    received: int
    seconds: float
    opaque: tuple[str, ...]
    members: dict[str, bytes]


@dataclass(frozen=True)
class Release:
    """One release in the store: ``members`` gives the number of the source under each path."""

    package: str
    version: str
    uploaded: str
    opaque: tuple[str, ...]
    members: dict[str, int]


def default_folder() -> Path:
    """``COMPAT_SURFACE_STORE``, else a folder of the user's cache."""
    given = os.environ.get("COMPAT_SURFACE_STORE")
    return Path(given) if given else Path(default_path()).parent / "surface"


class Store:
    """The store, for a single thread; a killed run loses only the release it was writing."""

    def __init__(self, folder: Path | None = None) -> None:
        folder = folder or default_folder()
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / _NAME
        self._connection = sqlite3.connect(self.path, timeout=300)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.executescript(_TABLES)

    def close(self) -> None:
        self._connection.close()

    def known(self, package: str) -> set[str]:
        """Return the versions of a package in the store."""
        return {row[0] for row in self._connection.execute("SELECT version FROM release WHERE package = ?", (package,))}

    def packages(self) -> list[str]:
        return [row[0] for row in self._connection.execute("SELECT DISTINCT package FROM release ORDER BY package")]

    def keep(self, found: Fetched) -> int:
        """Add a release; returns the number of new files."""
        new = 0
        with self._connection as connection:
            cursor = connection.execute(
                "INSERT INTO release (package, version, file, sha256, uploaded, verified, received, seconds, opaque)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    found.package, found.version, found.file, found.sha256, found.uploaded, found.verified, found.received,
                    found.seconds, "\n".join(found.opaque),
                ),
            )  # fmt: skip
            release = cursor.lastrowid
            for path, body in found.members.items():
                number, added = self._source(body)
                new += added
                connection.execute("INSERT INTO member VALUES (?, ?, ?)", (release, path, number))
            connection.execute("DELETE FROM unread WHERE package = ? AND version = ?", (found.package, found.version))
        return new

    def _source(self, body: bytes) -> tuple[int, bool]:
        digest = hashlib.sha256(body).digest()
        row = self._connection.execute("SELECT id FROM source WHERE sha256 = ?", (digest,)).fetchone()
        if row is not None:
            return int(row[0]), False
        insert = "INSERT INTO source (sha256, size, body) VALUES (?, ?, ?)"
        cursor = self._connection.execute(insert, (digest, len(body), zlib.compress(body, 6)))
        assert cursor.lastrowid is not None
        return cursor.lastrowid, True

    def keep_unread(self, package: str, version: str, reason: str) -> None:
        with self._connection as connection:
            connection.execute("INSERT OR REPLACE INTO unread VALUES (?, ?, ?)", (package, version, reason))

    def releases(self, package: str) -> Iterator[Release]:
        """Return every release of a package in the store, unordered."""
        rows = self._connection.execute("SELECT id, version, uploaded, opaque FROM release WHERE package = ?", (package,))
        for number, version, uploaded, opaque in rows.fetchall():
            members = dict(self._connection.execute("SELECT path, source FROM member WHERE release = ?", (number,)))
            yield Release(package, version, uploaded or "", tuple(filter(None, opaque.split("\n"))), members)

    def release(self, package: str, version: str) -> Release | None:
        """Return one release; ``None`` if it is not in the store."""
        query = "SELECT id, uploaded, opaque FROM release WHERE package = ? AND version = ?"
        row = self._connection.execute(query, (package, version)).fetchone()
        if row is None:
            return None
        members = dict(self._connection.execute("SELECT path, source FROM member WHERE release = ?", (row[0],)))
        return Release(package, version, row[1] or "", tuple(filter(None, row[2].split("\n"))), members)

    def body(self, source: int) -> bytes:
        """Return the content of one file."""
        row = self._connection.execute("SELECT body FROM source WHERE id = ?", (source,)).fetchone()
        return zlib.decompress(row[0])

    def recorded(self, form: int) -> set[tuple[int, str]]:
        """The sources, each with the place under which it was read, that have a record of this form."""
        return set(self._connection.execute("SELECT source, place FROM record WHERE form = ?", (form,)))

    def record(self, form: int, source: int, place: str) -> bytes | None:
        """What :meth:`keep_records` kept, where it is of this form."""
        query = "SELECT body FROM record WHERE source = ? AND place = ? AND form = ?"
        row = self._connection.execute(query, (source, place, form)).fetchone()
        return row[0] if row is not None else None

    def keep_records(self, form: int, records: Iterable[tuple[int, str, bytes]]) -> None:
        with self._connection as connection:
            rows = [(source, place, form, body) for source, place, body in records]
            connection.executemany("INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?)", rows)

    def totals(self) -> dict[str, float]:
        """Counts for the report: releases, distinct files, bytes received, bytes of source, seconds of reading."""
        one = self._connection.execute
        releases, received, seconds = one("SELECT count(*), sum(received), sum(seconds) FROM release").fetchone()
        files, size, stored = one("SELECT count(*), sum(size), sum(length(body)) FROM source").fetchone()
        return {
            "releases": releases, "received": received or 0, "seconds": seconds or 0, "files": files, "size": size or 0,
            "stored": stored or 0,
        }  # fmt: skip
