"""One ``name: value`` line taken apart: list marks, Markdown, tables, headings with the answer below."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat.read.pasted.plain_lines import Line

_MARK = re.compile(r"[\s|>]{0,20}(?:[-*+•·–]\s{1,4}|\d{1,2}[.)] |#{1,6} )?[\s`*_\"']{0,8}")
_PARENTHESES = re.compile(r"\((?!s\))[^()]{0,60}\)\??")


def is_heading(text: str) -> bool:
    """Whether a line may be a question whose answer stands below."""
    return text.lstrip(" >").startswith(("#", "**"))


def name_and_value(text: str) -> tuple[str, str] | None:
    """Name (lower case, without marks) and value of a line, ``None`` where it has neither; of a heading no value."""
    mark = _MARK.match(text)
    rest = text[mark.end() :] if mark else text
    name, sign, value = _cells(rest) if "|" in rest and text.lstrip(" >").startswith("|") else _halves(rest)
    if len(name) > 90 or (not sign and not is_heading(text)):
        return None
    name = _PARENTHESES.sub("", name) if "(" in name else name
    name = name.replace("版本", " version").strip(" `*_\"'?").lower()
    while name and not name[0].isalnum():  # an emoji
        name = name[1:]
    value = value.lstrip(":= ").strip("`*\"', ").removeprefix("[").removesuffix("]")
    return " ".join(name.split()), value


def _cells(row: str) -> tuple[str, str, str]:
    """The two cells of a table's row; a row that compares several values says none of them."""
    name, *values = (cell.strip() for cell in row.split("|")[:8])
    told = [value for value in values if value.strip("-: ")]
    numbers = sum(any(character.isdecimal() for character in value) for value in told)
    return name, "|", told[0] if told and numbers < 2 else ""


def _halves(text: str) -> tuple[str, str, str]:
    at = min((place for place in (text.find(":"), text.find("=")) if place > 0), default=-1)
    if at < 0 and text.endswith("]"):
        at = text.find("[")  # DeepSpeed's form: "GPU count and types [...]"
    return (text[:at], text[at], text[at + 1 :]) if at > 0 else (text, "", "")


def below(lines: Sequence[Line], position: int) -> tuple[str, int]:
    """The one line between a heading and the next empty line, and its number; otherwise nothing, and 0."""
    after = [line for line in lines[position + 1 : position + 4] if line.text]
    if not after or len(after[0].text) > 120 or after[0].text.startswith(("#", "- [", "* [")):
        return "", 0
    alone = len(after) < 2 or after[1].number > after[0].number + 1
    return (after[0].text.strip(" `*"), after[0].number) if alone else ("", 0)
