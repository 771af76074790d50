"""Access to regular files: user input, the tables shipped with this package, and the user's cache."""

from __future__ import annotations

import os
import stat
import zlib

from compat import __version__
from compat.errors import InputError

DATA = os.path.join(os.path.dirname(__file__), "data")
"""The folder of the tables shipped with this package."""
pending: dict[str, bytes] = {}
"""Content about to be written, by path: it is read instead of the file on disk, so that it can be checked beforehand."""


def regular_path(path: str) -> str:
    """The path itself; :class:`InputError` if it does not exist or is a folder, a pipe or a device."""
    if "\0" in path:
        raise InputError("a file name cannot contain a NUL character")
    try:
        mode = os.stat(path).st_mode
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", path) from None
    if not stat.S_ISREG(mode):
        raise InputError("is not a regular file", path)
    return path


def content_of(path: str, limit: int, too_large: str = "") -> bytes:
    """The content of a regular file; :class:`InputError` if it cannot be read or has more than ``limit`` bytes."""
    try:
        with open(regular_path(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size  # so that the buffer has the size of the file, not of the limit
            content = file.read((min(size, limit) or limit) + 1)
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", path) from None
    if len(content) > limit:
        raise InputError(too_large or f"is larger than {limit // 1024 // 1024} MiB", path)
    return content


_OF_THE_SHELL = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")
"""Paths of the pipes that ``<(command)`` creates."""


def readable_path(path: str) -> str:
    """Like :func:`regular_path`, but also accepts pipes created by a shell; a named pipe in a folder might block forever."""
    return path if path.startswith(_OF_THE_SHELL) and os.path.exists(path) else regular_path(path)


MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
"""Byte order marks with their encodings, longest first."""


def decode_utf8(path: str, content: bytes) -> str:
    """Decode the UTF-8 content of a file; :class:`InputError` with the line of the first invalid byte."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise InputError(f"is not UTF-8 text (byte {problem.start})", path, line) from None


# --- Tables shipped with this package. A damaged or missing table must fail, never look like "no findings".


_SEAL = b"compat-table-4\n"
_SEALED = len(_SEAL) + 8 + 4


def sealed(content: bytes, name: str) -> bytes:
    """Prefix the content of a table with the format identifier, its length and a checksum of it and its file's name.

    Protects against corruption, not tampering; a checksum, because a digest takes five times as long.
    """
    return _seal_of(content, name) + content


def read_table(path: str) -> bytes:
    """The content of a table shipped with this package; :class:`InputError` if it is missing or damaged."""
    try:
        with open(path, "rb", buffering=0) as file:
            seal, content = file.read(_SEALED), file.readall()
    except OSError:
        raise InputError("is missing: reinstall compat-doctor", path) from None
    if seal != _seal_of(content, os.path.basename(path)):
        raise InputError("is damaged: reinstall compat-doctor", path)
    return content


def _seal_of(content: bytes, name: str) -> bytes:
    check = zlib.crc32(content, zlib.crc32(name.encode()))
    return b"".join((_SEAL, len(content).to_bytes(8, "big"), check.to_bytes(4, "big")))


# --- Files in the user's cache: written atomically; an unusable cache is ignored.
#
# Caches are shared: between users via COMPAT_CACHE_DIR, and by CI between builds of a branch and of untrusted pull requests.
# Files not written by this user are never interpreted: each file carries a digest keyed with a key stored outside the cache.


_DIGEST = 16
_LARGEST = 64 * 1024 * 1024


def place_in_cache(*parts: str) -> str | None:
    """A path below ``COMPAT_CACHE_DIR``, else below compat's folder in the user's cache; ``None`` if neither is available."""
    given = os.environ.get("COMPAT_CACHE_DIR")
    if given:
        return os.path.join(given, *parts)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "compat", *parts) if os.path.isabs(base) else None


def read_cache(place: str | None) -> bytes | None:
    """The content this user stored in a cache file; ``None`` if it is missing, damaged or written by another user."""
    key = user_key() if place is not None else None
    if place is None or key is None:
        return None
    try:
        descriptor = os.open(place, os.O_RDONLY | _NOT_WAITING | _NO_LINK)
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            whole = file.read() if stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST else b""
    except OSError:
        return None
    digest, content = whole[:_DIGEST], whole[_DIGEST:]
    return content if len(digest) == _DIGEST and digest == _digest_of(_name_of(place) + content, key) else None


def write_cache(place: str | None, content: bytes) -> None:
    """Write a cache file into a folder that only this user can write to; failures are ignored."""
    key = user_key() if place is not None else None
    if place is None or key is None:
        return
    beside = f"{place}.{os.getpid()}"
    try:
        _private_folder(os.path.dirname(place))
        if os.path.lexists(beside):
            os.unlink(beside)  # left behind by a killed process with the same PID
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(_digest_of(_name_of(place) + content, key) + content)
        os.replace(beside, place)
    except OSError:
        return


def _digest_of(content: bytes, key: bytes) -> bytes:
    try:
        from _blake2 import blake2b  # the same as hashlib's, without loading OpenSSL (2 ms)
    except ImportError:
        from hashlib import blake2b
    return blake2b(content, digest_size=_DIGEST, key=key).digest()


_NOT_WAITING, _NO_LINK = getattr(os, "O_NONBLOCK", 0), getattr(os, "O_NOFOLLOW", 0)


def _name_of(place: str) -> bytes:
    """The name that a digest binds content to: the same bytes in another file are rejected."""
    folder, name = os.path.split(place)
    return os.fsencode(f"{os.path.basename(folder)}/{name}\0")


def _private_folder(folder: str) -> None:
    """Create a folder and its parents; ``OSError`` if other users may write to it."""
    before = os.umask(0o077) if not os.path.isdir(folder) else None
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    finally:
        if before is not None:
            os.umask(before)
    found = os.stat(folder)
    if os.name == "posix" and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
        raise PermissionError(f"other users may write to {folder}")


_keys: dict[str, bytes | None] = {}
"""The keys that were read, by their place: a test, or a program that changes its home, has several."""


def user_key() -> bytes | None:
    """This user's key, created on first use; ``None`` if it cannot be read or created, which disables the cache."""
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    folder = os.path.join(base, "compat")
    if folder not in _keys:
        _keys[folder] = _read_key(folder)
    return _keys[folder]


def _read_key(folder: str) -> bytes | None:
    place = os.path.join(folder, "cache-key")
    if not os.path.isabs(place):
        return None
    for _ in range(2):
        try:
            with open(os.open(place, os.O_RDONLY | _NOT_WAITING | _NO_LINK), "rb") as file:
                found = os.fstat(file.fileno())
                key = file.read(_KEY + 1)
        except FileNotFoundError:
            _make_key(folder, place)
            continue
        except OSError:
            return None
        trusted = os.name != "posix" or (found.st_uid == os.geteuid() and not found.st_mode & 0o077)
        return key if trusted and len(key) == _KEY else None
    return None


_KEY = 32


def _make_key(folder: str, place: str) -> None:
    """Create a key file atomically; if two processes create one concurrently, both use the first."""
    beside = f"{place}.{os.getpid()}"
    try:
        _private_folder(folder)
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(os.urandom(_KEY))
        try:
            os.link(beside, place)
        finally:
            os.unlink(beside)
    except OSError:
        return


def stamp_of(*paths: str) -> str | None:
    """A stamp that changes with this version, the files, and the modules in the folders; ``None`` if one cannot be read."""
    try:
        files = [each for path in paths for each in (_modules_in(path) if os.path.isdir(path) else (path,))]
        seen = [(found.st_size, found.st_mtime_ns) for found in map(os.stat, files)]
    except OSError:
        return None
    return f"{zlib.crc32(repr((__version__, seen)).encode()):08x}"


def _modules_in(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".py")]
