"""Changes to files: shown first, then written whole or not at all.

:func:`edits_for` turns a plan's changes into edits of one file and of what it includes, :func:`commands_for` says what to run
then. ``compat.write.edits`` shows edits and applies them.
"""

from __future__ import annotations

__all__ = ["commands_for", "edits_for"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat.write.changes import Change
    from compat.write.commands import Commands
    from compat.write.edits import Edit


def edits_for(path: str, changes: Sequence[Change]) -> tuple[Edit, ...]:
    """The edits that bring ``changes`` into a file, by path; none where nothing changes.

    A lock file is not edited but the file it is made from. :class:`InputError`, with file and line, for what cannot be
    written safely; there are no edits at all then. Nothing is written.
    """
    from compat.write.kinds import edits_of_file

    return edits_of_file(path, changes)


def commands_for(
    path: str | None, changes: Sequence[Change], *, installer: str = "uv", python: str | None = None,
    architectures: Sequence[str] = (),
) -> Commands:  # fmt: skip
    """The commands that lock, install and take back ``changes``: see :class:`compat.write.commands.Commands`.

    ``path`` is the file that was edited, ``None`` for an environment. ``installer`` is ``uv`` or ``pip``, ``python`` the
    interpreter of the environment, ``architectures`` are the compute capabilities that source installs are built for.
    """
    from compat.write.commands import commands

    return commands(path, changes, installer=installer, python=python, architectures=architectures)
