"""The Python that a notebook records: that of the kernel it was last saved with, which need not be the one it is run with."""

from __future__ import annotations

from compat.records import replace
from compat.tables.declared import open_declared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.formats.listing import Listing

_LEAST = 2
"""Packages that have to be pinned for another Python: a single one may be a mistake in the notebook."""


def with_possible_python(listing: Listing) -> Listing:
    """The listing of a notebook without its Python, with a note, if several of its pins cannot be installed for that."""
    python = listing.context.python
    if listing.kind != "notebook" or python is None:
        return listing
    copies = {entry.distribution.name: entry.distribution.version for entry in listing.entries}
    refuted = [
        f"{name} {version}" for name, version in sorted(copies.items()) if version and not _is_for(name, version, python)
    ]
    if len(refuted) < _LEAST:
        return listing
    named = f"{', '.join(refuted[:-1])} and {refuted[-1]}"
    note = f"{listing.file}: was saved with Python {python}, which is not the one it installs for: {named} do not support it"
    return replace(listing, context=replace(listing.context, python=None), notes=(*listing.notes, note))


def _is_for(name: str, version: str, python: str) -> bool:
    package = open_declared().package(name)
    release = None if package is None else package.published(version)
    return release is None or release.supports(python)
