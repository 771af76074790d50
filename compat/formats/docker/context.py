"""The build context of a Dockerfile: which of its files an instruction in the image means, opened only inside of it.

Which folder is the context is said when the image is built, not in the Dockerfile. Of the folders from the Dockerfile's
own up to its project's, the one that has most of what is copied is tried first.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence

from compat.formats.include import Includes, NotRead
from compat.records import record

_MOST = 50
"""Copied paths that are looked for to tell the context."""
_MOST_COPIES = 300


@record(frozen=True)
class Copied:
    """A ``COPY`` from the build context (or a bind mount of it): sources and the absolute target in the image."""

    sources: tuple[str, ...]
    target: str

    def source_of(self, path: str) -> list[str]:
        """The paths in the context that a path in the image may have been copied from."""
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
    """``/app/x`` in ``/app`` is ``x``; ``None`` where it is not below."""
    if path == folder:
        return ""
    start = folder.rstrip("/") + "/"
    return path[len(start) :] if path.startswith(start) else None


def _fits(name: str, pattern: str) -> bool:
    before, _, after = pattern.partition("*")
    return "*" not in after and name.startswith(before) and name.endswith(after) and len(name) >= len(pattern) - 1


class BuildContext:
    """The folders that may be the context, and the guard that every file is opened through."""

    def __init__(self, path: str) -> None:
        self._includes = Includes(path)
        self._folders = _folders(path, self._includes.root)
        self._wanted: list[str] = []
        self._ranked = False
        self._opened: dict[str, tuple[str, bytes]] = {}

    def wants(self, sources: Sequence[str]) -> None:
        """Remember what is copied from the context: it tells which folder that is."""
        self._wanted += [source.lstrip("/") for source in sources if "*" not in source and "$" not in source]

    def folders(self) -> list[str]:
        """The folders that may be the context, the likeliest first."""
        if not self._ranked:
            self._ranked = True
            wanted = [source for source in dict.fromkeys(self._wanted) if source.strip("./")][:_MOST]
            there = {f: sum(os.path.exists(os.path.join(f, source)) for source in wanted) for f in self._folders}
            self._folders.sort(key=lambda folder: -there[folder])
        return self._folders

    def sources(self, path: str, copies: Sequence[Copied]) -> list[str]:
        """The paths in the context that a path in the image comes from, by the last copy that brings it."""
        for copy in reversed(copies[-_MOST_COPIES:]):
            found = [posixpath.normpath(each.lstrip("/") or ".") for each in copy.source_of(path)]
            if found:
                return [each for each in found if not each.startswith("..")]
        return []

    def open(self, path: str, copies: Sequence[Copied]) -> tuple[str, bytes]:
        """Path on this machine and content of a file of the image; :class:`NotRead` says why it cannot be had."""
        if "$" in path:
            raise NotRead("its name is only known at run time")
        sources = self.sources(path, copies)
        if not sources:
            raise NotRead("no COPY of the build context brings it into the image")
        for folder in self.folders():
            for source in sources:
                place = os.path.join(folder, source)
                if place not in self._opened and os.path.isfile(place):
                    opened = self._includes.open(os.path.join(folder, "Dockerfile"), source, place, 1)
                    if opened is not None:
                        self._opened[place] = opened
                if place in self._opened:
                    return self._opened[place]
        raise NotRead("there is no such file in the build context")

    def find(self, path: str, copies: Sequence[Copied]) -> str | None:
        """Where a file of the image is on this machine, inside the project; ``None`` where it is not."""
        root = self._includes.root
        if root is None or "\0" in path:
            return None
        for folder in self.folders():
            for source in self.sources(path, copies):
                found = os.path.normpath(os.path.join(folder, source))
                if os.path.isfile(found) and _inside(found, root):
                    return found
        return None


def _inside(path: str, root: str) -> bool:
    real = os.path.realpath(path)
    return real.startswith(root.rstrip(os.sep) + os.sep)


def _folders(path: str, root: str | None) -> list[str]:
    """The Dockerfile's folder and those above it up to the project's, as the user would write them."""
    own = os.path.dirname(path)
    found = [own]
    if root is None:
        return found
    real = os.path.realpath(own or ".")
    while real != root and real.startswith(root):
        real = os.path.dirname(real)
        above = os.path.join(found[-1], "..") if found[-1] else ".."
        found.append(above)
    return [os.path.normpath(each) if each else "" for each in found]
