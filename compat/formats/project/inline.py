"""Inline metadata of a script (PEP 723): the block of comments from ``# /// script`` to ``# ///``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.formats.listing import Listing
from compat.formats.locks.tables import Table, read_toml
from compat.formats.project.pyproject import Draft, listing_of, python_range
from compat.formats.project.tools import UvSettings
from compat.formats.registry import Commands, Format
from compat.records import replace

if TYPE_CHECKING:
    from compat.formats.edit.changes import Change
    from compat.formats.edit.dispatch import Installer
    from compat.formats.edit.files import Edit
    from compat.formats.python_images import PythonImages


_OPEN = "# /// script"


def read_inline_script(path: str, text: str) -> tuple[Listing, ...]:
    """Return what a script's inline metadata requires; empty if the script has none.

    Raises :class:`InputError` if the block is not TOML, has a value of a wrong type, or occurs twice.
    """
    if _OPEN not in text:
        return ()
    lines = text.removeprefix("\ufeff").splitlines()
    block = _block(path, lines)
    if block is None:
        return ()
    metadata = "\n".join(("",) * block.start + tuple(line[2:] for line in lines[block]))  # every line keeps its line number
    document = read_toml(path, metadata)
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


def _block(path: str, lines: Sequence[str]) -> slice | None:
    """Return the lines between ``# /// script`` and ``# ///``; :class:`InputError` if there are two such blocks."""
    found: slice | None = None
    at = 0
    while at < len(lines):
        if lines[at].rstrip() != _OPEN:
            at += 1
            continue
        start = at = at + 1
        while at < len(lines) and (lines[at].rstrip("\r\n") == "#" or lines[at].startswith("# ")):
            at += 1
        # the last closing line of the comment block ends it
        end = next((number for number in range(at - 1, start - 1, -1) if lines[number].rstrip() == "# ///"), None)
        if end is not None:
            if found is not None:
                raise InputError("has more than one '# /// script' block", path, start)
            found = slice(start, end)
    return found


# --- A Python script as a format: its inline metadata, and the training it starts.


class PythonScript(Format):
    """A Python script: its inline metadata (PEP 723), and the workload read from its code."""

    kind = "script"
    lists_packages, says_build = False, True

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        """Return the edit of the block; :class:`InputError` if the script has none, or two."""
        from compat.formats.edit.dispatch import verified
        from compat.formats.edit.files import Edit, line_end
        from compat.formats.project.edit import Project
        from compat.formats.project.toml_edit import TomlFile

        text = self.decode(path, content)
        mark, text = ("\ufeff", text[1:]) if text.startswith("\ufeff") else ("", text)
        lines, end = text.splitlines(keepends=True), line_end(text)
        block = _block(path, lines)
        if block is None and (images := _images(path, mark + text)) is not None and images.images:
            from compat.formats.installs.edit import edit_installs

            return edit_installs(self, path, content, changes, depth, images.edited)
        if block is None:
            raise InputError("expected one '# /// script' block with what the script needs", path)
        toml = "".join(line[2:] if line[:2] == "# " else line[1:] for line in lines[block]).replace("\r\n", "\n")
        if _commented(toml.splitlines(), end) != "".join(lines[block]):
            raise InputError("the '# /// script' block cannot be edited without changing other lines", path, block.start)
        file = TomlFile(path, content, "\n" * block.start + toml)
        project = Project(file, "uv" if os.path.isfile(f"{path}.lock") else None, script=True)
        for change in changes:
            project.change(change)
        new = _commented(file.edited()[block.start :].splitlines(), end)
        after = "".join((mark, *lines[: block.start], new, *lines[block.stop :]))
        return verified((Edit(path, content, after.encode("utf-8")),), self, changes)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        script = pip.quoted(path)
        images = _images(path, self.decode(path, content))
        if images is not None and images.images and _OPEN.encode() not in content:
            return Commands((), (f"{'modal run' if images.images[0].start is not None else 'python'} {script}",))
        locked = os.path.isfile(f"{path}.lock")
        lock = (f"uv lock --script {script}{pip.upgrades(changes)}",) if locked else ()
        return Commands(lock, (f"uv run {script}",))

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        from compat.workload.script import read_script

        found = (*read_inline_script(path, text), *(images.listings() if (images := _images(path, text)) else ()))
        facts = read_script(path)
        return tuple(
            replace(
                listing, notes=(*listing.notes, *facts.notes),
                context=replace(
                    listing.context, workload=facts.workload,
                    variables={**facts.variables, **(listing.context.variables or {})} or None,
                ),
            )
            for listing in found or (Listing(file=path, kind="script"),)
        )  # fmt: skip


def _images(path: str, text: str) -> PythonImages | None:
    """Return the images and Ray environments that the code defines; ``None`` if it cannot contain any."""
    from compat.formats import python_images

    return python_images.PythonImages(path, text) if python_images.mentions_images(text) else None


def _commented(lines: Sequence[str], end: str) -> str:
    return "".join(f"# {line}{end}" if line else f"#{end}" for line in lines)
