"""What a listing installs, and what it says of each distribution."""

from __future__ import annotations

from compat.checks.choices import Requested
from compat.checks.contexts import Contexts
from compat.formats.listing import Listing
from compat.model import Environment


def selected(
    listing: Listing,
    extras: tuple[str, ...] = (),
    groups: tuple[str, ...] | None = None,
    python: str = "3.11.9",
    os: str = "linux",
    machine: str = "x86_64",
) -> set[str]:
    """``{"torch 2.6.0", …}`` for one target; ``groups`` ``None``: the default ones."""
    contexts = Contexts(listing, Environment(python=python, os=os, machine=machine), Requested(extras, groups))
    return {
        f"{entry.distribution.name} {entry.distribution.version}"
        for entry, mask in zip(listing.entries, contexts.installed())
        if mask
    }


def pins(listing: Listing) -> dict[str, str | None]:
    """Distribution → its version or specifier."""
    return {each.distribution.name: each.distribution.version or each.distribution.specifier for each in listing.entries}


def lines(listing: Listing) -> dict[str, int | None]:
    """Distribution → its line."""
    return {each.distribution.name: each.line for each in listing.entries}


def placed_pins(listing: Listing) -> dict[str, tuple[str | None, int | None]]:
    """Distribution → its version and line."""
    return {each.distribution.name: (each.distribution.version, each.line) for each in listing.entries}
