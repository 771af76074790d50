"""Variables of a Dockerfile: ``ENV`` and ``ARG`` pairs, and how Docker fills them into other instructions."""

from __future__ import annotations

from compat.read.files.docker.dockerfile_text import words_of
from compat.read.workload.parameters import name_end, parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_DEEPEST = 8
"""``${A:-${B:-…}}``."""
_WIDEST = 1 << 13
"""Characters that are filled in at most, then a value is not known: ``ENV A=$A$A`` doubles with every line."""


def substituted(text: str, known: Mapping[str, str], escape: str = "\\") -> str:
    """A word as Docker reads it: quotes taken off, variables filled in; what is not known is left as ``${NAME}``."""
    return _Word(text, known, escape).read()


def unresolved(text: str) -> bool:
    """Whether a variable, or a place a template fills in, is left in a word."""
    return "$" in text or "{{" in text


def pairs(text: str, known: Mapping[str, str], escape: str = "\\") -> list[tuple[str, str]]:
    """The pairs of an ``ENV``: ``A=1 B="two words"``, or ``A one value`` in the old form."""
    words = [word for word, _, _ in words_of(text)]
    if words and "=" not in words[0]:
        rest = text.strip()[len(words[0]) :].strip()
        return [(words[0], substituted(rest, known, escape))]
    return [(name, substituted(value, known, escape)) for name, equals, value in (w.partition("=") for w in words) if equals]


def declared(text: str, known: Mapping[str, str], escape: str = "\\") -> list[tuple[str, str | None]]:
    """The names of an ``ARG`` with their defaults; ``None`` where the value has to be given."""
    found: list[tuple[str, str | None]] = []
    for word, _, _ in words_of(text):
        name, equals, value = word.partition("=")
        found.append((name, substituted(value, known, escape) if equals else None))
    return found


class _Word:
    """Goes through one word once."""

    def __init__(self, text: str, known: Mapping[str, str], escape: str, depth: int = 0) -> None:
        self.text = text
        self.known = known
        self.escape = escape
        self.depth = depth
        self.width = 0

    def read(self) -> str:
        text, at, quote = self.text, 0, ""
        result: list[str] = []
        while at < len(text):
            letter = text[at]
            if letter == self.escape and quote != "'" and at + 1 < len(text):
                at += 1
                keeps = quote == '"' and text[at] not in '"$' + self.escape
                result.append(letter + text[at] if keeps else text[at])
            elif letter in "\"'" and quote in ("", letter):
                quote = "" if quote else letter
            elif letter == "$" and quote != "'":
                at = self._variable(at, result)
                continue
            else:
                result.append(letter)
            at += 1
        return "".join(result)

    def _variable(self, at: int, result: list[str]) -> int:
        """Adds what stands for the variable at ``at``; returns where the text goes on."""
        if self.text.startswith("${", at):
            end = _closing(self.text, at + 2)
            if end < 0 or self.depth > _DEEPEST:
                result.append(self.text[at:])
                return len(self.text)
            self._add(result, self._braced(self.text[at + 2 : end]))
            return end + 1
        end = name_end(self.text, at + 1)
        name = self.text[at + 1 : end]
        self._add(result, self.known.get(name, f"${name}"))
        return end

    def _add(self, result: list[str], value: str) -> None:
        self.width += len(value)
        result.append(value if self.width < _WIDEST else "$")

    def _braced(self, inside: str) -> str:
        if "$" in inside:
            name = inside[: name_end(inside)]
            inside = name + _Word(inside[len(name) :], self.known, self.escape, self.depth + 1).read()
        value = parameter(inside, self.known)
        if value is None and inside[name_end(inside) :].startswith((":+", "+")):
            return ""  # nothing is set where nothing is declared
        return f"${{{inside}}}" if value is None else value


def _closing(text: str, start: int) -> int:
    """Where the brace that was opened before ``start`` is closed; -1 where it is not."""
    depth = 1
    for at in range(start, len(text)):
        if text.startswith("${", at):
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if not depth:
                return at
    return -1
