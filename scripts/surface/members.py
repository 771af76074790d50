"""The Python files of a wheel or source distribution, and the modules in it that are not Python."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import zipfile
from collections.abc import Iterable
from typing import IO

from compat.index.archives import NoRangesError, RemoteFile
from compat.index.metadata import File, Unread
from compat.index.transport import TooLarge, Transport
from scripts.surface.compiled import LIBRARIES, LISTED, strings_of

SMALL = 3 << 20
"""Wheels up to this size are read whole, and their hash is checked; of larger ones only the members that are wanted."""
MOST_OF_IT = 0.6
LARGEST_WHOLE = 256 << 20
LARGEST_MEMBER = 8 << 20
GAP = 128 << 10
"""Bytes between two members that are read along with them rather than asking twice."""
RUN = 24 << 20
_LEFT_OUT = re.compile(r"(^|/)(tests?|examples?|testing/_internal)/|^(caffe2|torchgen|torch/(include|share|test)|studio)/")
_NO_PACKAGE = re.compile(r"^(setup|conftest)\.py$|^(docs?|benchmarks?|scripts|build|op_builder|csrc|ci|tools|\.[^/]*)/")
_EXTENSION = re.compile(r"(\.cpython-[^/]*|\.abi3|\.cp3[^/]*|\.pypy[^/]*)?\.(so|pyd)$")
_BROKEN = (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, ValueError, NotImplementedError, RuntimeError, LookupError)


class Contents:
    """What was read of a file: ``members`` by path, ``opaque`` modules, whether its hash was ``verified``."""

    def __init__(self) -> None:
        self.members: dict[str, bytes] = {}
        self.opaque: set[str] = set()
        self.verified = False


def read_members(transport: Transport, file: File) -> Contents:
    """Return the Python files of a release; raises :class:`Unread` if they are unavailable."""
    contents = Contents()
    try:
        if file.filename.endswith((".whl", ".zip")):
            _wheel(transport, file, contents)
        else:
            _sdist(whole(transport, file, contents), contents)
    except _BROKEN as problem:
        raise Unread(f"{file.filename} is no whole archive ({str(problem)[:80] or type(problem).__name__})") from None
    if not contents.members:
        raise Unread(f"{file.filename} holds no Python files")
    return contents


def _wheel(transport: Transport, file: File, contents: Contents) -> None:
    if file.size is not None and file.size <= SMALL:
        _from_zip(io.BytesIO(whole(transport, file, contents)), contents)
        return
    try:
        _ranged(transport, file, contents)
    except (NoRangesError, _LargePart):
        _from_zip(io.BytesIO(whole(transport, file, contents)), contents)


class _LargePart(Exception):
    """So much of a wheel is wanted that it may as well be read whole."""


def _ranged(transport: Transport, file: File, contents: Contents) -> None:
    remote = RemoteFile(transport, file.url, file.size, largest=LARGEST_WHOLE)
    size = remote.seek(0, 2)
    with zipfile.ZipFile(remote) as archive:
        runs = _runs(_wanted(archive.infolist()))
        if size < LARGEST_WHOLE and sum(end - start for start, end in runs) > MOST_OF_IT * size:
            raise _LargePart
        for start, end in runs:
            remote.part(start, min(end, size))
        _from_zip(remote, contents)


def _runs(members: list[zipfile.ZipInfo]) -> list[list[int]]:
    """Return the byte ranges of an archive that contain these members."""
    runs: list[list[int]] = []
    for member in sorted(members, key=lambda each: each.header_offset):
        start = member.header_offset
        end = start + 30 + len(member.filename.encode()) + 512 + member.compress_size
        if runs and start - runs[-1][1] < GAP and end - runs[-1][0] < RUN:
            runs[-1][1] = max(end, runs[-1][1])
        else:
            runs.append([start, end])
    return runs


def _wanted(members: Iterable[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    return [
        member
        for member in members
        if _path(member.filename) in LIBRARIES or (_is_source(_path(member.filename)) and member.file_size <= LARGEST_MEMBER)
    ]


def _from_zip(source: IO[bytes] | io.RawIOBase, contents: Contents) -> None:
    with zipfile.ZipFile(source) as archive:
        for member in archive.infolist():
            _note_opaque(_path(member.filename), contents)
        for member in _wanted(archive.infolist()):
            path = _path(member.filename)
            if path in LIBRARIES:
                contents.members[path + LISTED] = strings_of(archive.read(member))
            else:
                contents.members[path] = archive.read(member)


def _sdist(body: bytes, contents: Contents) -> None:
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        for member in archive:
            path = re.sub(r"^(src|python|lib)/", "", member.name.removeprefix("./").partition("/")[2])
            _note_opaque(path, contents)
            if member.isfile() and member.size <= LARGEST_MEMBER and "/" in path and _is_source(path):
                opened = archive.extractfile(member)
                if opened is not None and not _NO_PACKAGE.search(path):
                    contents.members[path] = opened.read()


def _path(name: str) -> str:
    """Where a wheel's member is installed, below site-packages."""
    return re.sub(r"^[^/]*\.data/(purelib|platlib)/", "", name)


def _is_source(path: str) -> bool:
    return path.endswith((".py", ".pyi")) and not _LEFT_OUT.search(path) and ".data/" not in path


def _note_opaque(path: str, contents: Contents) -> None:
    """Compiled modules, and folders of Python files that are left out: what they hold is unknown."""
    left_out = _LEFT_OUT.search(path)
    if left_out and path.endswith((".py", ".so")):
        contents.opaque.add(path[: left_out.end()].strip("/").replace("/", "."))
    elif _EXTENSION.search(path):
        contents.opaque.add(_EXTENSION.sub("", path).replace("/", "."))


def whole(transport: Transport, file: File, contents: Contents) -> bytes:
    """Return the content of a file, with its hash checked; raises :class:`Unread` if it is unavailable or too large."""
    try:
        answer = transport.get(file.url, limit=LARGEST_WHOLE)
    except TooLarge as problem:
        raise Unread(f"{file.filename} is too large to be read whole ({problem.size})") from None
    if answer.status != 200:
        raise Unread(f"{file.filename}: HTTP {answer.status}")
    if file.sha256 is not None:
        if hashlib.sha256(answer.body).hexdigest() != file.sha256:
            raise Unread(f"{file.filename} has another hash than its index says")
        contents.verified = True
    return answer.body
