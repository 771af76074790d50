"""Cache of index pages and metadata of files, in one SQLite file in the user's cache folder.

Entries are keyed by the index they were read from, so that no index can affect what is read from another; metadata is also
stored with the sha256 of its bytes. Files of a page are stored by release, and requirements in parsed form, so that a
single query returns all pins of a lock file without decoding a page. Concurrent runs may share the file, and may be killed
at any time (write-ahead log). An unusable file is ignored, and :attr:`Store.note` reports it.

Every row has a seal: a digest of its content and its place with a key that is not in the cache (:func:`compat.files.user_key`).
A row that this user did not write, and one that was copied from another place, counts as missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from compat.files import user_key
from compat.index.database import (
    ForeignError,
    connected_for_reading,
    default_path,
    in_words,
    is_busy,
    is_damaged,
    open_connection,
    refuse_foreign,
    retry_while_locked,
)
from compat.index.metadata import File, Metadata, Page, Reading, Requirement, Unusable
from compat.index.settings import path_of
from compat.records import kept

_LARGEST = 64 << 20
"""Maximum characters of a row."""
_SEAL = 32
"""Characters of a seal."""
_HEADER = "page.source, page.page, page.read, page.parts, page.etag, page.modified, page.listing, page.seal"
_PAGE = f"""
SELECT {_HEADER}, files.part, files.body
FROM page LEFT JOIN files ON files.source = page.source AND files.page = page.page
WHERE page.source = ? AND page.page = ? ORDER BY files.rowid
"""
_METADATA = (
    "metadata.source, metadata.url, metadata.name, metadata.version, metadata.tag, metadata.digest, metadata.read, "
    "metadata.origin, metadata.body, metadata.seal, body.packed"
)
_OF_FILES = f"""
SELECT asked.key, {_METADATA} FROM json_each(?) AS asked
JOIN metadata ON metadata.source = json_extract(asked.value, '$[0]') AND metadata.url = json_extract(asked.value, '$[1]')
LEFT JOIN body ON body.hash = metadata.body
"""
_OF_PINS = f"""
SELECT asked.key, {_HEADER}, files.body, {_METADATA} FROM json_each(?) AS asked
JOIN page ON page.source = json_extract(asked.value, '$[0]') AND page.page = json_extract(asked.value, '$[1]')
LEFT JOIN files ON files.source = page.source AND files.page = page.page AND files.part = json_extract(asked.value, '$[2]')
LEFT JOIN metadata INDEXED BY metadata_of_release  -- the planner takes the primary key, and reads all of a source for each pin
    ON metadata.source = page.source AND metadata.name = json_extract(asked.value, '$[3]')
    AND metadata.version = json_extract(asked.value, '$[4]')
LEFT JOIN body ON body.hash = metadata.body
"""
_VERSIONS = f"""
SELECT {_HEADER}, files.part FROM page JOIN files ON files.source = page.source AND files.page = page.page
WHERE page.source = ? AND page.page = ? ORDER BY files.rowid
"""
_KEEP_BODY = """
INSERT INTO body VALUES (?, ?) ON CONFLICT (hash) DO UPDATE SET packed = excluded.packed WHERE packed <> excluded.packed
"""
_UNUSABLE = "unusable"
_DAMAGED = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""Exceptions raised when decoding a damaged row, which is treated as missing."""


_Body = tuple[tuple[Requirement, ...], "str | None", tuple[str, ...]]


class Pin(NamedTuple):
    """The key of a release on a page: ``part`` is the version, or on a flat page the package."""

    source: str
    page: str
    part: str
    name: str
    version: str


@dataclass(frozen=True)
class Row:
    """Cached metadata: the URL and identity (``tag``) of its file, and when it was read."""

    url: str
    tag: str
    read: float
    reading: Reading

    def holds_for(self, file: File, max_age: float) -> bool:
        """Whether it is still valid for a file, according to the hashes on the index, or else its age in seconds."""
        same = self.tag == tag_of(file) and (bool(self.tag) or abs(time.time() - self.read) < max_age)
        return same and (not isinstance(file.metadata_sha, str) or file.metadata_sha == self.reading.digest)


@dataclass(frozen=True)
class Pinned:
    """A cached release: when its page was read, whether the index has the package, and the release (``there``)."""

    read: float
    exists: bool
    there: bool
    files: tuple[File, ...]
    rows: list[Row]


class _Header(NamedTuple):
    """The row of a page; ``listing`` is the seal of the names of its parts."""

    source: str
    page: str
    read: float
    parts: int | None
    etag: str
    modified: str
    listing: str
    seal: str


class Seal:
    """Keyed digests (seals) of values: without the key, no valid seal can be made for other values."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, *values: object) -> str:
        """The seal of values, in this order; each is a text, a number or ``None``."""
        texts = [value if isinstance(value, str) else f"\0{value!r}" for value in values]
        content = f"{[len(text) for text in texts]}{''.join(texts)}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, key=self._key, digest_size=_SEAL // 2).hexdigest()


class Store:
    """The cache. Not thread-safe. ``path`` defaults to :func:`default_path`; ``":memory:"`` stores nothing on disk."""

    def __init__(self, path: str | None = None) -> None:
        self.path = default_path() if path is None else path
        self.note: str | None = None
        self.unpacked = 0
        """Characters of pages and metadata that were decoded."""
        self._writable = True
        self._seal = Seal(b"")
        self._connection: sqlite3.Connection | None = None
        self._open()

    def page(self, source: str, page: str) -> Page | None:
        """A page; ``None`` if it is not cached."""
        rows = self._all(_PAGE, (source, page))
        try:
            header = self._header(rows[0][:-2]) if rows else None
            if header is None:
                return None
            if header.parts is None:
                return Page(None, read=header.read)
            bodies = {part: body for *_, part, body in rows if part is not None}
            if header.listing != self._seal.of(source, page, *bodies):
                return None
            files = [file for part, body in bodies.items() for file in self._files(source, page, part, body)]
            return Page(tuple(files), header.etag, header.modified, header.read)
        except _DAMAGED:
            return None

    def versions(self, source: str, page: str) -> tuple[float, tuple[str, ...]]:
        """When a package's page was read, and its releases, without decoding them."""
        rows = self._all(_VERSIONS, (source, page))
        try:
            header = self._header(rows[0][:-1]) if rows else None
            parts = tuple(part for *_, part in rows)
            if header is not None and header.listing == self._seal.of(source, page, *parts):
                return header.read, parts
        except _DAMAGED:
            pass
        return 0.0, ()

    def pinned(self, pins: list[Pin]) -> dict[Pin, Pinned]:
        """The cached data of exact releases, in one query; only those whose page is cached."""
        found: dict[Pin, Pinned] = {}
        first, last = 1 + len(_Header._fields), 2 + len(_Header._fields)
        for row in self._all(_OF_PINS, (json.dumps(pins),)):
            pin, body = pins[row[0]], row[first]
            try:
                if pin not in found:
                    header = self._header(row[1:first])
                    if header is None:
                        continue
                    exists = header.parts is not None
                    if body is None and exists and not self._lacks(pin):
                        continue
                    files = [] if body is None else self._files(pin.source, pin.page, pin.part, body)
                    own = tuple(file for file in files if file.version == pin.version)
                    found[pin] = Pinned(header.read, exists, body is not None, own, [])
                found[pin].rows.extend(self._rows(row[last:]))
            except _DAMAGED:
                continue
        return found

    def _lacks(self, pin: Pin) -> bool:
        """Whether the page of a pin is known not to have its release: its list of releases is intact, and without it."""
        read, parts = self.versions(pin.source, pin.page)
        return read > 0 and pin.part not in parts

    def metadata(self, files: list[File]) -> dict[File, Row]:
        """The cached metadata of files, in one query."""
        rows = self._all(_OF_FILES, (json.dumps([(file.index, file.url) for file in files]),))
        return {files[at]: found for at, *row in rows for found in self._rows(row)}

    def keep_page(self, source: str, page: str, found: Page) -> None:
        """Store a page, replacing the previous one; files of a flat page (``page`` is "") are stored by package."""
        parts: dict[str, list[File]] = {}
        for file in found.files or ():
            parts.setdefault(file.version if page else file.name, []).append(file)
        count = None if found.files is None else len(parts)
        rows = [
            (source, page, part, self._sealed_text(_json(list(map(_row, files))), source, page, part))
            for part, files in parts.items()
        ]
        header = self._sealed(source, page, time.time(), count, found.etag, found.modified, self._seal.of(source, page, *parts))
        self._write([
            ("DELETE FROM files WHERE source = ? AND page = ?", [(source, page)]),
            ("INSERT INTO files VALUES (?, ?, ?, ?)", rows),
            ("INSERT OR REPLACE INTO page VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [header]),
        ])  # fmt: skip

    def touch(self, source: str, page: str) -> None:
        """Mark a page as revalidated."""
        for row in self._all(f"SELECT {_HEADER} FROM page WHERE source = ? AND page = ?", (source, page)):
            if self._header(row) is not None:
                *_, seal = touched = self._sealed(source, page, time.time(), *row[3:-1])
                self._write(
                    [("UPDATE page SET read = ?, seal = ? WHERE source = ? AND page = ?", [(touched[2], seal, source, page)])]
                )

    def keep_metadata(self, file: File, reading: Reading) -> None:
        """Store the result of reading a file's metadata, replacing the previous one."""
        found = reading.found
        origin, body = (_UNUSABLE, str(found)) if isinstance(found, Unusable) else (found.origin, "")
        bodies = []
        if isinstance(found, Metadata):
            text = _json([found.requires, found.requires_python, found.provides_extra])
            body = hashlib.sha256(text.encode()).hexdigest()
            bodies = [(body, self._sealed_text(text, body))]
        tag, digest = tag_of(file), reading.digest
        row = self._sealed(file.index, file.url, file.name, file.version, tag, digest, time.time(), origin, body)
        self._write([
            (_KEEP_BODY, bodies),
            ("INSERT OR REPLACE INTO metadata VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [row]),
        ])  # fmt: skip

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except sqlite3.Error:
                self._writable = False  # the log could not be written back; the next run does it

    def _header(self, row: Sequence[Any]) -> _Header | None:
        """The header of a page; ``None`` if this user did not write it."""
        header = _Header._make(row)
        whole = header.seal == self._seal.of(*header[:-1])
        return header if whole and isinstance(header.read, float) else None

    def _files(self, source: str, page: str, part: str, body: str) -> list[File]:
        return [
            File(name, url + file if short else url, file, version, sha, size, python, yanked, day, kind, metadata, source)
            for name, url, file, version, sha, size, python, yanked, day, kind, metadata, short
            in self._unpacked(body, source, page, part)
        ]  # fmt: skip

    def _rows(self, row: Sequence[Any]) -> Iterable[Row]:
        """The metadata of a row; nothing if it is damaged or the empty side of a join."""
        *content, seal, packed = row
        if seal is None or seal != self._seal.of(*content):
            return
        _, url, _, _, tag, digest, read, origin, body = content
        try:
            if origin == _UNUSABLE:
                yield Row(url, tag, float(read), Reading(Unusable(body), digest))
            elif packed is not None:
                needed, python, extras = self._body(packed, body)
                yield Row(url, tag, float(read), Reading(Metadata(needed, python, extras, origin), digest))
        except _DAMAGED:
            return

    @kept
    def _body(self, packed: str, name: str) -> _Body:
        """The content of metadata; the same objects for all releases that share it, which is about every second one."""
        requires, python, extras = self._unpacked(packed, name)
        needed = tuple(Requirement(name, text, tuple(wanted), marker, at) for name, text, wanted, marker, at in requires)
        return needed, python, tuple(extras)

    def _sealed_text(self, text: str, *place: str) -> str:
        """A text after the seal of it and its place; compression would reduce it to 40 % but take twice as long to write."""
        return self._seal.of(*place, text) + text

    def _unpacked(self, body: str, *place: str) -> Any:
        text = body[_SEAL:]
        if len(text) > _LARGEST or body[:_SEAL] != self._seal.of(*place, text):
            raise ValueError("is damaged")
        self.unpacked += len(text)
        return json.loads(text)

    def _sealed(self, *values: object) -> tuple[object, ...]:
        """A row followed by its seal, a keyed digest."""
        return (*values, self._seal.of(*values))

    def _open(self) -> None:
        """Open the cache, read-only if it cannot be written, or not at all if it cannot be used."""
        try:
            key = os.urandom(32) if self.path == ":memory:" else user_key()
            if key is None:
                raise ForeignError("the key that protects it cannot be read or created")
            self._seal = Seal(key)
            if self.path != ":memory:":
                refuse_foreign(self.path)
            self._connection = retry_while_locked(lambda: open_connection(self.path))
        except (sqlite3.Error, OSError) as problem:
            self._writable = False
            if is_busy(problem) or isinstance(problem, ForeignError):
                self._give_up(problem)
                return
            try:
                self._connection = connected_for_reading(self.path)
                self.note = f"the cache {self.path} cannot be written ({in_words(problem)}): nothing new is stored"
            except (sqlite3.Error, OSError):
                self._give_up(problem)

    def _all(self, statement: str, values: tuple[object, ...]) -> list[Any]:
        if self._connection is None:
            return []
        try:
            return self._connection.execute(statement, values).fetchall()
        except (sqlite3.Error, OverflowError, MemoryError) as problem:
            if not is_busy(problem):
                self._give_up(problem)
            return []

    def _write(self, statements: Sequence[tuple[str, Sequence[tuple[object, ...]]]]) -> None:
        """Execute all statements or none; on errors such as a full disk, only writing stops."""
        if self._connection is None or not self._writable:
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for statement, rows in statements:
                self._connection.executemany(statement, rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error as problem:
            if is_damaged(problem):
                self._give_up(problem)
                return
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            if not is_busy(problem):
                self._writable = False
                self.note = f"the cache {self.path} cannot be written ({in_words(problem)}): nothing new is stored"

    def _give_up(self, problem: Exception) -> None:
        self.close()
        remedy = "; delete it to start over" if is_damaged(problem) else ""
        self.note = f"the cache {self.path} is not used ({in_words(problem)}){remedy}"


def tag_of(file: File) -> str:
    """The identity of a file at its URL: its sha256, else time and size of a local file; "" if unknown."""
    if file.sha256 is not None:
        return file.sha256
    path = path_of(file.url)
    if path is None:
        return ""
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_mtime_ns}-{found.st_size}"


def _row(file: File) -> tuple[object, ...]:
    """A file as a row: without its index, and without the file name at the end of its URL."""
    short = file.url.endswith(file.filename)
    url = file.url.removesuffix(file.filename) if short else file.url
    return (file.name, url, *file[2:-1], short)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
