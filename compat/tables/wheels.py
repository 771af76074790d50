"""Pythons and systems that releases have wheels for: ``linux:3.8..3.11 windows:3.9.. sdist``, as ``releases.csv`` has them.

``matrix/facts/wheels.csv`` has further compiled packages, of which nothing else is known.
"""

from __future__ import annotations

import os

from compat.files import read_table
from compat.records import record
from compat.versions import key_of

TABLE = "wheels.csv"
FILE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "wheels.bin")


@record(frozen=True)
class Run:
    """Consecutive releases, ``first`` to ``last``, that have wheels for the same Pythons and systems."""

    first: str
    last: str
    wheels: str


def open_wheels() -> dict[str, tuple[Run, ...]]:
    """Return the runs of each package, oldest first."""
    import marshal

    return {name: tuple(Run(*each) for each in runs) for name, runs in marshal.loads(read_table(FILE)).items()}


def packed(folder: str) -> bytes:
    """Compile ``wheels.csv``."""
    import csv
    import marshal

    found: dict[str, list[tuple[str, str, str]]] = {}
    with open(os.path.join(folder, TABLE), encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["package"], []).append((row["first"], row["last"], row["wheels"]))
    return marshal.dumps(found, 4)


def fits(wheels: str, system: str | None, python: str | None) -> bool:
    """Whether a wheel is among them for a Python (``3.12.4``) on a system (``linux``); ``None`` for any."""
    for offer in wheels.split(" "):
        name, _, spans = offer.partition(":")
        if spans and system in (None, name) and (python is None or any(_within(span, python) for span in spans.split("+"))):
            return True
    return False


def newest_python(wheels: str, system: str | None) -> str:
    """Return the newest Python that they are for on a system; of wheels for any later one, the first."""
    spans = [
        span
        for offer in wheels.split(" ")
        if offer.partition(":")[0] in (system, "linux" if system is None else system)
        for span in offer.partition(":")[2].split("+")
    ]
    return max((span.partition("..")[2] or span.partition("..")[0] for span in spans), key=key_of)


def _within(span: str, python: str) -> bool:
    first, _, last = span.partition("..")
    here = key_of(".".join(python.split(".")[:2]))
    return key_of(first) <= here and (here <= key_of(last) if last else ".." in span or here == key_of(first))
