"""``triton_gpus.csv``: the architectures that the assemblers in a wheel of triton know.

An assembler writes its ``--help`` from a table of names, ``compute_90a`` and so on, which are in it as they are: nothing
has to be run. (Its ``sm_`` names are no such table: they name old GPUs too that it only still recognises.)
"""

from __future__ import annotations

import re
from pathlib import Path

from packaging.version import Version

from scripts.refresh import builds
from scripts.refresh.architectures import in_order
from scripts.refresh.builds import Open, Reading
from scripts.refresh.index import Release
from scripts.refresh.updates import Request, Update
from scripts.refresh.wheel import UnreadableError, Wheel

COLUMNS = ("triton", "sm", "known", "source", "date")
_ASSEMBLER = re.compile(r"triton/.+/bin/ptxas(-\w+)?")
_NAME = re.compile(rb"compute_(\d{2,3}[af]?)\x00")
_LONGEST = 16


def update(folder: Path, request: Request) -> Update:
    return builds.update(TABLE, folder, request)


def read(release: Release, opened: Open, date: str) -> Reading:
    """What any assembler in the first wheel for Linux knows: triton chooses between them by the GPU."""
    file = next((each for each in release.wheels if "linux" in each.filename), None)
    if file is None:
        return Reading()
    with opened(file) as wheel:
        assemblers = [name for name in wheel.members() if _ASSEMBLER.fullmatch(name)]
        if not assemblers:
            raise UnreadableError(f"{wheel.name}: holds no ptxas")
        wheel.require(assemblers)
        known = set().union(*(_known(wheel, name) for name in assemblers))
    names = ", ".join(name.rpartition("/")[2] for name in assemblers)
    source = f"{file.filename}: names of architectures in {names}"
    return Reading(({"triton": release.version, "sm": in_order(known), "known": "read", "source": source, "date": date},))


def _known(wheel: Wheel, name: str) -> set[str]:
    found: set[str] = set()
    before = b""
    for piece in wheel.pieces(name):
        there = before + piece
        found.update(code.decode() for code in _NAME.findall(there))
        before = there[-_LONGEST:]
    if len(found) < 2:
        raise UnreadableError(f"{wheel.name}: no names of architectures in {name}")
    return found


TABLE = builds.Table("triton_gpus.csv", COLUMNS, ("triton",), "triton", lambda row: Version(row["triton"]), {"triton": read})
