"""``make bench-repair``: ``compat fix`` compared with ``uv pip compile`` of the same pins: real releases, warm caches.

Each problem is run once to fill the caches, then both commands alternately, both offline. After that one run of each with empty
caches, online; then the time by number of pins (``--growth``: that alone, ``--warm``: neither).
``--second-engine`` instead also solves the last clauses of each problem with CP-SAT.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from time import perf_counter

from benchmarks.check import BENCH
from benchmarks.measure import interleaved
from benchmarks.repair_growth import growth
from benchmarks.repair_problems import PROBLEMS, PYTHON, Problem, said, written
from compat.index.configuration import uv_binary

FOLDER = BENCH / "repair"
_REACHED_WITH = ("PIP_CERT", "PIP_PROXY", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_CACHE_DIR")
"""Variables that say how the index is reached."""


def main(arguments: Sequence[str]) -> int:
    """Print costs and ratios; returns 1 for a missed ratio or cost, a rejected plan, or a plan where none should exist."""
    uv = uv_binary()
    if uv is None:
        print("uv was not found: pip install uv", file=sys.stderr)
        return 1
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_")) and name not in _REACHED_WITH]:
        del os.environ[name]  # uv ignores pip's configuration, but both must use the same index
    os.environ["PIP_CONFIG_FILE"] = os.devnull
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    if "--second-engine" in arguments:
        return sum([second_opinion(problem, uv) for problem in PROBLEMS]) > 0
    missed = 0
    if "--growth" not in arguments:
        missed = sum([measure(problem, uv, empty="--warm" not in arguments) for problem in PROBLEMS])
    return int(missed + (0 if "--warm" in arguments else growth(FOLDER, uv)) > 0)


def measure(problem: Problem, uv: str, *, empty: bool = True) -> bool:
    """Return whether a problem misses a target; ``empty``: also run each command with empty caches."""
    told = written(problem, FOLDER / problem.label, uv)
    fix = [sys.executable, "-m", "compat", "fix", *told, "--brief"]
    compiling = [uv, "pip", "compile", "--quiet", "--no-header", "--python-version", PYTHON, told[0]]
    done = subprocess.run([*fix, "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        print(f"{problem.name}: {done.stderr.strip()}")
        return True
    plan = json.loads(done.stdout)["plan"]
    paid = plan["cost"]
    wrong = paid != problem.cost or bool(plan["core"]) != problem.fails or not plan["proven"]
    commands = {"uv": [*compiling, "--offline"], "compat": [*fix, "--offline"]}
    measured = interleaved(commands, int(os.environ.get("ROUNDS", "5")))
    ratio = measured["compat"].cpu / measured["uv"].cpu
    wall = measured["compat"].median / measured["uv"].median
    cold = f"; empty caches{without_cache(fix) / without_cache(compiling):6.2f} x" if empty else ""
    print(
        f"{problem.name:42}CPU{ratio:6.2f} x uv, at most {problem.most:.0f}; wall{wall:6.2f} x{cold}   "
        f"{said(paid)}{'   WRONG' if wrong else ''}",
        flush=True,
    )
    return wrong or ratio > problem.most


def without_cache(command: Sequence[str]) -> float:
    """Return the seconds of one run with empty caches."""
    with tempfile.TemporaryDirectory() as empty:
        kept = {name: value for name, value in os.environ.items() if name not in ("COMPAT_CACHE_DIR", "UV_CACHE_DIR")}
        start = perf_counter()
        subprocess.run(command, capture_output=True, check=False, env={**kept, "XDG_CACHE_HOME": empty})
        return perf_counter() - start


def second_opinion(problem: Problem, uv: str) -> bool:
    """Solve the last clauses of a problem with both engines; returns whether they differ from each other or the known cost."""
    from benchmarks.second_engine import cheapest
    from compat.api.commands import command_named
    from compat.api.planning import planning
    from compat.cli import parse
    from compat.repair.engine import cheapest_model
    from compat.repair.problem import Policy
    from compat.rules.compiled import open_matrix

    words = parse(command_named("fix"), written(problem, FOLDER / problem.label, uv))
    matrix = open_matrix(words.values.get("rules", ()))
    with planning(words, matrix, Policy()) as (_, planner):
        clauses = planner.solved()[1].relaxation.clauses
    start = perf_counter()
    model = cheapest_model(clauses)
    between = perf_counter()
    second = cheapest(clauses)
    ours, theirs = between - start, perf_counter() - between
    found = () if model is None else model.cost
    wrong = found != second or model is None or not model.optimal
    print(
        f"{problem.name:42}{clauses.count:7} atoms{len(clauses.clauses):8} clauses  clingo {found} {ours:.2f} s"
        f"  CP-SAT {second} {theirs:.2f} s{'   WRONG' if wrong else ''}",
        flush=True,
    )
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
