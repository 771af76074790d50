"""The existing rows, so that those about one package can be regenerated while the others are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.surface.imports import Edges
from scripts.surface.opened import rows_in

Blocks = dict[str, dict[str, list[tuple[Any, ...]]]]
"""Package → E or R → rows: (package needed, releases without it, releases by line, …)."""


@dataclass
class Existing:
    blocks: Blocks
    edges: dict[str, Edges]
    versions: dict[str, tuple[str, ...]]

    def renumbered(self, versions: dict[str, tuple[str, ...]]) -> Existing:
        """Return the rows renumbered for changed release lists; a newly added release gets no verdict."""

        def moved(package: str, mask: int) -> int:
            before, now = self.versions.get(package, ()), versions.get(package)
            if now is None or now == before:
                return mask
            places = {version: at for at, version in enumerate(now)}
            return sum(1 << places[each] for at, each in enumerate(before) if mask >> at & 1 and each in places)

        blocks = {
            package: {
                kind: [
                    (row[0], moved(row[0], row[1]), {line: moved(package, mask) for line, mask in row[2].items()}, *row[3:-1],
                     tuple(_seen(row[-1], self.versions.get(row[0], ()), versions.get(row[0]))))
                    for row in rows
                ]
                for kind, rows in kinds.items()
            }
            for package, kinds in self.blocks.items()
        }  # fmt: skip
        edges = {package: {edge: moved(package, mask) for edge, mask in found.items()} for package, found in self.edges.items()}
        return Existing(blocks, edges, self.versions)

    def with_rows_about(self, target: str, made: Blocks) -> Blocks:
        """Return the rows, with these consumers' rows about one package replaced."""
        found: Blocks = {package: dict(kinds) for package, kinds in self.blocks.items()}
        for package, kinds in made.items():
            old = found.setdefault(package, {})
            for kind in ("E", "R"):
                old[kind] = [row for row in old.get(kind, []) if row[0] != target] + kinds.get(kind, [])
        return found


def _seen(evidence: Any, before: tuple[str, ...], now: tuple[str, ...] | None) -> Iterator[Any]:
    """Evidence, which names a release by its number."""
    places = {version: at for at, version in enumerate(before if now is None else now)}
    return ((places[before[at]], *rest) for at, *rest in evidence if before[at] in places)


def existing(path: Path) -> Existing:
    """Return the contents of a rows file; empty if it does not exist."""
    rows = rows_in(path)
    blocks: Blocks = defaultdict(dict)
    edges: dict[str, Edges] = {}
    for package, kind in rows.parts if rows is not None else ():
        assert rows is not None
        block = rows.part(package, kind)
        masks = block["masks"]
        if kind == "X":
            edges[package] = {
                (start, end, tuple(asks)): masks[mask]
                for start, *steps in block["rows"]
                for mask, asks, ends in zip(steps[::3], steps[1::3], steps[2::3])
                for end in ends
            }
            continue
        blocks[package][kind] = [
            (target, masks[bad], {line: masks[mask] for mask, line in zip(lines[::2], lines[1::2])}, *rest)
            for target, bad, lines, *rest in block["rows"]
        ]
    versions = {package: rows.versions(package) for package in rows.packages} if rows is not None else {}
    return Existing(dict(blocks), edges, versions)
