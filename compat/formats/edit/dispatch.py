"""Whether a file that was edited says what the plan says, and nothing else differs: its own readers are asked."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from compat.errors import InputError
from compat.formats.edit.changes import Change, checked
from compat.formats.edit.files import Edit
from compat.formats.format import Format
from compat.formats.listing import Listing
from compat.formats.registry import format_of, read_content
from compat.formats.specifiers import admits
from compat.model import Distribution

_INDEXED = ("index", "nightly", None)


def problem_of(edit: Edit, form: Format, changes: Sequence[Change]) -> str | None:
    """What is wrong with an edit, ``None`` for nothing. ``changes`` are those this very file was edited for."""
    try:
        after = form.listings(edit.path, edit.after)
    except InputError as problem:
        return f"it could not be read any more ({problem.message})"
    before = form.listings(edit.path, edit.before)
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
    different = Counter(_stated(each) for each in old if each.name not in named)
    different.subtract(_stated(each) for each in new if each.name not in named)
    changed = [stated[0] for stated, count in different.items() if count]
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
        _stated(entry.distribution) for entry in listing.entries if entry.file is None and entry.distribution.name not in named
    )
    return set(found.items())


def _stated(found: Distribution) -> tuple[str, ...]:
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


# --- Edits of a file and of what it includes; what they come to is read back before anybody sees it.


def edits_for(path: str, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
    """The edits that bring ``changes`` into a file, by path; none where nothing changes. ``depth``: so many files led to it.

    A lock file is not edited but the file it is made from. :class:`InputError`, with file and line, for what cannot be
    written safely; there are no edits at all then. Nothing is written.
    """
    wanted = checked(changes)
    if not wanted:
        return ()
    content = read_content(path)
    form = format_of(path, content)
    if form.sources:
        return edits_for(form.source_of(path), wanted, depth)
    built = next((change.name for change in wanted if change.no_binary), None)
    if built is not None and not form.says_build:
        raise InputError(f"cannot say that {built} is built from source: add --no-binary {built} to its install command", path)
    return _joined(form.edit(path, content, wanted, depth))


def verified(edits: tuple[Edit, ...], form: Format, changes: Sequence[Change]) -> tuple[Edit, ...]:
    """The edits themselves; :class:`InputError` where a file would not say then what it should."""
    for edit in edits:
        problem = problem_of(edit, form, changes)
        if problem is not None:
            raise InputError(f"cannot be changed safely: {problem}", edit.path)
    return edits


def _joined(edits: Sequence[Edit]) -> tuple[Edit, ...]:
    """The edits that change something, each file once; :class:`InputError` where a file would change in two ways."""
    found: dict[str, Edit] = {}
    for edit in edits:
        other = found.setdefault(os.path.realpath(edit.path), edit)
        if other.after != edit.after:
            raise InputError("is included twice, with edits that contradict each other", edit.path)
    return tuple(sorted((edit for edit in found.values() if edit.before != edit.after), key=lambda edit: edit.path))
