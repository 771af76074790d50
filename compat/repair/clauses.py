"""Clauses over numbered atoms: the form in which a problem is passed to the solver.

A literal is an atom's number, or its negative. Clauses carry the statement they come from, so that a contradiction can be
reported in the user's terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from compat.records import record
from compat.repair.candidates import Release
from compat.repair.target import Need

LEVELS = (
    "errors left",
    "recommended fixes not taken",
    "changes",
    "downgrades",
    "source installs",
    "releases behind the newest",
    "warnings left",
    "old releases added",
    "packages added or removed",
    "better recommended fixes",
    "release steps",
    "other builds",
    "release steps of what is added",
    "release steps of what follows",
)
"""The minimised costs, most important first.

A changed package counts as one change, plus five if a direct requirement is downgraded, plus five if the major version
changes: an expert would rather change five packages than do either, but not twenty. A downgrade of any other package counts as
two: two that move forward are better than one that goes back. The steps of packages that the installer chose count among those
of what is added: what the user pinned moves as little as possible.
"""
ERRORS, WARNINGS = "errors left", "warnings left"


class Requires(NamedTuple):
    """A statement: the requirement of one release, of which ``package`` is the name with the extra, if any.

    There are thousands for each problem, and its text is only written for those that are shown.
    """

    package: str
    release: Release
    need: Need

    @property
    def kind(self) -> str:
        return "requires"

    @property
    def text(self) -> str:
        return f"{self.package} {self.release.told} requires {self.need.text}"


@record(frozen=True)
class Statement:
    """The origin of a clause. ``kind``: rule, finding, asked, keep or stays; ``text`` is shown to the user.

    For one about several releases of a ``package``, ``says`` is what it says about each of them.
    """

    kind: str
    text: str
    package: str = ""
    says: str = ""

    def about(self, versions: Mapping[str, str]) -> str:
        """The text for the releases of one plan."""
        version = versions.get(self.package)
        return f"{self.package} {version} {self.says}" if version is not None else self.text


Origin = Statement | Requires


class Clauses:
    """A problem under construction."""

    def __init__(self) -> None:
        self.count = 0
        self.clauses: list[tuple[tuple[int, ...], Origin | None]] = []
        self.one_of: list[tuple[int, ...]] = []
        self.costs: list[dict[int, int]] = [{} for _ in LEVELS]

    def atom(self) -> int:
        self.count += 1
        return self.count

    def add(self, literals: tuple[int, ...], statement: Origin | None = None) -> None:
        """Add a clause: at least one of the literals holds."""
        self.clauses.append((literals, statement))

    def exactly_one(self, atoms: tuple[int, ...]) -> None:
        self.one_of.append(atoms)

    def cost(self, level: str, atom: int, weight: int = 1) -> None:
        """Add a cost for an atom being true."""
        if weight:
            costs = self.costs[LEVELS.index(level)]
            costs[atom] = costs.get(atom, 0) + weight

    # These atoms are only used where they help to satisfy a clause, so what they imply is all that has to be stated.

    def only_if_all(self, literals: tuple[int, ...]) -> int:
        """An atom that holds only if all literals do."""
        if len(literals) == 1 and literals[0] > 0:
            return literals[0]
        both = self.atom()
        for literal in literals:
            self.add((-both, literal))
        return both

    def only_if_any(self, literals: tuple[int, ...]) -> int:
        """An atom that holds only if at least one literal does."""
        if len(literals) == 1 and literals[0] > 0:
            return literals[0]
        either = self.atom()
        self.add((-either, *literals))
        return either
