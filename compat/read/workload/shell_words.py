"""A line of shell text → its words and operators, in time that grows with the line."""

from __future__ import annotations

_BLANK = " \t\r\n"
_OPERATORS = ";&|<>"
_SPECIAL = frozenset(_BLANK + _OPERATORS + "'\"\\")


def shell_words(line: str) -> list[str]:
    """Words without their quotes, and runs of the signs ``;&|<>``.

    The same answers as ``shlex`` gives with those as its punctuation, which takes quadratic time for a long word.
    Raises ``ValueError`` where a quote is not closed or nothing stands behind the last backslash.
    """
    found: list[str] = []
    parts: list[str] = []  # of the word that has begun; an empty one is '' in quotes
    at, end = 0, len(line)
    while at < end:
        start, letter = at, line[at]
        if letter == "'" or letter == '"':
            part, at = _quoted(line, at)
            parts.append(part)
        elif letter == "\\":
            if at + 1 == end:
                raise ValueError("nothing stands behind the last backslash")
            parts.append(line[at + 1])
            at += 2
        elif letter in _SPECIAL:
            if parts:
                found.append("".join(parts))
                parts = []
            at += 1
            if letter in _OPERATORS:
                while at < end and line[at] in _OPERATORS:
                    at += 1
                found.append(line[start:at])
        else:
            while at < end and line[at] not in _SPECIAL:
                at += 1
            parts.append(line[start:at])
    if parts:
        found.append("".join(parts))
    return found


def _quoted(line: str, at: int) -> tuple[str, int]:
    """What stands between the quote at a place and the one that closes it, and where it goes on behind that."""
    quote = line[at]
    closing = line.find(quote, at + 1)
    start = at + 1
    if quote == "'" or "\\" not in line[start:closing]:
        if closing < 0:
            raise ValueError("a quote is not closed")
        return line[start:closing], closing + 1
    parts: list[str] = []
    escape = line.find("\\", start)
    while 0 <= escape < closing:
        escaped = line[escape + 1]
        parts += line[start:escape], escaped if escaped in "\"\\" else f"\\{escaped}"
        start = escape + 2
        if closing < start:
            closing = line.find(quote, start)
        escape = line.find("\\", start)
    if closing < 0:
        raise ValueError("a quote is not closed")
    return f"{''.join(parts)}{line[start:closing]}", closing + 1
