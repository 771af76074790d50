"""INI files as setuptools and tox read them (configparser): sections, options, and where each line of a value is written."""

from __future__ import annotations

import re

from compat.errors import InputError
from compat.records import record

_SECTION = re.compile(r"\[([^\]\r\n]+)\]\s*(?:[#;].*)?")
_OPTION = re.compile(r"([^\s=:#;\[][^=:]*?)\s*[=:]\s?[ \t]*")
_MOST = 100_000
"""Lines of one file."""


@record(frozen=True)
class IniLine:
    """A line of a value without the blanks around it: its number, its text, and the offset of the text in the file."""

    number: int
    text: str
    offset: int

    @property
    def end(self) -> int:
        """The offset behind the text."""
        return self.offset + len(self.text)


@record(frozen=True)
class IniOption:
    """An option and the lines of its value that are neither empty nor comments; ``line`` is that of its name."""

    line: int
    lines: tuple[IniLine, ...]
    indent: str = "    "
    """The blanks before its continued lines."""

    @property
    def value(self) -> str:
        """The whole value."""
        return "\n".join(line.text for line in self.lines)


Ini = dict[str, dict[str, IniOption]]


def parse_ini(text: str, path: str) -> Ini:
    """Parse an INI file; names of options are lower-case, with ``_`` for ``-``.

    :class:`InputError` with the line for text outside of a section, and for a merge conflict.
    """
    if text.count("\n") > _MOST:
        raise InputError(f"has more than {_MOST} lines", path)
    found: dict[str, dict[str, _Option]] = {}
    section: dict[str, _Option] | None = None
    option: _Option | None = None
    indent = offset = 0
    for number, whole in enumerate(text.splitlines(keepends=True), 1):
        start, offset = offset, offset + len(whole)
        line = whole.rstrip()
        if number == 1:
            line = f" {line[1:]}" if line.startswith("\ufeff") else line
        stripped = line.strip()
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            raise InputError("has an unresolved merge conflict", path, number)
        if not stripped or stripped[0] in "#;":
            continue
        lead = len(line) - len(line.lstrip())
        if option is not None and lead > indent:
            option.add(IniLine(number, stripped, start + lead), line[:lead])
            continue
        header = _SECTION.fullmatch(stripped)
        if header is not None:
            section, option = found.setdefault(header[1].strip(), {}), None
            continue
        if section is None:
            raise InputError("expected a section such as [options]", path, number)
        named = _OPTION.match(line, lead)
        option = None  # an option without a value
        if named is not None:
            name, indent = named[1].strip().lower().replace("-", "_"), lead
            value = line[named.end() :]
            option = section[name] = _Option(number)
            if value:
                option.add(IniLine(number, value, start + named.end()), "")
    return {name: {key: each.made() for key, each in options.items()} for name, options in found.items()}


class _Option:
    """An option whose lines are still being read."""

    def __init__(self, line: int) -> None:
        self._line = line
        self._lines: list[IniLine] = []
        self._indent = ""

    def add(self, line: IniLine, indent: str) -> None:
        self._lines.append(line)
        self._indent = indent or self._indent

    def made(self) -> IniOption:
        return IniOption(self._line, tuple(self._lines), self._indent or "    ")
