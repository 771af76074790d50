"""The logical lines of a requirements file, each letter with its place in the file."""

from __future__ import annotations

from collections.abc import Iterator

from compat.records import record
from compat.write.text import Mapped, joined


@record(frozen=True)
class LogicalLine:
    """One line, or several joined by ``\\``, without comments; ``number`` is the first, ``start`` … ``end`` all of it in
    the file with its line end."""

    number: int
    mapped: Mapped
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.mapped.text


def mapped_lines(text: str) -> Iterator[LogicalLine]:
    """The lines as ``compat.read.files.requirements.requirement_lines`` joins and cuts them (tested to be the same)."""
    pieces: list[tuple[str, int]] = []
    first = start = at = 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        body = line.splitlines()[0] if line else ""
        comment = body.lstrip()[:1] == "#"
        if not pieces:
            first, start = number, at
        here, at = at, at + len(line)
        if body.endswith("\\") and not comment:
            lead = len(body) - len(body.lstrip("\\"))
            pieces.append((body.strip("\\"), here + lead))
            continue
        if comment and pieces:
            pieces.append((" ", here))
        pieces.append((body, here))
        yield from _line(first, pieces, start, at)
        pieces = []
    if pieces:
        yield from _line(first, pieces, start, at)


def _line(number: int, pieces: list[tuple[str, int]], start: int, end: int) -> Iterator[LogicalLine]:
    mapped = joined(pieces)
    text = mapped.text
    at = text.find("#")
    while at > 0 and not text[at - 1].isspace():
        at = text.find("#", at + 1)
    kept = text if at < 0 else text[:at]
    lead = len(kept) - len(kept.lstrip())
    mapped = mapped.part(lead, max(lead, len(kept.rstrip())))
    if mapped.text:
        yield LogicalLine(number, mapped, start, end)
