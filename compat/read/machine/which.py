"""Finding an interpreter by name, and the one behind a pyenv shim, without starting either."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def find_command(name: str, variables: Mapping[str, str], apart_from: str = "") -> str | None:
    """The first executable file called ``name`` on ``PATH``, outside the folder ``apart_from``."""
    for folder in variables.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, name)
        if apart_from and os.path.realpath(folder).startswith(os.path.realpath(apart_from)):
            continue
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def find_python(variables: Mapping[str, str], apart_from: str = "") -> str | None:
    """The interpreter ``python3`` or ``python`` would start, outside the folder ``apart_from``."""
    for name in ("python3", "python"):
        found = find_command(name, variables, apart_from)
        if found:
            return behind_shim(found, variables) or found
    return None


def behind_shim(path: str, variables: Mapping[str, str]) -> str | None:
    """The interpreter a pyenv shim stands for, as ``PYENV_VERSION`` or pyenv's ``version`` file say."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.basename(folder) != "shims":
        return None
    root = os.path.dirname(folder)
    chosen = variables.get("PYENV_VERSION", "").split(":")
    if not chosen[0]:
        try:
            with open(os.path.join(root, "version"), encoding="utf-8", errors="replace") as file:
                chosen = file.read(4096).split()
        except OSError:
            return None
    for version in chosen:
        candidate = os.path.join(root, "versions", version, "bin", os.path.basename(path))
        if version and os.path.isfile(candidate):
            return candidate
    return None
