"""bitsandbytes: one library per CUDA release. File names give the CUDA releases, fatbins the architectures."""

from __future__ import annotations

import re

from pypi_simple import DistributionPackage

from scripts.refresh.architectures import in_order
from scripts.refresh.builds import Open, Reading
from scripts.refresh.fatbin import FatbinScan
from scripts.refresh.index import Release
from scripts.refresh.tables import Row
from scripts.refresh.wheel import Wheel

COLUMNS = ("package", "version", "machine", "cuda", "torch", "sm", "ptx", "known", "source", "date")
PACKAGE = "bitsandbytes"
MACHINES = ("x86_64", "aarch64")
_LIBRARY = re.compile(r"(?:.*/)?libbitsandbytes_cuda(\d{2,3})(\d)(?:_nocublaslt\w*)?\.so")
"""Older releases have a second library without cuBLASLt for GPUs before Turing."""


def read(release: Release, opened: Open, date: str) -> Reading:
    """Return a row per machine and CUDA release, newest libraries first; without code for those beyond the budget."""
    rows: list[Row] = []
    unread: list[str] = []
    for machine in MACHINES:
        file = linux(release, machine)
        if file is not None:
            _libraries(release, machine, file, opened, date, rows, unread)
    return Reading(tuple(rows), tuple(unread))


def _libraries(
    release: Release, machine: str, file: DistributionPackage, opened: Open, date: str, rows: list[Row], unread: list[str]
) -> None:
    with opened(file) as wheel:
        found: dict[tuple[int, int], list[str]] = {}
        for name in wheel.members():
            if match := _LIBRARY.fullmatch(name):
                found.setdefault((int(match[1]), int(match[2])), []).append(name)
        for (major, minor), members in sorted(found.items(), reverse=True):
            cuda = f"{major}.{minor}"
            if wheel.affordable(members):
                sm, ptx = _code(wheel, members)
                names = ", ".join(name.rpartition("/")[2] for name in members)
                rows.append(row(PACKAGE, release, machine, cuda, sm, ptx, f"{file.filename}: fatbin headers of {names}", date))
            else:
                unread.append(f"code for CUDA {cuda} is behind the budget")
                rows.append(row(PACKAGE, release, machine, cuda, "", "", f"{file.filename}: names of its libraries", date))


def _code(wheel: Wheel, members: list[str]) -> tuple[str, str]:
    """Return the combined code of all libraries for a CUDA release, since the one that is loaded depends on the GPU."""
    code: set[str] = set()
    ptx: set[str] = set()
    for name in members:
        scan = FatbinScan()
        for piece in wheel.pieces(name):
            scan.feed(piece)
        code |= scan.code()
        ptx |= scan.ptx()
    return in_order(code), in_order(ptx)


def linux(release: Release, machine: str = "x86_64") -> DistributionPackage | None:
    """Return the wheel for Linux on a machine, if any; older bitsandbytes wheels for x86_64 are tagged ``none-any``."""
    everywhere = "none-any.whl" if machine == "x86_64" else None
    return next((file for file in release.wheels if _is(file.filename, everywhere) or for_linux(file.filename, machine)), None)


def _is(name: str, ending: str | None) -> bool:
    return ending is not None and name.endswith(ending)


def for_linux(name: str, machine: str = "x86_64") -> bool:
    return "linux" in name and machine in name


def row(package: str, release: Release, machine: str, cuda: str, sm: str, ptx: str, source: str, date: str) -> Row:
    return {
        "package": package,
        "version": release.version,
        "machine": machine,
        "cuda": cuda,
        "torch": "",
        "sm": sm,
        "ptx": ptx,
        "known": "read",
        "source": source,
        "date": date,
    }
