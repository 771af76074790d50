"""Write ``matrix/facts/gpus_nvidia.csv``, ``gpus_amd.csv`` and ``cuda_driver.csv`` from a folder of collected tables.

    python scripts/import_facts.py FOLDER [--to matrix/facts] [--check]

FOLDER holds three tables of the same names, as transcribed from the vendors' pages. They are brought into one form here,
and names that are missing there are added from the lists below. Every row says where it comes from (``source``), whether
that was a published text (``known`` = declared) or general knowledge (curated), and the day. ``--check`` writes nothing
and ends with 1 where a file differs from what would be written.

``memory_gb`` is nominal and per device (an A16 is four devices of 16 GB), always curated; several sizes are separated by
``/``; ``unified`` is memory shared with the CPU.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import sys
from pathlib import Path

COLLECTED = "2026-11-20"
"""The day the collected tables were read from their pages."""
ADDED = "2026-11-21"
"""The day of the lists below."""

CURRENT = 'NVIDIA "CUDA GPU Compute Capability" page, developer.nvidia.com/cuda-gpus (stored copy)'
LEGACY = 'NVIDIA "Legacy CUDA GPU Compute Capability" page, developer.nvidia.com/cuda-legacy-gpus (stored copy)'
OLDER = "NVIDIA CUDA GPUs page of 2022, as transcribed at github.com/HeKun-NVIDIA/AI-Blog (stored copy)"
CURATED = "curated: the card's published chip"

NVIDIA_NAMES = {
    # collected name: (name here, aliases)
    "GB10 (DGX Spark)": ("GB10", "DGX Spark; Spark GB10"),
    "Jetson T5000 (AGX Thor)": ("Jetson T5000", "Jetson AGX Thor; AGX Thor; Jetson Thor; Thor"),
    "A10G (AWS)": ("A10G", ""),
    "Jetson AGX Orin": ("Jetson AGX Orin", "AGX Orin; Jetson Orin; Orin"),
    "Jetson Orin NX": ("Jetson Orin NX", "Orin NX; Jetson Orin; Orin"),
    "Jetson Orin Nano": ("Jetson Orin Nano", "Orin Nano; Jetson Orin Nano Super; Orin Nano Super; Jetson Orin; Orin"),
    "Jetson AGX Xavier": ("Jetson AGX Xavier", "AGX Xavier; Jetson Xavier; Jetson-AGX; Xavier"),
    "Jetson Xavier NX": ("Jetson Xavier NX", "Xavier NX; Jetson Xavier; Xavier"),
}
NVIDIA_MEMORY = {"A100": "40/64/80", "GeForce GTX 1060": "3/6"}
"""Sizes the collected table lacks: A100 modules with 64 GB were built for one machine."""

# name | class | compute capability | memory | aliases
FROM_CURRENT = """
RTX PRO 4000 Blackwell SFF Edition|workstation|12.0|24
RTX 4000 SFF Ada|workstation|8.9|20
GeForce RTX 4050|geforce|8.9|6
RTX A3000|workstation|8.6|6/12
"""
FROM_LEGACY = """
Quadro P5200|workstation|6.1|16
Quadro P5000|workstation|6.1|16
Quadro P4200|workstation|6.1|8
Quadro P4000|workstation|6.1|8
Quadro P3200|workstation|6.1|6
Quadro P3000|workstation|6.1|6
Quadro P2200|workstation|6.1|5
Quadro P2000|workstation|6.1|4/5
Quadro P1000|workstation|6.1|4
Quadro P620|workstation|6.1|2
Quadro P600|workstation|6.1|2
Quadro P500|workstation|6.1|2
Quadro P400|workstation|6.1|2
TITAN Xp|geforce|6.1|12
TITAN X (Pascal)|geforce|6.1|12|TITAN X
GeForce GTX 1070 Ti|geforce|6.1|8
GeForce GTX 1050|geforce|6.1|2/3/4
Quadro GP100|workstation|6.0|16
Quadro M6000|workstation|5.2|12/24
Quadro M5000|workstation|5.2|8
Quadro M4000|workstation|5.2|8
Quadro M2000|workstation|5.2|4
GeForce GTX TITAN X|geforce|5.2|12|TITAN X
GeForce GTX 980|geforce|5.2|4
GeForce GTX 970|geforce|5.2|4
GeForce GTX 960|geforce|5.2|2/4
GeForce GTX 950|geforce|5.2|2
GeForce GTX 980M|geforce|5.2|4/8
GeForce GTX 970M|geforce|5.2|3/6
Quadro K2200|workstation|5.0|4
Quadro M1200|workstation|5.0|4
GeForce GTX 750|geforce|5.0|1/2
GeForce GTX 960M|geforce|5.0|2/4
GeForce GTX 950M|geforce|5.0|2/4
GeForce 940M|geforce|5.0|2
"""
FROM_OLDER = """
GeForce RTX 3070 Ti|geforce|8.6|8
GeForce RTX 3060 Ti|geforce|8.6|8
Quadro RTX 4000|workstation|7.5|8
Quadro RTX 3000|workstation|7.5|6
T2000|workstation|7.5|4|Quadro T2000
T1200|workstation|7.5|4
T600|workstation|7.5|4
T500|workstation|7.5|2/4
T400|workstation|7.5|2/4
GeForce GTX 1650 Ti|geforce|7.5|4
Tesla K40|datacenter|3.5|12|K40m; K40c
Tesla K20|datacenter|3.5|5|K20m; K20c
GeForce GTX TITAN Z|geforce|3.5|6
GeForce GTX TITAN Black|geforce|3.5|6
GeForce GTX TITAN|geforce|3.5|6
GeForce GTX 780 Ti|geforce|3.5|3
GeForce GTX 780|geforce|3.5|3
"""
FROM_KNOWLEDGE = """
RTX PRO 3000 Blackwell|workstation|12.0|12
RTX PRO 1000 Blackwell|workstation|12.0|8
RTX PRO 500 Blackwell|workstation|12.0|6
GeForce RTX 5090 D|geforce|12.0|32
GeForce RTX 5090 D V2|geforce|12.0|24
H100 PCIe|datacenter|9.0|80
H100 NVL|datacenter|9.0|94
H200 NVL|datacenter|9.0|141
H800|datacenter|9.0|80
H800 PCIe|datacenter|9.0|80
H800 NVL|datacenter|9.0|94
H20|datacenter|9.0|96/141|H20-3e
L20|datacenter|8.9|48
L2|datacenter|8.9|24
RTX 5880 Ada|workstation|8.9|48
RTX 3500 Ada|workstation|8.9|12
RTX 3000 Ada|workstation|8.9|8
RTX 1000 Ada|workstation|8.9|6
RTX 500 Ada|workstation|8.9|4
GeForce RTX 4090 D|geforce|8.9|24
GeForce RTX 4080 SUPER|geforce|8.9|16
GeForce RTX 4070 Ti SUPER|geforce|8.9|16
GeForce RTX 4070 SUPER|geforce|8.9|12
RTX A5500|workstation|8.6|16/24
RTX A4500|workstation|8.6|16/20
RTX A1000|workstation|8.6|4/6/8
RTX A500|workstation|8.6|4
RTX A400|workstation|8.6|4
GeForce RTX 3050 Ti|geforce|8.6|4
GeForce RTX 3050|geforce|8.6|4/6/8
GeForce RTX 2050|geforce|8.6|4
GeForce MX570|geforce|8.6|2/4
A800|datacenter|8.0|40/80
A100X|datacenter|8.0|80
A30X|datacenter|8.0|24
CMP 170HX|datacenter|8.0|8
T4G|datacenter|7.5|16
T1000|workstation|7.5|4/8|Quadro T1000
GeForce RTX 2080 SUPER|geforce|7.5|8
GeForce RTX 2070 SUPER|geforce|7.5|8
GeForce RTX 2060 SUPER|geforce|7.5|8
GeForce GTX 1660 SUPER|geforce|7.5|6
GeForce GTX 1660|geforce|7.5|6
GeForce GTX 1650 SUPER|geforce|7.5|4
GeForce GTX 1630|geforce|7.5|4
GeForce MX550|geforce|7.5|2/4
GeForce MX450|geforce|7.5|2
V100S|datacenter|7.0|32
GeForce GTX 1050 Ti|geforce|6.1|4
GeForce GT 1030|geforce|6.1|2/4
GeForce MX350|geforce|6.1|2
GeForce MX330|geforce|6.1|2
GeForce MX250|geforce|6.1|2
GeForce MX150|geforce|6.1|2/4
Jetson TX1|jetson|5.3|unified
Quadro 6000|workstation|2.0|6
Quadro 5000|workstation|2.0|2
Quadro 4000|workstation|2.0|2
"""

# gfx | name | memory | aliases; the architecture and the source of a target come from the collected table
AMD = """
gfx950|Instinct MI355X|288
gfx950|Instinct MI350X|288|MI350
gfx942|Instinct MI325X|256
gfx942|Instinct MI308X|192
gfx942|Instinct MI300X|192|MI300
gfx942|Instinct MI300A|128|MI300
gfx90a|Instinct MI250X|64|MI200
gfx90a|Instinct MI250|64|MI200
gfx90a|Instinct MI210|64|MI200
gfx908|Instinct MI100|32
gfx906|Instinct MI60|32
gfx906|Instinct MI50|16/32
gfx906|Radeon VII|16
gfx906|Radeon PRO VII|16
gfx900|Instinct MI25|16
gfx900|Radeon RX Vega 64|8|Vega 64
gfx900|Radeon RX Vega 56|8|Vega 56
gfx1201|Radeon RX 9070 XT|16
gfx1201|Radeon RX 9070|16
gfx1201|Radeon RX 9070 GRE|12
gfx1201|Radeon AI PRO R9700|32
gfx1200|Radeon RX 9060 XT|8/16
gfx1200|Radeon RX 9060|8
gfx1153|Radeon 820M|unified
gfx1152|Radeon 860M|unified
gfx1152|Radeon 840M|unified
gfx1151|Radeon 8060S|unified|Strix Halo; Ryzen AI Max; Ryzen AI Max 395
gfx1151|Radeon 8050S|unified|Strix Halo; Ryzen AI Max
gfx1151|Radeon 8040S|unified|Strix Halo; Ryzen AI Max
gfx1150|Radeon 890M|unified|Strix Point
gfx1150|Radeon 880M|unified|Strix Point
gfx1103|Radeon 780M|unified|Phoenix; Hawk Point
gfx1103|Radeon 760M|unified|Phoenix; Hawk Point
gfx1103|Radeon 740M|unified|Phoenix; Hawk Point
gfx1102|Radeon RX 7600 XT|16
gfx1102|Radeon RX 7600|8
gfx1102|Radeon PRO W7600|8
gfx1102|Radeon PRO W7500|8
gfx1101|Radeon RX 7800 XT|16
gfx1101|Radeon RX 7700 XT|12
gfx1101|Radeon RX 7700|16
gfx1101|Radeon PRO W7700|16
gfx1100|Radeon RX 7900 XTX|24
gfx1100|Radeon RX 7900 XT|20
gfx1100|Radeon RX 7900 GRE|16
gfx1100|Radeon PRO W7900|48
gfx1100|Radeon PRO W7800|32/48
gfx1036|Radeon 610M|unified
gfx1035|Radeon 680M|unified
gfx1035|Radeon 660M|unified
gfx1034|Radeon RX 6500 XT|4/8
gfx1034|Radeon RX 6400|4
gfx1032|Radeon RX 6650 XT|8
gfx1032|Radeon RX 6600 XT|8
gfx1032|Radeon RX 6600|8
gfx1031|Radeon RX 6750 XT|12
gfx1031|Radeon RX 6700 XT|12
gfx1030|Radeon RX 6950 XT|16
gfx1030|Radeon RX 6900 XT|16
gfx1030|Radeon RX 6800 XT|16
gfx1030|Radeon RX 6800|16
gfx1030|Radeon PRO W6800|32
gfx1030|Radeon PRO V620|32
gfx1012|Radeon RX 5500 XT|4/8
gfx1010|Radeon RX 5700 XT|8
gfx1010|Radeon RX 5700|8
gfx1010|Radeon RX 5600 XT|6
"""
AMD_ARCHITECTURES = {
    "gfx1153": "RDNA3.5", "gfx1152": "RDNA3.5", "gfx1036": "RDNA2", "gfx1035": "RDNA2", "gfx1034": "RDNA2", "gfx1032": "RDNA2",
    "gfx1012": "RDNA1", "gfx1010": "RDNA1",
}  # fmt: skip

NVIDIA_COLUMNS = ("name", "aliases", "class", "compute_capability", "memory_gb", "known", "source", "date")
AMD_COLUMNS = ("name", "aliases", "gfx", "architecture", "memory_gb", "known", "source", "date")
DRIVER_COLUMNS = ("cuda_toolkit", "driver_linux", "driver_windows", "floor_branch", "range_note", "known", "source", "date")

Table = list[dict[str, str]]


def nvidia(collected: Table) -> Table:
    """Return collected rows in our format, then the added ones; a name in both keeps the collected capability."""
    rows: dict[str, dict[str, str]] = {}
    for row in collected:
        name, aliases = NVIDIA_NAMES.get(row["name"], (row["name"], ""))
        source, known = _source(row["source_capability"])
        memory = NVIDIA_MEMORY.get(name, _memory(row["memory_gb"]))
        rows[name] = dict(
            zip(
                NVIDIA_COLUMNS,
                (name, aliases, row["class"], row["compute_capability"], memory, known, source, COLLECTED),
                strict=True,
            )
        )
    added = ((FROM_CURRENT, CURRENT), (FROM_LEGACY, LEGACY), (FROM_OLDER, OLDER), (FROM_KNOWLEDGE, CURATED))
    for text, source in added:
        for name, kind, capability, memory, aliases in _fields(text, 5):
            known = "curated" if source == CURATED else "declared"
            values = (name, aliases, kind, capability, memory, known, source, ADDED)
            present = rows.setdefault(name, dict(zip(NVIDIA_COLUMNS, values, strict=True)))
            if present["compute_capability"] != capability:
                raise SystemExit(f"{name}: {capability} here, {present['compute_capability']} in the collected table")
            present["aliases"] = present["aliases"] or aliases
    return sorted(rows.values(), key=lambda row: ([-int(part) for part in row["compute_capability"].split(".")], row["name"]))


def _source(text: str) -> tuple[str, str]:
    """Convert the collected table's source of a row to ours, and whether a published text states it."""
    if "Legacy CUDA GPU" in text:
        return LEGACY, "declared"
    if "CUDA GPU Compute Capability" in text:
        return CURRENT, "declared"
    if text.startswith("older copies"):
        return "older copies of NVIDIA's CUDA GPUs page, or general knowledge", "curated"
    return CURATED, "curated"


def _memory(text: str) -> str:
    """Parse ``40/80``, ``32u/64u`` (unified) or ``64 (4x16)`` (four devices of 16) into the sizes of one device."""
    if "u" in text:
        return "unified"
    several = re.search(r"\(\d+x(\d+)\)", text)
    return several[1] if several else text


def _fields(text: str, count: int) -> list[list[str]]:
    rows = [line.split("|") for line in text.strip().splitlines()]
    return [[*row, *[""] * (count - len(row))] for row in rows]


def amd(collected: Table) -> Table:
    """Return the list above with the collected table's architecture and source; it must contain all the table's products."""
    targets = {row["gfx"]: row for row in collected}
    rows = []
    for gfx, name, memory, aliases in _fields(AMD, 4):
        target = targets.get(gfx)
        products = re.findall(r"[A-Z]*\d{2,}[A-Z]*(?: XTX| XT| GRE)?", target["products"]) if target else []
        declared = any(name.endswith(f" {product}") for product in products)
        source = f"{target['source']} (stored copy)" if target and declared else CURATED
        architecture = target["architecture"] if target else AMD_ARCHITECTURES[gfx]
        known = "declared" if declared and "target list" not in source else "curated"
        values = (name, aliases, gfx, architecture, memory, known, source, COLLECTED if declared else ADDED)
        rows.append(dict(zip(AMD_COLUMNS, values, strict=True)))
    for gfx, target in targets.items():
        names = " ".join(row["name"] for row in rows if row["gfx"] == gfx)
        for model in re.findall(r"\b[A-Z]*\d{2,}[A-Z]*\b", re.sub(r"\([^)]*\)", "", target["products"])):
            if model not in names:
                raise SystemExit(f"{gfx}: {model} of the collected table is not in the list")
    return rows


def drivers(collected: Table) -> Table:
    """Return toolkit drivers, newest first, with bare versions; annotations move to the note."""
    rows = []
    for row in collected:
        version, _, remark = row["toolkit_driver_linux"].partition(" ")
        note = "; ".join(each for each in (row["range_note"].replace("N/A", ""), remark.strip("()")) if each)
        values = (row["cuda_toolkit"], version, row["toolkit_driver_windows"], row["minor_compat_floor_branch"], note)
        rows.append(dict(zip(DRIVER_COLUMNS, (*values, "declared", row["source"], COLLECTED), strict=True)))
    return rows


def _read(path: Path) -> Table:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _written(rows: Table, columns: tuple[str, ...]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder with the collected gpus_nvidia.csv, gpus_amd.csv and cuda_driver.csv")
    parser.add_argument("--to", type=Path, default=Path(__file__).parent.parent / "matrix" / "facts", help="folder to write to")
    parser.add_argument("--check", action="store_true", help="write nothing, end with 1 where a file differs")
    options = parser.parse_args()
    made = {
        "gpus_nvidia.csv": _written(nvidia(_read(options.folder / "gpus_nvidia.csv")), NVIDIA_COLUMNS),
        "gpus_amd.csv": _written(amd(_read(options.folder / "gpus_amd.csv")), AMD_COLUMNS),
        "cuda_driver.csv": _written(drivers(_read(options.folder / "cuda_driver.csv")), DRIVER_COLUMNS),
    }
    different = [
        name for name, text in made.items() if not (path := options.to / name).exists() or path.read_text("utf-8") != text
    ]
    if options.check:
        print("\n".join(f"{name} differs" for name in different) or "all as they would be written")
        return 1 if different else 0
    for name, text in made.items():
        (options.to / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
