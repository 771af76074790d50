"""Edits of files that write each requirement as one piece of text: literals in Python, lines of INI files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compat.errors import InputError
from compat.files import decoded
from compat.formats.edit.changes import REMOVE, Change, Statement, decided, requirement_for, rewritten
from compat.formats.edit.dispatch import edits_for, of_included, problem_of
from compat.formats.edit.files import Edit, Replacement, encoding_of, replaced
from compat.formats.listing import Listing
from compat.formats.registry import Format
from compat.records import record


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
    text = decoded(path, content)
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
