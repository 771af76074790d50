"""``matrix/marks.csv``: hand-picked source lines that distinguish a release inside a bound from its neighbour outside.

A mark is a rule, a package, a path suffix and a text. It supports a bound if exactly one of the two releases has the text
in a file of that path, so a wrongly chosen mark shows nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.audit.bounds import Bound
from scripts.audit.evidence import ROOT
from scripts.audit.sources import Sources
from scripts.surface.store import Release

FILE = ROOT / "matrix" / "marks.csv"


@dataclass(frozen=True)
class Mark:
    """``path`` is a suffix of a file's path in the release; an empty ``text`` matches the file's existence."""

    rule: str
    package: str
    path: str
    text: str


def read(path: Path = FILE) -> list[Mark]:
    """Return the marks in a file."""
    with path.open(encoding="utf-8", newline="") as file:
        return [Mark(**row) for row in csv.DictReader(file)]


class Marks:
    """Answers about bounds from the source of releases."""

    def __init__(self, marks: Sequence[Mark], sources: Sources) -> None:
        self._marks = marks
        self._sources = sources

    def seen(self, bound: Bound) -> str:
        """Describe the difference between the two releases of a bound; ``""`` if no mark shows one."""
        for mark in self._marks:
            if (mark.rule, mark.package) != (bound.rule, bound.package):
                continue
            inside, outside = (self._sources.release(bound.package, version) for version in (bound.inside, bound.outside))
            if inside is None or outside is None:
                continue
            here, there = self._has(inside, mark), self._has(outside, mark)
            if here != there:
                what = f"{mark.text!r} is in {mark.path}" if mark.text else f"there is a {mark.path}"
                with_it, without = (bound.inside, bound.outside) if here else (bound.outside, bound.inside)
                return f"{what} of {with_it} and not of {without}"
        return ""

    def _has(self, release: Release, mark: Mark) -> bool:
        files = (path for path in release.members if path.endswith(mark.path))
        return any(mark.text in self._sources.text(release, path) for path in files)
