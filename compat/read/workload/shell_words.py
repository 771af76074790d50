"""A line of shell text → its words and operators, in time that grows with the line."""

from __future__ import annotations

OPERATORS = ";&|<>"
_ENDS = frozenset(" \t\r\n'\"\\")
_ENDS_AND_OPERATORS = frozenset((*_ENDS, *OPERATORS))


def shell_words(line: str, operators: str = "") -> list[str]:
    """Words without their quotes; runs of ``operators`` (none, or :data:`OPERATORS`) are words of their own.

    The same answers as ``shlex`` gives, with the operators as its punctuation; that takes quadratic time for a long word.
    Raises ``ValueError`` where a quote is not closed or nothing stands behind the last backslash.
    """
    special = _ENDS_AND_OPERATORS if operators else _ENDS
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
                raise ValueError("no escaped character")
            parts.append(line[at + 1])
            at += 2
        elif letter in special:
            if parts:
                found.append("".join(parts))
                parts = []
            at += 1
            if letter in operators:
                while at < end and line[at] in operators:
                    at += 1
                found.append(line[start:at])
        else:
            while at < end and line[at] not in special:
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
            raise ValueError("no closing quotation")
        return line[start:closing], closing + 1
    parts: list[str] = []
    escape = line.find("\\", start)
    while 0 <= escape < closing:
        escaped = line[escape + 1]
        parts += line[start:escape], escaped if escaped in '"\\' else f"\\{escaped}"
        start = escape + 2
        if closing < start:
            closing = line.find(quote, start)
        escape = line.find("\\", start)
    if closing < 0:
        raise ValueError("no closing quotation")
    return f"{''.join(parts)}{line[start:closing]}", closing + 1
