"""Tables about wheels in ``matrix/facts`` → the files that modules of :mod:`compat.tables` read."""

from __future__ import annotations

import csv
import marshal
import os
import zlib
from collections.abc import Iterator
from typing import Any

from compat.versions import key_of

LINKED, SYMBOLS, NUMPY_ABI, WHEELS, OVERLAPS = "linked.csv", "torch_symbols.csv", "numpy_abi.csv", "wheels.csv", "overlaps.csv"
_TAGS = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
"""Platform tags older than those that name their glibc."""


def packed_linked(folder: str) -> tuple[bytes, bytes]:
    """Compile the fact files of a folder: the content of both files."""
    linked = sorted(_rows(folder, LINKED), key=lambda row: (row["package"], key_of(row["version"])))
    versions: dict[str, list[str]] = {}
    for row in linked:
        if not row["variant"]:
            versions.setdefault(row["package"], []).append(row["version"])
    symbols = list(_rows(folder, SYMBOLS))
    ends = {end for row in symbols for run in row["series"].split() for end in run.split("..")}
    every = sorted(ends, key=key_of) or ["0"]
    exported = {row["symbol"]: members(every, row["series"]) for row in symbols}
    loading: dict[tuple[str, str], list[str]] = {}
    for row in symbols:
        for asking in filter(None, row["needed_by"].split("; ")):
            package, _, text = asking.partition(" ")
            for version in members(versions.get(package, []), text):
                left = loading.setdefault((package, version), every)
                loading[package, version] = [each for each in left if each in exported[row["symbol"]]]
    content: dict[str, list[tuple[Any, ...]]] = {}
    for row in linked:
        series = loading.get((row["package"], row["version"]))
        content.setdefault(row["package"], []).append(
            (
                row["version"], row["variant"], tuple(row["needs"].split()), tuple(row["versions"].split()),
                _tag(row["source"]), None if series is None else tuple(series),
            )
        )  # fmt: skip
    places = {symbol: tuple(map(every.index, found)) for symbol, found in exported.items()}
    return (
        marshal.dumps(
            ((every[0], every[-1]), {package: marshal.dumps(tuple(rows), 4) for package, rows in content.items()}), 4
        ),
        zlib.compress(marshal.dumps((tuple(every), places), 4), 9),
    )


def packed_numpy_abi(folder: str) -> bytes:
    """Compile ``numpy_abi.csv``."""
    return marshal.dumps({row["package"]: (row["last"], row["first"], row["module"]) for row in _rows(folder, NUMPY_ABI)}, 4)


def members(every: list[str], text: str) -> list[str]:
    """Return the members of runs such as ``2.0..2.4 2.6``; runs of unknown members are left out."""
    found: list[str] = []
    for run in text.split():
        first, _, last = run.partition("..")
        if first in every and (last or first) in every:
            found += every[every.index(first) : every.index(last or first) + 1]
    return found


def _tag(source: str) -> str:
    """The oldest glibc that the platform tags of a wheel name."""
    tags = source.partition(".whl")[0].rpartition("-")[2].split(".")
    found = [_TAGS.get(tag.partition("_")[0]) or _named(tag) for tag in tags]
    return min((each for each in found if each), key=key_of, default="")


def _named(tag: str) -> str:
    parts = tag.split("_")
    return f"{parts[1]}.{parts[2]}" if parts[0] == "manylinux" and len(parts) > 3 else ""


def packed_wheels(folder: str) -> bytes:
    """Compile ``wheels.csv``."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for row in _rows(folder, WHEELS):
        found.setdefault(row["package"], []).append((row["first"], row["last"], row["wheels"]))
    return marshal.dumps(found, 4)


def packed_overlaps(folder: str) -> bytes:
    """Compile ``overlaps.csv``."""
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for row in _rows(folder, OVERLAPS):
        runs = tuple((first, last) for first, _, last in (run.partition("..") for run in row["releases"].split()))
        alike, mixed = (tuple(row[name].split()) for name in ("alike", "mixed"))
        found = row["file"], runs, alike, mixed, row["part"] == "yes", row["build"], int(row["rank"])
        rows.setdefault(row["package"], []).append(found)
    return marshal.dumps({name: tuple(found) for name, found in rows.items()}, 4)


def _rows(folder: str, name: str) -> Iterator[dict[str, str]]:
    path = os.path.join(folder, name)
    if os.path.exists(path):
        with open(path, encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)
