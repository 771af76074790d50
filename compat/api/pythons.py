"""The Pythons that a project admits, and that the releases of a plan are not for: an edit that no longer admits them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from compat.api.case import Case
from compat.checks import python_range
from compat.checks.choices import Requested, in_project
from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.edit.files import Edit, as_if_written
from compat.formats.registry import format_of, read_content, read_listings
from compat.index import Index
from compat.index.metadata import File
from compat.model import Finding, of_no_index

_FLOOR = re.compile(r'"(?:>=|\^)(\d+\.\d+)"')
_BOUND = re.compile(rb"((?:>=|\^)[ \t]*)(\d+\.\d+)(?:\.\d+)*")
"""The bound of a range that is moved; any other form (``==3.8.*``) says what is meant more exactly."""


def unserved_pythons(case: Case, edits: Iterable[Edit], index: Index) -> tuple[Finding, ...]:
    """The finding about the Pythons that an edited project admits and a release that it pins does not."""
    path = _project_of(case)
    if path is None:
        return ()
    with as_if_written(edits):
        (listing,) = read_listings(path)
        copies = (entry.distribution for entry in listing.entries)
        pins = {(copy.name, copy.version) for copy in copies if copy.version is not None and not of_no_index(copy)}
        read = index.files_of_pins(pins) if pins else {}
        pythons = {pin: text for pin, files in read.items() if (text := _python_of(files or ())) is not None}
        return python_range.judge(listing, in_project(case.asked_choices or Requested(), listing), pythons)


def without_pythons(found: Iterable[Finding]) -> tuple[Change, Edit] | None:
    """The edit of a project that makes the oldest Python with all releases its first one; ``None`` if it states no bound."""
    for each in found:
        floor = next((match[1] for fix in each.fixes if (match := _FLOOR.search(fix.text))), None)
        place = each.location
        if floor is None or place is None or place.line is None:
            continue
        before = read_content(place.file)
        lines = before.splitlines(keepends=True)
        line = lines[place.line - 1]
        bound = _BOUND.search(line)
        if bound is None:
            continue
        lines[place.line - 1] = line[: bound.start(2)] + floor.encode() + line[bound.end() :]
        why = f"{each.title} ({each.rule})"
        return Change("python", bound[2].decode(), floor, direct=True, why=why), Edit(place.file, before, b"".join(lines))
    return None


def _project_of(case: Case) -> str | None:
    """The pyproject.toml that a case is about, or that its lock is made from."""
    if case.file is None or case.listing is None:
        return None
    form = format_of(case.file, read_content(case.file))
    try:
        path = form.source_of(case.file) if form.sources else case.file
        listings = read_listings(path)
    except InputError:
        return None
    return path if len(listings) == 1 and listings[0].kind in python_range.KINDS else None


def _python_of(files: Iterable[File]) -> str | None:
    """The Requires-Python of a release; ``None`` if its files differ or say nothing."""
    texts = {file.requires_python for file in files}
    return texts.pop() if len(texts) == 1 else None
