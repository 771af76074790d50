"""Files that can be read to their end: no pipes and no devices, which a reader would wait for."""

from __future__ import annotations

import os

from compat.errors import InputError


def regular(path: str) -> str:
    """The path itself; :class:`InputError` where it is a folder, a pipe or a device."""
    if "\0" in path:
        raise InputError("the name of a file cannot hold a NUL character")
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError("is not a regular file", path)
    return path
