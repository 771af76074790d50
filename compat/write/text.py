"""The text of a file that is edited: as its reader understood it, and back to bytes with everything else as it was."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from compat.errors import InputError
from compat.records import record

Replacement = tuple[int, int, str]
"""(start, end, text that stands there instead)."""

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe\x00\x00", "utf-32-le"), (b"\x00\x00\xfe\xff", "utf-32-be"),
          (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))  # fmt: skip
_CODING = re.compile(rb"#.*?coding[:=][ \t]*([-\w.]+)")


@record(frozen=True)
class Encoded:
    """How a text was written: the byte order mark in front of it (or nothing), and the encoding."""

    mark: bytes
    encoding: str

    def encode(self, text: str) -> bytes:
        """The text as bytes; what we add and the encoding cannot say becomes ``?``."""
        return self.mark + text.encode(self.encoding, "replace")


def encoding_of(path: str, content: bytes, text: str) -> Encoded:
    """The encoding in which ``content`` holds ``text``, as a reader decoded it.

    :class:`InputError` where the text cannot be turned back into exactly these bytes.
    """
    candidates = [Encoded(mark, encoding) for mark, encoding in _MARKS if content.startswith(mark)]
    candidates.append(Encoded(b"", "utf-8"))
    for line in content[:1000].split(b"\n")[:2]:
        declared = _CODING.match(line)
        if declared is not None:
            candidates.append(Encoded(b"", declared[1].decode("ascii")))
    for each in candidates:
        try:
            if each.mark + text.encode(each.encoding) == content:
                return each
        except (UnicodeEncodeError, LookupError):
            continue
    raise InputError("is written in an encoding in which it cannot be written back", path)


def replaced(text: str, replacements: Iterable[Replacement]) -> str:
    """The text with the replacements made; the same one given twice is made once. ``ValueError`` where two overlap."""
    parts: list[str] = []
    at = 0
    for start, end, new in sorted(dict.fromkeys(replacements), key=lambda each: (each[0], each[1])):
        if start < at:
            raise ValueError("two changes of one place")
        parts += text[at:start], new
        at = end
    return "".join((*parts, text[at:]))


def smallest(old: str, new: str) -> Replacement:
    """The part of ``old`` that has to be replaced to make it ``new``: a continued line in the rest stays continued."""
    most = min(len(old), len(new))
    start = next((at for at in range(most) if old[at] != new[at]), most)
    behind = next((at for at in range(most - start) if old[-1 - at] != new[-1 - at]), most - start)
    return start, len(old) - behind, new[start : len(new) - behind]


def line_end(text: str) -> str:
    """The line end that a text is written with."""
    return "\r\n" if "\r\n" in text.partition("\n")[0] + text.partition("\n")[1] else "\n"


def line_at(text: str, offset: int) -> int:
    """The 1-based line of a place."""
    return text.count("\n", 0, offset) + 1


@record(frozen=True)
class Mapped:
    """Text that was put together from pieces of a file (continued lines): ``offsets`` tells where each letter stands."""

    text: str
    offsets: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a part stands in the file; an empty one stands behind the letter in front of it."""
        if start == end:
            at = self.offsets[start - 1] + 1 if start else self.offsets[0]
            return at, at
        return self.offsets[start], self.offsets[end - 1] + 1

    def part(self, start: int, end: int) -> Mapped:
        return Mapped(self.text[start:end], self.offsets[start:end])


def joined(pieces: Iterable[tuple[str, int]]) -> Mapped:
    """Pieces, each with its place in the file, as one text."""
    text: list[str] = []
    offsets: list[int] = []
    for piece, start in pieces:
        text.append(piece)
        offsets += range(start, start + len(piece))
    return Mapped("".join(text), offsets)
