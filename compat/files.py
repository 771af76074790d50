"""Files that can be read to their end: what the user names, the tables that this package ships, and the user's cache."""

from __future__ import annotations

import os
import stat
import zlib

from compat import __version__
from compat.errors import InputError

pending: dict[str, bytes] = {}
"""What is about to be written, by path: it is read in place of what is there, so that it can be judged before."""


def regular(path: str) -> str:
    """The path itself; :class:`InputError` where it is a folder, a pipe or a device, or nothing."""
    if "\0" in path:
        raise InputError("a file name cannot contain a NUL character")
    try:
        mode = os.stat(path).st_mode
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", path) from None
    if not stat.S_ISREG(mode):
        raise InputError("is not a regular file", path)
    return path


_OF_THE_SHELL = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")
"""Where the pipes of ``<(command)`` are."""


def readable(path: str) -> str:
    """As :func:`regular`, but also a pipe that a shell made; into one that lies in a folder perhaps nobody ever writes."""
    return path if path.startswith(_OF_THE_SHELL) and os.path.exists(path) else regular(path)


def decoded(path: str, content: bytes) -> str:
    """The UTF-8 text of a file; :class:`InputError` with the line where it is not."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise InputError(f"is not UTF-8 text (byte {problem.start})", path, line) from None


# --- The tables that this package ships. What is damaged must not look like knowledge, nor its absence like "no findings".


_SEAL = b"compat-table-2\n"
_SEALED = len(_SEAL) + 8 + 4


def sealed(content: bytes) -> bytes:
    """The content of a table as it is shipped: behind what identifies the form, its length and its checksum.

    Against damage, not against whoever can write the file; a checksum, as a digest takes five times as long.
    """
    return _seal_of(content) + content


def read_table(path: str) -> bytes:
    """The content of a table that this package ships; :class:`InputError` where it is missing or not what was shipped."""
    try:
        with open(path, "rb", buffering=0) as file:
            seal, content = file.read(_SEALED), file.readall()
    except OSError:
        raise InputError("is missing: reinstall compat-doctor", path) from None
    if seal != _seal_of(content):
        raise InputError("is damaged: reinstall compat-doctor", path)
    return content


def _seal_of(content: bytes) -> bytes:
    return b"".join((_SEAL, len(content).to_bytes(8, "big"), zlib.crc32(content).to_bytes(4, "big")))


# --- Files in the user's cache: kept whole or not at all, and a cache that cannot be used is none.
#
# Caches are shared: between users by COMPAT_CACHE_DIR, between the builds of a branch and of strangers' pull requests by CI.
# So nothing of a file is interpreted unless this user wrote it: each carries a digest with a key that is not in the cache.


_DIGEST = 16
_LARGEST = 64 * 1024 * 1024


def place_in_cache(*parts: str) -> str | None:
    """A path below ``COMPAT_CACHE_DIR``, else below compat's folder in the user's cache; ``None`` where there is neither."""
    given = os.environ.get("COMPAT_CACHE_DIR")
    if given:
        return os.path.join(given, *parts)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "compat", *parts) if os.path.isabs(base) else None


def kept(place: str | None) -> bytes | None:
    """What this user kept in a file; ``None`` where it is not there, was written by anybody else, or is damaged."""
    key = _key() if place is not None else None
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


def keep(place: str | None, content: bytes) -> None:
    """Writes a file into a folder of which this user alone can write; what cannot be kept is found out again."""
    key = _key() if place is not None else None
    if place is None or key is None:
        return
    beside = f"{place}.{os.getpid()}"
    try:
        _private_folder(os.path.dirname(place))
        if os.path.lexists(beside):
            os.unlink(beside)  # left by a process of this number that was killed
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(_digest_of(_name_of(place) + content, key) + content)
        os.replace(beside, place)
    except OSError:
        return


def _digest_of(content: bytes, key: bytes) -> bytes:
    try:
        from _blake2 import blake2b  # what hashlib gives, without loading OpenSSL (2 ms)
    except ImportError:
        from hashlib import blake2b
    return blake2b(content, digest_size=_DIGEST, key=key).digest()


_NOT_WAITING, _NO_LINK = getattr(os, "O_NONBLOCK", 0), getattr(os, "O_NOFOLLOW", 0)


def _name_of(place: str) -> bytes:
    """What a digest binds a content to: the same bytes in another file are nothing."""
    folder, name = os.path.split(place)
    return os.fsencode(f"{os.path.basename(folder)}/{name}\0")


def _private_folder(folder: str) -> None:
    """Makes a folder, and those above it; ``OSError`` where others may write into it."""
    before = os.umask(0o077) if not os.path.isdir(folder) else None
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    finally:
        if before is not None:
            os.umask(before)
    found = os.stat(folder)
    if os.name == "posix" and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
        raise PermissionError(f"other users may write to {folder}")


_keys: list[bytes | None] = []


def _key() -> bytes | None:
    """This user's key, made the first time; ``None`` where it can be neither read nor made: then nothing is kept."""
    if not _keys:
        _keys.append(_read_key())
    return _keys[0]


def _read_key() -> bytes | None:
    base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    folder = os.path.join(base, "compat")
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
    """A new key, whole or not at all; of two processes that make one, both go on with the first."""
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
    """Changes with this version, with these files and with the modules in these folders; ``None`` where they are no files."""
    try:
        files = [each for path in paths for each in (_modules_in(path) if os.path.isdir(path) else (path,))]
        seen = [(found.st_size, found.st_mtime_ns) for found in map(os.stat, files)]
    except OSError:
        return None
    return f"{zlib.crc32(repr((__version__, seen)).encode()):08x}"


def _modules_in(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".py")]
