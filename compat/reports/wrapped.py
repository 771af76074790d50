"""Text that a terminal, a mail program or a form has wrapped: the lines as the program wrote them.

Whether a line goes on below cannot be seen for certain, so these readings are only tried if the text as it is explains nothing.
All lines keep their numbers: a joined one is followed by as many :data:`compat.reports.lines.JOINED` as it took over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from compat.reports.lines import JOINED

_NARROWEST, _WIDEST = 40, 400
"""Columns at which lines are wrapped."""
_MOST_LINES = 5000
_BEGINS = re.compile(
    r"\s*$|\s{0,8}File \"|Traceback \(most recent|\s{4,}\S|[\w.]{1,80}(?:Error|Exception|Warning|Interrupt)\b|```|~~~"
    r"|\[|\(?[A-Z]{4,8}\b|\d{4}-\d\d|\d\d:\d\d|[-*>#|+$] ?|at .{0,200}:\d|\w{1,30}:$"
)
"""A line with which something else begins."""


def unwrapped(text: str) -> Iterator[str]:
    """Yield other readings of a text: as cut in the middle of words at a fixed column, and as wrapped between words."""
    lines = text.split("\n")
    width = max(map(len, lines)) if len(lines) <= _MOST_LINES else 0
    if not _NARROWEST <= width <= _WIDEST:
        return
    yield from _joined(lines, "", lambda line, _: len(line) == width)
    width = max((len(line) for line in lines if " " in line.strip()), default=width)  # a long word has a line of its own
    yield from _joined(lines, " ", lambda line, word: len(line) + 1 + len(word) > width)


def _joined(lines: list[str], between: str, is_full: Callable[[str, str], bool]) -> Iterator[str]:
    """Yield the text with each line joined to those below it in which it goes on, if there are any.

    ``is_full`` tells whether the beginning of the next line had no place in a line.
    """
    found: list[list[str]] = []
    above = ""
    for line in lines:
        beginning = line.partition(" ")[0] if between else line[:1]
        goes_on = above and beginning and is_full(above, beginning) and not (between and _BEGINS.match(line))
        if goes_on:
            found[-1].append(line)
        else:
            found.append([line])
        above = line
    if len(found) < len(lines):
        yield "\n".join(line for parts in found for line in (between.join(parts), *[JOINED] * (len(parts) - 1)))
