"""``$NAME`` and ``${…}`` with known values, in the forms that shells, Docker and Compose share."""

from __future__ import annotations

from collections.abc import Mapping

_DEEPEST = 8
"""``${A:-${B:-…}}``."""
_WIDEST = 1 << 13
"""Characters of a text after which no more variables are expanded: ``A=$A$A`` doubles with every line."""
_LONGEST = 400
"""Characters of a value matched against a pattern, and of the pattern."""


def expanded(text: str, known: Mapping[str, str], depth: int = 0) -> str:
    """Replace the variables whose values are known; the others are kept as written."""
    parts: list[str] = []
    at = length = 0
    while (sign := text.find("$", at)) >= 0 and length + sign - at < _WIDEST:
        value, end = reference(text, sign, known, depth)
        parts += text[at:sign], text[sign:end] if value is None else value
        length += len(parts[-2]) + len(parts[-1])
        at = end
    return "".join((*parts, text[at:]))


def reference(text: str, at: int, known: Mapping[str, str], depth: int = 0) -> tuple[str | None, int]:
    """Return the value of the variable whose ``$`` is at ``at``, ``None`` if it is unknown, and the end of its name."""
    if text.startswith("${", at):
        end = _closing_brace(text, at + 2)
        if end < 0 or depth > _DEEPEST:
            return None, len(text)
        return parameter(text[at + 2 : end], known, depth + 1), end + 1
    after = text[at + 1 : at + 2]
    end = at + 2 if after == "$" or after.isdecimal() else name_end(text, at + 1)
    return known.get(text[at + 1 : end]), end


def _closing_brace(text: str, at: int) -> int:
    """Return the index of the brace that closes the one opened before ``at``; -1 if there is none."""
    level = 1
    while (close := text.find("}", at)) >= 0:
        level += text.count("${", at, close) - 1
        if level <= 0:
            return close
        at = close + 1
    return -1


def name_end(text: str, start: int = 0) -> int:
    """Return the end of the variable name that starts at ``start``."""
    end = start
    while end < len(text) and text[end].isascii() and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return start if end > start and text[start].isdecimal() else end


def parameter(inside: str, known: Mapping[str, str], depth: int = 0) -> str | None:
    """Return the value of ``${inside}``; ``None`` if it is unknown, or in an unsupported form.

    ``:-``, ``-``, ``:+``, ``+``, ``:?``, ``%``, ``%%``, ``#``, ``##``, ``/a/b``, ``//a/b`` and ``:offset:length``. An
    unknown variable takes the default; whether ``:+`` replaces it is unknown.
    """
    end = name_end(inside) or len(inside) - len(inside.lstrip("0123456789"))
    name, form = inside[:end], inside[end:]
    if not name:
        return None
    value = known.get(name)
    if not form:
        return value
    if "$" in form:
        form = expanded(form, known, depth)
    for sign in (":-", "-", ":=", "="):
        if form.startswith(sign):
            missing = not value if sign[0] == ":" else value is None
            return form[len(sign) :] if missing else value
    if value is None:
        return None
    if form.startswith((":+", "+")):
        return form.lstrip(":")[1:] if value or form[0] == "+" else ""
    return value if form.startswith((":?", "?")) else _changed(value, form)


def _changed(value: str, form: str) -> str | None:
    """Return a value with a part removed or replaced."""
    if "$" in form or "$" in value or len(value) > _LONGEST or len(form) > _LONGEST:
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
    return text.isascii() and text.isdecimal() and len(text) < 6


def _cut(value: str, pattern: str, *, front: bool, longest: bool) -> str:
    from fnmatch import fnmatchcase

    places = range(len(value) + 1) if front else range(len(value), -1, -1)
    for at in reversed(places) if longest else places:
        if fnmatchcase(value[:at] if front else value[at:], pattern):
            return value[at:] if front else value[:at]
    return value
