"""The releases of a package that meet each need, those that certainly do not, and the evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compat.interfaces.needs import Verdict, verdict_on
from compat.interfaces.world import World

if TYPE_CHECKING:
    from compat.interfaces.needs import Need
    from compat.interfaces.release import Surface

Evidence = tuple[int, str, int, bool]
"""(release, file, line, whether it is there in it)"""


@dataclass
class Judged:
    """Bit masks of releases: ``met``, and ``problems`` by (kind, missing name); for all other releases it is unknown.

    ``evidence`` covers each change between met and unmet.
    """

    met: int = 0
    problems: dict[tuple[str, str], int] = field(default_factory=dict)
    evidence: list[Evidence] = field(default_factory=list)
    last: tuple[bool, Evidence | None] | None = None
    """While releases are gone through: what the one before had."""

    @property
    def unmet(self) -> int:
        return sum(self.problems.values())


def judged(releases: Iterable[Surface], needs: Iterable[Need]) -> dict[Need, Judged]:
    """Check every need against every release of a package, oldest first; return those met by some releases but not others."""
    found = {need: Judged() for need in needs}
    for at, surface in enumerate(releases):
        world = World((surface,))
        for need, entry in found.items():
            try:
                verdict = verdict_on(world, need)
            except RecursionError:
                continue
            if verdict.met is None:
                continue
            _note(entry, at, verdict)
    limited = {need: entry for need, entry in found.items() if entry.unmet and entry.met}
    for entry in limited.values():
        entry.last = None
    return limited


def _note(entry: Judged, at: int, verdict: Verdict) -> None:
    seen = evidence_of(verdict, at)
    if verdict.met:
        entry.met |= 1 << at
    else:
        before = next((each for each in entry.problems if each[0] == verdict.kind == "name"), (verdict.kind, verdict.missing))
        mask = entry.problems.pop(before, 0)  # of a name one problem: the last says which part of it is missing
        entry.problems[verdict.kind, verdict.missing] = mask | 1 << at
    if entry.last is not None and entry.last[0] != verdict.met:
        entry.evidence += [each for each in (entry.last[1], seen) if each is not None]
    entry.last = bool(verdict.met), seen


def evidence_of(verdict: Verdict, at: int) -> Evidence | None:
    where = verdict.where
    if where is None or where.surface is None:
        return None
    module = where.module
    while module and where.surface.holds(module) not in ("source", "folder"):
        module = module.rpartition(".")[0]
    record = where.surface.module(module) if module else None
    if record is None:
        return None
    return at, record.path, verdict.line, bool(verdict.met)
