"""What installed distributions declare, from their METADATA: what an index would have to be asked for otherwise."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from email.parser import HeaderParser

from compat.environment import normalized
from compat.repair.candidates import Release
from compat.repair.relaxation import Needs
from compat.repair.target import Target

_LARGEST = 4 << 20


def needs_of_installed(folders: Iterable[str], current: Mapping[str, Release], target: Target) -> dict[Release, Needs]:
    """The needs of installed releases by their metadata; one that cannot be read is left to the index."""
    found: dict[Release, Needs] = {}
    for folder in folders:
        try:
            names = [name for name in os.listdir(folder) if name.endswith(".dist-info")]
        except OSError:
            continue
        for name in names:
            release = current.get(normalized(name.partition("-")[0]))
            if release is None or release in found:
                continue
            text = _read(os.path.join(folder, name, "METADATA"))
            if text is not None:
                header = HeaderParser().parsestr(text)
                found[release] = target.needs_by_extra(header.get_all("Requires-Dist") or ())
    return found


def _read(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            return file.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return None
