"""``python -m scripts.refresh.stacks``: the newest combination for each task and GPU that resolves and is judged clean.

Each row of ``matrix/stacks.csv`` is one run of ``compat suggest`` whose pins uv accepts and ``compat check`` finds nothing
against: no error and no warning. A combination that does not come to that loses its row, and is named on the terminal.
``--missing`` goes on where a run was ended: it leaves out what has a row.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from datetime import date
from pathlib import Path

TABLE = Path(__file__).resolve().parents[2] / "matrix" / "stacks.csv"
GPUS = ("RTX 5090", "B200", "H100", "A100 --driver 525.147.05", "T4", "MI300X", "Apple M3", "none")
STACKS = (
    ("grpo", "trl"), ("grpo", "trl,vllm"), ("grpo", "unsloth"), ("sft", "trl"), ("sft", "unsloth"), ("sft", "trl,deepspeed"),
    ("sft", "axolotl"), ("dpo", "trl"), ("serve", "vllm"), ("serve", "sglang"),
)  # fmt: skip
FOR_CUDA = frozenset(("vllm", "sglang", "unsloth", "axolotl"))
"""Packages whose wheels, or those of what they build on, are compiled for CUDA: that they resolve elsewhere shows nothing."""
ELSEWHERE = ("MI300X", "Apple M3", "none")
ALSO_SHOWN = ("torch", "transformers")
"""Packages that are recorded beside those that are named."""
SECONDS = 300


@dataclass(frozen=True)
class Stack:
    """A combination: what it is for, and the releases of what it is named by."""

    task: str
    stack: str
    gpu: str
    driver: str
    python: str
    pins: str
    packages: str
    checked: str


class NotCleanError(Exception):
    """The reason why a combination has no row."""


def stack_of(task: str, packages: str, gpu: str, options: tuple[str, ...] = ()) -> Stack:
    """Return the newest combination; raises :class:`NotCleanError` if none is clean."""
    name, _, driver = gpu.partition(" --driver ")
    target = ("--task", task, "--gpu", name, *(("--driver", driver) if driver else ()))
    done = _compat("suggest", *target, "--with", packages, "--format", "json", "--time-limit", str(SECONDS), *options)
    if done.returncode != 0:
        raise NotCleanError(done.stderr.strip() or "no releases go together")
    plan = json.loads(done.stdout)["plan"]
    if not (plan["verified"] or {}).get("uv"):
        raise NotCleanError(f"uv does not accept it: {(plan['verified'] or {}).get('why', '')}")
    pins = {each["name"]: each["to"] for each in plan["changes"]}
    if "torch" not in pins and not name.startswith("MI"):  # for AMD it is preinstalled
        raise NotCleanError("its releases for this platform bring in no torch: they run nothing here")
    python = next(text.split()[1] for text in plan["target"] if text.startswith("Python "))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "requirements.txt")
        file.write_text("".join(f"{each}=={version}\n" for each, version in pins.items()), encoding="utf-8")
        judged = _compat("check", str(file), *target, "--python-version", python, "--format", "json")
    if judged.returncode not in (0, 1):
        raise NotCleanError(judged.stderr.strip())
    bad = [each["rule"] for each in json.loads(judged.stdout)["findings"] if _is_bad(each)]
    if bad:
        raise NotCleanError(f"check finds {', '.join(bad)}")
    shown = {each: pins[each] for each in (*packages.split(","), *ALSO_SHOWN) if each in pins}
    told = " ".join(f"{each}=={version}" for each, version in shown.items())
    return Stack(task, packages, name, driver, python, told, str(len(pins)), date.today().isoformat())


def _is_bad(finding: dict[str, str]) -> bool:
    return finding["verdict"] == "hit" and finding["severity"] in ("error", "warning")


def _compat(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "compat", *words], capture_output=True, text=True, check=False)


def rows(path: Path) -> list[Stack]:
    """Return the rows of a table; none if the file does not exist."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [Stack(**row) for row in csv.DictReader(file)]


def write(path: Path, found: list[Stack]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(field.name for field in fields(Stack))
        writer.writerows(astuple(each) for each in sorted(found, key=lambda each: astuple(each)[:4]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--only", default="", help="stacks and GPUs whose 'task packages gpu' contains this")
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--missing", action="store_true", help="only what has no row")
    arguments = parser.parse_args()
    there = {(each.task, each.stack, each.gpu) for each in rows(arguments.table)} if arguments.missing else set()
    for task, packages, gpu in _wanted(arguments.only):
        name = gpu.partition(" --driver ")[0]
        if (task, packages, name) in there:
            continue
        kept = [each for each in rows(arguments.table) if (each.task, each.stack, each.gpu) != (task, packages, name)]
        try:
            kept.append(stack_of(task, packages, gpu))
            print(f"{task} {packages} {gpu}: {kept[-1].pins}", flush=True)
        except NotCleanError as problem:
            print(f"{task} {packages} {gpu}: {problem}", file=sys.stderr, flush=True)
        write(arguments.table, kept)
    return 0


def _wanted(only: str) -> Iterator[tuple[str, str, str]]:
    for task, packages in STACKS:
        for gpu in GPUS:
            runs = gpu not in ELSEWHERE or FOR_CUDA.isdisjoint(packages.split(","))
            if runs and only in f"{task} {packages} {gpu}":
                yield task, packages, gpu


if __name__ == "__main__":
    sys.exit(main())
