"""Which file the commands of a script or notebook mean: looked for in its folder and those above, up to its project's.

Where a script is started from is not written in it. Nothing outside of its project is looked at.
"""

from __future__ import annotations

import os

from compat.read.files.include import Includes, NotRead

TYPE_CHECKING = False

_DEEPEST = 40


class Missing(NotRead):
    """A file that is not in the project: a clone, a download or another machine has it."""


class WorkingFolders:
    """The folders that a script may be started in: its own first, then those above it up to its project's root."""

    def __init__(self, path: str) -> None:
        self._includes = Includes(path)
        self.root = self._includes.root
        """The real folder that everything has to lie in; ``None`` where nothing may be opened."""
        own = os.path.dirname(path)
        self.folders = [own]
        real = os.path.realpath(own or ".")
        while self.root is not None and real != self.root and len(self.folders) < _DEEPEST and self.is_inside(real):
            real = os.path.dirname(real)
            self.folders.append(os.path.normpath(os.path.join(self.folders[-1], "..")))

    def is_inside(self, path: str) -> bool:
        """Whether a path, all links followed, lies in the project."""
        if self.root is None:
            return False
        try:
            return os.path.commonpath((os.path.realpath(path), self.root)) == self.root
        except (OSError, ValueError):
            return False

    def find(self, name: str, directory: str | None = None) -> str | None:
        """Where a file or folder is, as the user would write it; ``None`` where it is not in the project.

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
        """Path and content of a file; :class:`Missing` where the project has none, :class:`NotRead` where it is refused."""
        if "://" in name:
            raise NotRead("it is an address")
        if not name or "$" in name or "\0" in name or "{" in name:
            raise Missing("its name is only known at run time")
        for folder in self.folders:
            place = os.path.normpath(os.path.join(folder, directory or "", name))
            if self.is_inside(os.path.dirname(place)) and os.path.lexists(place):
                found = self._includes.open(os.path.join(folder, "script"), os.path.join(directory or "", name), purpose, 1)
                if found is None:
                    raise NotRead("it was read before")
                return found
        raise Missing("there is no such file in the project")
