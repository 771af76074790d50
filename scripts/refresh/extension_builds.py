"""``extension_builds.csv``: code in the wheels of packages that ship their own kernels.

What tells differs: a record of the build (xformers), a library for each CUDA (bitsandbytes), or the fatbins of a library with
the general kernels. Of those the smallest that is compiled like the rest comes first; one that exceeds the budget is not read
in part, because the kernels for the newest GPUs may well be at its end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from packaging.version import Version

from scripts.refresh import builds, libraries
from scripts.refresh.architectures import in_order, listed
from scripts.refresh.builds import Open, Reader, Reading
from scripts.refresh.fatbin import FatbinScan
from scripts.refresh.index import Release
from scripts.refresh.tables import Row
from scripts.refresh.updates import Request, Update
from scripts.refresh.wheel import UnreadableError, Wheel

COLUMNS = libraries.COLUMNS
RECORD = "xformers/cpp_lib.json"
_RUNTIME = re.compile(rb"\x00libcudart\.so\.(\d+)(?:\.\d+)*(?=\x00)")


def update(folder: Path, request: Request) -> Update:
    return builds.update(TABLE, folder, request)


def recorded(release: Release, opened: Open, date: str) -> Reading:
    """Read xformers' own record of its build."""
    file = libraries.linux(release)
    if file is None:
        return Reading()
    with opened(file) as wheel:
        try:
            record = json.loads(wheel.text(RECORD))
            cuda, torch = int(record["version"]["cuda"]), str(record["version"]["torch"])
            sm, ptx = listed(record["env"]["TORCH_CUDA_ARCH_LIST"])
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise UnreadableError(f"{wheel.name}: {RECORD} is not as expected ({problem!r})") from None
    row = libraries.row(
        "xformers", release, "x86_64", f"{cuda // 100}.{cuda % 100}", sm, ptx, f"{file.filename} cpp_lib.json", date
    )
    return Reading(({**row, "torch": torch},))


def general(package: str, *members: str, cuda: bool = False) -> Reader:
    """A reader for the first group of members, given as patterns, that is there, affordable, and has code for GPUs.

    With ``cuda`` the row names the major release of the CUDA run-time library that the code is linked with.
    """

    def read(release: Release, opened: Open, date: str) -> Reading:
        files = {machine: libraries.linux(release, machine) for machine in libraries.MACHINES}
        found: list[Row] = []
        for machine, file in files.items():
            if file is not None:
                with opened(file) as wheel:
                    empty = libraries.row(package, release, machine, "", "", "", "", date)
                    row = _first(wheel, members, empty, cuda=cuda)
                    found += [row] if row is not None else []
        return Reading(tuple(found))

    return read


def _first(wheel: Wheel, members: Sequence[str], empty: Row, *, cuda: bool) -> Row | None:
    """The row of the first group of members with code; ``None`` for a wheel with no such members."""
    groups = [group for pattern in members if (group := _matching(wheel, pattern))]
    for group in groups:
        if wheel.affordable(group):
            row = _scanned(wheel, group, empty, cuda=cuda)
            if row is not None:
                return row
    if groups:
        wheel.require(min(groups, key=lambda group: sum(wheel.members()[name] for name in group)))
        raise UnreadableError(f"{wheel.name}: no code for GPUs in {', '.join(map(', '.join, groups))}")
    return None


def _matching(wheel: Wheel, pattern: str) -> list[str]:
    return [name for name in wheel.members() if re.match(pattern, name) and name.endswith(".so")]


def _scanned(wheel: Wheel, members: Sequence[str], row: Row, *, cuda: bool) -> Row | None:
    """A row with the code that all of the members hold which have some; ``None`` where none has."""
    scans: dict[str, FatbinScan] = {}
    majors: set[bytes] = set()
    for name in members:
        scan = scans[name] = FatbinScan()
        before = b""
        for piece in wheel.pieces(name):
            scan.feed(piece)
            majors.update(_RUNTIME.findall(before + piece))
            before = piece[-64:]
    found = {name: scan for name, scan in scans.items() if scan.fatbins}
    if not found:
        return None
    names = ", ".join(name.partition("/")[2] or name for name in found)
    return {
        **row,
        "cuda": majors.pop().decode() if cuda and len(majors) == 1 else "",
        "sm": in_order(set.intersection(*(scan.code() for scan in found.values()))),
        "ptx": in_order(set.intersection(*(scan.ptx() for scan in found.values()))),
        "source": f"{wheel.name}: fatbin headers of {names}",
    }


KERNELS = r"sgl_kernel/spatial_ops\.", r"sgl_kernel/(?:sm\d+/)?common_ops\."
TABLE = builds.Table(
    "extension_builds.csv",
    COLUMNS,
    ("package", "version", "machine", "cuda"),
    "version",
    lambda row: (row["package"], Version(row["version"]), row["machine"] != "x86_64", row["cuda"]),
    {
        "auto-gptq": general("auto-gptq", r"(?:autogptq|exllama)\w*\."),
        "autoawq": general("autoawq", r"(?:awq|ft)_inference_engine\."),
        "bitsandbytes": libraries.read,
        "lmdeploy": general("lmdeploy", r"lmdeploy/(?:turbomind/|lib/)*_turbomind\.", cuda=True),
        "sgl-kernel": general("sgl-kernel", *KERNELS),
        "sglang-kernel": general("sglang-kernel", *KERNELS),
        "vllm": general("vllm", r"vllm/_C_stable_libtorch\.", r"vllm/_C\.", r"vllm/(?:attention|cache)_ops\.", cuda=True),
        "xformers": recorded,
    },
)
