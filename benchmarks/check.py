"""``make bench``: compat compared with similar tools on one real environment of 161 distributions, as ratios.

Everything is installed under ``.bench/``. Set ``TORCH=1`` to add torch's own ``collect_env`` to the table (installs torch),
``ROUNDS`` for more or fewer rounds.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.many_rules import write_many
from benchmarks.measure import Measured, interleaved

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / ".bench"
STACK, OURS, TOOLS, MANY = BENCH / "stack", BENCH / "compat", BENCH / "tools", BENCH / "many"
TIMES_AS_MANY = 5


def main() -> int:
    """Print the table and the targets; returns 1 if a target is missed."""
    uv = prepare()
    described = BENCH / "environment.json"
    facts = subprocess.run([OURS / "bin/compat", "facts", "--python", STACK], check=True, capture_output=True)
    described.write_bytes(facts.stdout)
    rules = write_many(OURS, MANY, TIMES_AS_MANY)
    commands = {
        "uv pip check": [uv, "pip", "check", "--python", str(STACK)],
        "pip check": [str(STACK / "bin/python"), "-m", "pip", "check"],
        "compat doctor": [str(OURS / "bin/compat"), "doctor", "--python", str(STACK)],
        "compat check": [str(OURS / "bin/compat"), "check", "--environment", str(described)],
        f"compat check, {rules} rules": [str(MANY / "bin/compat"), "check", "--environment", str(described)],
        f"compat doctor, {rules} rules": [str(MANY / "bin/compat"), "doctor", "--python", str(STACK)],
    }
    measured = interleaved(commands, int(os.environ.get("ROUNDS", "31")))
    slow = peers()
    if slow:
        measured |= interleaved(slow, 3, allowed=range(3))
    print_table(measured)
    return judge(measured, rules) | opening(rules)


def prepare() -> str:
    """Create the environments once; compat itself is always reinstalled. Returns the path of uv."""
    uv = str(TOOLS / "bin/uv")
    if not Path(uv).exists():
        venv(TOOLS)
        subprocess.run([TOOLS / "bin/pip", "install", "--quiet", "uv"], check=True)
    if not (STACK / "complete").exists():
        venv(STACK)
        requirements = str(ROOT / "benchmarks/environment.txt")
        subprocess.run([uv, "pip", "install", "--quiet", "--no-deps", "--python", str(STACK), "-r", requirements], check=True)
        (STACK / "complete").touch()
    for folder in (OURS, MANY):
        if not (folder / "bin/python").exists():
            venv(folder, "--without-pip")  # as pipx and uv create them
        options = ["--quiet", "--compile-bytecode", "--reinstall-package", "compat-doctor"]
        subprocess.run([uv, "pip", "install", *options, "--python", str(folder), str(ROOT)], check=True)
    return uv


def venv(folder: Path, *options: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", *options, str(folder)], check=True)


def peers() -> dict[str, list[str]]:
    """Return the slower tools that can be installed."""
    found = {}
    doctor = BENCH / "env-doctor"
    if not (doctor / "bin/env-doctor").exists():
        venv(doctor)
        done = subprocess.run([doctor / "bin/pip", "install", "--quiet", "env-doctor"], check=False, capture_output=True)
        if done.returncode:
            print("env-doctor cannot be installed here; it is left out", file=sys.stderr)
    if (doctor / "bin/env-doctor").exists():
        found["env-doctor check"] = [str(doctor / "bin/env-doctor"), "check"]
    if os.environ.get("TORCH"):
        torch = BENCH / "torch"
        if not (torch / "complete").exists():
            venv(torch)
            subprocess.run([torch / "bin/pip", "install", "--quiet", "torch==2.13.0"], check=True)
            (torch / "complete").touch()
        found["torch collect_env"] = [str(torch / "bin/python"), "-m", "torch.utils.collect_env"]
    return found


def print_table(measured: dict[str, Measured]) -> None:
    base = measured["uv pip check"]
    print(f"{'':34}{'median ms':>10}{'fastest':>9}{'x uv':>8}{'peak MiB':>10}{'x uv':>7}")
    for name, found in measured.items():
        times = f"{found.median * 1000:10.1f}{found.fastest * 1000:9.1f}{found.median / base.median:8.2f}"
        print(f"{name:34}{times}{found.memory:10.1f}{found.memory / base.memory:7.2f}")


def judge(measured: dict[str, Measured], rules: int) -> int:
    """Print the targets, as ratios of this run's figures; returns 1 if one is missed."""
    uv, pip = measured["uv pip check"], measured["pip check"]
    missed = 0
    for name, budget in (("compat check", 1.5), ("compat doctor", 1.7)):
        ours, many = measured[name], measured[f"{name}, {rules} rules"]
        for label, ratio, most in (
            (f"{name} / uv pip check, time", ours.median / uv.median, budget),
            (f"{name} / pip check, time", ours.median / pip.median, 0.25),
            (f"{name} / uv pip check, memory", ours.memory / uv.memory, 1.5),
            (f"{name} with {TIMES_AS_MANY} times the rules, time", many.median / ours.median, 1.2),
        ):
            missed += ratio > most
            print(f"{label:52}{ratio:6.2f}  at most {most:.2f}  {'MISSED' if ratio > most else 'reached'}")
    return int(missed > 0)


def opening(rules: int) -> int:
    """Measure opening the compiled matrix inside a process, against the budget of 5 ms per 1,000 rules."""
    code = (
        "import time; from compat.rules.compiled import open_matrix; start = time.perf_counter();"
        " open_matrix(); print(time.perf_counter() - start)"
    )
    command = [str(MANY / "bin/python"), "-I", "-c", code]
    times = sorted(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(21))
    took = times[len(times) // 2] * 1000 / (rules / 1000)
    missed = took > 5
    print(f"{f'opening {rules} rules, ms for 1,000':52}{took:6.2f}  at most 5.00  {'MISSED' if missed else 'reached'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
