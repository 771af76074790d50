"""Files included by a given file: opened only inside the project that the given file belongs to."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Sequence

from compat.files import pending
from compat.records import record

DEPTH = 20
COUNT = 200
LIMIT = 2 * 1024 * 1024
"""Bytes of one included file."""
TOTAL = 8 * 1024 * 1024


class NotRead(Exception):
    """An include that is not opened; the message says why ("it is outside …")."""


class Includes:
    """The includes of one given file, and those already opened."""

    def __init__(self, path: str) -> None:
        self.root = root_of(path)
        """The real folder that contains every file that may be opened."""
        self._seen: set[tuple[str, str]] = set()
        self._tried = 0
        self._left = TOTAL

    def open(self, including: str, target: str, purpose: str, depth: int) -> tuple[str, bytes] | None:
        """Return path (as the user would write it) and content of ``target``; ``None`` if it was already read for this purpose.

        Raises :class:`NotRead` for anything but a regular file inside the project, and if there are too many.
        """
        if "://" in target or target.lower().startswith("file:"):
            raise NotRead("it is a URL")
        if "$" in target or "\0" in target:
            raise NotRead("its name is unknown")
        self._tried += 1
        if depth > DEPTH or self._tried > COUNT:
            raise NotRead(f"more than {DEPTH} files deep" if depth > DEPTH else f"more than {COUNT} files are included")
        path = os.path.normpath(os.path.join(os.path.dirname(including), target))
        try:
            # follow the folder's links before "..", as opening the file would
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
        content = pending.get(path) or _content(real, min(LIMIT, self._left))
        self._left -= len(content)
        return path, content


def _inside(path: str, folder: str) -> bool:
    try:
        return os.path.commonpath((path, folder)) == folder
    except ValueError:  # on another drive
        return False


def _content(real: str, limit: int) -> bytes:
    """Return the bytes of a regular file; the type is checked after opening, so that the file cannot be swapped in between."""
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
    """Return the real folder that includes of ``path`` must be in: its project, else its own; ``None`` if that is too broad.

    A project is the nearest parent folder with ``.git`` or ``pyproject.toml``. A file system root and a home directory
    are never taken for one.
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
    return next((each for each in (folder, own) if not _too_broad(each)), None)


def _too_broad(folder: str) -> bool:
    above = os.path.dirname(folder)
    home = os.path.realpath(os.path.expanduser("~"))
    return (
        above == folder or folder in (home, os.path.dirname(home), "/root", "/home", "/Users") or above in ("/home", "/Users")
    )


# --- The build context of a Dockerfile: maps paths in the image to its files, and opens files only inside of it.


_MOST = 50
"""Most copied paths that are checked to find the context."""
_MOST_COPIES = 300


@record(frozen=True)
class Copied:
    """A ``COPY`` from the build context (or a bind mount of it): sources and the absolute target in the image."""

    sources: tuple[str, ...]
    target: str

    def source_of(self, path: str) -> list[str]:
        """Return the context paths that a path in the image may have been copied from."""
        found: list[str] = []
        below = _below(path, self.target)
        for source in self.sources:
            name = posixpath.basename(source.rstrip("/"))
            if below is not None and below and "*" not in source:
                found.append(posixpath.join(source, below))  # a folder's content is copied, not the folder
                if below == name:
                    found.append(source)
            elif below == "":
                found.append(source)
            elif below and "*" in name and "/" not in below and _fits(below, name):
                found.append(posixpath.join(posixpath.dirname(source), below))
        return found


def _below(path: str, folder: str) -> str | None:
    """Return the path of ``/app/x`` relative to ``/app``; ``None`` if it is not below."""
    if path == folder:
        return ""
    start = folder.rstrip("/") + "/"
    return path[len(start) :] if path.startswith(start) else None


def _fits(name: str, pattern: str) -> bool:
    before, _, after = pattern.partition("*")
    return "*" not in after and name.startswith(before) and name.endswith(after) and len(name) >= len(pattern) - 1


class BuildContext:
    """The candidate context folders, and the guard that every file is opened through."""

    def __init__(self, path: str) -> None:
        self._includes = Includes(path)
        self._folders = [each and os.path.normpath(each) for each in _folders(path, self._includes.root)]
        self._sources: list[str] = []
        self._ranked = False
        self._opened: dict[str, tuple[str, bytes]] = {}

    def add_sources(self, sources: Sequence[str]) -> None:
        """Record what is copied from the context, which shows which folder it is."""
        self._sources += [source.lstrip("/") for source in sources if "*" not in source and "$" not in source]

    def folders(self) -> list[str]:
        """Return the candidate folders, most likely first."""
        if not self._ranked:
            self._ranked = True
            wanted = [source for source in dict.fromkeys(self._sources) if source.strip("./")][:_MOST]
            there = {f: sum(os.path.exists(os.path.join(f, source)) for source in wanted) for f in self._folders}
            self._folders.sort(key=lambda folder: -there[folder])
        return self._folders

    def sources(self, path: str, copies: Sequence[Copied]) -> list[str]:
        """Return the context paths of a path in the image, by the last copy that provides it."""
        for copy in reversed(copies[-_MOST_COPIES:]):
            found = [posixpath.normpath(each.lstrip("/") or ".") for each in copy.source_of(path)]
            if found:
                return [each for each in found if not each.startswith("..")]
        return []

    def open(self, path: str, copies: Sequence[Copied]) -> tuple[str, bytes]:
        """Return local path and content of a file in the image; raises :class:`NotRead` with the reason."""
        if "$" in path:
            raise NotRead("its name is only known at run time")
        sources = self.sources(path, copies)
        if not sources:
            raise Missing("no COPY of the build context brings it into the image")
        for folder in self.folders():
            for source in sources:
                place = os.path.join(folder, source)
                if place not in self._opened and os.path.lexists(place) and not os.path.isdir(place):
                    opened = self._includes.open(os.path.join(folder, "Dockerfile"), source, place, 1)
                    if opened is not None:
                        self._opened[place] = opened
                if place in self._opened:
                    return self._opened[place]
        raise Missing("it is not in the build context")

    def find(self, path: str, copies: Sequence[Copied]) -> str | None:
        """Return the local path of a file in the image, inside the project; ``None`` if there is none."""
        root = self._includes.root
        if root is None or "\0" in path:
            return None
        for folder in self.folders():
            for source in self.sources(path, copies):
                found = os.path.normpath(os.path.join(folder, source))
                if os.path.isfile(found) and _inside(os.path.realpath(found), root):
                    return found
        return None


_MOST_FOLDERS = 40


def _folders(path: str, root: str | None) -> list[str]:
    """Return a file's folder and its parents up to the project's, as the user would write them."""
    found = [os.path.dirname(path)]
    real = os.path.realpath(found[0] or ".")
    while root is not None and real != root and len(found) < _MOST_FOLDERS and _inside(real, root):
        real = os.path.dirname(real)
        found.append(os.path.normpath(os.path.join(found[-1], "..")))
    return found


# --- Resolving files named by a script or notebook, whose working directory is unknown.


class Missing(NotRead):
    """A file that is missing from the project: it comes from a clone, a download or another machine."""


class WorkingFolders:
    """The folders that a script may be started in: its own first, then its parents up to the project root."""

    def __init__(self, path: str) -> None:
        self._includes = Includes(path)
        self.root = self._includes.root
        """The real folder that contains every file that may be opened; ``None`` if none may be."""
        self.folders = _folders(path, self.root)

    def is_inside(self, path: str) -> bool:
        """Whether a path is inside the project, with all links followed."""
        if self.root is None:
            return False
        try:
            return _inside(os.path.realpath(path), self.root)
        except (OSError, ValueError):
            return False

    def find(self, name: str, directory: str | None = None) -> str | None:
        """Return the path of a file or folder, as the user would write it; ``None`` if it is not in the project.

        ``directory`` is the folder that the script has changed into.
        """
        if not name or "\0" in name or "$" in name:
            return None
        for folder in self.folders:
            place = os.path.normpath(os.path.join(folder, directory or "", name))
            if not self.is_inside(place):
                continue
            if os.path.isfile(place):
                return place
            if os.path.isdir(place) and self.is_inside(os.path.join(place, "__main__.py")):
                return place
        return None

    def open(self, name: str, directory: str | None, purpose: str) -> tuple[str, bytes]:
        """Return path and content of a file; :class:`Missing` if the project has none, :class:`NotRead` if it is refused."""
        if "://" in name:
            raise NotRead("it is a URL")
        if not name or "$" in name or "\0" in name or "{" in name:
            raise Missing("its name is only known at run time")
        for folder in self.folders:
            place = os.path.normpath(os.path.join(folder, directory or "", name))
            if self.is_inside(os.path.dirname(place)) and os.path.lexists(place):
                found = self._includes.open(os.path.join(folder, "script"), os.path.join(directory or "", name), purpose, 1)
                if found is None:
                    raise NotRead("it was read before")
                return found
        raise Missing("it is not in the project")
