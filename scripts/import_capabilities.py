"""Writes ``capabilities.csv`` and ``code_runs_on.csv`` in ``matrix/facts`` from a folder of collected tables.

    python scripts/import_capabilities.py FOLDER [--to matrix/facts]

FOLDER holds ``sm_features.csv`` and ``sm_binary_compat.json``. What wheels hold is read by ``python -m scripts.refresh``.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.refresh.tables import Row, text_of

DATE, JETSON_DATE = "2026-11-20", "2026-11-21"
"""The days on which the collected tables were read, and the Jetsons added."""
CAPABILITIES = (
    "capability",
    "architecture",
    "bf16",
    "tf32",
    "fp8",
    "fp4",
    "flash_attn_2",
    "flash_attn_3",
    "known",
    "source",
    "date",
)
JETSONS = (
    ("5.3", "Maxwell (TX1)", "no", "no", "no"),
    ("6.2", "Pascal (TX2)", "no", "no", "no"),
    ("7.2", "Volta (Xavier)", "emulated", "no", "no"),
    ("10.1", "Blackwell (Thor before CUDA 13)", "yes", "yes", "build"),
)
"""Capability, architecture, bf16, what newer formats need (tf32, fp8, fp4), flash-attention 2."""
RUNS_ON = ("sm", "capability", "cuda", "known", "source", "date")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", type=Path, default=Path(__file__).resolve().parents[1] / "matrix" / "facts")
    words = parser.parse_args(arguments)
    tables = {
        "capabilities.csv": text_of(capabilities(words.folder), CAPABILITIES, lambda row: _pair(row["capability"])),
        "code_runs_on.csv": text_of(
            runs_on(words.folder), RUNS_ON, lambda row: (row["cuda"], int(row["sm"]), _pair(row["capability"]))
        ),
    }
    for name, text in tables.items():
        (words.to / name).write_text(text, encoding="utf-8")
        print(f"{name}: {len(text.splitlines()) - 1} rows")
    return 0


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def capabilities(folder: Path) -> Iterator[Row]:
    for row in rows_of(folder, "sm_features.csv"):
        yield {
            "capability": row["compute_capability"],
            "architecture": row["architecture"],
            "bf16": row["bf16"],
            "tf32": row["tf32"],
            "fp8": row["fp8_tensor"],
            "fp4": row["fp4_tensor"],
            "flash_attn_2": row["flash_attn_2"].split()[0],
            "flash_attn_3": row["flash_attn_3"],
            "known": "curated",
            "source": "documentation of torch, vLLM and flash-attention",
            "date": DATE,
        }
    for capability, architecture, bf16, newer, flash in JETSONS:
        yield {
            "capability": capability,
            "architecture": architecture,
            "bf16": bf16,
            **dict.fromkeys(("tf32", "fp8", "fp4"), newer),
            "flash_attn_2": flash,
            "flash_attn_3": "no",
            "known": "curated",
            "source": "documentation of torch, vLLM and flash-attention",
            "date": JETSON_DATE,
        }


def runs_on(folder: Path) -> Iterator[Row]:
    """Return which code runs on which device, pair by pair, from the table in torch's source."""
    table = json.loads((folder / "sm_binary_compat.json").read_text(encoding="utf-8"))
    devices = [row["compute_capability"] for row in rows_of(folder, "sm_features.csv")]
    devices += ["3.7", *(each[0] for each in JETSONS)]
    for cuda, rules in (("", table["code_sm_runs_on_device"]), ("13.2", table["cuda>=13.2 override"])):
        for sm, rule in rules.items():
            for device in sorted(set(devices), key=_pair):
                number = int(device.replace(".", ""))
                if _runs(int(sm), number, rule):
                    yield {
                        "sm": sm,
                        "capability": device,
                        "cuda": cuda,
                        "known": "read",
                        "source": table["source"],
                        "date": DATE,
                    }


def _runs(sm: int, device: int, rule: dict[str, object]) -> bool:
    if "only" in rule:
        return device in rule["only"]  # type: ignore[operator]
    return device >= sm and device // 10 == sm // 10 and device not in rule.get("exclude", ())  # type: ignore[operator]


def _pair(capability: str) -> tuple[int, ...]:
    return tuple(map(int, capability.split(".")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
