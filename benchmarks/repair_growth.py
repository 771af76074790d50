"""The time of the same repair with a growing number of unrelated pins.

The unrelated packages are generated, a folder of small wheels: three releases each, each requiring three others. Both tools
read them from there (find-links), and everything else from the configured index.
"""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

from benchmarks.measure import interleaved
from benchmarks.repair_problems import PROBLEMS, PYTHON, written

SIZES = (150, 450, 1500)
RELEASES = ("1.0", "1.1", "2.0")


def growth(folder: Path, uv: str) -> bool:
    """Print the times as ratios; returns whether one grew faster than the number of pins."""
    problem = PROBLEMS[0]
    told = written(problem, folder / problem.label, uv)
    pins = Path(told[0]).read_text(encoding="utf-8").splitlines()
    wheels = folder / "wheels"
    made(wheels, SIZES[-1])
    compat = str(Path(sys.executable).with_name("compat"))
    commands = {}
    for size in SIZES:
        file = folder / f"{size}.txt"
        more = [f"untouched-{number}==1.1" for number in range(size - len(pins))]
        file.write_text("\n".join([*pins, *more]) + "\n", encoding="utf-8")
        commands[f"compat {size}"] = [compat, "fix", str(file), *told[1:], "--brief", "--find-links", str(wheels)]
        compiling = [uv, "pip", "compile", "--quiet", "--no-header", "--python-version", PYTHON, "--find-links", str(wheels)]
        commands[f"uv {size}"] = [*compiling, str(file)]
    measured = interleaved(commands, int(os.environ.get("ROUNDS", "5")))
    missed = False
    for size in SIZES:
        grown = measured[f"compat {size}"].median / measured[f"compat {SIZES[0]}"].median
        beside = measured[f"compat {size}"].median / measured[f"uv {size}"].median
        most = size / SIZES[0]
        missed = missed or grown > most
        print(f"{size:6} pins: {grown:5.2f} x the time of {SIZES[0]}, at most {most:.0f}; {beside:5.2f} x uv beside it")
    return missed


def made(folder: Path, count: int) -> None:
    """Create small wheels of ``untouched-0`` and so on, once."""
    if (folder / "complete").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        asked = sorted({each for each in (number // 2, number // 3, number - 1) if 0 <= each < number})
        requires = "".join(f"Requires-Dist: untouched-{each}>=1.0\n" for each in asked)
        for version in RELEASES:
            name = f"untouched_{number}-{version}"
            metadata = f"Metadata-Version: 2.1\nName: untouched-{number}\nVersion: {version}\n{requires}"
            with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as wheel:
                wheel.writestr(f"{name}.dist-info/METADATA", metadata)
                wheel.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
                wheel.writestr(f"{name}.dist-info/RECORD", "")
    (folder / "complete").touch()
