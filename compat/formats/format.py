"""A file format is one class: how a file is read, how it is edited, and which tool locks and installs it.

``compat.formats.registry`` lists the classes, and says by which names and contents their files are recognised.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from compat.errors import InputError
from compat.files import decoded
from compat.formats.listing import Listing, within_limits
from compat.records import record

if TYPE_CHECKING:
    from compat.formats.edit.changes import Change
    from compat.formats.edit.commands import Installer
    from compat.formats.edit.files import Edit


@record(frozen=True)
class Commands:
    """Lines for a shell, in order. ``lock`` brings the lock file up to the edited file and moves nothing else, ``install``
    changes the environment, ``rollback`` brings back the releases that were there before."""

    lock: tuple[str, ...] = ()
    install: tuple[str, ...] = ()
    rollback: tuple[str, ...] = ()


class Format:
    """One kind of file. The subclass says what differs; an instance has no state."""

    kind: ClassVar[str] = ""
    """As in :attr:`Listing.kind`; for a file that always has the same name, that name."""
    sources: ClassVar[tuple[str, ...]] = ()
    """For a lock file: what it is made from, one of these beside it. Such a file is edited in the place of the lock."""
    add: ClassVar[str | None] = None
    """The command that changes one requirement of the project and locks it; ``None``: findings name pip."""
    lists_packages: ClassVar[bool] = True
    """Whether it is a lock or requirements, and not a program or a set of stages that install some."""
    says_build: ClassVar[bool] = False
    """Whether it can say that a release is built from source although it has wheels."""
    by_hand: ClassVar[str | None] = None
    """What to do instead, where the file is not edited."""

    def decode(self, path: str, content: bytes) -> str:
        """The text of a file; :class:`InputError` where it is in another encoding."""
        return decoded(path, content)

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        """What the file lists: one listing, or one for each stage or service of it.

        :class:`InputError` names file, line and what was expected. Nothing is executed, and no file is opened but those that
        this one includes from its own project.
        """
        raise NotImplementedError

    def listings(self, path: str, content: bytes) -> tuple[Listing, ...]:
        """What the bytes of a file list; :class:`InputError` also where that is too much."""
        return tuple(map(within_limits, self.read(path, self.decode(path, content))))

    def source_of(self, path: str) -> str:
        """The file that a lock file is made from; :class:`InputError` where none lies beside it."""
        for name in self.sources:
            found = os.path.join(os.path.dirname(path), name)
            if os.path.isfile(found):
                return found
        raise InputError(f"is a lock file, which is never edited: expected {' or '.join(self.sources)} next to it", path)

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        """The edits that write ``changes`` into the file and those it includes (``depth`` counts them).

        :class:`InputError` for what cannot be written safely. The caller has made sure that there is a change.
        """
        raise InputError(f"cannot be edited{f': {self.by_hand}' if self.by_hand else ''}", path)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        """What to run when the file is edited; ``install`` is empty where ``pip`` has to do it package by package."""
        return Commands()


class ProjectLock(Format):
    """The lock file of a project, written by one tool."""

    sync: ClassVar[str] = ""
    """The command that installs what is locked."""

    def lock(self, changes: Sequence[Change], pip: Installer) -> str:
        """The command that locks the edited project, in its folder; only what changes moves."""
        raise NotImplementedError

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        folder = os.path.dirname(path)
        here = f"cd {pip.quoted(folder)} && " if folder else ""
        return Commands((here + self.lock(changes, pip),), (here + self.sync,))
