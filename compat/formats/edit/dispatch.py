"""Edits of files for a plan, verified by reading them back, and the commands to run afterwards. Nothing is run here.

:func:`edit_spans` edits files that write each requirement as one piece of text: literals in Python, lines of INI files.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence

from compat.errors import InputError
from compat.files import decode_utf8
from compat.formats.edit.changes import REMOVE, Change, Statement, checked, decided, inverse, requirement_for, rewritten
from compat.formats.edit.files import Edit, Replacement, encoding_of, replaced
from compat.formats.edit.installer import Installer
from compat.formats.listing import Listing
from compat.formats.registry import Commands, Format, format_of, read_content
from compat.formats.specifiers import admits
from compat.model import Distribution
from compat.records import record, replace

_INDEXED = ("index", "nightly", None)


def problem_of(edit: Edit, form: Format, changes: Sequence[Change]) -> str | None:
    """Return what is wrong with an edit, or ``None``. ``changes`` are those that belong to this file."""
    try:
        after = form.listings(edit.path, edit.after)
    except InputError as problem:
        return f"it could no longer be read ({problem.message})"
    before = form.listings(edit.path, edit.before)
    if len(before) != len(after):
        return "it would list something else"
    others = (_problem_of_others(_own([old]), _own([new]), changes) for old, new in zip(before, after))
    return next(filter(None, others), None) or _problem_of_changes(_own(before), _own(after), changes)


def _own(listings: Sequence[Listing]) -> list[Distribution]:
    """Return what a file states itself, without its includes."""
    return [entry.distribution for listing in listings for entry in listing.entries if entry.file is None]


def problem_of_statements(old: Sequence[Distribution], new: Sequence[Distribution], changes: Sequence[Change]) -> str | None:
    """Like :func:`problem_of`, for one file's own requirements without its includes."""
    return _problem_of_others(old, new, changes) or _problem_of_changes(old, new, changes)


def _problem_of_others(old: Sequence[Distribution], new: Sequence[Distribution], changes: Sequence[Change]) -> str | None:
    named = {change.name for change in changes}
    different = Counter(_key(each) for each in old if each.name not in named)
    different.subtract(_key(each) for each in new if each.name not in named)
    changed = [stated[0] for stated, count in different.items() if count]
    return f"{min(changed)} would change too" if changed else None


def _key(found: Distribution) -> tuple[str, ...]:
    kind = None if found.source is None else found.source.kind
    source = "" if kind in _INDEXED else str(found.source)
    extras = ",".join(found.extra.get("extras", ()))
    return found.name, found.version or "", found.specifier or "", found.marker or "", extras, source


def _problem_of_changes(old: Sequence[Distribution], new: Sequence[Distribution], changes: Sequence[Change]) -> str | None:
    for change in changes:
        before, after = ([each for each in all_ if each.name == change.name] for all_ in (old, new))
        if change.after is None:
            if before and len(after) >= len(before):
                return f"{change.name} would stay"
            continue
        if change.is_direct_url:
            here = any(each.source is not None and each.source.kind not in _INDEXED for each in after)
        else:
            here = any(_admits_release(each, change.after) for each in after)
        if before and before == after and all(each.version not in (None, change.before) for each in before):
            continue  # pins of extras that are not selected, beside a constraint, which is not an entry
        if not here and (before or after):  # a constraint on a transitive dependency is not an entry
            return f"{change.name} would not be at {change.after}"
    return None


def _admits_release(found: Distribution, after: str) -> bool:
    if found.version is not None:
        return found.version == after or found.version == after.partition("+")[0]
    return found.specifier is None or admits(found.specifier, after)


# --- Edits of a file and its includes; each result is verified by reading it back.


def edits_for(path: str, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
    """Return the edits that apply ``changes`` to a file, sorted by path; none if nothing changes. ``depth`` counts includes.

    For a lock file, its source file is edited. :class:`InputError`, with file and line, if a change cannot be written
    safely. Nothing is written to disk.
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
    # a file may be included twice
    found: dict[str, Edit] = {}
    for edit in form.edit(path, content, wanted, depth):
        other = found.setdefault(os.path.realpath(edit.path), edit)
        if other.after != edit.after:
            raise InputError("is included twice, with edits that contradict each other", edit.path)
    return tuple(sorted((edit for edit in found.values() if edit.before != edit.after), key=lambda edit: edit.path))


def verified(edits: tuple[Edit, ...], form: Format, changes: Sequence[Change]) -> tuple[Edit, ...]:
    """Return the edits unchanged; :class:`InputError` if a file would not list what it should afterwards."""
    for edit in edits:
        problem = problem_of(edit, form, changes)
        if problem is not None:
            raise InputError(f"cannot be changed safely: {problem}", edit.path)
    return edits


def of_included(listings: Sequence[Listing], changes: Sequence[Change]) -> dict[str, list[Change]]:
    """Return the files that a file includes, with the changes that apply to each."""
    found: dict[str, list[Change]] = {}
    for listing in listings:
        for entry in listing.entries:
            limit = str(entry.distribution.extra.get("constraint", "")).rpartition(":")[0]
            for file in filter(None, (entry.file, limit if limit != listing.file else "")):
                named = found.setdefault(file, [])
                named += [c for c in changes if c.name == entry.distribution.name and c not in named]
    return found


# --- Commands that lock, install and roll back. Nothing is run here.


def commands_for(
    path: str | None, changes: Sequence[Change], *, installer: str = "uv", python: str | None = None,
    architectures: Sequence[str] = (),
) -> Commands:  # fmt: skip
    """Return the commands that lock, install and roll back ``changes``; :class:`InputError` for an unreadable file.

    ``path`` is the edited file, ``None`` for an environment. ``installer`` is ``uv`` or ``pip``, ``python`` the
    interpreter of the environment, ``architectures`` are the compute capabilities to compile source installs for.
    """
    wanted = checked(changes)
    if not wanted:
        return Commands()
    pip = Installer(installer, python, tuple(architectures))
    moved = [change for change in wanted if change.direct or not change.implied] or wanted
    there = [inverse(change) for change in moved if not change.held]
    back = tuple(pip.commands(there)) if all(map(_can_roll_back, moved)) else ()
    here = tuple(pip.commands(moved))
    if path is None:
        return Commands(install=here, rollback=back)
    content = read_content(path)
    form = format_of(path, content)
    found = form.commands(path, content, wanted, pip)
    built = pip.variables() if any(change.is_built for change in wanted) and not form.installs_elsewhere else ""
    install = tuple(f"{built}{line}" for line in found.install) or here
    if not all(line.startswith(pip.start("install")) for line in found.install):  # another tool, which would undo what pip does
        others = " and its source" if form.sources else " and its lock file" if found.lock else ""
        undone = form.commands(path, content, [_undone(change) for change in wanted], pip).install
        back = (f"# restore {pip.quoted(path)}{others}, then:", *undone)
    return Commands(found.lock, install, back)


def _undone(change: Change) -> Change:
    """Return the change back, which compiles what the change itself compiles."""
    back = inverse(change)
    return replace(back, source=change.source) if change.no_binary and back.source is None else back


def _can_roll_back(change: Change) -> bool:
    """Whether the source of the previous version is known, so that it can be reinstalled."""
    source = change.before_source
    return source is None or source.kind in ("index", "nightly") or (source.kind in ("vcs", "url") and "url" in source.details)


@record(frozen=True)
class Span:
    """Where a requirement is written: ``start`` … ``end`` is ``value``, and ``gone`` is what goes with it if it is removed.

    ``quote`` is what encloses it. ``None`` for ``gone``: it cannot be removed without changing the code around it.
    """

    start: int
    end: int
    value: str
    quote: str = ""
    gone: tuple[int, int] | None = None


def edit_spans(
    form: Format, path: str, content: bytes, changes: Sequence[Change], statements: Sequence[Statement[Span | None]],
    added: Callable[[Change], Replacement | None],
) -> tuple[Edit, ...]:  # fmt: skip
    """Return the edits of a file and of the requirements files that it reads.

    ``added`` returns the insertion of a new requirement, or ``None`` if there is no list to add it to. :class:`InputError` for
    a requirement that is computed, a new one without a place, and an edit after which the file would list something else.
    """
    text = decode_utf8(path, content)
    encoded = encoding_of(path, content, text)
    listings = form.listings(path, content)
    elsewhere = of_included(listings, changes)
    replacements: list[Replacement] = []
    here: list[Change] = []
    for change in changes:
        wanted = decided(statements, change, exact=True)
        replacements += [_replacement(statement, change, how) for statement, how in wanted]
        if wanted:
            here.append(change)
        elif (
            any(change in found for found in elsewhere.values())
            or change.after is None
            or (change.implied and not change.direct)
        ):
            continue
        elif (addition := added(change)) is not None:
            replacements.append(addition)
            here.append(change)
        elif elsewhere:
            next(iter(elsewhere.values())).append(change)
        else:
            raise InputError(f"{change.name} is not listed here, and there is no list of requirements to add it to", path)
    try:
        edit = Edit(path, content, encoded.encode(replaced(text, replacements)))
    except ValueError as reason:
        raise InputError(f"cannot be changed safely: {reason}", path) from None
    problem = problem_of(edit, form, here)
    if problem is None and _unclear(form.listings(path, edit.after)) > _unclear(listings):
        problem = "a part of it could no longer be read"
    if problem is not None:
        raise InputError(f"cannot be changed safely: {problem}", path)
    return (edit, *(each for file, named in elsewhere.items() if named for each in edits_for(file, named, 1)))


def _replacement(statement: Statement[Span | None], change: Change, how: str) -> Replacement:
    span = statement.place
    if span is None:
        raise InputError(f"{change.name} is computed here: change it by hand", statement.file, statement.line)
    if how == REMOVE:
        if span.gone is None:
            raise InputError(f"remove {change.name} by hand", statement.file, statement.line)
        return *span.gone, ""
    try:
        new = rewritten(span.value, change, how)
    except InputError as problem:
        raise InputError(problem.message, statement.file, statement.line) from None
    if (span.quote and span.quote in new) or "\\" in new:
        raise InputError(f"{requirement_for(change)} cannot be written in these quotes", statement.file, statement.line)
    return span.start, span.end, new


def _unclear(listings: Sequence[Listing]) -> int:
    return sum(len(each.unread) + len(each.elsewhere) for each in listings)
