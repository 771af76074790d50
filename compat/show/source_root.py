"""Paths as services that show findings beside the source want them: relative to the root of the source tree."""

from __future__ import annotations

import os

from compat.errors import InputError


def source_root() -> str:
    """The repository that the current directory belongs to; the current directory where it belongs to none.

    :class:`InputError` where the current directory is gone.
    """
    try:
        here = folder = os.getcwd()
    except OSError as problem:
        raise InputError(f"the current directory cannot be read: {problem.strerror}") from None
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return here
        folder = parent
    return folder


def named_file(name: str | None) -> str | None:
    """The file that a name stands for; ``None`` for standard input and for what is installed."""
    return None if name in ("", "-", "standard input") else name


def in_source(path: str, root: str) -> str | None:
    """A path relative to the root, with ``/`` between its parts; ``None`` where it lies outside."""
    try:
        relative = os.path.relpath(os.path.abspath(path), root)
    except ValueError:  # another drive
        return None
    if relative == os.pardir or relative.startswith(os.pardir + os.sep):
        return None
    return relative.replace(os.sep, "/")
