"""Why a package is at its version, and what would have to change to move it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.checks.requirements import Requires
from compat.errors import InputError, Undecided
from compat.records import record

if TYPE_CHECKING:
    from compat.repair.plan import Plan, Planner


@record(frozen=True)
class Why:
    """``requirements`` are all known requirements between installed packages, ``versions`` the installed (name, version) pairs.

    ``moved`` is the plan with the package at ``wanted``; ``None`` if that is the installed release.
    """

    name: str
    version: str
    requirements: tuple[Requires, ...]
    versions: tuple[tuple[str, str], ...]
    wanted: str
    moved: Plan | None = None

    @property
    def asking(self) -> tuple[Requires, ...]:
        """The requirements on the package itself."""
        return tuple(each for each in self.requirements if each.asked == self.name)


def why(name: str, planner: Planner, wanted: str | None = None, *, planned: bool = True) -> Why:
    """Explain what holds a package at its version, and what else a move to its newest release (or ``wanted``) changes.

    Without ``planned``, only the requirements are returned and no move is planned.
    :class:`InputError` if the package is not installed, :class:`Undecided` if required data could not be read.
    """
    from compat.repair.target import Need
    from compat.repair.verify import Checks

    current = planner.problem.current.get(name)
    if current is None:
        raise InputError(f"{name} is not among the packages")
    requirements = planner.requirements()
    wanted = (wanted or planner.newest(name)) if planned else current.version
    if wanted is None:
        raise Undecided(f"the releases of {name} could not be read: {planner.unread(name)}")
    moved = None
    if wanted != current.version:
        moved = planner.moved(Need(name, f"=={wanted}", ())).plan(checks=Checks(uv=False))
        if moved.core and moved.unread:  # unread data does not prove a contradiction
            other, reason = next(iter(moved.unread.items()))
            raise Undecided(f"{other} could not be read: {reason}")
    versions = tuple((release.name, release.version) for release in planner.problem.current.values())
    return Why(name, current.version, requirements, versions, wanted, moved)
