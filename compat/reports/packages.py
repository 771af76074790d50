"""Lists of what is installed: ``pip list`` (columns, freeze, JSON), ``pip freeze``, ``uv pip list``, ``conda list``.

A list counts as whole only where nothing suggests otherwise: it has the program's own beginning, is in order, shows no
gap, and goes on to the end of the alphabet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from compat.formats.conda_spec import distribution_name
from compat.formats.requirements.requirement import Unnamed, editable, parse_requirement
from compat.model import EMPTY, Distribution, Source, normalized
from compat.records import replace
from compat.reports.findings import LISTED, WRITTEN, Findings
from compat.reports.words import Line, is_name, is_tool, is_version

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


# --- Rows of ``conda list`` (and mamba's): name, version, build and channel.


_NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]{0,80}")
_BUILT_FOR = re.compile(r"cuda(\d{1,2}\.?\d{1,2})")


def is_conda_header(words: Sequence[str]) -> bool:
    """Whether a line is the head of such a list."""
    names = [word for word in words if word != "#"]
    return names[:3] == ["Name", "Version", "Build"] and len(names) < 6


def conda_row(words: Sequence[str], found: Findings) -> bool:
    """Note what one row says; whether it is one. What conda installed itself gets conda as its source."""
    if not 2 <= len(words) <= 6 or not _NAME.fullmatch(words[0].lower()) or not is_version(words[1]):
        return bool(len(words) in (3, 4) and _NAME.fullmatch(words[0]) and words[1][:1].isalnum() and "_" in words[2])
    name, version = words[0].lower(), words[1]
    if name.startswith("_"):
        return True  # conda's own switches
    build = words[2] if len(words) > 2 else ""
    channel = words[3] if len(words) > 3 else None
    if name == "python":
        found.say("python", version, LISTED)
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
    found.package(distribution_name(name), version, LISTED, Source("conda", details), _built_for(name, build))
    return True


def _built_for(name: str, build: str) -> dict[str, str]:
    """torch's CUDA by the build: ``py3.10_cuda11.8_cudnn8.7.0_0``, ``cuda124py310h…``, ``py310_cpu_0``."""
    if name not in ("pytorch", "torch"):
        return {}
    match = _BUILT_FOR.search(build)
    if match is None:
        return {"cuda": "cpu"} if "cpu" in build else {}
    digits = match[1]
    return {"cuda": digits if "." in digits else f"{digits[:-1]}.{digits[-1]}"}


# --- ``pip list --format=json`` somewhere in a text.


_START = re.compile(r"\[\s{0,40}\{\s{0,40}\"name\"\s{0,8}:")
_MOST = 10


def read_json_lists(lines: Sequence[Line], found: Findings) -> None:
    """Every such list; one that is cut off is read as far as it goes."""
    if not any('"name"' in line.text for line in lines):
        return
    text = "\n".join(line.text for line in lines)
    for number, match in enumerate(_START.finditer(text)):
        if number >= _MOST:
            return
        rows, whole = _rows(text, match.start())
        names = [name for row in rows if (name := _row(row, found)) is not None]
        if whole and len(names) == len(rows) >= 10 and "pip" in names:
            found.whole_lists.append(frozenset(names))


def _rows(text: str, start: int) -> tuple[list[Any], bool]:
    """The objects of a list, one after the other, and whether its end was reached."""
    import json

    decoder, space = json.JSONDecoder(), re.compile(r"[\s,]*")
    rows: list[Any] = []
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


def _row(row: Any, found: Findings) -> str | None:
    name, version = row.get("name"), row.get("version")
    if not isinstance(name, str) or not isinstance(version, str) or not 0 < len(name) < 100:
        return None
    folder = row.get("editable_project_location")
    source = Source("directory", {"path": folder, "editable": True}) if isinstance(folder, str) and folder else None
    found.package(name, version, LISTED, source)
    return normalized(name)
