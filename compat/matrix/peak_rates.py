"""What each card can do by its maker's figures, compiled beside the hardware tables."""

from __future__ import annotations

import os

from compat.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Peak: TypeAlias = tuple[str, str, int, float, float, str]
    """(card, part of the name the driver gives it, memory in GB or 0, dense TFLOP/s of 16-bit types, GB/s, source)"""

FILE = os.path.join(os.path.dirname(__file__), "compiled", "peaks.bin")
_SOURCES = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "matrix", "facts")


def open_peaks() -> tuple[Peak, ...]:
    """The rows this package ships; in a source tree that was never built, those of its fact file."""
    import marshal

    try:
        with open(FILE, "rb") as file:
            rows: tuple[Peak, ...] = marshal.loads(file.read())
            return rows
    except FileNotFoundError:
        if not os.path.isdir(_SOURCES):
            raise InputError("the table of peak rates is missing: reinstall compat-doctor", FILE) from None
        return tables_from(_SOURCES)


def tables_from(folder: str) -> tuple[Peak, ...]:
    """The rows of ``gpu_peaks.csv``, the most specific names first."""
    import csv

    with open(os.path.join(folder, "gpu_peaks.csv"), encoding="utf-8", newline="") as file:
        rows = [
            (row["name"], row["driver_name"], int(row["memory_gb"] or 0), float(row["tflops_16bit"]), float(row["gb_s"]),
             row["source"])
            for row in csv.DictReader(file)
        ]  # fmt: skip
    return tuple(sorted(rows, key=lambda row: -len(row[1])))
