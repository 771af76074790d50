"""``python -m scripts.surface.names_truth``: random names of tables against the real releases, installed and imported.

Of each package some pairs of neighbouring releases are installed of which one has a public name that the other one lacks:
the import statement has to fail with the one, and with nothing but that, and to work with the other.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from compat.interfaces.table import Table
from compat.interfaces.world import World
from scripts.surface.opened import table_in
from scripts.surface.tables import FOLDER

PAIRS, NAMES = 3, 5
"""Pairs of releases of a package, and names of a pair, that are tried at most."""
CONFIRMED, NO_ERROR, NO_CONTROL = "confirmed", "no error", "no control"
_TIMEOUT = 300


@dataclass(frozen=True)
class Pair:
    """``statements`` work with release ``good`` and fail with ``bad``, as the table has it."""

    package: str
    good: str
    bad: str
    statements: tuple[str, ...]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.names_truth", description=__doc__)
    parser.add_argument("packages", nargs="+", metavar="PACKAGE")
    parser.add_argument(
        "--with-dependencies", nargs="*", default=(), metavar="PACKAGE", help="installed with what they require"
    )
    parser.add_argument("--python", required=True, metavar="FILE", help="an interpreter with torch and the usual dependencies")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the table, as CSV")
    words = parser.parse_args(arguments)
    order = random.Random(words.seed)
    pairs = [pair for package in words.packages for pair in pairs_of(package, order)]
    counts: Counter[str] = Counter()
    with open(words.out, "w", newline="", encoding="utf-8") as file, ThreadPoolExecutor(words.jobs) as pool:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("package", "statement", "good", "bad", "result", "seen"))
        for pair, results in pool.map(lambda pair: (pair, tried(pair, words.python, words.with_dependencies)), pairs):
            for statement, result, seen in results:
                counts[result] += 1
                writer.writerow((pair.package, statement, pair.good, pair.bad, result, seen))
                print(f"{result}: {pair.package} {pair.good} / {pair.bad}: {statement} {seen}", flush=True)
            file.flush()
    for result, count in sorted(counts.items()):
        print(f"{result}: {count}")
    return int(counts[NO_ERROR] > 0)


def pairs_of(package: str, order: random.Random) -> Iterator[Pair]:
    """Neighbouring releases that differ in public names, some of them."""
    table = table_in(FOLDER / f"{package}.bin")
    assert table is not None, package
    finals = [version for version in table.versions if not Version(version).is_prerelease]
    places = [(one, other) for one, other in itertools.pairwise(finals) if Version(other) >= Version(one)]
    order.shuffle(places)
    left = PAIRS
    for one, other in places[:40]:
        gone, new = _differing(table, one, other), _differing(table, other, one)
        for good, bad, found in ((one, other, gone), (other, one, new)):
            if found and left:
                left -= 1
                yield Pair(package, good, bad, tuple(order.sample(found, min(NAMES, len(found)))))


def _differing(table: Table, good: str, bad: str) -> list[str]:
    """Import statements of public names that certainly work with one release and certainly fail with the other."""
    surfaces = table.surface(good), table.surface(bad)
    assert surfaces[0] is not None
    assert surfaces[1] is not None
    having, lacking = World((surfaces[0],)), World((surfaces[1],))
    found = []
    for module in table.modules():
        if any(part.startswith("_") or part in ("tests", "testing") for part in module.split(".")) or module.count(".") > 2:
            continue
        if surfaces[0].holds(module) != "source":
            continue
        for name in sorted(table.names_in(module)):
            if name.startswith("_") or having.imported(module, name).kind not in ("class", "function", "value"):
                continue
            if lacking.imported(module, name).kind == "absent":
                found.append(f"from {module} import {name}")
    return found


_PROGRAM = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
for statement in sys.argv[2:]:
    try:
        exec(statement, {})
        print("worked", flush=True)
    except BaseException as problem:
        print(type(problem).__name__, str(problem).replace(chr(10), " ")[:150], flush=True)
"""


def tried(pair: Pair, python: str, with_dependencies: list[str]) -> list[tuple[str, str, str]]:
    """Each statement of a pair with what came out."""
    seen = {}
    for version in (pair.good, pair.bad):
        with tempfile.TemporaryDirectory(prefix="names-truth-") as folder:
            alone = () if pair.package in with_dependencies else ("--no-deps",)
            command = ("uv", "pip", "install", "--quiet", "--python", python, "--target", folder, *alone)
            installed = subprocess.run(
                (*command, f"{pair.package}=={version}"), capture_output=True, text=True, timeout=_TIMEOUT
            )
            if installed.returncode:
                return [(statement, NO_CONTROL, f"{version} cannot be installed") for statement in pair.statements]
            lines = []
            for statement in pair.statements:  # each in a process of its own: an import leaves traces
                command = (python, "-c", _PROGRAM, folder, statement)
                ran = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, cwd=folder)
                lines.append((ran.stdout.strip().splitlines() or ["ended"])[-1])
            seen[version] = lines
    found = []
    for at, statement in enumerate(pair.statements):
        good, bad = seen[pair.good][at], seen[pair.bad][at]
        if good != "worked":
            found.append((statement, NO_CONTROL, good))
        elif bad.startswith(("ImportError", "ModuleNotFoundError", "AttributeError", "PydanticImportError")):
            found.append((statement, CONFIRMED, bad))
        else:
            found.append((statement, NO_ERROR, bad))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
