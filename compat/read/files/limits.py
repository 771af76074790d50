"""How much one file may list: far beyond every real file, so that one made to be too much is refused and not worked on."""

from __future__ import annotations

from compat.errors import InputError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.read.files.listing import Listing

ENTRIES = 20_000
"""Releases or requirements; the largest real lock that is known has 1,300."""
EDGES = 500_000
CHOICES = 1_500
"""Extras, groups and environments; real files have some dozens, workspaces a few hundred."""
CONFLICTING = 500
"""Choices in sets of which no two go together, counted once for each set."""


def within_limits(listing: Listing) -> Listing:
    """The listing itself; :class:`InputError` where it has too much of something."""
    conflicting = sum(map(len, listing.conflicts))
    for count, most, what in (
        (len(listing.entries), ENTRIES, "entries"),
        (len(listing.edges or ()), EDGES, "dependencies"),
        (len(listing.choices), CHOICES, "extras, groups or environments"),
        (conflicting, CONFLICTING, "extras and groups in its conflicts"),
    ):
        if count > most:
            raise InputError(f"has more than {most} {what}", listing.file)
    return listing


def check_entries(count: int, file: str, line: int | None) -> None:
    """:class:`InputError` where a file has more entries than it may."""
    if count > ENTRIES:
        raise InputError(f"has more than {ENTRIES} entries", file, line)
