"""Which extras and groups uv refuses to install together: those in which two members of a declared conflict count.

An extra counts where it is chosen and where a dependency asks for it (``kit[cpu]``). uv's command line names extras and
groups without their package: one also counts where another of its name is chosen and its own package is installed.
"""

from __future__ import annotations

from compat.environment import normalized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compat.read.files.listing import Choice, Listing


def extras_asked_for(listing: Listing) -> dict[int, int]:
    """The nodes that stand for an extra of a declared conflict that some dependency asks for, and the extra."""
    conflicting = _conflicting(listing)
    leading: dict[int, set[int | None]] = {}
    for _, child, _, choice in listing.edges or () if conflicting else ():
        if child >= len(listing.entries):
            leading.setdefault(child, set()).add(choice)
    found = {}
    for node, choices in leading.items():
        numbers = [number for number in choices if number is not None]
        if len(numbers) == 1 < len(choices) and numbers[0] in conflicting and listing.choices[numbers[0]].kind == "extra":
            found[node] = numbers[0]
    return found


def has_namesakes(listing: Listing) -> bool:
    """Whether a choice of a declared conflict may count because another one has its name."""
    return bool(_namesakes(listing))


def refusals(
    listing: Listing, chosen: Sequence[int], active: Sequence[int], installed: dict[int, int]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Worlds that uv refuses, and the conflict; given are those in which choices are made, are active, and those of nodes."""
    namesakes = _namesakes(listing)
    owners = {entry.distribution.name: at for at, entry in enumerate(listing.entries)} if namesakes else {}

    def counts(number: int) -> int:
        named = 0
        for other in namesakes.get(number, ()):
            named |= chosen[other]
        owner = owners.get(listing.choices[number].package or "")
        return active[number] | (named & installed.get(owner, 0) if owner is not None else 0)

    count = {number: counts(number) for number in _conflicting(listing)}
    for conflict in listing.conflicts:
        seen = both = 0
        for number in conflict:
            both |= seen & count[number]
            seen |= count[number]
        if both:
            yield both, conflict


def _conflicting(listing: Listing) -> set[int]:
    return {number for conflict in listing.conflicts for number in conflict}


def _namesakes(listing: Listing) -> dict[int, list[int]]:
    """For every choice of a declared conflict those of other packages that have its name."""
    by_name: dict[tuple[str, str], list[int]] = {}
    for number, choice in enumerate(listing.choices):
        if choice.package is not None and choice.kind != "package":
            by_name.setdefault(_name(choice), []).append(number)
    found = {number: by_name.get(_name(listing.choices[number]), []) for number in _conflicting(listing)}
    return {number: same for number, same in found.items() if len(same) > 1}


def _name(choice: Choice) -> tuple[str, str]:
    return choice.kind, normalized(choice.name)
