"""``python -m scripts.refresh.linked_truth [--rows N] [--seed N]``: random rows of ``linked.csv``, held to binutils.

The libraries of the row's wheel are read again with ``readelf`` and ``nm``: what they need, which versions they ask for, and
whether the symbols that they ask of torch are all exported by a series that the table says fits, and not by one that it says
does not. Of torch the libraries of some series are unpacked, several hundred MiB each.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from packaging.version import Version
from pypi_simple import DistributionPackage

from compat.tables.linked import LinkedTable
from scripts.pack_wheels import packed_linked
from scripts.refresh.index import Index
from scripts.refresh.libraries import linux
from scripts.refresh.linked import TORCH
from scripts.refresh.updates import MIB

FACTS = Path(__file__).resolve().parents[2] / "matrix" / "facts"
SERIES = ("2.4", "2.6", "2.8", "2.10")
"""Of torch, among which a good and a bad one are drawn."""
_OF_TORCH = re.compile(r"_Z(?:NK?|T[VISH]N?)[0-9]+(?:c10|at|torch|caffe2)[0-9]|THP|aoti_torch")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.refresh.linked_truth", description=__doc__)
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    words = parser.parse_args(arguments)
    chosen, index = random.Random(words.seed), Index()
    table = LinkedTable(packed_linked(str(FACTS))[0])
    with (FACTS / "linked.csv").open(encoding="utf-8", newline="") as file:
        rows = chosen.sample(list(csv.DictReader(file)), words.rows)
    exported = {series: _exported(index, series) for series in SERIES}
    counts: Counter[str] = Counter()
    for row in sorted(rows, key=lambda each: (each["package"], Version(each["version"]))):
        linked = next(
            each for each in table.of(row["package"]) if (each.version, each.variant) == (row["version"], row["variant"])
        )
        series = None if linked.series is None else [each for each in SERIES if each in linked.series]
        for what, answer in _answers(index, row, series, exported):
            counts[f"{what}: {'confirmed' if answer else 'refuted'}"] += 1
            print(row["package"], row["version"], row["variant"], what, "confirmed" if answer else "REFUTED", flush=True)
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    return int(any("refuted" in what for what in counts))


def _answers(
    index: Index, row: Mapping[str, str], series: list[str] | None, exported: Mapping[str, set[str]]
) -> Iterator[tuple[str, bool]]:
    file, _, names = row["source"].partition(": ")
    with _unpacked(
        index, _file(index, row["package"], row["version"], file), "|".join(map(re.escape, names.split(", ")))
    ) as paths:
        needed, versions, undefined, own = _read(paths)
    yield "libraries", set(row["needs"].split()) <= needed
    floors: dict[str, Version] = {}
    for what, number in re.findall(r"\b(GLIBC|GLIBCXX|CXXABI)_([\d.]+)\b", versions):
        floors[what] = max(floors.get(what, Version("0")), Version(number))
    yield "versions", {f"{what}_{number}" for what, number in floors.items()} == set(row["versions"].split())
    asked = {symbol for symbol in undefined - own if _OF_TORCH.match(symbol)}
    if series is None or not asked:
        return
    for each in SERIES:
        yield f"torch {'that fits' if each in series else 'that does not'}", (asked <= exported[each]) == (each in series)


def _read(paths: list[Path]) -> tuple[set[str], str, set[str], set[str]]:
    """What libraries need, which versions, which symbols they ask for, and which they export."""
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", _said("readelf", "-dW", *paths)))
    asked = "\n".join(
        part.split("Version definition")[0] for part in _said("readelf", "-VW", *paths).split("Version needs")[1:]
    )
    undefined = {line.split()[-1].split("@")[0] for line in _said("nm", "-D", *paths).splitlines() if re.search(r" U ", line)}
    return needed, asked, undefined, _defined(paths)


def _defined(paths: list[Path]) -> set[str]:
    lines = _said("nm", "-D", "--defined-only", *paths).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if len(line.split()) == 3}


def _exported(index: Index, series: str) -> set[str]:
    releases = [each for each in index.releases("torch") if f"{each.key.major}.{each.key.minor}" == series]
    file = linux(releases[-1])
    assert file is not None
    with _unpacked(index, file, TORCH) as paths:
        return {symbol for symbol in _defined(paths) if _OF_TORCH.match(symbol)}


def _file(index: Index, package: str, version: str, name: str) -> DistributionPackage:
    releases = [each for each in index.releases(package) if each.version == version]
    return next(file for release in releases for file in release.wheels if file.filename == name)


@contextmanager
def _unpacked(index: Index, file: DistributionPackage, pattern: str) -> Iterator[list[Path]]:
    """The members of a wheel whose names, with or without their folders, match, as files."""
    with tempfile.TemporaryDirectory() as folder, index.wheel(file, 4096 * MIB) as wheel:
        paths = []
        for at, name in enumerate(wheel.members()):
            if re.fullmatch(pattern, name) or re.fullmatch(pattern, name.rpartition("/")[2]):
                paths.append(Path(folder) / str(at))
                with paths[-1].open("wb") as output:
                    for piece in wheel.pieces(name):
                        output.write(piece)
        yield paths


def _said(*words: object) -> str:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
