"""Makefiles: variables, and the recipes of targets. Nothing is run; functions of make and ``include`` are unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compat.records import record

_VARIABLE = re.compile(r"(?:export\s+)?([A-Za-z_][\w.-]*)\s*(?::{0,3}|[?+])=\s*(.*)")
_REFERENCE = re.compile(r"\$(?:\(([\w.-]+)\)|\{([\w.-]+)\}|(\$))")
_FUNCTION = re.compile(r"\$[({](?:(call|eval|foreach|if|or|and|shell)\s+([\w.-]*)|([\w.-]+)[)}])")
_MOST = 300
"""Targets that one target needs, and targets that are read on their own."""
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
    """A target, the targets it needs, and its recipe: each item is run by a separate shell; continued lines are joined."""

    def __init__(self, name: str, needs: Sequence[str]) -> None:
        self.name = name
        self.needs = needs
        self.recipe: list[list[RecipeLine]] = []


class MakeText:
    """The variables and targets of a Makefile; of a variable that is set twice, the first value counts."""

    def __init__(self, text: str) -> None:
        self.variables: dict[str, str] = {}
        self.targets: list[Target] = []
        self.defines: dict[str, str] = {}
        """The texts of ``define NAME … endef``."""
        self.includes: list[tuple[int, str, bool]] = []
        """The included files: line, name, and whether make goes on without it."""
        self.exported: set[str] = set()
        self._open: str | None = None
        offset, joins = 0, False
        for number, whole in enumerate(text.splitlines(keepends=True), 1):
            line, start = whole.rstrip("\r\n"), offset
            offset += len(whole)
            if line.startswith("\t") and self.targets and self._open is None:
                lead = len(line) - len(line.lstrip("\t @-+"))
                placed = RecipeLine(number, line[lead:], start + lead)
                recipe = self.targets[-1].recipe
                if joins and recipe:
                    recipe[-1].append(placed)
                else:
                    recipe.append([placed])
                joins = line.endswith("\\")
                continue
            joins = False
            if self._is_directive(line, number):
                continue
            variable = _VARIABLE.match(line)
            names, colon, needs = line.partition(":")
            if variable is not None:
                self.variables.setdefault(variable[1], variable[2].partition(" #")[0].strip())
            elif colon and names.strip() and line[0] not in ".# \t" and "=" not in names:
                self.targets.append(Target(names.split()[0], needs.lstrip(":").partition(";")[0].partition("#")[0].split()))

    def _is_directive(self, line: str, number: int) -> bool:
        """Record ``define`` and ``include``; return whether a line belongs to one of them."""
        words = line.split()
        first = words[0] if words else ""
        if self._open is not None:
            if first == "endef":
                self._open = None
            else:
                self.defines[self._open] += f"{line}\n"
        elif first == "define" and len(words) > 1:
            self._open = words[1]
            self.defines[self._open] = ""
        elif first in ("include", "-include", "sinclude"):
            self.includes += [(number, name, first != "include") for name in words[1:]]
        elif first == "export":
            self.exported.update(word.partition("=")[0].rstrip(":?+") for word in words[1:2])
            return False
        else:
            return False
        return True

    def expanded(self, text: str, depth: int = 0) -> str:
        """Return a line with the file's variables expanded; undefined ones become shell variables."""

        def value(found: re.Match[str]) -> str:
            if found[3]:
                return "$"
            name = found[1] or found[2]
            known = self.variables.get(name, "make" if name == "MAKE" else None)
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

    def calls(self, text: str) -> list[str]:
        """Return the texts from which functions of make compute commands: those of ``define``, else the line itself."""
        found: list[str] = []
        for call in _FUNCTION.finditer(text):
            name = call[2] if call[1] in ("call", "eval") else call[3] or ""
            found.append(self.defines.get(name, "" if call[3] else text))
        return [each for each in found if each]

    def is_unknown(self, text: str) -> bool:
        """Whether a line calls a function that the file does not define."""
        calls = (call for call in _FUNCTION.finditer(text) if call[1] == "call")
        return any(call[2] not in self.defines and call[2] not in self.variables for call in calls)

    def roots(self) -> list[list[Target]]:
        """Return the targets that no other target needs, each after all that it needs; rules of one name belong together."""
        by_name = self._by_name()
        needed = {need for target in self.targets for need in target.needs if need != target.name}
        first = [name for name in by_name if name not in needed] or list(by_name)
        return [self._in_order(name, by_name) for name in first[:_MOST]]

    def _by_name(self) -> dict[str, list[Target]]:
        found: dict[str, list[Target]] = {}
        for target in self.targets:
            found.setdefault(target.name, []).append(target)
        return found

    def _in_order(self, goal: str, by_name: dict[str, list[Target]]) -> list[Target]:
        found: list[Target] = []
        waiting, seen, done = [goal], set[str](), set[str]()
        while waiting and len(seen) < _MOST:
            name = waiting.pop()
            if name in done or name not in by_name:
                continue
            if name in seen:
                done.add(name)
                found += by_name[name]
                continue
            seen.add(name)
            needs = [need for target in by_name[name] for need in target.needs if need not in seen]
            waiting += [name, *reversed(needs)]
        return found

    def commands(self, goals: Sequence[str]) -> str:
        """Return the shell text of targets (by default, of the first one) after the targets they need, each in a subshell."""
        by_name = self._by_name()
        parts: list[str] = []
        size = 0
        seen: set[str] = set()
        for goal in goals or [target.name for target in self.targets[:1]]:
            for target in self._in_order(goal, by_name):
                for lines in target.recipe if target.name not in seen else ():
                    parts.append("(" + "\n".join(self.expanded(line.text) for line in lines) + "\n)")
                    size += len(parts[-1])
                    if size > _WIDEST:
                        return "\n".join(parts)
            seen.update(target.name for target in self._in_order(goal, by_name))
        return "\n".join(parts)
