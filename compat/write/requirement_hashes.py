"""``--hash`` of a requirements file: where they stand, and those of another release in their place."""

from __future__ import annotations

import re

from compat.errors import InputError
from compat.write.changes import Change
from compat.write.requirement_lines import LogicalLine
from compat.write.text import Replacement, line_end

_HASH = re.compile(r"(?<=\s)--hash[=\s]\s*\S+")


def hash_options(line: str, start: int) -> tuple[tuple[int, int], ...]:
    """Start and end of each ``--hash`` behind a requirement."""
    return tuple(found.span() for found in _HASH.finditer(line, start))


def hash_replacement(
    text: str, line: LogicalLine, hashes: tuple[tuple[int, int], ...], behind: int, change: Change, path: str
) -> list[Replacement]:
    """What puts the hashes of the new release in the place of the old ones, or behind the requirement at ``behind``.

    :class:`InputError` where the plan has none: pip refuses a file in which only some have hashes.
    """
    spans = [line.mapped.span(*each) for each in hashes]
    if not spans:
        at = line.mapped.span(behind, behind)[0]
        return [(at, at, new_hashes(change, path, line.number, f" \\{line_end(text)}    "))]
    between = text[spans[0][1] : spans[1][0]] if len(spans) > 1 else text[line.mapped.span(behind, behind)[0] : spans[0][0]]
    start, end = spans[0][0], spans[-1][1]
    return [(start, end, new_hashes(change, path, line.number, between)[len(between) :])]


def new_hashes(change: Change, path: str, line: int | None, between: str) -> str:
    """The options of a release, with ``between`` in front of each."""
    if not change.hashes or change.is_direct_url:
        problem = "cannot have them (it is no release)" if change.is_direct_url else "come without any"
        raise InputError(f"every requirement has hashes here, and {change.name} {change.after} {problem}", path, line)
    return "".join(f"{between}--hash={each}" for each in change.hashes)
