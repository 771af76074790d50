"""Files that can be read to their end: no pipes and no devices, which a reader would wait for."""

from __future__ import annotations

import os
import stat

from compat.errors import InputError


def regular(path: str) -> str:
    """The path itself; :class:`InputError` where it is a folder, a pipe or a device, or nothing."""
    if "\0" in path:
        raise InputError("the name of a file cannot hold a NUL character")
    try:
        mode = os.stat(path).st_mode
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", path) from None
    if not stat.S_ISREG(mode):
        raise InputError("is not a regular file", path)
    return path
