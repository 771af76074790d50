"""``make bench-repair``: whole runs of ``compat fix`` beside ``uv pip compile`` of the same pins: real releases, warm caches.

The pins are resolved by uv as of a day, the rules are made up. ``cost`` is what the cheapest plan costs where that was found
by other engines as well. Each problem is run once to fill the caches, then both commands in turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks.check import BENCH, prepare
from benchmarks.measure import interleaved

ROOT = Path(__file__).resolve().parent.parent
PYTHON = "3.11"
BEFORE = "2025-12-31"
RULE = """
[[rule]]
id = "bench-{name}"
title = "{title}"
severity = "error"
effect = "crash"
confidence = "reported"
why = "Made up for the benchmark."
packages = {packages}
evidence = ["https://github.com/vllm-project/vllm/issues/1"]
[[rule.fix]]
upgrade = {fix}
[[rule.example]]
hit = {{ packages = {bad} }}
[[rule.example]]
clear = {{ packages = {good} }}
"""


@dataclass(frozen=True)
class Known:
    """A made-up rule: what is bad, what is not."""

    name: str
    packages: str
    fix: str
    bad: str
    good: str


@dataclass(frozen=True)
class Problem:
    """Pins as of a day, rules, what is kept, and at most how many times plain uv it may take."""

    name: str
    asked: tuple[str, ...]
    day: str
    rules: tuple[Known, ...]
    keep: tuple[str, ...] = ()
    most: float = 4.0
    fails: bool = False
    cost: tuple[tuple[str, int], ...] | None = None


PAIR = Known(
    "pair", '{ vllm = "<0.7.2", trl = ">=0.14,<0.16" }', '{ trl = ">=0.16" }', '{ vllm = "0.7.1", trl = "0.14.0" }',
    '{ vllm = "0.7.1", trl = "0.16.0" }',
)  # fmt: skip
TORCH = Known("torch", '{ torch = "<2.7" }', '{ torch = ">=2.7" }', '{ torch = "2.5.1" }', '{ torch = "2.7.0" }')
BITS = Known(
    "bitsandbytes", '{ bitsandbytes = "<0.45.5" }', '{ bitsandbytes = ">=0.45.5" }', '{ bitsandbytes = "0.45.1" }',
    '{ bitsandbytes = "0.45.5" }',
)  # fmt: skip
SMALL = ("vllm==0.7.1", "trl==0.14.0", "transformers==4.48.2", "peft", "datasets")
LARGE = ("vllm==0.7.1", "trl==0.14.0", "torch==2.5.1", "xformers==0.0.28.post3", "bitsandbytes==0.45.1", "peft", "datasets")
PROBLEMS = (
    Problem("P1a one rule", SMALL, "2025-02-10", (PAIR,), cost=(("installed packages changed", 1), ("release steps", 4))),
    Problem(
        "P1b one rule, trl kept",
        SMALL,
        "2025-02-10",
        (PAIR,),
        keep=("trl",),
        cost=(("installed packages changed", 2), ("release steps", 2)),
    ),
    Problem("P2 torch from 2.7", LARGE, "2025-02-10", (TORCH, BITS), most=10.0),
    Problem("P3 torch from 2.7, vllm kept", LARGE, "2025-02-10", (TORCH, BITS), keep=("vllm",), most=10.0, fails=True),
)


def main() -> int:
    """Prints costs and ratios; 1 where a ratio is missed, a plan is refused or one exists that may not."""
    uv = prepare()
    compat = str(Path(sys.executable).with_name("compat"))
    missed = 0
    for problem in PROBLEMS:
        folder = BENCH / "repair" / problem.name.partition(" ")[0]
        pins, rules = written(problem, folder, uv)
        fix = [compat, "fix", str(pins), "--rules", str(rules), "--python-version", PYTHON, "--before", BEFORE]
        fix += ["--keep", *problem.keep] if problem.keep else []
        compiling = [uv, "pip", "compile", "--quiet", "--no-header", "--python-version", PYTHON, str(pins)]
        done = subprocess.run([*fix, "--format", "json"], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            print(f"{problem.name}: {done.stderr.strip()}")
            missed += 1
            continue
        plan = json.loads(done.stdout)["plan"]
        commands = {"uv": compiling, "compat": [*fix, "--brief"]}
        measured = interleaved(commands, int(os.environ.get("ROUNDS", "5")), allowed=(0, 1))
        ratio = measured["compat"].median / measured["uv"].median
        paid = tuple((level, amount) for level, amount in plan["cost"].items() if amount)
        wrong = bool(plan["core"]) != problem.fails or (not problem.fails and not plan["proven"])
        wrong = wrong or problem.cost not in (None, paid)
        missed += wrong or ratio > problem.most
        cost = ", ".join(f"{amount} {level}" for level, amount in paid) or "cannot be had"
        print(f"{problem.name:32}{ratio:6.2f} x uv, at most {problem.most:.0f}   {cost}{'   WRONG' if wrong else ''}")
    return int(missed > 0)


def written(problem: Problem, folder: Path, uv: str) -> tuple[Path, Path]:
    """The pins and the rules of a problem, made once."""
    pins, rules = folder / "requirements.txt", folder / "rules.toml"
    if not pins.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "requirements.in").write_text("\n".join(problem.asked) + "\n", encoding="utf-8")
        command = [uv, "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--exclude-newer", problem.day]
        command += ["--python-version", PYTHON, "--python-platform", "x86_64-manylinux_2_28"]
        subprocess.run([*command, str(folder / "requirements.in"), "-o", str(pins)], check=True, capture_output=True)
    rules.write_text(
        "".join(RULE.format(title=f"Bad: {each.name}", **vars(each)) for each in problem.rules), encoding="utf-8"
    )  # fmt: skip
    return pins, rules


if __name__ == "__main__":
    sys.exit(main())
