"""Why a package is at its version, and what would have to change for it to move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.checks.requirements import Requires
from compat.errors import InputError, Undecided
from compat.records import record

if TYPE_CHECKING:
    from compat.repair.plan import Plan, Planner


@record(frozen=True)
class Why:
    """``requirements`` are all that are known between the packages that are there, ``versions`` what is there (name, version).

    ``moved`` is the plan with the package at ``wanted``; ``None`` where that is the release that is there.
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
    """What holds a package at its version, and what a move to its newest release (or to ``wanted``) takes along.

    The move is not planned without ``planned``, where only what holds what is asked for.
    :class:`InputError` where the package is not there, :class:`Undecided` where what was needed could not be read.
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
        if moved.core and moved.unread:  # what could not be read is no contradiction
            other, reason = next(iter(moved.unread.items()))
            raise Undecided(f"{other} could not be read: {reason}")
    versions = tuple((release.name, release.version) for release in planner.problem.current.values())
    return Why(name, current.version, requirements, versions, wanted, moved)
