"""``make fixes-corpus``: published files × targets that break them: fixed, checked again, given to uv.

Every pair is a copy of its own. ``compat check`` says whether an error holds there, ``compat fix --write`` fixes it, and
``check`` looks again: then it is *fixed*. A lock has the project of the same commit beside it, if that was published, too;
without one its plan can only be printed, and it is *planned* if our evaluator and uv accept the plan. The commands that are
printed with a plan are given to uv with ``--dry-run``.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from compat.index.configuration import uv_binary
from scripts.golden_inputs import SHARED

FILES = SHARED / "corpus" / "files"
KINDS = ("requirements", "derived", "conda", "pyproject", "poetry.lock", "uv.lock", "pylock.toml", "Pipfile.lock", "pdm.lock")
TARGETS = (
    ("--gpu", "RTX 5090"), ("--gpu", "B200"), ("--gpu", "T4"), ("--gpu", "H100:2", "--task", "sft", "--launcher", "python"),
    ("--gpu", "H100:2", "--task", "grpo"),
)  # fmt: skip
SECONDS = 150
PLATFORM = "x86_64-manylinux_2_35"
KEPT_FROM_IT = {"Failed to fetch": "index not reached", "no usable wheels": "needs a build", "Building source": "needs a build",
                "error sending request": "index not reached", "Git operation failed": "repository not reached",
                "does not appear to be a Python project": "needs its project"}  # fmt: skip


@dataclass(frozen=True)
class End:
    """The outcome of one pair: a keyword, its basis, and the time in seconds."""

    word: str
    why: str
    seconds: float
    installs: str = ""


def compat(*words: str, seconds: int = SECONDS, folder: Path) -> tuple[int, str, str]:
    try:
        done = subprocess.run(
            [sys.executable, "-m", "compat", *words], capture_output=True, text=True, timeout=seconds, check=False, cwd=folder
        )
    except subprocess.TimeoutExpired:
        return 124, "", f"no answer within {seconds} s"
    return done.returncode, done.stdout, done.stderr.strip()


def installs(commands: list[str], python: str, folder: Path) -> str:
    """Return what uv says of the printed commands, if they install something: "yes", "no" or what kept it from it."""
    words = [shlex.split(each) for each in commands if each.startswith("uv pip install")]
    uv = uv_binary()
    if not words or uv is None:
        return ""
    with tempfile.TemporaryDirectory() as empty:
        for each in words:
            target = ("--dry-run", "--target", empty, "--no-build", "--python-version", python, "--python-platform", PLATFORM)
            done = subprocess.run(
                [uv, *each[1:], *target], capture_output=True, text=True, timeout=SECONDS, check=False, cwd=folder
            )
            if done.returncode:
                said = " ".join(done.stderr.split())
                known = (why for mark, why in KEPT_FROM_IT.items() if mark in said)
                return next(known, f"no: {said[:300]}")
    return "yes"


def named(path: Path) -> str:
    """Return the file name that tools expect for a copy."""
    return path.name.rpartition("__")[2].replace("utf16le-bom", "")


def errors(file: str, target: tuple[str, ...], folder: Path) -> int | None:
    """Return the number of certain errors; ``None`` if the file cannot be checked."""
    code, out, _ = compat("check", file, *target, "--format", "json", folder=folder)
    if code not in (0, 1):
        return None
    found: list[dict[str, str]] = json.loads(out)["findings"]
    return sum(each["severity"] == "error" and each["verdict"] == "hit" for each in found)


def ended(path: Path, target: tuple[str, ...], options: tuple[str, ...]) -> End | None:
    """Return the outcome of one pair; ``None`` without a certain error."""
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        file = shutil.copyfile(path, folder / named(path)).name
        repository = path.name.rpartition("__")[0]
        for beside in (FILES / "pyproject").glob(f"{repository}__pyproject.toml") if path.name.endswith("uv.lock") else ():
            shutil.copyfile(beside, folder / "pyproject.toml")
        before = errors(file, target, folder)
        if not before:
            return None
        start = perf_counter()
        code, out, problem = compat("fix", file, *target, "--write", "--format", "json", *options, folder=folder)
        seconds = perf_counter() - start
        if not out:
            return End(
                "no answer" if code == 124 else f"exit {code}", problem.splitlines()[-1][:150] if problem else "", seconds
            )
        report = json.loads(out)
        plan = report["plan"]
        moved = ", ".join(f"{each['name']} {each['from']}→{each['to']}" for each in plan["changes"] if not each["implied"])
        if not plan["changes"]:
            said = (
                plan["refused"] or (plan["verified"] or {}).get("why") or "; ".join(plan["core"] or ()) or str(plan["unread"])
            )
            word = "contradiction" if plan["core"] else "nothing to fix" if code == 0 else f"no plan ({code})"
            return End(word, said[:150], seconds)
        if plan["left"]:
            return End("partly", f"{moved[:100]}; left {', '.join(plan['left'])}", seconds)
        accepted = plan["verified"]["uv"]
        python = re.sub(r"Python ([\d.]+).*", r"\1", plan["target"][0])
        run = installs(plan["commands"], python, folder)
        if "the plan is only printed" in problem:
            return End("planned" if accepted else "not accepted", moved[:100], seconds, run)
        after = errors(file, target, folder)
        if "not updated: " in problem:
            return End("lock left", f"{moved[:100]}; {problem.partition('not updated: ')[2][:150]}", seconds, run)
        word = "fixed" if after == 0 and accepted else "not accepted" if after == 0 else f"still {after} errors"
        return End(word, f"{moved[:150] or accepted}{' (locked)' if plan['verified'].get('lock') else ''}", seconds, run)


def pairs() -> Iterator[tuple[Path, tuple[str, ...]]]:
    for kind in KINDS:
        for path in sorted((FILES / kind).glob("*")):
            for target in TARGETS:
                yield path, target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--part", default="1/1", help="the Nth part of M of the pairs: N/M")
    parser.add_argument("--option", action="append", default=[], help="an option for compat fix")
    arguments = parser.parse_args()
    number, _, parts = arguments.part.partition("/")
    counted: Counter[str] = Counter()
    installable: Counter[str] = Counter()
    for at, (path, target) in enumerate(pairs()):
        if at % int(parts) != int(number) - 1:
            continue
        end = ended(path, target, tuple(arguments.option))
        if end is not None:
            counted[end.word] += 1
            installable[end.installs.partition(":")[0]] += end.installs != ""
            said = f" [uv pip install: {end.installs}]" if end.installs not in ("", "yes") else ""
            print(f"{end.word:15}{end.seconds:6.1f} s  {path.name}  {' '.join(target)}: {end.why}{said}", flush=True)
    total = sum(counted.values())
    print(f"{counted['fixed']} of {total} fixed; " + ", ".join(f"{count} {word}" for word, count in counted.most_common()))
    print(
        "printed commands that uv would install: " + ", ".join(f"{count} {word}" for word, count in installable.most_common())
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
