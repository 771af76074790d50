"""What ``${…}`` stands for, as far as the variables are known: the forms that sh, bash and Docker share."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_LONGEST = 400
"""Characters of a value that a pattern is tried on, and of the pattern."""


def name_end(text: str, start: int = 0) -> int:
    """Where the variable's name that begins at ``start`` ends."""
    end = start
    while end < len(text) and text[end].isascii() and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return start if end > start and text[start].isdecimal() else end


def parameter(inside: str, known: Mapping[str, str]) -> str | None:
    """The value of ``${inside}``; ``None`` where it is not known, or in a form that is not understood.

    ``:-``, ``-``, ``:+``, ``+``, ``:?``, ``%``, ``%%``, ``#``, ``##``, ``/a/b``, ``//a/b`` and ``:offset:length``. A
    variable that is not known takes the default; whether ``:+`` replaces it cannot be told.
    """
    end = name_end(inside)
    name, form = inside[:end], inside[end:]
    if not name:
        return None
    value = known.get(name)
    if not form:
        return value
    for sign in (":-", "-", ":=", "="):
        if form.startswith(sign):
            missing = not value if sign[0] == ":" else value is None
            return form[len(sign) :] if missing else value
    if value is None:
        return None
    if form.startswith((":+", "+")):
        return form.lstrip(":")[1:] if value or form[0] == "+" else ""
    if form.startswith((":?", "?")):
        return value
    return _changed(value, form)


def _changed(value: str, form: str) -> str | None:
    """A value with a part cut off or replaced."""
    if "$" in form or len(value) > _LONGEST or len(form) > _LONGEST:
        return None
    if form[0] in "%#":
        longest = form[1:2] == form[0]
        return _cut(value, form[1 + longest :], front=form[0] == "#", longest=longest)
    if form[0] == "/":
        every = form.startswith("//")
        old, _, new = form[1 + every :].partition("/")
        return None if not old or old.strip("*?[]") != old else value.replace(old, new, -1 if every else 1)
    offset, _, length = form[1:].partition(":")
    if form[0] != ":" or not _digits(offset) or (length and not _digits(length)):
        return None
    return value[int(offset) : int(offset) + int(length)] if length else value[int(offset) :]


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6


def _cut(value: str, pattern: str, *, front: bool, longest: bool) -> str:
    from fnmatch import fnmatchcase

    places = range(len(value) + 1) if front else range(len(value), -1, -1)
    for at in reversed(places) if longest else places:
        if fnmatchcase(value[:at] if front else value[at:], pattern):
            return value[at:] if front else value[:at]
    return value
