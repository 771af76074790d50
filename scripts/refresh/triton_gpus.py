"""``triton_gpus.csv``: the architectures that the assemblers in a wheel of triton know, and the CUDA releases they are of.

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

COLUMNS = ("triton", "sm", "cuda", "blackwell", "known", "source", "date")
_ASSEMBLER = re.compile(r"triton/.+/bin/ptxas(-\w+)?")
_NAME = re.compile(rb"compute_(\d{2,3}[af]?)\x00")
_RELEASE = re.compile(rb"Cuda compilation tools, release (\d{1,2}\.\d{1,2}),")
_LONGEST = 48
_BLACKWELL = "ptxas-blackwell"
"""The assembler for capability 10.0 and newer, in wheels that have two."""


def update(folder: Path, request: Request) -> Update:
    return builds.update(TABLE, folder, request)


def read(release: Release, opened: Open, date: str) -> Reading:
    """What any assembler in the first wheel for Linux knows: triton chooses between them by the GPU."""
    file = next((each for each in release.wheels if "linux" in each.filename), None)
    if file is None:
        return Reading()
    with opened(file) as wheel:
        assemblers = [name for name in wheel.members() if _ASSEMBLER.fullmatch(name)]
        if not any(name.endswith("/ptxas") for name in assemblers):
            raise UnreadableError(f"{wheel.name}: holds no ptxas")
        wheel.require(assemblers)
        read = {name.rpartition("/")[2]: _read(wheel, name) for name in assemblers}
    known = set().union(*(codes for codes, _ in read.values()))
    cuda = {name: release for name, (_, release) in read.items()}
    row = {
        "triton": release.version, "sm": in_order(known), "cuda": cuda["ptxas"], "blackwell": cuda.get(_BLACKWELL, ""),
        "known": "read", "source": f"{file.filename}: names of architectures in {', '.join(read)}", "date": date,
    }  # fmt: skip
    return Reading((row,))


def _read(wheel: Wheel, name: str) -> tuple[set[str], str]:
    """The architectures that an assembler knows, and the CUDA release it is of."""
    found: set[str] = set()
    release = ""
    before = b""
    for piece in wheel.pieces(name):
        there = before + piece
        found.update(code.decode() for code in _NAME.findall(there))
        if not release and (match := _RELEASE.search(there)):
            release = match[1].decode()
        before = there[-_LONGEST:]
    if len(found) < 2 or not release:
        what = "names of architectures" if len(found) < 2 else "release of CUDA"
        raise UnreadableError(f"{wheel.name}: no {what} in {name}")
    return found, release


TABLE = builds.Table("triton_gpus.csv", COLUMNS, ("triton",), "triton", lambda row: Version(row["triton"]), {"triton": read})
