"""Changes to the inline metadata of a script (PEP 723): the TOML in its comments from ``# /// script`` to ``# ///``."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from compat.errors import InputError
from compat.write.changes import Change
from compat.write.edits import Edit
from compat.write.pyproject import Project
from compat.write.text import encoding_of, line_end
from compat.write.toml_file import TomlFile

_BLOCK = re.compile(r"^# /// script[ \t]*\r?\n((?:#(?: [^\r\n]*)?\r?\n)*)# ///[ \t]*$", re.MULTILINE)


def edit_script(path: str, content: bytes, changes: Sequence[Change]) -> tuple[Edit, ...]:
    """The edit of a script that says what it needs; :class:`InputError` where it says nothing, or says it twice."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise InputError(f"is not UTF-8 (byte {problem.start})", path) from None
    blocks = list(_BLOCK.finditer(text))
    if len(blocks) != 1:
        raise InputError("expected one '# /// script' block with what the script needs", path)
    block = blocks[0]
    above = text.count("\n", 0, block.start(1))
    end = line_end(text)
    toml = "".join(line[2:] if line[:2] == "# " else line[1:] for line in block[1].splitlines(keepends=True))
    toml = toml.replace("\r\n", "\n")
    if _commented(toml.splitlines(), end) != block[1]:
        raise InputError("the '# /// script' block cannot be edited without changing other lines", path, above + 1)
    file = TomlFile(path, content, "\n" * above + toml)
    project = Project(file, "uv" if os.path.isfile(f"{path}.lock") else None, script=True)
    for change in changes:
        project.change(change)
    after = text[: block.start(1)] + _commented(file.edited()[above:].splitlines(), end) + text[block.end(1) :]
    return (Edit(path, content, encoding_of(path, content, text).encode(after)),)


def _commented(lines: Sequence[str], end: str) -> str:
    return "".join(f"# {line}{end}" if line else f"#{end}" for line in lines)
