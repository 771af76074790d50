"""``torch_builds.csv``: the default index's wheels of torch, and what torch itself declares about its other builds."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from packaging.version import Version
from pypi_simple import DistributionPackage

from scripts.refresh import builds
from scripts.refresh.architectures import in_order
from scripts.refresh.builds import Open, Reading
from scripts.refresh.index import Release
from scripts.refresh.tables import Row
from scripts.refresh.updates import Request, Update
from scripts.refresh.wheel import UnreadableError, Wheel

COLUMNS = ("torch", "machine", "cuda", "default", "sm", "ptx", "known", "source", "date")
MACHINES = ("x86_64", "aarch64")
LIBRARY = "torch/lib/libtorch_python.so"
"""It holds the text of ``torch.cuda.get_arch_list()``, and is the smallest that does."""
VARIANTS = "PYTORCH_RELEASES_CODE_CC"
_FLAGS = re.compile(rb"(?:sm|compute)_\d{2,3}[af]?(?: (?:sm|compute)_\d{2,3}[af]?)+(?=\x00)")
"""Two at least: names of a single architecture are all over the library."""
_LONGEST = 512


def update(folder: Path, request: Request) -> Update:
    return builds.update(TABLE, folder, request)


def read(release: Release, opened: Open, date: str) -> Reading:
    """The default build for each machine, and the declared ones for other CUDA releases."""
    rows: list[Row] = []
    declared: dict[tuple[str, str], str] = {}
    for machine in MACHINES:
        file = next((each for each in release.wheels if "linux" in each.filename and machine in each.filename), None)
        if file is not None:
            with opened(file) as wheel:
                rows.append({**_default(wheel, file), "torch": release.version, "machine": machine, "date": date})
                declared.update(_declared(wheel))
    for (machine, cuda), sm in declared.items():
        if not any((row["machine"], row["cuda"]) == (machine, cuda) for row in rows):
            rows.append(
                {
                    "torch": release.version,
                    "machine": machine,
                    "cuda": cuda,
                    "default": "",
                    "sm": sm,
                    "ptx": "",
                    "known": "declared",
                    "source": f"torch/cuda/__init__.py {VARIANTS} in the wheel",
                    "date": date,
                }
            )
    return Reading(tuple(rows))


def _default(wheel: Wheel, file: DistributionPackage) -> dict[str, str]:
    cuda = assigned(wheel.text("torch/version.py"), "cuda")
    names, place = _flags(wheel) if cuda else ((), "")
    return {
        "cuda": str(cuda or ""),
        "default": "yes",
        "sm": in_order(name.removeprefix("sm_") for name in names if name.startswith("sm_")),
        "ptx": in_order(name.removeprefix("compute_") for name in names if name.startswith("compute_")),
        "known": "read",
        "source": f"{file.filename} {place} sha256={(file.digests or {}).get('sha256', '')[:16]}",
    }


def _flags(wheel: Wheel) -> tuple[tuple[str, ...], str]:
    """The architectures the build was configured for, and where in the library they are written."""
    if LIBRARY not in wheel.members():
        raise UnreadableError(f"{wheel.name}: holds no {LIBRARY}")
    before, offset = b"", 0
    for piece in wheel.pieces(LIBRARY):
        there = before + piece
        found = _FLAGS.search(there)
        if found is not None:
            return tuple(found[0].decode().split()), f"{LIBRARY.rpartition('/')[2]}@{offset + found.start()}"
        before = there[-_LONGEST:]
        offset += len(there) - len(before)
    raise UnreadableError(f"{wheel.name}: no list of architectures in {LIBRARY}")


def _declared(wheel: Wheel) -> dict[tuple[str, str], str]:
    """(machine, CUDA) → architectures, from the table that torch shows to owners of other GPUs since 2.11."""
    table = assigned(wheel.text("torch/cuda/__init__.py"), VARIANTS) or {}
    try:
        return {
            (machine, str(cuda)): in_order(str(int(code)) for code in found)
            for cuda, codes in table.items()
            for machine in MACHINES
            if (found := codes.get(machine, ()) if isinstance(codes, dict) else codes)
        }
    except (AttributeError, TypeError, ValueError):
        raise UnreadableError(f"{wheel.name}: {VARIANTS} is not as expected") from None


def assigned(text: str, name: str) -> Any:
    """The literal that a module's source assigns to a name, which is not executed; ``None`` where there is none."""
    try:
        for node in ast.parse(text).body:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
            if any(isinstance(each, ast.Name) and each.id == name for each in targets):
                value = node.value  # type: ignore[attr-defined]
                return None if value is None else ast.literal_eval(value)
    except (SyntaxError, ValueError) as problem:
        raise UnreadableError(f"{name} is no plain value: {problem}") from None
    return None


TABLE = builds.Table(
    "torch_builds.csv",
    COLUMNS,
    ("torch", "machine", "cuda"),
    "torch",
    lambda row: (Version(row["torch"]), row["machine"], row["cuda"]),
    {"torch": read},
)
