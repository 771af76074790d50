"""Clauses over numbered atoms, with what each stands for: the form in which a repair is handed to the engine.

A literal is an atom's number, or its negative. Every clause carries the statement it comes from, so that a contradiction can be
told in the user's words.
"""

from __future__ import annotations

from compat.records import record

LEVELS = (
    "errors left",
    "recommended fixes not taken",
    "changes",
    "source installs",
    "releases behind the newest",
    "warnings left",
    "old releases added",
    "packages added or removed",
    "better recommended fixes",
    "release steps",
    "other builds",
    "release steps of what is added",
)
"""What is minimised, the first level first.

A changed package counts as one change, as five more where a direct requirement goes back, and as five more where the major
version moves: an expert changes five packages rather than that, but not twenty.
"""
ERRORS, WARNINGS = "errors left", "warnings left"


@record(frozen=True)
class Requires:
    """What one release requires: ``package`` (with the extra that asks), its ``version``, and the requirement."""

    package: str
    version: str
    needed: str


@record(frozen=True)
class Statement:
    """Where a clause comes from. ``kind``: requires, rule, finding, keep, stays, python; ``text`` is in the user's words."""

    kind: str
    text: str
    requires: Requires | None = None


class Clauses:
    """A problem under construction."""

    def __init__(self) -> None:
        self.count = 0
        self.clauses: list[tuple[tuple[int, ...], Statement | None]] = []
        self.one_of: list[tuple[int, ...]] = []
        self.costs: list[dict[int, int]] = [{} for _ in LEVELS]

    def atom(self) -> int:
        self.count += 1
        return self.count

    def add(self, literals: tuple[int, ...], statement: Statement | None = None) -> None:
        """At least one of the literals holds."""
        self.clauses.append((literals, statement))

    def exactly_one(self, atoms: tuple[int, ...]) -> None:
        self.one_of.append(atoms)

    def cost(self, level: str, atom: int, weight: int = 1) -> None:
        """What it costs if an atom is true."""
        if weight:
            costs = self.costs[LEVELS.index(level)]
            costs[atom] = costs.get(atom, 0) + weight

    def all_of(self, literals: tuple[int, ...]) -> int:
        """An atom that holds exactly where all the literals do."""
        if len(literals) == 1 and literals[0] > 0:
            return literals[0]
        both = self.atom()
        for literal in literals:
            self.add((-both, literal))
        self.add((both, *(-literal for literal in literals)))
        return both

    def any_of(self, literals: tuple[int, ...]) -> int:
        """An atom that holds exactly where one of the literals does."""
        if len(literals) == 1 and literals[0] > 0:
            return literals[0]
        either = self.atom()
        for literal in literals:
            self.add((-literal, either))
        self.add((-either, *literals))
        return either
