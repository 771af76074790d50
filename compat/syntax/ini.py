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


class IniOption:
    """An option and the lines of its value that are neither empty nor comments; ``line`` is that of its name."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.lines: list[IniLine] = []
        self.indent = "    "
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
    found: Ini = {}
    section: dict[str, IniOption] | None = None
    option: IniOption | None = None
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
            option.lines.append(IniLine(number, stripped, start + lead))
            option.indent = line[:lead]
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
            option = section[name] = IniOption(number)
            if value:
                option.lines.append(IniLine(number, value, start + named.end()))
    return found
