"""Lists of installed packages: ``pip list`` (columns, freeze, JSON), ``pip freeze``, ``uv pip list``, ``conda list``.

A list counts as complete only if it has the program's own header, is sorted, has no gap and reaches the end of the alphabet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from compat.formats.conda_spec import distribution_name
from compat.formats.requirements.requirement import Unnamed, parse_editable, parse_requirement
from compat.model import EMPTY, Distribution, Source, normalized
from compat.records import replace
from compat.reports.findings import LISTED, WRITTEN, Findings
from compat.reports.lines import Line
from compat.reports.words import is_name, is_tool, is_version

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
_MOST_JSON = 10  # JSON lists of one text


class Table:
    """The rows of one list."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.names: list[str] = []
        self.gap = False

    def is_whole(self) -> bool:
        """Whether nothing indicates missing rows."""
        names = [name.lower().replace("_", "-") for name in self.names]
        ordered = sum(names[at - 1] > names[at] for at in range(1, len(names))) <= len(names) // 50 + 1
        own = "pip" in names if self.kind == "pip" else "python" in names if self.kind == "conda" else self.kind == "freeze"
        return len(names) >= _WHOLE_FROM and not self.gap and ordered and own and names[-1][:1] >= "t"


def read_lists(lines: Sequence[Line], found: Findings) -> None:
    """Read every list in the text, and rows of ``[pip3]`` and ``[conda]``."""
    for line in lines:
        if line.text.startswith("[pip") and (match := _ROW.match(line.text)):
            found.package(match["name"], match["version"], LISTED)
        elif line.text.startswith("[conda] "):
            _conda_row(line.text[8:].split(), found)
        elif line.text.endswith(" pypi") and "pypi_" in line.text:
            _conda_row(line.text.split(), found)
        else:
            continue
        found.used.add(line.number)
    position = 0
    while position < len(lines):
        words = lines[position].text.split()
        if words[:2] == ["Package", "Version"] and len(words) < 8:
            position = _columns(lines, position + 1, Table("pip" if len(words) < 4 or words[2] != "Latest" else "part"), found)
        elif len(names := [word for word in words if word != "#"]) < 6 and names[:3] == ["Name", "Version", "Build"]:
            position = _conda(lines, position + 1, found)
        elif _is_frozen(lines[position].text):
            position = _frozen(lines, position, found)
        else:
            position += 1


def _columns(lines: Sequence[Line], position: int, table: Table, found: Findings) -> int:
    """Read rows below ``Package  Version``; another column with a folder means an editable installation."""
    while position < len(lines) and lines[position].text and not lines[position].edge:
        line = lines[position]
        words = line.text.split()
        if len(words) > 1 and is_name(words[0]) and is_version(words[1]):
            table.names.append(words[0])
            path = " ".join(words[2:])
            folder = path.startswith(("/", "~")) or path[1:3] in (":\\", ":/")
            source = Source("directory", {"path": path, "editable": True}) if table.kind == "pip" and folder else None
            found.package(words[0], words[1], LISTED, source)
            found.used.add(line.number)
        elif line.text.strip("- ") and not line.text.startswith(("WARNING", "[notice]")):
            table.gap = True
        position += 1
    _finish(table, lines, position, found)
    return position


def _conda(lines: Sequence[Line], position: int, found: Findings) -> int:
    table = Table("conda")
    while position < len(lines) and lines[position].text and not lines[position].edge:
        line = lines[position]
        words = line.text.split()
        if _conda_row(words, found):
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
    """Read rows of ``pip freeze``; without the command above them, a few rows count as hand-written, not as a list."""
    start = position
    above = (line.text for line in lines[max(start - 3, 0) : start])
    table = Table("freeze" if any(map(_FREEZE.search, above)) else "part")
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


def _frozen_row(text: str, noted: tuple[str, str] | None) -> Distribution | None:
    """Parse a row into a distribution; ``noted`` is the name and version of an editable one, from the comment above it."""
    match = _PIN.match(text) if "==" in text else None
    if match is not None:
        if not is_version(match["version"]):
            return None
        return Distribution(normalized(match["name"]), match["version"])
    if not _DIRECT.match(text):
        return None
    try:
        row = parse_editable(text.partition(" ")[2]) if text.startswith("-") else parse_requirement(text)
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
        source = Source("conda")  # built by Anaconda: pip recorded its build folder
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


# --- Rows of ``conda list`` (and mamba's): name, version, build and channel


_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,80}")
_BUILT_FOR = re.compile(r"cuda(\d{1,2}\.?\d{1,2})")


def _conda_row(words: Sequence[str], found: Findings) -> bool:
    """Record one row; false if it is not one. Conda's own packages get conda as their source."""
    if not 2 <= len(words) <= 6 or not _NAME.fullmatch(words[0].lower()) or not is_version(words[1]):
        return bool(len(words) in (3, 4) and _NAME.fullmatch(words[0]) and words[1][:1].isalnum() and "_" in words[2])
    name, version = words[0].lower(), words[1]
    if name.startswith("_"):
        return True  # a feature of conda, such as _openmp_mutex
    build = words[2] if len(words) > 2 else ""
    channel = words[3] if len(words) > 3 else None
    if name == "python":
        found.record("python", version, LISTED)
        return True
    if name == "pytorch-cuda":
        found.package("torch", None, LISTED, None, {"cuda": version})
        return True
    if channel == "pypi" or build.startswith("pypi"):
        found.package(name, version, LISTED)
        return True
    details = {"name": words[0]}
    if build:
        details["build"] = build
    if channel:
        details["channel"] = channel
    built_for: dict[str, str] = {}
    if name in ("pytorch", "torch"):  # py3.10_cuda11.8_cudnn8.7.0_0, cuda124py310h…, py310_cpu_0
        if (match := _BUILT_FOR.search(build)) is not None:
            built_for = {"cuda": match[1] if "." in match[1] else f"{match[1][:-1]}.{match[1][-1]}"}
        elif "cpu" in build:
            built_for = {"cuda": "cpu"}
    found.package(distribution_name(name), version, LISTED, Source("conda", details), built_for)
    return True


# --- ``pip list --format=json`` anywhere in a text


_START = re.compile(r"\[\s{0,40}\{\s{0,40}\"name\"\s{0,8}:")


def read_json_lists(lines: Sequence[Line], found: Findings) -> None:
    """Read every ``pip list --format=json`` in the text; a truncated list is read as far as possible."""
    if not any('"name"' in line.text for line in lines):
        return
    text = "\n".join(line.text for line in lines)
    for number, match in enumerate(_START.finditer(text)):
        if number >= _MOST_JSON:
            return
        rows, whole = _rows(text, match.start())
        names = []
        for row in rows:
            name, version, folder = (row.get(key) for key in ("name", "version", "editable_project_location"))
            if isinstance(name, str) and isinstance(version, str) and 0 < len(name) < 100:
                editable = isinstance(folder, str) and folder
                source = Source("directory", {"path": folder, "editable": True}) if editable else None
                found.package(name, version, LISTED, source)
                names.append(normalized(name))
        if whole and len(names) == len(rows) >= _WHOLE_FROM and "pip" in names:
            found.whole_lists.append(frozenset(names))


def _rows(text: str, start: int) -> tuple[list[dict[str, object]], bool]:
    """Return the objects of the JSON list that begins at ``start``, and whether its end was reached."""
    import json

    decoder, space = json.JSONDecoder(), re.compile(r"[\s,]*")
    rows: list[dict[str, object]] = []
    at = start + 1
    while True:
        skipped = space.match(text, at)
        at = skipped.end() if skipped else at
        if text[at : at + 1] != "{":
            return rows, text[at : at + 1] == "]"
        try:
            row, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return rows, False
        rows.append(row)
