"""``make bench``, second part: lock files of 300 and 3,000 packages, compared with the fastest TOML parser, as ratios.

``LOCK=path/to/uv.lock`` times a lock of your own as well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.check import BENCH, OURS, STACK, TOOLS, prepare
from benchmarks.locks import write_environment, write_lock
from benchmarks.measure import Measured, interleaved

PACKAGES = 300
FASTEST = "toml-rs"
"""The fastest TOML reader found (toml-rs 0.4 before rtoml 0.14, pytomlpp, tomli, tomllib)."""


def main() -> int:
    """Print the table and the targets; returns 1 if a target is missed."""
    uv = prepare()
    folder = BENCH / "many-packages"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(STACK, folder, symlinks=True)
        write_environment(site_packages(folder), PACKAGES)
        (folder / "complete").touch()
    subprocess.run([TOOLS / "bin/pip", "install", "--quiet", FASTEST], check=True)
    small, large = BENCH / "300" / "uv.lock", BENCH / "3000" / "uv.lock"
    for path, times in ((small, 1), (large, 10)):
        path.parent.mkdir(exist_ok=True)
        count = write_lock(site_packages(folder), path, times)
        print(f"{path.parent.name}/uv.lock: {count} packages, {path.stat().st_size} bytes")
    commands = {
        "uv pip check, 300 packages": [uv, "pip", "check", "--python", str(folder)],
        "compat check, 300 packages": checking(small),
        "compat check, 3000 packages": checking(large),
        "TOML parser alone, 3000 packages": parsing(large),
    }
    if os.environ.get("LOCK"):
        commands["compat check, LOCK"] = checking(Path(os.environ["LOCK"]))
        commands["TOML parser alone, LOCK"] = parsing(Path(os.environ["LOCK"]))
    measured = interleaved(commands, int(os.environ.get("ROUNDS", "31")), allowed=(0, 1, 3))
    for name, found in measured.items():
        print(f"{name:36}{found.median * 1000:8.1f} ms median {found.fastest * 1000:8.1f} fastest {found.memory:8.1f} MiB")
    return judge(measured)


def site_packages(folder: Path) -> Path:
    return next(folder.glob("lib/python3*/site-packages"))


def checking(path: Path) -> list[str]:
    return [str(OURS / "bin/compat"), "check", str(path), "--config", "none"]


def parsing(path: Path) -> list[str]:
    """Return the command for a process that only parses the file."""
    code = f"import toml_rs; toml_rs.loads(open({str(path)!r}, encoding='utf-8').read())"
    return [str(TOOLS / "bin/python"), "-c", code]


def judge(measured: dict[str, Measured]) -> int:
    small, large = measured["compat check, 300 packages"], measured["compat check, 3000 packages"]
    figures = [
        ("compat check of 300 packages / uv pip check", small.median / measured["uv pip check, 300 packages"].median, 1.0),
        ("ten times the packages, time", large.median / small.median, 12.0),
        ("compat check / TOML parser alone, 3000", large.median / measured["TOML parser alone, 3000 packages"].median, 2.0),
    ]
    if "compat check, LOCK" in measured:
        ratio = measured["compat check, LOCK"].median / measured["TOML parser alone, LOCK"].median
        figures.append(("compat check / TOML parser alone, LOCK", ratio, 2.0))
    missed = 0
    for label, ratio, most in figures:
        missed += ratio > most
        print(f"{label:52}{ratio:6.2f}  at most {most:.2f}  {'MISSED' if ratio > most else 'reached'}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
