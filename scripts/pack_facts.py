"""Tables in ``matrix/facts`` → the plain values that modules of :mod:`compat.tables` read."""

from __future__ import annotations

import csv
import marshal
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from compat.machine.gpu_names import spelling
from compat.syntax.json import read_text
from compat.tables.builds import CONDA
from compat.tables.hardware import numbers_of
from compat.tables.stacks import Stack

if TYPE_CHECKING:
    from compat.machine.gpu_names import GpuTable, Row, Spelling
    from compat.tables.builds import Codes, Tables, TorchRow
    from compat.tables.hardware import DriverTable, Numbers, Peak

MODELS = "models.csv"


def hardware(folder: str) -> tuple[GpuTable, DriverTable]:
    """Return the tables from the fact files in a folder (``gpus_nvidia.csv``, ``gpus_amd.csv``, ``cuda_driver.csv``)."""
    nvidia, amd, drivers = (
        read_text(os.path.join(folder, f"{name}.csv")) for name in ("gpus_nvidia", "gpus_amd", "cuda_driver")
    )
    return gpu_table(nvidia, amd), driver_table(drivers)


def gpu_table(nvidia: str, amd: str) -> GpuTable:
    """Read ``gpus_nvidia.csv`` and ``gpus_amd.csv`` into one table of plain values."""
    rows: list[Row] = []
    spelled: list[list[str]] = []
    for vendor, text in (("nvidia", nvidia), ("amd", amd)):
        for line in csv.DictReader(text.splitlines()):
            sizes = (
                ()
                if line["memory_gb"] == "unified"
                else tuple(int(size) * 1024 for size in line["memory_gb"].split("/") if size)
            )
            rows.append((line["name"], vendor, line.get("compute_capability"), line.get("gfx"), sizes))
            spelled.append([line["name"], *(alias for alias in line["aliases"].split("; ") if alias)])
    spellings = tuple((row, *spelling(text)) for row, names in enumerate(spelled) for text in names)
    return tuple(rows), spellings, _index(spellings)


def _index(spellings: Sequence[Spelling]) -> dict[str, tuple[int, ...]]:
    found: dict[str, list[int]] = {}
    for number, (_, _, needed) in enumerate(spellings):
        for word in needed:
            found.setdefault(word, []).append(number)
    return {word: tuple(numbers) for word, numbers in found.items()}


def driver_table(text: str) -> DriverTable:
    """Read ``matrix/facts/cuda_driver.csv`` as plain tuples (CUDA, driver on Linux, driver on Windows), newest first.

    Versions are tuples of numbers, ``None`` if the vendor lists none.
    """
    rows: dict[Numbers, tuple[Numbers, Numbers | None, Numbers | None]] = {}
    for row in csv.DictReader(text.splitlines()):
        cuda = numbers_of(row["cuda_toolkit"].partition("u")[0])
        if cuda is None:
            continue
        entry = (cuda, numbers_of(row["driver_linux"]), numbers_of(row["driver_windows"]))
        # of a minor version's updates the first one counts: it requires the oldest driver
        if cuda not in rows or (entry[1] or ()) < (rows[cuda][1] or ()):
            rows[cuda] = entry
    return tuple(rows[cuda] for cuda in sorted(rows, reverse=True))


def peaks(folder: str) -> tuple[Peak, ...]:
    """Return the rows of ``gpu_peaks.csv``, the most specific names first."""
    rows = [
        (
            row["name"],
            row["driver_name"],
            int(row["memory_gb"] or 0),
            float(row["tflops_16bit"]),
            float(row["gb_s"]),
            row["source"],
        )
        for row in _rows(folder, "gpu_peaks.csv")
    ]
    return tuple(sorted(rows, key=lambda row: -len(row[1])))


def code_tables(folder: str) -> Tables:
    """Return the content of the fact files in a folder as plain values."""
    torch: dict[str, list[TorchRow]] = {}
    for row in _rows(folder, "torch_builds.csv"):
        build = (row["machine"], row["cuda"], row["default"] == "yes", _codes(row["sm"]), _codes(row["ptx"]), row["known"])
        torch.setdefault(row["torch"], []).append(build)
    conda: dict[str, list[TorchRow]] = {}
    for row in _rows(folder, "torch_conda.csv"):
        build = ("x86_64", row["cuda"], False, _codes(row["sm"]), _codes(row["ptx"]), row["known"])
        conda.setdefault(row["torch"], []).append(build)
    extensions: dict[str, dict[str, list[Any]]] = {}
    for row in _rows(folder, "extension_builds.csv"):
        built = (row["machine"], row["cuda"], row["torch"], _codes(row["sm"]), _codes(row["ptx"]), row["known"])
        extensions.setdefault(row["package"], {}).setdefault(row["version"], []).append(built)
    published: dict[str, dict[str, tuple[str, ...]]] = {}
    published_for: dict[str, dict[str, tuple[Codes, Codes]]] = {}
    for row in _rows(folder, "published_wheels.csv"):
        published.setdefault(row["package"], {})[row["version"]] = tuple(row["series"].split())
        if row["cudas"]:
            found = tuple(row["cudas"].split()), tuple(row["pythons"].split())
            published_for.setdefault(row["package"], {})[row["version"]] = found
    runs: dict[str, dict[str, set[str]]] = {"": {}, "13.2": {}}
    for row in _rows(folder, "code_runs_on.csv"):
        runs[row["cuda"]].setdefault(row["capability"], set()).add(row["sm"])
    floors = {
        int(row["cuda_toolkit"].partition(".")[0]): int(row["floor_branch"])
        for row in _rows(folder, "cuda_driver.csv")
        if row["floor_branch"].isdecimal()
    }
    return {
        "wheels": {
            name: marshal.dumps({version: tuple(each) for version, each in found.items()}, 4)
            for name, found in {"torch": torch, CONDA: conda, **extensions}.items()
        },
        "triton": {row["triton"]: _codes(row["sm"]) for row in _rows(folder, "triton_gpus.csv")},
        "assemblers": {
            row["triton"]: (row["cuda"], row["blackwell"] or row["cuda"]) for row in _rows(folder, "triton_gpus.csv")
        },
        "rocm": {row["rocm"]: tuple(row["gfx"].split()) for row in _rows(folder, "torch_rocm.csv")},
        "rocm_of": {torch: row["rocm"] for row in _rows(folder, "torch_rocm.csv") for torch in row["series"].split()},
        "published": published,
        "published_for": published_for,
        "capabilities": {
            row["capability"]: {key: row[key] for key in ("bf16", "tf32", "fp8", "fp4", "flash_attn_2")}
            for row in _rows(folder, "capabilities.csv")
        },
        "floors": tuple(sorted(floors.items())),
        "runs_on": {cuda: {device: frozenset(codes) for device, codes in found.items()} for cuda, found in runs.items()},
    }


def _codes(text: str) -> Codes:
    return tuple(text.split())


def models(folder: str) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...], bool]]:
    """Return the rows of ``models.csv``: a family by organisation and stem, and the values of a :class:`Family`."""
    return [
        (
            row["organisation"], row["stem"], tuple(row["architectures"].split()), tuple(row["types"].split()),
            row["own_code"] == "yes",
        )
        for row in _rows(folder, MODELS)
    ]  # fmt: skip


def successors(folder: str) -> dict[tuple[str, str], str]:
    """Return what to use instead, by package and old name."""
    return {(row["package"], row["old"]): row["new"] for row in _rows(folder, "successors.csv")}


def programs(folder: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return (distribution, module) of those that install a command, by command."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for row in _rows(folder, "programs.csv"):
        found[row["program"]] = (*found.get(row["program"], ()), (row["package"], row["module"]))
    return found


def stacks(matrix: str) -> tuple[tuple[str, ...], ...]:
    """Return the values of each :class:`Stack`; none if the folder has no table."""
    if not os.path.exists(os.path.join(matrix, "stacks.csv")):
        return ()
    return tuple(tuple(row[name] for name in Stack.__annotations__) for row in _rows(matrix, "stacks.csv"))


def _rows(folder: str, name: str) -> Iterator[dict[str, str]]:
    with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)
