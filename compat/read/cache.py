"""Files in the user's cache: kept whole or not at all, and a cache that cannot be used is none."""

from __future__ import annotations

import os
import zlib

from compat import __version__


def place_in_cache(*parts: str) -> str | None:
    """A path below ``COMPAT_CACHE_DIR``, else below compat's folder in the user's cache; ``None`` where there is neither."""
    given = os.environ.get("COMPAT_CACHE_DIR")
    if given:
        return os.path.join(given, *parts)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "compat", *parts) if os.path.isabs(base) else None


def kept(place: str | None) -> bytes | None:
    """What a file holds; ``None`` where it is not there."""
    if place is None:
        return None
    try:
        with open(place, "rb") as file:
            return file.read()
    except OSError:
        return None


def keep(place: str | None, content: bytes) -> None:
    """Writes a file; what cannot be kept is found out again."""
    if place is None:
        return
    beside = f"{place}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(beside, "wb") as file:
            file.write(content)
        os.replace(beside, place)
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
