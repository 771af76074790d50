"""Makefiles: variables, and the recipes of targets. Nothing is run; functions of make and ``include`` are unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compat.records import record

_VARIABLE = re.compile(r"(?:export\s+)?([A-Za-z_][\w.-]*)\s*(?::{0,3}|[?+])=\s*(.*)")
_REFERENCE = re.compile(r"\$(?:\(([\w.-]+)\)|\{([\w.-]+)\}|(\$))")
_DEEPEST = 5
_LONGEST = 10_000
"""Characters of a line in which variables are replaced."""
_WIDEST = 1 << 18
"""Characters of the recipes that one command runs."""


@record(frozen=True)
class RecipeLine:
    """A line of a recipe without its prefix, and its offset in the file."""

    number: int
    text: str
    offset: int


class Target:
    """A target, the targets it needs, and its recipe: each item is run by a shell of its own; several lines are continued."""

    def __init__(self, name: str, needs: Sequence[str]) -> None:
        self.name = name
        self.needs = needs
        self.recipe: list[list[RecipeLine]] = []


class MakeText:
    """The variables and targets of a Makefile; of a variable that is set twice, the first value counts."""

    def __init__(self, text: str) -> None:
        self.variables: dict[str, str] = {}
        self.targets: list[Target] = []
        offset, joins = 0, False
        for number, whole in enumerate(text.splitlines(keepends=True), 1):
            line, start = whole.rstrip("\r\n"), offset
            offset += len(whole)
            if line.startswith("\t") and self.targets:
                joins = self._add(line, number, start, joins=joins)
                continue
            joins = False
            variable = _VARIABLE.match(line)
            names, colon, needs = line.partition(":")
            if variable is not None:
                self.variables.setdefault(variable[1], variable[2].partition(" #")[0].strip())
            elif colon and names.strip() and line[0] not in ".# \t" and "=" not in names:
                self.targets.append(Target(names.split()[0], needs.lstrip(":").partition(";")[0].partition("#")[0].split()))

    def _add(self, line: str, number: int, start: int, *, joins: bool) -> bool:
        """Add a line to the last recipe; return whether the next one continues it."""
        lead = len(line) - len(line.lstrip("\t @-+"))
        placed = RecipeLine(number, line[lead:], start + lead)
        recipe = self.targets[-1].recipe
        if joins and recipe:
            recipe[-1].append(placed)
        else:
            recipe.append([placed])
        return line.endswith("\\")

    def expanded(self, text: str, depth: int = 0) -> str:
        """Return a line with variables of the file replaced; others become variables of the shell."""

        def value(found: re.Match[str]) -> str:
            if found[3]:
                return "$"
            name = found[1] or found[2]
            known = self.variables.get(name)
            return f"${{{name}}}" if known is None or depth > _DEEPEST else self.expanded(known, depth + 1)

        return _REFERENCE.sub(value, text) if len(text) < _LONGEST else text

    def mapped(self, line: RecipeLine) -> Iterator[tuple[str, list[int]]]:
        """Yield the expanded text of a line with offsets; the letters of a variable's value are where it is named."""
        at, start = 0, line.offset
        for found in _REFERENCE.finditer(line.text):
            yield line.text[at : found.start()], list(range(start + at, start + found.start()))
            text = self.expanded(found[0])
            yield text, [start + found.start()] * len(text)
            at = found.end()
        yield f"{line.text[at:]}\n", list(range(start + at, start + len(line.text) + 1))

    def commands(self, goals: Sequence[str]) -> str:
        """Return the shell text of targets (by default, of the first one) after the targets they need, each in a subshell."""
        by_name: dict[str, list[Target]] = {}
        for target in self.targets:
            by_name.setdefault(target.name, []).append(target)
        waiting = list(reversed(goals or [target.name for target in self.targets[:1]]))
        parts: list[str] = []
        seen: set[str] = set()
        size = 0
        while waiting and size < _WIDEST:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += [name, *(need for target in reversed(by_name.get(name, ())) for need in reversed(target.needs))]
                continue
            for lines in (lines for target in by_name.pop(name, ()) for lines in target.recipe):
                parts.append("(" + "\n".join(self.expanded(line.text) for line in lines) + "\n)")
                size += len(parts[-1])
        return "\n".join(parts)
