"""Whether a file that was edited says what the plan says, and nothing else differs: its own readers are asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from compat.environment import Distribution
from compat.errors import InputError
from compat.read.files.kinds import listings_of
from compat.read.files.listing import Listing
from compat.write.changes import Change
from compat.write.edits import Edit
from compat.write.specifiers import admits

_INDEXED = ("index", "nightly", None)


def problem_of(edit: Edit, kind: str, changes: Sequence[Change]) -> str | None:
    """What is wrong with an edit, ``None`` for nothing. ``changes`` are those this very file was edited for."""
    try:
        after = listings_of(edit.path, kind, edit.after)
    except InputError as problem:
        return f"it could not be read any more ({problem.message})"
    before = listings_of(edit.path, kind, edit.before)
    if len(before) != len(after):
        return "it would list something else"
    named = {change.name for change in changes}
    for old, new in zip(before, after):
        different = _others(old, named) ^ _others(new, named)
        if different:
            return f"{min(different)[0][0]} would change too"
    return next(filter(None, (_missing(change, before, after) for change in changes)), None)


def problem_of_statements(old: Sequence[Distribution], new: Sequence[Distribution], changes: Sequence[Change]) -> str | None:
    """The same for one file's own requirements, without what it includes."""
    named = {change.name for change in changes}
    different = Counter(_told(each) for each in old if each.name not in named)
    different.subtract(_told(each) for each in new if each.name not in named)
    changed = [told[0] for told, count in different.items() if count]
    if changed:
        return f"{min(changed)} would change too"
    for change in changes:
        before, after = ([each for each in all_ if each.name == change.name] for all_ in (old, new))
        problem = _missing_among(change, before, after)
        if problem is not None:
            return problem
    return None


def _others(listing: Listing, named: Collection[str]) -> set[tuple[Any, ...]]:
    found = Counter(
        _told(entry.distribution) for entry in listing.entries if entry.file is None and entry.distribution.name not in named
    )
    return set(found.items())


def _told(found: Distribution) -> tuple[str, ...]:
    kind = None if found.source is None else found.source.kind
    source = "" if kind in _INDEXED else str(found.source)
    extras = ",".join(found.extra.get("extras", ()))
    return found.name, found.version or "", found.specifier or "", found.marker or "", extras, source


def _missing(change: Change, before: Sequence[Listing], after: Sequence[Listing]) -> str | None:
    return _missing_among(change, _named(change, before), _named(change, after))


def _missing_among(change: Change, old: Sequence[Distribution], new: Sequence[Distribution]) -> str | None:
    if change.after is None:
        return None if len(new) < len(old) or not old else f"{change.name} would stay"
    if change.is_direct_url:
        here = any(each.source is not None and each.source.kind not in _INDEXED for each in new)
    else:
        here = any(_asks_for(each, change.after) for each in new)
    # a constraint of what others bring is no entry of its own
    return None if here or not (old or new) else f"{change.name} would not be at {change.after}"


def _named(change: Change, listings: Sequence[Listing]) -> list[Distribution]:
    entries = (entry for listing in listings for entry in listing.entries if entry.file is None)
    return [entry.distribution for entry in entries if entry.distribution.name == change.name]


def _asks_for(found: Distribution, after: str) -> bool:
    if found.version is not None:
        return found.version == after or found.version == after.partition("+")[0]
    return found.specifier is None or admits(found.specifier, after)
