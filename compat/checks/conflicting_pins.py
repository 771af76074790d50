"""Conflicting requirements: two lines of a requirements file that no version of a distribution satisfies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.checks.worlds import Place, Worlds
from compat.model import Distribution, Environment, Finding, Fix, Location
from compat.versions import contains, is_version, key_of, overlap, ranges_of

if TYPE_CHECKING:
    from compat.checks.choices import Asked
    from compat.formats.listing import Entry, Listing


_EVIDENCE = "https://pip.pypa.io/en/stable/topics/dependency-resolution/"
_MOST = 8
"""The maximum number of lines for one distribution that are compared with each other."""
_FACTS = ("python", "os", "machine")


def judge_pins(listing: Listing, known: Environment, asked: Asked) -> tuple[Finding, ...]:
    """Return a finding for each distribution of a requirements file whose requirements cannot be resolved."""
    if listing.kind != "requirements":
        return ()
    lines: dict[str, list[int]] = {}
    for number, entry in enumerate(listing.entries):
        if entry.distribution.version or entry.distribution.specifier:
            lines.setdefault(entry.distribution.name, []).append(number)
    several = [numbers[:_MOST] for numbers in lines.values() if len(numbers) > 1]
    if not several:
        return ()
    worlds = Worlds(listing, known, asked)
    installed = worlds.installed()
    return tuple(finding for numbers in several for finding in _of_one(numbers, installed, worlds))


def _of_one(numbers: list[int], installed: list[int], worlds: Worlds) -> Iterator[Finding]:
    """Yield a finding for the conflicting pair of lines that applies in the most worlds, if any."""
    entries = worlds.listing.entries
    pairs = [
        (installed[first] & installed[second], first, second)
        for position, second in enumerate(numbers) for first in numbers[:position]
        if installed[first] & installed[second] and _disjoint(entries[first].distribution, entries[second].distribution)
    ]  # fmt: skip
    if pairs:
        mask, first, second = max(pairs, key=lambda pair: (pair[0].bit_count(), -pair[2], -pair[1]))
        decisive = () if mask == worlds.all else _decisive(worlds.places_of(mask), worlds.places_of(worlds.all))
        yield _finding(entries[first], entries[second], worlds.listing, decisive, holds=mask == worlds.all)


def _disjoint(left: Distribution, right: Distribution) -> bool:
    """Whether no version satisfies both; ``False`` if they cannot be compared."""
    if left.specifier is None and right.specifier is None:
        return _different(left.version or "", right.version or "")
    try:
        if left.specifier is not None and right.specifier is not None:
            return not overlap(ranges_of(left.specifier), ranges_of(right.specifier))
        ranged, pinned = (left, right) if left.specifier is not None else (right, left)
        return not contains(ranges_of(ranged.specifier or ""), key_of(pinned.version or ""))
    except ValueError:
        return False


def _different(left: str, right: str) -> bool:
    """Whether two pins differ; ``2.6.0`` also matches ``2.6.0+cu124``, which only matches its own local label."""
    if not is_version(left) or not is_version(right):
        return False
    labels = [version.partition("+")[2].lower().replace("-", ".").replace("_", ".") for version in (left, right)]
    return bool(key_of(left) != key_of(right) or (all(labels) and labels[0] != labels[1]))


def _decisive(inside: list[Place], everywhere: list[Place]) -> tuple[str, ...]:
    """The facts about the target that decide whether both lines apply."""

    def values(places: list[Place], name: str) -> set[object]:
        return {place.python[:2] if name == "python" else getattr(place, name) for place in places}

    return tuple(name for name in _FACTS if values(inside, name) != values(everywhere, name)) or _FACTS


def _finding(first: Entry, second: Entry, listing: Listing, decisive: tuple[str, ...], *, holds: bool) -> Finding:
    name = first.distribution.name
    asked = [each.distribution.specifier or f"=={each.distribution.version}" for each in (first, second)]
    places = [f"{each.file or listing.file}:{each.line}" for each in (first, second)]
    return Finding(
        rule="requirements-conflict", origin="metadata", verdict="hit" if holds else "possible", severity="error",
        effect="install", title=f"{name} is required as {asked[0]} and as {asked[1]}: the requirements cannot be resolved",
        why="No version satisfies both lines. pip fails with ResolutionImpossible, uv with unsatisfiable requirements.",
        confidence="confirmed", packages={name: " and ".join(asked)}, missing=decisive, unknown=decisive,
        fixes=(Fix(kind="pin", package=name, text=f"keep only one of the two lines, {places[0]} or {places[1]}"),),
        evidence=(_EVIDENCE,), here=f"{name}{asked[0]} ({places[0]}), {name}{asked[1]} ({places[1]})",
        location=Location(second.file or listing.file, second.line),
    )  # fmt: skip
