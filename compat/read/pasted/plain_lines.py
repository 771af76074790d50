"""Text as it is pasted into an issue → plain lines: no Markdown marks, HTML, colours or odd blanks."""

from __future__ import annotations

import re
from typing import NamedTuple

from compat.read.log.log_lines import without_escapes

_LONGEST = 2000  # characters of one line that are looked at
_MOST = 50_000  # lines that are looked at


class Line(NamedTuple):
    """One line: ``number`` counts from 1 in the text, ``text`` has no blanks at its end; empty between paragraphs.

    ``edge`` marks where a fenced block begins or ends (the text is what stands behind the fence, mostly nothing),
    ``fenced`` is whether a block is open behind the line.
    """

    number: int
    text: str
    edge: bool = False
    fenced: bool = False


_BLANKS = str.maketrans({
    "\u00a0": " ", "\u2007": " ", "\u202f": " ", "\u3000": " ", "\t": " ", "\uff1a": ":", "\u200b": "", "\u200c": "",
    "\u200d": "", "\ufeff": "", "\x00": "",
})  # fmt: skip
_TAG = re.compile(
    r"</?(?:details|summary|pre|code|p|div|span|b|i|em|strong|font|sub|sup|ul|ol|li|table|tbody|thead|tr|t[dh]|h[1-6]|br)"
    r"(?: [^<>]{0,200})?/?>",
    re.IGNORECASE,
)
_QUOTE = re.compile(r"(?: {0,3}>(?!>>) ?)+")
_FENCE = re.compile(r" {0,8}(?:```+|~~~+) ?(?P<rest>.*)")
_LANGUAGE = re.compile(r"[\w+#.-]{0,20}$")


def plain_lines(text: str) -> tuple[list[Line], str | None]:
    """The lines of a pasted text, and a remark where it is so long that only its beginning is read.

    Runs of empty lines become one. A line that begins a fenced block and goes on behind the fence keeps what it says.
    """
    found: list[Line] = []
    blank, fenced = True, False
    for number, raw in enumerate(_unified(text).split("\n"), 1):
        if not raw or raw.isspace():
            if not blank:
                found.append(Line(number, "", fenced=fenced))
            blank = True
            continue
        if len(found) >= _MOST:
            return found, f"only the first {number - 1} lines are read"
        line = _plain(number, raw[:_LONGEST])
        fenced = fenced != line.edge
        if line.text or line.edge or not blank:
            found.append(line._replace(fenced=fenced) if fenced else line)
        blank = not line.text
    return found, None


def _unified(text: str) -> str:
    text = without_escapes(text).replace("\r\n", "\n").replace("\r", "\n").translate(_BLANKS)
    if "&" in text and ";" in text:
        from html import unescape

        text = unescape(text).replace("\u00a0", " ")
    if "<" in text:
        text = _TAG.sub(_separated, text)
    return text


def _separated(tag: re.Match[str]) -> str:
    """Cells of a table and line breaks go on the next line; every other tag is just taken off."""
    name = tag[0].strip("</> ").partition(" ")[0].lower()
    return "\n" if name in ("br", "summary", "details", "tr", "li", "p", "pre", "div") else " "


def _plain(number: int, raw: str) -> Line:
    if raw.lstrip(" ")[:1] == ">" and (quote := _QUOTE.match(raw)):
        raw = raw[quote.end() :]
    fence = _FENCE.match(raw) if "```" in raw or "~~~" in raw else None
    if fence is not None:
        rest = fence["rest"].strip("`~ ")
        return Line(number, "" if _LANGUAGE.match(rest) else rest, edge=True)
    return Line(number, raw.replace("\\_", "_").rstrip())
