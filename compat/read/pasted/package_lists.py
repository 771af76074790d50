"""Lists of what is installed: ``pip list`` (columns, freeze, JSON), ``pip freeze``, ``uv pip list``, ``conda list``.

A list counts as whole only where nothing suggests otherwise: it has the program's own beginning, is in order, shows no
gap, and goes on to the end of the alphabet.
"""

from __future__ import annotations

import re

from compat.environment import EMPTY, Distribution, Source, normalized
from compat.read.files.conda.conda_names import distribution_name
from compat.read.files.requirements.requirement import Unnamed, editable, parse_requirement
from compat.read.pasted.conda_lists import conda_row, is_conda_header
from compat.read.pasted.findings import LISTED, WRITTEN, Findings
from compat.read.pasted.words import is_name, is_tool, is_version
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat.read.pasted.plain_lines import Line

_ROW = re.compile(r"\[pip3?\] +(?P<name>[A-Za-z0-9][\w.-]{0,80})==(?P<version>\S{1,80})$")
_PIN = re.compile(
    r"(?:[-*] |\d{1,4} )?(?P<name>[A-Za-z0-9][\w.-]{0,80})(?:\[[\w,. -]{0,80}\])?"
    r"===?(?P<version>[\w.!+-]{1,80})(?: *[;#\\].*)?$"
)
_DIRECT = re.compile(r"(?:-e |--editable |[A-Za-z0-9][\w.-]{0,80}(?:\[[\w,. -]{0,80}\])? @ )\S")
_EDITABLE_NOTE = re.compile(r"# Editable .{0,80}\((?P<name>[A-Za-z0-9][\w.-]{0,80})==(?P<version>[\w.!+-]{1,80})\)$")
_FREEZE = re.compile(r"\b(?:pip3?|uv pip|uv|conda run) (?:freeze|list --format[= ]freeze)\b|pip3? freeze", re.IGNORECASE)
_GAP = re.compile(r"^\W{0,3}(?:\.\.\.|…|\[\.\.\.\]|\(?(?:truncated|omitted|snip|etc)\b)", re.IGNORECASE)
_WHOLE_FROM = 10  # rows; a shorter list is an excerpt


class Table:
    """The rows of one list."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.names: list[str] = []
        self.gap = False

    def is_whole(self) -> bool:
        """Whether nothing suggests that rows are missing."""
        names = [name.lower().replace("_", "-") for name in self.names]
        ordered = sum(names[at - 1] > names[at] for at in range(1, len(names))) <= len(names) // 50 + 1
        own = "pip" in names if self.kind == "pip" else "python" in names if self.kind == "conda" else self.kind == "freeze"
        return len(names) >= _WHOLE_FROM and not self.gap and ordered and own and names[-1][:1] >= "t"


def read_lists(lines: Sequence[Line], found: Findings) -> None:
    """Every list in the text, and ``[pip3]`` and ``[conda]`` rows."""
    _bracketed(lines, found)
    position = 0
    while position < len(lines):
        words = lines[position].text.split()
        if words[:2] == ["Package", "Version"] and len(words) < 8:
            position = _columns(lines, position + 1, Table("pip" if len(words) < 4 or words[2] != "Latest" else "part"), found)
        elif is_conda_header(words):
            position = _conda(lines, position + 1, found)
        elif _is_frozen(lines[position].text):
            position = _frozen(lines, position, found)
        else:
            position += 1


def _bracketed(lines: Sequence[Line], found: Findings) -> None:
    for line in lines:
        if line.text.startswith("[pip") and (match := _ROW.match(line.text)):
            found.package(match["name"], match["version"], LISTED)
        elif line.text.startswith("[conda] "):
            conda_row(line.text[8:].split(), found)
        elif line.text.endswith(" pypi") and "pypi_" in line.text:
            conda_row(line.text.split(), found)
        else:
            continue
        found.used.add(line.number)


def _columns(lines: Sequence[Line], position: int, table: Table, found: Findings) -> int:
    """Rows below ``Package  Version``; of further columns the folder of an editable installation is kept."""
    while position < len(lines) and lines[position].text and not lines[position].edge:
        line = lines[position]
        words = line.text.split()
        if len(words) > 1 and is_name(words[0]) and is_version(words[1]):
            table.names.append(words[0])
            path = " ".join(words[2:])
            source = Source("directory", {"path": path, "editable": True}) if table.kind == "pip" and _is_folder(path) else None
            found.package(words[0], words[1], LISTED, source)
            found.used.add(line.number)
        elif line.text.strip("- ") and not line.text.startswith(("WARNING", "[notice]")):
            table.gap = True
        position += 1
    _finish(table, lines, position, found)
    return position


def _is_folder(path: str) -> bool:
    return path.startswith(("/", "~")) or path[1:3] in (":\\", ":/")


def _conda(lines: Sequence[Line], position: int, found: Findings) -> int:
    table = Table("conda")
    while position < len(lines) and lines[position].text and not lines[position].edge:
        line = lines[position]
        words = line.text.split()
        if conda_row(words, found):
            table.names.append(words[0])
            found.used.add(line.number)
        elif line.text.strip("─- #"):
            table.gap = True
        position += 1
    _finish(table, lines, position, found)
    return position


def _is_frozen(text: str) -> bool:
    if "==" in text:
        return _PIN.match(text) is not None or _EDITABLE_NOTE.match(text) is not None
    return (" @ " in text or text.startswith("-e ")) and _DIRECT.match(text) is not None


def _frozen(lines: Sequence[Line], position: int, found: Findings) -> int:
    """Rows as ``pip freeze`` writes them; below the command it is a list, a few rows elsewhere are somebody's words."""
    start = position
    table = Table("freeze" if _asked(lines, start) else "part")
    rows: list[tuple[Line, Distribution]] = []
    noted: tuple[str, str] | None = None
    while position < len(lines) and lines[position].text and not lines[position].edge:
        line = lines[position]
        note = _EDITABLE_NOTE.match(line.text) if line.text.startswith("# Editable") else None
        if note is not None:
            noted = note["name"], note["version"]
        else:
            row = _frozen_row(line.text, noted)
            noted = None
            if row is not None:
                rows.append((line, row))
            elif not line.text.startswith(("#", "WARNING")):
                table.gap = table.gap or _GAP.match(line.text) is not None or _is_frozen(line.text)
                if not rows or position - start > 3 * len(rows) + 3:
                    break
        position += 1
    rank = LISTED if len(rows) >= _WHOLE_FROM or table.kind == "freeze" else WRITTEN
    for line, row in rows:
        if is_tool(row.name):
            continue
        found.package(row.name, row.version, rank, row.source, EMPTY, row.specifier)
        found.used.add(line.number)
        table.names.append(row.name)
    _finish(table, lines, position, found)
    return max(position, start + 1)


def _asked(lines: Sequence[Line], position: int) -> bool:
    """Whether the command that prints such a list stands just above."""
    above = [line.text for line in lines[max(position - 3, 0) : position] if line.text]
    return any(_FREEZE.search(text) for text in above)


def _frozen_row(text: str, noted: tuple[str, str] | None) -> Distribution | None:
    """One row as a distribution, its source only where it did not come from an index."""
    match = _PIN.match(text) if "==" in text else None
    if match is not None:
        if not is_version(match["version"]):
            return None
        return Distribution(normalized(match["name"]), match["version"])
    if not _DIRECT.match(text):
        return None
    try:
        row = editable(text.partition(" ")[2]) if text.startswith("-") else parse_requirement(text)
    except Unnamed as problem:
        if noted is None:
            return None
        return Distribution(normalized(noted[0]), noted[1], problem.source)
    except ValueError:
        return None
    if noted is not None:
        row = replace(row, name=normalized(noted[0]), version=noted[1])
    source = row.source
    if source is not None and "/croot/" in str(source.details.get("url", "")):
        source = Source("conda")  # built by Anaconda, whose folder pip wrote down
    return replace(row, source=source)


def _finish(table: Table, lines: Sequence[Line], position: int, found: Findings) -> None:
    following = lines[position].text if position < len(lines) else ""
    cut = _GAP.match(following) is not None or (position + 1 < len(lines) and _GAP.match(lines[position + 1].text) is not None)
    unclosed = lines[-1].fenced and not any(line.text for line in lines[position : position + 2])
    if cut or unclosed or not table.is_whole():
        return
    if table.kind == "freeze":
        found.note("pip freeze leaves out pip itself, and setuptools and wheel before Python 3.12")
    called = distribution_name if table.kind == "conda" else normalized
    found.whole_lists.append(frozenset(called(name) for name in table.names))
