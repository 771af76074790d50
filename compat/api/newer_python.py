"""The cases of a file for newer Pythons than the inferred one, where only those have the releases that fix an error.

The newest Python that the pins have wheels for may be so old that no release for it works on the target's GPU. An expert moves
the pins that keep it back instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from compat.api.case import Case, read_again
from compat.api.planning import planner_of
from compat.api.resolution import completed, unresolved
from compat.model import Finding
from compat.records import replace

if TYPE_CHECKING:
    from compat.repair.plan import Planner

_MOST = 3
"""Maximum number of newer Pythons that are tried."""


def for_newer_pythons(
    case: Case, planner: Planner, left: Collection[Finding], keep: Sequence[str]
) -> Iterator[tuple[Case, Planner]]:  # fmt: skip
    """The case and its planner for the next newer Pythons; ``planner`` is the one that left the errors ``left``.

    None unless the Python was inferred from the pins of a file that an installer completes, and newer releases of the packages
    of the errors are for other Pythons.
    """
    if case.listing is None or case.whole or not left or not planner.for_other_pythons(left):
        return
    why = "; ".join(dict.fromkeys(each.title for each in left))
    for python in case.newer[:_MOST]:
        bare = unresolved(case)
        environment = replace(bare.environment, python=python)
        bare = replace(bare, environment=environment, told=(f"Python {python}", *bare.told[1:]), pythons=(), newer=())
        after = completed(read_again(bare, case.listing, planner.means), planner.means)
        note = f"no plan for Python {case.environment.python} fixes everything ({why}); this one is for Python {python}"
        yield replace(after, notes=(note, *after.notes)), planner_of(after, planner.problem.policy, planner.means, keep)
