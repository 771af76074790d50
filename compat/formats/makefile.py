"""Makefiles: one listing for each target whose recipe installs or starts something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.formats.installs.files import InstallFormat
from compat.formats.jobs import Job, Placed, Script, check_size
from compat.formats.listing import Listing
from compat.model import Environment

if TYPE_CHECKING:
    from compat.formats.installs.edit import InstallScript


_VARIABLE = re.compile(r"(?:export\s+)?([A-Za-z_][\w.-]*)\s*(?::{0,3}|[?+])=\s*(.*)")
_REFERENCE = re.compile(r"\$(?:\(([\w.-]+)\)|\{([\w.-]+)\}|(\$))")
_DEEPEST = 5
_NOTHING = "no target installs a package or starts a known program"


class _Target:
    """A target, and the lines of its recipe; each is run by a shell of its own, unless it ends with a backslash."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[list[Placed]] = []


_WIDEST = 1 << 18
"""Characters of all recipes after their variables are replaced; the longest real ones have 60,000."""


class Makefile(InstallFormat):
    """A Makefile; what ``include`` adds, and functions of make, are unknown."""

    kind = "makefile"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        variables, targets = _parsed(path, text)
        found = []
        size = 0
        for target in targets:
            job = Job(path)
            for lines in target.lines:
                expanded = tuple(Placed(each.number, _expanded(each.text, variables), None) for each in lines)
                size += sum(len(each.text) for each in expanded)
                if size > _WIDEST:
                    raise InputError(f"its variables expand to more than {_WIDEST // 1024} KiB", path, lines[0].number)
                job.run(Script(expanded))
            job.start_last_command(only_jobs=True)
            found.append(job.listing(self.kind, label=f"target {target.name}", context=Environment()))
        kept = tuple(each for each in found if each.entries or each.unread or each.context.workload is not None)
        return kept or (Listing(path, self.kind, notes=(f"{path}: {_NOTHING}",)),)

    def collect(self, script: InstallScript) -> None:
        from compat.formats.edit.files import Mapped

        variables, targets = _parsed(script.path, script.text)
        for target in targets:
            for lines in target.lines:
                letters: list[str] = []
                offsets: list[int] = []
                for line in lines:
                    for text, at in _mapped(line, variables):
                        letters.append(text)
                        offsets += at
                script.read(Mapped("".join(letters), offsets))


def _parsed(path: str, text: str) -> tuple[dict[str, str], list[_Target]]:
    check_size(path, text, "a Makefile")
    variables: dict[str, str] = {}
    targets: list[_Target] = []
    offset, joins = 0, False
    for number, whole in enumerate(text.splitlines(keepends=True), 1):
        line, start = whole.rstrip("\r\n"), offset
        offset += len(whole)
        if line.startswith("\t") and targets:
            lead = len(line) - len(line.lstrip("\t @-+"))
            placed = Placed(number, line[lead:], start + lead)
            if joins and targets[-1].lines:
                targets[-1].lines[-1].append(placed)
            else:
                targets[-1].lines.append([placed])
            joins = line.endswith("\\")
            continue
        joins = False
        variable = _VARIABLE.match(line)
        names, colon, _ = line.partition(":")
        if variable is not None:
            variables.setdefault(variable[1], variable[2].partition(" #")[0].strip())
        elif colon and names.strip() and line[0] not in ".# \t" and "=" not in names:
            targets.append(_Target(names.split()[0]))
    return variables, targets


def _expanded(text: str, variables: dict[str, str], depth: int = 0) -> str:
    """Return a line with variables of the file replaced; others become variables of the shell."""

    def value(found: re.Match[str]) -> str:
        if found[3]:
            return "$"
        name = found[1] or found[2]
        known = variables.get(name)
        return f"${{{name}}}" if known is None or depth > _DEEPEST else _expanded(known, variables, depth + 1)

    return _REFERENCE.sub(value, text) if len(text) < 10_000 else text


def _mapped(line: Placed, variables: dict[str, str]) -> Iterator[tuple[str, list[int]]]:
    """Yield the expanded text of a line with offsets; the letters of a variable's value are where it is named."""
    at, start = 0, line.offset or 0
    for found in _REFERENCE.finditer(line.text):
        yield line.text[at : found.start()], list(range(start + at, start + found.start()))
        text = _expanded(found[0], variables)
        yield text, [start + found.start()] * len(text)
        at = found.end()
    yield f"{line.text[at:]}\n", list(range(start + at, start + len(line.text) + 1))
