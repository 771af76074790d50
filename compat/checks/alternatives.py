"""Extras and groups of which a target takes one: the same torch, built for the CPU or for several releases of CUDA.

A project that declares them as conflicts has them for different machines. A build that does not fit the target is an error
in none of them as long as another one has a build that does: which one is installed is for the user to say.
"""

from __future__ import annotations

from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from compat.checks.choices import ChoiceSet
    from compat.formats.listing import Listing
    from compat.model import Finding


def fitting(
    at: Collection[int], bad: Collection[int], torch: Sequence[frozenset[str]], sets: Sequence[ChoiceSet], listing: Listing
) -> list[int]:
    """The sets that can be installed instead of each of those ``at``, with the same release of torch; empty if one has none.

    ``bad`` are the sets whose build does not fit, ``torch`` the releases of torch, without the label of their build, in each.
    """
    others = [number for number in range(len(sets)) if number not in bad]
    found: set[int] = set()
    for number in at:
        instead = [
            other for other in others
            if torch[number] and torch[number] == torch[other] and _are_alternatives(sets[number], sets[other], listing)
        ]  # fmt: skip
        if not instead:
            return []
        found.update(instead)
    return sorted(found)


def _are_alternatives(one: ChoiceSet, other: ChoiceSet, listing: Listing) -> bool:
    return any(
        (mine := one.numbers.intersection(conflict)) and (theirs := other.numbers.intersection(conflict)) and mine != theirs
        for conflict in listing.conflicts
    )


def is_about_build(finding: Finding) -> bool:
    """Whether a finding is about torch's build not fitting the target, which another build may."""
    return finding.origin == "build" and finding.verdict == "hit" and finding.packages.keys() == {"torch"}


def left_open(finding: Finding, instead: Sequence[ChoiceSet], listing: Listing) -> Finding:
    """The finding as *possible*: which extra or group is installed decides."""
    kinds = {listing.choices[number].kind for each in instead for number in each.numbers}
    unknown = tuple(path for kind, path in (("extra", "extras"), ("group", "groups")) if kind in kinds) or ("extras",)
    return replace(finding, verdict="possible", unknown=(*unknown, *finding.unknown), missing=(*unknown, *finding.missing))
