"""The SQLite file of the cache: where it is, whose it may be, how it is opened, and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
_NAME = "index-3.sqlite"
"""The number is the schema version: each version uses its own file."""
_BUSY = 5.0
_TABLES = """
CREATE TABLE IF NOT EXISTS page (
    source TEXT, page TEXT, read REAL, parts INTEGER, etag TEXT, modified TEXT, listing TEXT, seal TEXT,
    PRIMARY KEY (source, page)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (source TEXT, page TEXT, part TEXT, body TEXT, PRIMARY KEY (source, page, part));
CREATE TABLE IF NOT EXISTS metadata (
    source TEXT, url TEXT, name TEXT, version TEXT, tag TEXT, digest TEXT, read REAL, origin TEXT, body TEXT, seal TEXT,
    PRIMARY KEY (source, url)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS metadata_of_release ON metadata (source, name, version);
CREATE TABLE IF NOT EXISTS body (hash TEXT PRIMARY KEY, packed TEXT);
"""


def default_path(environ: Mapping[str, str] = os.environ) -> str:
    """The path of the cache file: in ``COMPAT_CACHE_DIR``, else in the platform's cache folder."""
    home = os.path.expanduser("~")
    if environ.get("COMPAT_CACHE_DIR"):
        return os.path.join(environ["COMPAT_CACHE_DIR"], _NAME)
    if sys.platform == "win32":
        base = environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        base = os.path.join(home, "Library", "Caches")
    else:
        base = environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(base, "compat", _NAME)


class ForeignError(OSError):
    """A path that belongs to another user or is not a regular file."""


def refuse_foreign(path: str) -> None:
    """Create the folder, private to this user; reject paths owned by other users and those that are not regular files."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for place, regular in ((folder, stat.S_ISDIR), (path, stat.S_ISREG)):
        try:
            found = os.stat(place) if place == folder else os.lstat(place)
        except FileNotFoundError:
            continue
        if not regular(found.st_mode):
            raise ForeignError("not a regular file")
        if hasattr(os, "geteuid") and found.st_uid not in (os.geteuid(), 0):
            raise ForeignError("it belongs to another user")
        if hasattr(os, "geteuid") and found.st_uid == os.geteuid() and found.st_mode & 0o077:
            os.chmod(place, stat.S_IMODE(found.st_mode) & ~0o077)


def open_connection(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA trusted_schema = OFF")
        if connection.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()[0] < 4:
            connection.executescript(f"BEGIN IMMEDIATE;{_TABLES}COMMIT;")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def connected_for_reading(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None)
    for table in ("page", "files", "metadata", "body"):
        connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
    return connection


def retry_while_locked(what: Callable[[], T]) -> T:
    """Retry while the file is locked: concurrent runs that create it may fail without waiting."""
    until = time.monotonic() + _BUSY
    while True:
        try:
            return what()
        except sqlite3.OperationalError as problem:
            if not is_busy(problem) or time.monotonic() > until:
                raise
            time.sleep(0.02)


def is_busy(problem: Exception) -> bool:
    return "locked" in str(problem) or "busy" in str(problem)


def is_damaged(problem: Exception) -> bool:
    return isinstance(problem, sqlite3.DatabaseError) and any(
        words in str(problem)
        for words in ("not a database", "malformed", "encrypted", "no such column", "no such table", "no such index")
    )


def in_words(problem: Exception) -> str:
    return (problem.strerror if isinstance(problem, OSError) else None) or str(problem)
