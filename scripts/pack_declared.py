"""``matrix/facts/releases.csv`` and ``requirements.csv`` → the file that :mod:`compat.tables.declared` reads."""

from __future__ import annotations

import csv
import marshal
import os
import re
from array import array
from datetime import date
from functools import cache
from typing import Any

from packaging.requirements import Requirement as Written

from compat.markers import Marker, parse
from compat.model import normalized
from compat.tables.declared import FIRST_DAY, Runs
from compat.versions import Ranges, ranges_of

_NOT_FOR_USERS = ("dev", "test", "doc", "quality", "lint", "ci", "bench", "example", "notebook", "release", "style", "all")
"""Parts of the names of extras for those who work on a package, or that hold everything."""


def packed(folder: str) -> bytes:
    """Return the compiled form of the fact files in a folder, for the build."""
    releases: dict[str, list[tuple[str, ...]]] = {}
    with open(os.path.join(folder, "releases.csv"), encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            releases.setdefault(row["package"], []).append(
                (
                    row["version"], row["requires_python"], row["glibc"], row["yanked"], row["reason"], row["wheels"],
                    row["uploaded"],
                )
            )  # fmt: skip
    asked: dict[str, dict[str, list[tuple[Any, ...]]]] = {name: {} for name in releases}
    names = set(releases)
    one: dict[Any, Any] = {}  # equal values become one object, which is written and read once per block
    extras: dict[str, dict[str, list[tuple[Any, ...]]]] = {name: {} for name in releases}
    with open(os.path.join(folder, "requirements.csv"), encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            values: list[Any] = [one.setdefault(each, each) for each in _requirement(row["requirement"])]
            name, specifier, marker, extra = values
            ranges = _ranges(specifier)
            places = {version: number for number, (version, *_) in enumerate(releases[row["package"]])}
            runs = tuple((places[run.partition("..")[0]], places[run.rpartition("..")[2]]) for run in row["releases"].split())
            runs = one.setdefault(runs, runs)
            names.add(name)
            if marker is None:
                extras[row["package"]].setdefault(extra or "", []).append((name, runs))
            if ranges is not None and not (extra is not None and any(word in extra.lower() for word in _NOT_FOR_USERS)):
                asked[row["package"]].setdefault(name, []).append((specifier, ranges, marker, extra, runs))
    index: dict[str, tuple[int, int]] = {}
    blocks, end = [], 0
    for name, rows in releases.items():
        pythons = tuple((told, _ranges(told), runs) for told, runs in _runs([row[1] for row in rows]))
        block = marshal.dumps(
            (
                " ".join(row[0] for row in rows),
                {place: row[4] for place, row in enumerate(rows) if row[3]},
                pythons,
                tuple(_runs([row[2] for row in rows])),
                _packed(asked[name]),
                marshal.dumps({extra: tuple(found) for extra, found in extras[name].items()}, 4),
                tuple(_runs([row[5] for row in rows])),
                array("H", [date.fromisoformat(row[6]).toordinal() - FIRST_DAY if row[6] else 0 for row in rows]).tobytes(),
            ),
            4,
        )
        index[name] = (end, end + len(block))
        end += len(block)
        blocks.append(block)
    header = marshal.dumps((index, " ".join(sorted(names))), 4)
    return b"".join((len(header).to_bytes(8, "big"), header, *blocks))


def _packed(rows: dict[str, list[tuple[Any, ...]]]) -> dict[str, bytes]:
    return {name: marshal.dumps(tuple(found), 4) for name, found in rows.items()}


def _runs(values: list[str]) -> list[tuple[str, Runs]]:
    """Group neighbours with equal values, without empty ones."""
    found: dict[str, list[tuple[int, int]]] = {}
    for place, value in enumerate(values):
        runs = found.setdefault(value, [])
        if runs and runs[-1][1] == place - 1:
            runs[-1] = (runs[-1][0], place)
        else:
            runs.append((place, place))
    return [(value, tuple(runs)) for value, runs in found.items() if value]


def _requirement(text: str) -> tuple[str, str, Marker | None, str | None]:
    """Return (name, specifier, marker without the extra, extra) of a requirement."""
    written = Written(text)
    marker, extra = _without_extra(str(written.marker) if written.marker else "")
    return normalized(written.name), str(written.specifier), None if marker is None else parse(marker), extra


@cache
def _ranges(specifier: str) -> Ranges | None:
    """Return the ranges of a specifier set; ``None`` if it is empty or cannot be expressed as ranges."""
    try:
        return ranges_of(specifier) if specifier else None
    except ValueError:
        return None


def _without_extra(text: str) -> tuple[str | None, str | None]:
    """Return (the rest of a marker, its extra); a marker with another form of extra test keeps its text and has no extra."""
    found = re.fullmatch(r'(?:(?P<before>.*?) and )?extra == "(?P<extra>[^"]+)"(?: and (?P<after>.*))?', text)
    if not found or (found["before"] and " or " in found["before"] and not text.startswith("(")):
        return text or None, None
    rest = " and ".join(f"({part})" for part in (found["before"], found["after"]) if part)
    if "extra" in rest:
        return text, None
    return rest or None, found["extra"]
