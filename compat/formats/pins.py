"""Pins in a file that no statement read from it accounts for. The check names them instead of passing over them.

The readers of install commands follow what they understand. A pin stays behind when nothing that is understood contains it: an
unknown program, another machine, a template, code that builds its command. It is found by its form alone, ``NAME==VERSION``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from compat.errors import InputError
from compat.formats.listing import Entry, Listing
from compat.model import Distribution, normalized
from compat.records import replace
from compat.syntax.python import parsed

NumberedLine: TypeAlias = "tuple[int, str]"

_PIN = re.compile(
    r"(?<![\w.$@/{}%-])(?P<name>[A-Za-z][\w-]{0,80})(?:\[[\w,. -]{0,80}\])?"
    r" ?={2,3} ?v?(?P<version>\d{1,9}(?:\.\d{1,9}){1,5}[\w.+!-]{0,60})(?![\w.+!-]*\*)"
)
_SAYS = re.compile(
    r"[\s@-]*(?:(?:echo|printf|print|info|error|warn\w*|log|die|LABEL|MAINTAINER)\b|"
    r"[\"']?(?:name|description|label|title|summary|message|displayName)[\"']?\s*[:=]|#|//|::)"
)
"""Lines that say something: a pin in them is installed by nothing, unless the text goes into a file or a pipe."""
_ASKS = re.compile(r"\b(?:uninstall|grep|index versions|show)\b")
_PASSED_ON = re.compile(r"[|>]")
_SPEAKING = (
    "print",
    "warn",
    "warning",
    "info",
    "error",
    "exception",
    "debug",
    "critical",
    "log",
    "warning_once",
    "skip",
    "fail",
)
"""Calls whose text is a message."""
_MOST = 10_000
"""Pins of one file that nothing reads; more would hide those that matter."""


def with_loose(path: str, kind: str, lines: Iterable[NumberedLine], found: Sequence[Listing]) -> tuple[Listing, ...]:
    """Return the listings; the first has the pins of the lines that none of them accounts for."""
    stated = {pin for listing in found for pin in listing.stated}
    stated |= {(entry.distribution.name, entry.distribution.version or "") for each in found for entry in each.entries}
    left = tuple(loose(lines, {(name, _plain(version)) for name, version in stated}))
    if not left:
        return tuple(found)
    return (replace(found[0], loose=(*found[0].loose, *left)), *found[1:]) if found else (Listing(path, kind, loose=left),)


def loose(lines: Iterable[NumberedLine], stated: Collection[tuple[str, str]]) -> Iterator[Entry]:
    """Yield the pins of the lines that are not among the stated ones."""
    seen: set[tuple[str, str]] = set()
    for number, line in lines:
        if "==" not in line or (_SAYS.match(line) and not _PASSED_ON.search(line)) or _ASKS.search(line):
            continue
        for pin in pins_in(line):
            if pin not in stated and pin not in seen:
                if len(seen) == _MOST:
                    raise InputError(f"has more than {_MOST} pins that no recognized command installs", None, number)
                seen.add(pin)
                yield Entry(Distribution(pin[0], pin[1]), number)


def pins_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and versions of the pins in a text."""
    text = text.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r")  # of echo and printf: "\\ntorch" is no name
    return ((normalized(match["name"]), _plain(match["version"])) for match in _PIN.finditer(text))


def _plain(version: str) -> str:
    """Return a version as a text that can be compared: without the zeros at its end, which change nothing."""
    text = version.lower().lstrip("v").rstrip(".-!+_")
    while text.endswith(".0"):
        text = text[:-2]
    return text


def numbered_lines(text: str) -> Iterator[NumberedLine]:
    """Yield the lines of a text without comments that begin with ``#``."""
    for number, line in enumerate(text.splitlines(), 1):
        if "#" in line:
            line = re.split(r"(?:^|\s)#", line, maxsplit=1)[0]
        yield number, line


_OF_BUILDING = ("[build-system",)
"""Build requirements are installed into a separate environment."""
_READ = (*_OF_BUILDING, "[project", "[dependency-groups", "[tool.uv", "[[tool.uv", "[tool.poetry", "[tool.pdm.resolution")
"""Tables whose requirements are read; an override of a package that nothing requires installs nothing."""


def outside_requirements(text: str, left_out: tuple[str, ...] = _READ) -> Iterator[NumberedLine]:
    """Yield the lines of a pyproject.toml in other tables than those of requirements: tasks and settings of tools."""
    section = ""
    for number, line in numbered_lines(text):
        section = line.strip() if line.startswith("[") else section
        if not section.startswith(left_out):
            yield number, line


def pins_of(path: str, text: str) -> tuple[Entry, ...]:
    """Return the pins of a file that is read by nothing else."""
    name = path.rpartition("/")[2]
    if name.endswith(".py"):
        lines = texts_of_code(path, text)
    else:
        lines = outside_requirements(text, _OF_BUILDING) if name == "pyproject.toml" else numbered_lines(text)
    return tuple(replace(each, file=path) for each in loose(lines, ()))


def texts_of_code(path: str, source: str) -> Iterator[NumberedLine]:
    """Yield the strings of Python code that may become a part of a command, each with its line; messages are none."""
    if "==" not in source:
        return
    try:
        tree = parsed(source, path)
    except InputError:
        return  # the reader reports it, or the file is no Python and read as something else
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield from ((node.lineno, line) for line in node.value.splitlines())
        elif not _is_message(node):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def _is_message(node: ast.AST) -> bool:
    """Whether the strings of a node are read by people: a docstring, an error, the argument of ``print``."""
    if isinstance(node, (ast.Raise, ast.Assert)):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        return name in _SPEAKING or name.endswith(("Error", "Warning"))
    return isinstance(node, ast.keyword) and node.arg in ("help", "description", "reason", "message")
