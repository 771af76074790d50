"""What was read before, in one SQLite file of the user's cache: pages for a day, the metadata of a file for good.

Bodies of metadata are kept once however many files have them. Several runs may use the file at once, and one may be killed
at any time (write-ahead log). Whatever is wrong with the file, it is then not used, and :attr:`Store.note` says so.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from compat.index.address import path_of
from compat.index.local import changed
from compat.index.records import File, Metadata, Unusable
from compat.records import quick

T = TypeVar("T")
_NAME = "index-1.sqlite"
"""The number is that of the tables: another form is another file."""
_BUSY = 5.0
_TABLES = """
CREATE TABLE IF NOT EXISTS page (
    source TEXT NOT NULL, name TEXT NOT NULL, read REAL NOT NULL, body BLOB NOT NULL, PRIMARY KEY (source, name)
);
CREATE TABLE IF NOT EXISTS metadata (
    file TEXT PRIMARY KEY, read REAL NOT NULL, origin TEXT NOT NULL, body TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS body (hash TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
"""
_UNUSABLE = "unusable"
_COLUMNS = (
    "name", "filename", "url", "version", "sha256", "size", "requires_python", "yanked", "uploaded", "kind", "metadata_sha",
)  # fmt: skip


def default_path(environ: dict[str, str] | None = None) -> str:
    """The file in the user's cache: ``COMPAT_CACHE_DIR``, else where the platform keeps such things."""
    given = dict(os.environ) if environ is None else environ
    home = os.path.expanduser("~")
    if given.get("COMPAT_CACHE_DIR"):
        return os.path.join(given["COMPAT_CACHE_DIR"], _NAME)
    if sys.platform == "win32":
        base = given.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = given.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(base, "compat", _NAME)


class Store:
    """The cache; for one thread. ``path`` is :func:`default_path` unless given, ``":memory:"`` keeps nothing."""

    def __init__(self, path: str | None = None) -> None:
        self.path = default_path() if path is None else path
        self.note: str | None = None
        self._writable = True
        self._connection: sqlite3.Connection | None = None
        self._open()

    def page(self, source: str, name: str) -> tuple[float, tuple[File, ...] | None] | None:
        """When a page was read, and its files (``None``: the index had no such page); ``None`` where it was not."""
        row = self._one("SELECT read, body FROM page WHERE source = ? AND name = ?", (source, name))
        if row is None:
            return None
        try:
            return float(row[0]), _unpacked(row[1])
        except (ValueError, TypeError, AttributeError, LookupError, zlib.error):
            return None  # a damaged row is one that was never read

    def keep_page(self, source: str, name: str, files: Iterable[File] | None, when: float | None = None) -> None:
        """``when`` is the time that :meth:`page` will tell, now unless given."""
        row = source, name, time.time() if when is None else when, _packed(files)
        self._write([("INSERT OR REPLACE INTO page VALUES (?, ?, ?, ?)", row)])

    def metadata(self, file: File, max_age: float = float("inf")) -> Metadata | None:
        """What a file requires, ``None`` where that was not read; :class:`Unusable` where it was and is no use.

        ``max_age`` counts for files whose hash the index does not tell.
        """
        key, lasting = _key(file)
        asked = "SELECT read, origin, body, text FROM metadata LEFT JOIN body ON body.hash = metadata.body WHERE file = ?"
        row = self._one(asked, (key,))
        if row is None or not (lasting or time.time() - row[0] < max_age):
            return None
        _, origin, digest, text = row
        if origin == _UNUSABLE:
            raise Unusable(digest)
        if text is None or _digest(text) != digest:
            return None
        requires, python, extras = json.loads(text)
        return Metadata(tuple(requires), python, tuple(extras), origin)

    def keep_metadata(self, file: File, found: Metadata | Unusable) -> None:
        key, _ = _key(file)
        insert = "INSERT OR REPLACE INTO metadata VALUES (?, ?, ?, ?)"
        if isinstance(found, Unusable):
            self._write([(insert, (key, time.time(), _UNUSABLE, str(found)))])
            return
        text = json.dumps([found.requires_dist, found.requires_python, found.provides_extra], separators=(",", ":"))
        digest = _digest(text)
        self._write([
            ("INSERT OR REPLACE INTO body VALUES (?, ?)", (digest, text)),
            (insert, (key, time.time(), found.origin, digest)),
        ])  # fmt: skip

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except sqlite3.Error:
                self._writable = False  # the log could not be written back; the next run does it

    def _open(self) -> None:
        try:
            if self.path != ":memory:":
                os.makedirs(os.path.dirname(os.path.abspath(self.path)), mode=0o700, exist_ok=True)
            self._connection = _patiently(lambda: _connected(self.path))
        except (sqlite3.Error, OSError) as problem:
            self._open_for_reading(problem)

    def _open_for_reading(self, problem: Exception) -> None:
        """A cache that cannot be written may still be read, unless it is no cache at all."""
        self._writable = False
        if _busy(problem):
            self._give_up(problem)
            return
        try:
            uri = f"{Path(self.path).absolute().as_uri()}?mode=ro&immutable=1"
            connection = sqlite3.connect(uri, uri=True, isolation_level=None)
            for table in ("page", "metadata", "body"):
                connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
            self._connection = connection
            self.note = f"the cache {self.path} cannot be written ({_said(problem)}): nothing new is kept"
        except (sqlite3.Error, OSError):
            self._give_up(problem)

    def _one(self, statement: str, values: tuple[Any, ...]) -> Any:
        if self._connection is None:
            return None
        try:
            return self._connection.execute(statement, values).fetchone()
        except sqlite3.Error as problem:
            if not _busy(problem):
                self._give_up(problem)
            return None

    def _write(self, statements: list[tuple[str, tuple[Any, ...]]]) -> None:
        """All of the statements or none; a full disk ends the writing, not the run."""
        if self._connection is None or not self._writable:
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for statement, values in statements:
                self._connection.execute(statement, values)
            self._connection.execute("COMMIT")
        except sqlite3.Error as problem:
            if _damaged(problem):
                self._give_up(problem)
                return
            self._undo()
            if not _busy(problem):
                self._writable = False
                self.note = f"the cache {self.path} cannot be written ({_said(problem)}): nothing new is kept"

    def _undo(self) -> None:
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error as problem:
            self._give_up(problem)

    def _give_up(self, problem: Exception) -> None:
        self.close()
        mend = "; delete it to begin anew" if _damaged(problem) else ""
        self.note = f"the cache {self.path} is not used ({_said(problem)}){mend}"


def _connected(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("PRAGMA synchronous = NORMAL")
        if connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()[0] < 3:
            connection.executescript(f"BEGIN IMMEDIATE;{_TABLES}COMMIT;")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _patiently(what: Callable[[], T]) -> T:
    """Two runs that make the file at once may refuse each other without waiting."""
    until = time.monotonic() + _BUSY
    while True:
        try:
            return what()
        except sqlite3.OperationalError as problem:
            if not _busy(problem) or time.monotonic() > until:
                raise
            time.sleep(0.02)


def _busy(problem: Exception) -> bool:
    return "locked" in str(problem) or "busy" in str(problem)


def _damaged(problem: Exception) -> bool:
    return isinstance(problem, sqlite3.DatabaseError) and any(
        words in str(problem) for words in ("not a database", "malformed", "encrypted", "no such column", "no such table")
    )


def _said(problem: Exception) -> str:
    return (problem.strerror if isinstance(problem, OSError) else None) or str(problem)


def _key(file: File) -> tuple[str, bool]:
    """What metadata is kept under, and whether that stays true for good."""
    if file.sha256 is not None:
        return f"sha256:{file.sha256}", True
    path = path_of(file.url)
    if path is None:
        return file.url, False
    return f"{file.url}#{changed(path)}", True


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _packed(files: Iterable[File] | None) -> bytes:
    """A page as columns; what most URLs share with the file name is not written twice."""
    rows = None if files is None else list(files)
    columns: list[list[Any]] | None = None
    if rows is not None:
        columns = [[getattr(file, column) for file in rows] for column in _COLUMNS]
        columns[2] = [f.url.removesuffix(f.filename) + ("*" if f.url.endswith(f.filename) else "") for f in rows]
        columns.append([file.index for file in rows])
        for number in (0, len(columns) - 1):
            if len(set(columns[number])) == 1:
                columns[number] = columns[number][:1]
    return zlib.compress(json.dumps(columns, separators=(",", ":")).encode("utf-8", "surrogatepass"), 1)


def _unpacked(body: bytes) -> tuple[File, ...] | None:
    """The inverse of :func:`_packed`; zlib's checksum holds the bytes, errors say that they are damaged."""
    columns = json.loads(zlib.decompress(body))
    if columns is None:
        return None
    *columns, indexes = columns
    count = len(columns[1])
    for column in (columns[0], indexes):
        if len(column) == 1:
            column *= count
    if any(len(column) != count for column in (*columns, indexes)):
        raise ValueError("columns of different lengths")
    columns[2] = [url[:-1] + name if url.endswith("*") else url for url, name in zip(columns[2], columns[1])]
    names = (*_COLUMNS, "index")
    return tuple([quick(File, dict(zip(names, row))) for row in zip(*columns, indexes)])
