"""``python -m benchmarks.fleet``: CPU time and memory of ``compat fleet`` for 10,000 nodes by number of distinct environments.

The nodes are made up: the packages of a real stack, some of which have another release in each environment. Reading is timed by
itself, in the same run, as the parsing of every file with the standard library.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import interleaved

STACK = Path(__file__).parent / "environment.txt"
DISTINCT = (1, 10, 100, 1000)
_CHANGED = 5


def main(arguments: Sequence[str]) -> int:
    """Print one line for each number of distinct environments."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=1)
    chosen = parser.parse_args(arguments)
    for distinct in DISTINCT:
        with tempfile.TemporaryDirectory() as folder:
            described(Path(folder), chosen.nodes, distinct)
            command = [sys.executable, "-m", "compat", "fleet", folder, "--fail-on", "never"]
            commands = {
                "compat": command,
                "reading": [sys.executable, "-c", _READING, folder],
            }
            measured = interleaved(commands, chosen.rounds)
            findings = json.loads(
                subprocess.run([*command, "--format", "json"], capture_output=True, text=True, check=True).stdout
            )
        ours, reading = measured["compat"], measured["reading"]
        errors = sum(each["severity"] == "error" for group in findings["groups"] for each in group["findings"])
        print(
            f"{chosen.nodes:7,} nodes {len(findings['groups']):6,} environments {errors:6,} errors   CPU{ours.cpu:6.2f} s,"
            f" {ours.cpu - reading.cpu:5.2f} s beyond reading; {ours.memory:5.0f} MiB",
            flush=True,
        )
    return 0


_READING = "import json, pathlib, sys\nfor each in pathlib.Path(sys.argv[1]).iterdir(): json.loads(each.read_bytes())"


def described(folder: Path, nodes: int, distinct: int) -> None:
    """Write the files of ``nodes`` nodes with ``distinct`` environments, the same ones for the same numbers."""
    chance = random.Random(distinct)
    lines = (line.partition("==") for line in STACK.read_text(encoding="utf-8").splitlines() if "==" in line)
    stack = {name: version for name, _, version in lines}
    environments = []
    for number in range(distinct):
        versions = dict(stack)
        for name in chance.sample(sorted(stack), _CHANGED if number else 0):
            versions[name] = f"{stack[name].partition('.')[0]}.{chance.randrange(60)}.{number}"
        environments.append({
            "schema": "compat/environment/1", "python": "3.11.9", "os": "linux", "machine": "x86_64", "glibc": "2.35",
            "driver": "570.86.15", "distributions_complete": True,
            "distributions": [{"name": name, "version": version} for name, version in versions.items()],
            "accelerators": [{"vendor": "nvidia", "name": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0"}] * 8,
        })  # fmt: skip
    now = time.time()
    for number in range(nodes):
        host = f"node{number + 1:05d}"
        text = json.dumps({**environments[number % distinct], "node": {"host": host, "clock": now}})
        (folder / f"{host}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
