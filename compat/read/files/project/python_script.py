"""A Python script → listing: its inline metadata (PEP 723), and the training it starts."""

from __future__ import annotations

from compat.read.files.listing import Listing
from compat.read.files.project.inline_script import read_inline_script
from compat.records import replace

TYPE_CHECKING = False


def read_python_script(path: str, text: str) -> tuple[Listing, ...]:
    """The listing of a script, with the workload its code tells; what it cannot install is unknown."""
    from compat.read.workload.script import read_script

    found = read_inline_script(path, text) or (Listing(file=path, kind="script"),)
    facts = read_script(path)
    return tuple(
        replace(
            listing, context=replace(listing.context, workload=facts.workload, variables=facts.variables or None),
            notes=(*listing.notes, *facts.notes),
        )
        for listing in found
    )  # fmt: skip
