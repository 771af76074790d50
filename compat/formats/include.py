"""Files that a given file includes: opened only inside the project that the given file belongs to."""

from __future__ import annotations

import os
import stat

DEPTH = 20
COUNT = 200
LIMIT = 2 * 1024 * 1024
"""Bytes of one included file."""
TOTAL = 8 * 1024 * 1024


class NotRead(Exception):
    """An include that is not opened; the text says why ("it lies outside of …")."""


class Includes:
    """What may be included by one given file, and what has been."""

    def __init__(self, path: str) -> None:
        self.root = root_of(path)
        """The real folder that everything has to lie in."""
        self._seen: set[tuple[str, str]] = set()
        self._tried = 0
        self._left = TOTAL

    def open(self, including: str, target: str, purpose: str, depth: int) -> tuple[str, bytes] | None:
        """Path (as the user would write it) and content of ``target``; ``None`` if it was read before for this purpose.

        Raises :class:`NotRead` for what is no regular file inside the project, and where there are too many.
        """
        if "://" in target or target.lower().startswith("file:"):
            raise NotRead("it is an address")
        if "$" in target or "\0" in target:
            raise NotRead("its name is not known")
        self._tried += 1
        if depth > DEPTH or self._tried > COUNT:
            raise NotRead(f"more than {DEPTH} files deep" if depth > DEPTH else f"more than {COUNT} files are included")
        path = os.path.normpath(os.path.join(os.path.dirname(including), target))
        try:
            # the folder's links are followed before "..", as opening the file would
            real = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(including)), target))
        except (OSError, ValueError):
            raise NotRead("there is no such file") from None
        if self.root is None:
            raise NotRead("the file that includes it is not in a project directory")
        if not _inside(real, self.root):
            raise NotRead(f"it is outside {self.root}")
        if (real, purpose) in self._seen:
            return None
        self._seen.add((real, purpose))
        content = _content(real, min(LIMIT, self._left))
        self._left -= len(content)
        return path, content


def _inside(path: str, folder: str) -> bool:
    try:
        return os.path.commonpath((path, folder)) == folder
    except ValueError:  # on another drive
        return False


def _content(real: str, limit: int) -> bytes:
    """A regular file's bytes; the file is opened first and looked at then, so that it cannot be changed in between."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    flags |= getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(real, flags)
    except FileNotFoundError:
        raise NotRead("there is no such file") from None
    except (OSError, ValueError) as problem:
        raise NotRead(f"it cannot be opened ({getattr(problem, 'strerror', None) or problem})") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRead("it is not a regular file")
        content = b""
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(limit + 1)
    except OSError as problem:
        raise NotRead(f"it cannot be read ({problem.strerror or problem})") from None
    finally:
        os.close(descriptor)
    if len(content) > limit:
        raise NotRead(f"it is larger than {limit} bytes")
    return content


def root_of(path: str) -> str | None:
    """The real folder that includes of ``path`` must lie in: its project's, else its own; ``None`` where that is too wide.

    A project is the nearest folder upwards that holds ``.git`` or ``pyproject.toml``. The root of a file system and a
    home directory are never taken for one.
    """
    try:
        own = os.path.realpath(os.path.dirname(os.path.abspath(path)))
    except (OSError, ValueError):
        return None
    folder = own
    while not any(os.path.exists(os.path.join(folder, sign)) for sign in (".git", "pyproject.toml")):
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    for each in (folder, own):
        if not _too_wide(each):
            return each
    return None


def _too_wide(folder: str) -> bool:
    above = os.path.dirname(folder)
    home = os.path.realpath(os.path.expanduser("~"))
    return (
        above == folder or folder in (home, os.path.dirname(home), "/root", "/home", "/Users") or above in ("/home", "/Users")
    )
