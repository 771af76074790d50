"""Text as people copy it: wrapped by a terminal, a mail program or a form, cut at its end, or read from an image.

Whether a line goes on below cannot be seen for certain, so these readings are only tried if the text as it is explains less.
All lines keep their numbers: a joined one is followed by as many :data:`compat.reports.lines.JOINED` as it took over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from compat.reports.lines import JOINED, without_prefixes

_NARROWEST, _WIDEST = 40, 400
"""Columns at which lines are wrapped."""
_MOST_LINES = 5000
_BEGINS = re.compile(
    r"\s*$|\s{0,8}File \"|Traceback \(most recent|\s{4,}\S|[\w.]{1,80}(?:Error|Exception|Warning|Interrupt)\b|```|~~~"
    r"|\[|\(?[A-Z]{4,8}\b|\d{4}-\d\d|\d\d:\d\d|[-*>#|+$] ?|at .{0,200}:\d|\w{1,30}:$"
)
"""A line with which something else begins."""


def readings(text: str) -> Iterator[str]:
    """Yield other readings of a text, the more likely ones first.

    It may be wrapped, below labels and quotes as well, end in the middle of a name that is in it in full, or come from an
    image, where letters became digits.
    """
    if text.count("\n") > _MOST_LINES:
        return
    plain = without_prefixes(text)
    for each in dict.fromkeys((text, plain)):
        yield from unwrapped(each)
    yield from _joined_errors(plain)
    for each in dict.fromkeys((text, plain)):
        completed = with_whole_name(each)
        if completed != each:
            yield completed
    if (corrected := _SLIPS.sub(lambda match: "l" if match[0] == "1" else "o", text)) != text:
        yield corrected


_SLIPS = re.compile(r"(?<=[a-z]{2})1(?=[a-z])|(?<=[a-z])1(?=[a-z]{2})|(?<=[A-Za-z]{2})0(?=[a-z])")
"""Digits that an image has in place of letters, inside words: "Insta1led", "symb0l"."""
_CUT_NAME = re.compile(r"['\"`](?P<name>[A-Za-z_][\w.]{2,80})(?:…|\.\.\.)?[\s`]*$")
_MESSAGE = re.compile(
    r"(?:Error|Exception|Warning): \S|unexpected key|has no at|No module named|undefined symb|cannot import na"
)


def with_whole_name(text: str) -> str:
    """Return the text with the quoted name in whose middle it ends completed, if exactly one name in it begins so."""
    match = _CUT_NAME.search(text)
    if match is None:
        return text
    begun = match["name"]
    names = set(re.findall(rf"(?<![\w.]){re.escape(begun)}\w+|(?<=\.){re.escape(begun)}\w+", text))
    return f"{text[: match.start('name')]}{names.pop()}'" if len(names) == 1 else text


def _joined_errors(text: str) -> Iterator[str]:
    """Yield the text with each error message joined to the lines below it, between words and in the middle of one."""
    lines = text.split("\n")
    for between in (" ", ""):
        found: list[list[str]] = []
        inside = False
        for line in lines:
            inside = inside and bool(line.strip()) and not _BEGINS.match(line.lstrip())
            if inside:
                found[-1].append(line.strip() if between else line.lstrip())
            else:
                found.append([line])
                inside = _MESSAGE.search(line) is not None
        yield from _as_one(found, between)


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
    yield from _as_one(found, between)


def _as_one(found: list[list[str]], between: str) -> Iterator[str]:
    """Yield the text whose lines are made of these parts, if any line has several; the lines keep their numbers."""
    if any(parts[1:] for parts in found):
        yield "\n".join(line for parts in found for line in (between.join(parts), *[JOINED] * (len(parts) - 1)))
