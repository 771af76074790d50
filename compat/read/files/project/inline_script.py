"""Inline metadata of a script (PEP 723): the block of comments from ``# /// script`` to ``# ///``."""

from __future__ import annotations

from compat.errors import InputError
from compat.read.files.listing import Listing
from compat.read.files.locks.locked_tables import Table
from compat.read.files.project.project_draft import Draft
from compat.read.files.project.pyproject import listing_of, python_range
from compat.read.files.project.uv_settings import UvSettings
from compat.toml import parse_text

_OPEN = "# /// script"


def read_inline_script(path: str, text: str) -> tuple[Listing, ...]:
    """What a script asks its runner to install; empty where it has no such block.

    Raises :class:`InputError` where the block is not TOML, has a value of a wrong type, or stands there twice.
    """
    if _OPEN not in text:
        return ()
    metadata = _metadata(path, text)
    if metadata is None:
        return ()
    document = Table(parse_text(metadata, path), path)
    draft = Draft(path, metadata)
    tool = document.table("tool")
    uv = None if tool is None else tool.table("uv")
    settings = UvSettings(uv or Table({}, path), draft)
    line = draft.places.key("", "dependencies")
    for found, at in draft.requirements(document.content.get("dependencies", []), "dependencies", line):
        draft.add(settings.sourced(found), at)
    python = document.content.get("requires-python")
    requires_python = python_range(draft, python, "requires-python", draft.places.key("", "requires-python"))
    return (listing_of(draft, "script", settings, requires_python, uv),)


def _metadata(path: str, text: str) -> str | None:
    """The TOML of the block, every line on the line it has in the script."""
    found: list[str] | None = None
    lines = text.removeprefix("\ufeff").splitlines()
    at = 0
    while at < len(lines):
        if lines[at].rstrip() != _OPEN:
            at += 1
            continue
        start = at + 1
        at = start
        while at < len(lines) and (lines[at] == "#" or lines[at].startswith("# ")):
            at += 1
        # the last closing line among the comments ends the block
        end = next((number for number in range(at - 1, start - 1, -1) if lines[number].rstrip() == "# ///"), None)
        if end is None:
            continue
        if found is not None:
            raise InputError("has more than one '# /// script' block", path, start)
        found = [""] * start + [line[2:] for line in lines[start:end]]
    return None if found is None else "\n".join(found)
