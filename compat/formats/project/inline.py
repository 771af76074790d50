"""Inline metadata of a script (PEP 723): the block of comments from ``# /// script`` to ``# ///``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from compat.errors import InputError
from compat.formats import python_images
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import verified
from compat.formats.edit.files import Edit, line_end
from compat.formats.edit.installer import Installer
from compat.formats.listing import Listing
from compat.formats.locks.tables import Table, read_toml
from compat.formats.pins import texts_of_code
from compat.formats.project.draft import Draft
from compat.formats.python_images import PythonImages
from compat.formats.registry import Commands, Format
from compat.records import replace
from compat.syntax.toml import Places
from compat.workload.script import read_script

_OPEN = "# /// script"


class _Block:
    """The lines between ``# /// script`` and ``# ///``; :class:`InputError` if there are two such blocks."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.mark = "\ufeff" if text.startswith("\ufeff") else ""
        text = text.removeprefix(self.mark)
        self._end = line_end(text)
        self._lines = text.splitlines(keepends=True)
        self.span = self._found(text.splitlines()) if _OPEN in text else None
        """Where the block is; ``None`` if the script has none."""

    def _found(self, lines: list[str]) -> slice | None:
        found: slice | None = None
        at = 0
        while at < len(lines):
            at += 1
            if lines[at - 1].rstrip() != _OPEN:
                continue
            start = at
            while at < len(lines) and (lines[at] == "#" or lines[at].startswith("# ")):
                at += 1
            # the last closing line of the comment block ends it
            end = next((number for number in range(at - 1, start - 1, -1) if lines[number].rstrip() == "# ///"), None)
            if end is not None:
                if found is not None:
                    raise InputError("has more than one '# /// script' block", self.path, start)
                found = slice(start, end)
        return found

    @property
    def toml(self) -> str:
        """The metadata, after one comment for each line above it: its lines have the numbers that they have in the script."""
        assert self.span is not None
        lines = [line.splitlines()[0][2:] for line in self._lines[self.span]]
        return "\n".join(["#"] * self.span.start + lines)

    def replaced(self, toml: str) -> str:
        """Return the script with other metadata."""
        assert self.span is not None
        lines = toml.removesuffix("\n").split("\n")[self.span.start :]
        new = (f"# {line}{self._end}" if line else f"#{self._end}" for line in lines)
        return "".join((self.mark, *self._lines[: self.span.start], *new, *self._lines[self.span.stop :]))


def read_inline_script(path: str, text: str) -> tuple[Listing, ...]:
    """Return what a script's inline metadata requires; empty if the script has none.

    Raises :class:`InputError` if the block is not TOML, has a value of a wrong type, or occurs twice.
    """
    block = _Block(path, text)
    if block.span is None:
        return ()
    toml = block.toml
    return (_draft(read_toml(path, toml), Places(toml)).listing("script"),)


def _draft(document: Table, places: Places) -> Draft:
    tool = document.table("tool")
    draft = Draft(document, places, None if tool is None else tool.table("uv"))
    line = places.key("", "dependencies")
    draft.require(draft.requirements(document.content.get("dependencies", []), "dependencies", line))
    draft.requires_python = draft.python_range(document)
    return draft


# --- A Python script as a format: its inline metadata, and the training it starts.


_NO_PACKAGES = "it lists no packages; 'compat doctor -- python SCRIPT' compares what it imports with an environment"


class PythonScript(Format):
    """A Python script: its inline metadata (PEP 723), and the workload read from its code."""

    kind = "script"
    lists_packages, says_build = False, True

    def commands_in(self, path: str, text: str) -> Iterable[tuple[int, str]] | None:
        return texts_of_code(path, text)

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        """Return the edit of the block; :class:`InputError` if the script has none, or two."""
        # tomlkit takes 30 ms to import, and a check does not edit
        from compat.formats.project.edit import Project
        from compat.formats.project.toml_edit import TomlFile

        text = self.decode(path, content)
        block = _Block(path, text)
        if block.span is None:
            if (images := _images(path, text)) is not None and images.images:
                from compat.formats.installs.edit import edit_installs

                return edit_installs(self, path, content, changes, depth, images.edited)
            raise InputError("expected one '# /// script' block with what the script needs", path)
        toml = f"{block.toml}\n"
        if block.replaced(toml) != text:
            raise InputError("the '# /// script' block cannot be edited without changing other lines", path, block.span.start)
        file = TomlFile(path, content, toml)
        project = Project(file, _draft(file.root, file.places), "uv" if os.path.isfile(f"{path}.lock") else None, script=True)
        for change in changes:
            project.change(change)
        return verified((Edit(path, content, block.replaced(file.edited()).encode("utf-8")),), self, changes)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        script = pip.quoted(path)
        images = _images(path, self.decode(path, content))
        if images is not None and images.images and _OPEN.encode() not in content:
            return Commands((), (f"{'modal run' if images.images[0].start is not None else 'python'} {script}",))
        locked = os.path.isfile(f"{path}.lock")
        lock = (f"uv lock --script {script}{pip.upgrades(changes)}",) if locked else ()
        return Commands(lock, (f"uv run {script}",))

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
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
            for listing in found or (Listing(file=path, kind="script", notes=(_NO_PACKAGES,)),)
        )  # fmt: skip


def _images(path: str, text: str) -> PythonImages | None:
    """Return the images and Ray environments that the code defines; ``None`` if it cannot contain any."""
    return python_images.PythonImages(path, text) if python_images.mentions_images(text) else None
