"""Which of the packages that a lock lists can fail beside each other: the others need not be told apart."""

from __future__ import annotations

from compat.matrix.surface.at_once import FRAMEWORKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from compat.matrix.surface.rows import Rows


def broken_together(
    releases: Mapping[str, Iterable[str]], rows: Rows, *, later: bool, failing: frozenset[str] | None = None
) -> frozenset[str]:
    """The packages of every row that some choice of the listed releases breaks; ``later``: those of calls too.

    ``failing``: the only packages of which something may fail.
    """
    listed = {name: versions for name, versions in releases.items() if name in rows.packages}
    frameworks = FRAMEWORKS & listed.keys()
    tiers = ("E1", "E2") if frameworks or later else ("E1",)
    broken = rows.broken_by_some(listed, tiers=tiers, later=later, consumers=failing)
    found = {name for row in broken for name in (row.consumer, row.package)}
    if any(row.tier == "E2" for row in broken):
        found |= frameworks  # one of them may be what runs the module
    return frozenset(found)


def used_by_code(paths: tuple[str, ...]) -> frozenset[str]:
    """The packages that code uses, and those that their classes inherit from."""
    from compat.judge.code.findings import INHERITED_FROM, wanted_of

    return frozenset(wanted_of(paths).packages()) | INHERITED_FROM
