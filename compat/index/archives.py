"""Extraction of metadata from wheels and source distributions, reading as little as possible and executing nothing."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import IO, Protocol

from compat.index.metadata import LARGEST, File, Unread, Unusable
from compat.index.transport import Answer, TooLarge, Transport
from compat.model import normalized
from compat.redact import excerpt

TAIL = 1 << 16
"""Bytes at the end of a wheel; for most wheels they contain the directory and the metadata."""
LARGEST_WHOLE = 2 << 20
LARGEST_PART = 8 << 20
LARGEST_SDIST = 64 << 20
LARGEST_UNPACKED = 256 << 20
LARGEST_HEADER = 1 << 20
"""Bytes of a long name or of attributes in a source distribution."""
_BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, struct.error, NotImplementedError, RuntimeError,
    LookupError, ValueError, TypeError, AttributeError, OSError, MemoryError,
)  # fmt: skip
"""Exceptions that :mod:`zipfile` and :mod:`tarfile` raise for damaged archives."""


class NoRangesError(Exception):
    """The host does not support range requests; ``size`` if it is stated, ``body`` if the file is small."""

    def __init__(self, size: int | None, body: bytes | None = None) -> None:
        super().__init__(size)
        self.size, self.body = size, body


class Stream(Protocol):
    """A body that is read incrementally."""

    def read(self, size: int, /) -> bytes: ...


class RemoteFile(io.RawIOBase):
    """A remote file, read with range requests from its end; for :mod:`zipfile`."""

    def __init__(self, transport: Transport, url: str, size: int | None, *, largest: int = LARGEST_PART) -> None:
        """``largest``: maximum bytes of one range; :mod:`zipfile` reads whole directories, whatever their claimed size."""
        super().__init__()
        self._transport, self._url, self._largest = transport, url, largest
        self._position = 0
        self._parts: list[tuple[int, bytes]] = []
        self._size = self._fetch(f"{max(0, size - TAIL)}-{size - 1}" if size else f"-{TAIL}", TAIL)

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = max(0, offset + (0, self._position, self._size)[whence])
        return self._position

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._size, self._position + size)
        found = self.part(self._position, end) if end > self._position else b""
        self._position += len(found)
        return found

    def part(self, start: int, end: int) -> bytes:
        """The bytes from ``start`` to ``end``, fetched if necessary."""
        for begin, body in self._parts:
            if begin <= start and end <= begin + len(body):
                return body[start - begin : end - begin]
        if end - start > self._largest:
            raise Unread(f"{self._url}: its directory is too large")
        self._fetch(f"{start}-{end - 1}", end - start)
        begin, body = self._parts[-1]
        if begin > start or begin + len(body) < end:
            raise Unread(f"{self._url}: the host sent another range than the one requested")
        return body[start - begin : end - begin]

    def _fetch(self, span: str, length: int) -> int:
        """Fetch a range; returns the size of the whole file."""
        headers = {"Range": f"bytes={span}", "Accept-Encoding": "identity"}
        try:
            answer = self._transport.get(self._url, limit=max(LARGEST_WHOLE, length), headers=headers)
        except TooLarge as problem:
            raise NoRangesError(problem.size) from None
        if answer.status in (200, 416, 501):
            raise NoRangesError(*((len(answer.body), answer.body) if answer.status == 200 else (None,)))
        if answer.status != 206:
            raise Unread(f"{self._url} answers HTTP {answer.status}")
        begin, end, size = _content_range(answer.headers.get("Content-Range", ""))
        if end - begin + 1 != len(answer.body) or end >= size:
            raise Unread(f"{self._url}: the host sent an incomplete range")
        self._parts.append((begin, answer.body))
        return size


def _content_range(text: str) -> tuple[int, int, int]:
    unit, _, rest = text.strip().partition(" ")
    span, _, size = rest.partition("/")
    first, _, last = span.partition("-")
    numbers = first, last, size
    if unit.lower() != "bytes" or not all(each.isdecimal() and len(each) < 20 for each in numbers):
        raise Unread(f"the host sent a range as {excerpt(text, 60)!r}")
    return int(first), int(last), int(size)


def remote_metadata(transport: Transport, file: File) -> tuple[bytes, bytes | None]:
    """The metadata in a remote zip, and the whole file if that had to be read, so that its hash can be checked."""
    try:
        try:
            return _ranged(transport, file, file.size), None
        except NoRangesError as refused:
            if refused.body is not None or file.size is not None or refused.size is None:
                raise
            return _ranged(transport, file, refused.size), None  # some hosts do not support suffix ranges
    except NoRangesError as refused:
        if refused.body is None and (refused.size or 0) > LARGEST_WHOLE:
            raise Unread(_no_ranges(file, refused.size)) from None
        body = refused.body or _whole(transport, file)
        return zip_metadata(io.BytesIO(body), file), body


def _ranged(transport: Transport, file: File, size: int | None) -> bytes:
    return zip_metadata(RemoteFile(transport, file.url, size), file)


def _whole(transport: Transport, file: File) -> bytes:
    try:
        answer: Answer = transport.get(file.url, limit=LARGEST_WHOLE)
    except TooLarge as problem:
        raise Unread(_no_ranges(file, problem.size)) from None
    if answer.status != 200:
        raise Unread(f"{file.url} answers HTTP {answer.status}")
    return answer.body


def _no_ranges(file: File, size: int | None) -> str:
    return f"{file.filename}: its host does not support range requests{f' and it has {size >> 20} MB' if size else ''}"


def zip_metadata(source: IO[bytes] | io.RawIOBase, file: File) -> bytes:
    """METADATA of a wheel, PKG-INFO of a source distribution; :class:`Unread` if the archive is incomplete."""
    try:
        with zipfile.ZipFile(source) as archive:
            member = _member(archive.namelist(), file)
            info = archive.getinfo(member)
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                # zipfile unpacks all that it has read of the others at once: a kilobyte becomes gigabytes
                raise Unread(f"{file.filename}: its metadata is compressed with method {info.compress_type}, not with deflate")
            if isinstance(source, RemoteFile):  # one request instead of three
                start = info.header_offset
                length = 30 + 2 * len(member) + 512 + min(info.compress_size, LARGEST)
                source.part(start, min(source.seek(0, 2), start + length))
            with archive.open(info) as opened:
                return _bounded(opened.read(LARGEST + 1), file)
    except (Unread, NoRangesError):
        raise
    except _BROKEN as problem:
        raise Unread(f"{file.filename} is not a complete archive ({_words(problem)})") from None


class _Unpacked:
    """The unpacked bytes of a source distribution, at most :data:`LARGEST_UNPACKED` of them, also within one header."""

    def __init__(self, source: Stream | IO[bytes], file: File) -> None:
        self._source, self._file, self._left = gzip.GzipFile(fileobj=source), file, LARGEST_UNPACKED  # type: ignore[arg-type]

    def read(self, size: int) -> bytes:
        chunk = self._source.read(size)
        self._left -= len(chunk)
        if self._left < 0:
            raise Unread(f"{self._file.filename}: no PKG-INFO within its first {LARGEST_UNPACKED >> 20} MB")
        return chunk


class _Member(tarfile.TarInfo):
    """A member whose extended header, which :mod:`tarfile` reads as a whole, has a bounded size."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Member:
        member = super().frombuf(buf, encoding, errors)
        plain = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE, tarfile.DIRTYPE)
        if member.type == tarfile.GNUTYPE_SPARSE or (member.type not in plain and member.size > LARGEST_HEADER):
            raise tarfile.ReadError("extended header is too large")
        return member


def tar_metadata(source: Stream | IO[bytes], file: File) -> bytes:
    """PKG-INFO of a source distribution, streamed until it is found; :class:`Unusable` if it is missing."""
    try:
        with tarfile.open(fileobj=_Unpacked(source, file), mode="r|", tarinfo=_Member) as archive:  # type: ignore[call-overload]
            for member in archive:
                archive.members.clear()  # of which there may be a million
                if member.isfile() and member.size <= LARGEST and _is_pkg_info(member.name, file):
                    opened = archive.extractfile(member)
                    if opened is not None:
                        return _bounded(opened.read(), file)
    except TooLarge:
        raise Unread(f"{file.filename} is too large to be searched") from None
    except Unread:
        raise
    except _BROKEN as problem:
        raise Unread(f"{file.filename} is not a complete archive ({_words(problem)})") from None
    raise Unusable(f"{file.filename} has no PKG-INFO")


def local_metadata(path: Path, file: File) -> bytes:
    """The metadata of a local wheel or source distribution."""
    try:
        with open(path, "rb") as opened:
            return zip_metadata(opened, file) if file.filename.endswith((".whl", ".zip")) else tar_metadata(opened, file)
    except OSError as problem:
        raise Unread(f"{path} cannot be read: {problem.strerror}") from None


def _member(names: list[str], file: File) -> str:
    if file.kind == "sdist":
        found = [name for name in names if _is_pkg_info(name, file)]
    else:
        found = [name for name in names if name.count("/") == 1 and name.endswith(".dist-info/METADATA")]
        own = [name for name in found if normalized(name.partition("/")[0].partition("-")[0]) == file.name]
        found = own or found
    if len(found) != 1:
        raise Unread(f"{file.filename} has {'no metadata' if not found else 'metadata twice'}")
    return found[0]


def _is_pkg_info(name: str, file: File) -> bool:
    folder, slash, rest = name.removeprefix("./").partition("/")
    return bool(slash) and rest == "PKG-INFO" and normalized(folder.rpartition("-")[0]) == file.name


def _bounded(body: bytes, file: File) -> bytes:
    if len(body) > LARGEST:
        raise Unread(f"{file.filename}: its metadata is larger than {LARGEST >> 20} MB")
    return body


def _words(problem: BaseException) -> str:
    return str(problem)[:80] or type(problem).__name__
