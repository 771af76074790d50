"""A file that is replaced in one step: whoever looks sees the old text or the new one."""

from __future__ import annotations

import os

from compat.errors import InputError


def difference(before: str, after: str, path: str) -> str:
    """The change as a unified diff."""
    import difflib

    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="")
    return "\n".join(lines)


def replace_file(path: str, text: str) -> None:
    """Writes a text file by way of a temporary one beside it; links are followed, the file's mode is kept.

    :class:`InputError` where that cannot be done; the file is then as it was.
    """
    path = os.path.realpath(path)
    temporary = f"{path}.{os.getpid()}.new"
    try:
        mode = os.stat(path).st_mode & 0o7777 if os.path.exists(path) else None
        with open(temporary, "x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, path)
    except OSError as problem:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise InputError(f"cannot be written: {problem.strerror or problem}", path) from None
