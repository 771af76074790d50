"""The import statements of a file, found in its text: parsing hundreds of modules would take far longer.

Strings over several lines are left out, and an indented statement says what it depends on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compat.records import cached, record

_NAMES = r"(\([^)]*\)|(?:[^\n;#\\]|\\\r?\n)*)"
_STATEMENT = rf"(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]*{_NAMES}|import[ \t]+((?:[^\n#;\\]|\\\r?\n)+))"
AT_MARGIN = re.compile(rf"^(?:try:[ \t]*\n(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]+)?{_STATEMENT}", re.MULTILINE)
"""Statements at the left margin, and the first one of a ``try`` there, whose handler may raise."""
ANYWHERE = re.compile(rf"^[ \t]*{_STATEMENT}", re.MULTILINE)
_INDENT = re.compile(r"[ \t]*")
_TEXT = re.compile(r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""' + r"|'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''", re.DOTALL)
_COMMENT = re.compile(r"#[^\n]*")


@record(frozen=True)
class Statement:
    """``from module import name`` in a file (``name`` is ``None`` for ``import module``).

    ``importer`` is the module of the file; ``when`` says what an indented statement depends on.
    """

    importer: str
    path: str
    module: str
    name: str | None
    text: str = ""
    when: str = ""

    @property
    def line(self) -> int:
        """Where the statement is; 0 if it cannot be found."""
        at = self._source().find(self.text)
        return self._source().count("\n", 0, at) + 1 if self.text and at >= 0 else 0

    def _source(self) -> str:
        return text_of(self.path)


def imports_in(module: str, path: str, pattern: re.Pattern[str]) -> Iterator[Statement]:
    """Yield the statements of a module's file that a pattern finds: :data:`AT_MARGIN` or :data:`ANYWHERE`."""
    text = _TEXT.sub("", text_of(path))
    inside = module if path.endswith("__init__.py") else module.rpartition(".")[0]
    for found in pattern.finditer(text):
        origin, names, modules = found.groups()
        tried = found[0].startswith("try:")
        start = text.rindex("\n", 0, found.start(1 if modules is None else 3)) + 1 if tried else found.start()
        line = text[start : found.end()].partition("\n")[0]
        when = _when(text, start) if line[0] in " \t" else ""
        if tried and when == CONDITION:
            when = ""  # its handler raises
        if modules is not None:
            for each in _words(modules):
                yield Statement(module, path, each, None, line, when)
            continue
        target = _absolute(origin, inside)
        if target is None or target == "__future__":
            continue
        for each in _words(names):
            yield Statement(module, path, target, each, line, when)


def _words(listed: str) -> Iterator[str]:
    """The names in a list, without those they are given by ``as``."""
    if "#" in listed:
        listed = _COMMENT.sub("", listed)
    for each in listed.strip("() \t").replace("\\", " ").split(","):
        words = each.split(None, 1)
        if words:
            yield words[0]


CONDITION, HANDLED, LATER = "condition", "handled", "later"
"""An indented statement runs under an ``if``; a failure of it is handled; or it runs later, if at all."""


def _when(text: str, at: int) -> str:
    """What an indented statement depends on, by the lines above it that open its blocks."""
    found = _INDENT.match(text, at)
    depth = len(found[0]) if found is not None else 0
    while depth and at > 0:
        above = text.rfind("\n", 0, at - 1) + 1
        line = text[above : at - 1]
        at, indent = above, len(line) - len(line.lstrip())
        if not line.strip() or indent >= depth or line.lstrip().startswith(("#", ")")):
            continue
        depth, block = indent, line.strip()
        if block.startswith(("def ", "async ", "class ", "except", "if TYPE_CHECKING", "if typing.TYPE_CHECKING")):
            return LATER
        if block.startswith("try"):
            handler = re.compile(rf"^{line[:indent]}except[^\n]*\n\s*(\w*)", re.MULTILINE).search(text, at)
            if handler is None or handler[1] != "raise":
                return HANDLED
    return CONDITION


def _absolute(origin: str, inside: str) -> str | None:
    rest = origin.lstrip(".")
    dots = len(origin) - len(rest)
    if not dots:
        return origin or None
    parts = inside.split(".")
    if dots > len(parts) or not inside:
        return None
    base = ".".join(parts[: len(parts) - dots + 1])
    return f"{base}.{rest}" if rest else base


@cached
def text_of(path: str) -> str:
    """Return the text of a file, read once; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
