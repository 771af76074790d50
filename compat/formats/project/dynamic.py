"""Dependencies that a build backend reads from requirements files: setuptools, and hatchling's plugin for them."""

from __future__ import annotations

from collections.abc import Iterator

from compat.formats.include import Includes, NotRead
from compat.formats.listing import ROOT
from compat.formats.locks.tables import Table
from compat.formats.project.draft import Draft
from compat.formats.requirements.file import decode, read_requirements

_KEYS = ("dependencies", "optional-dependencies")


def read_dynamic(project: Table, tool: Table, draft: Draft) -> None:
    """Add the requirements of the files that ``project.dynamic`` stands for; ``draft.elsewhere`` says what was not read.

    Raises :class:`InputError` for a requirements file with an invalid line.
    """
    line = draft.places.key("project", "dynamic")
    dynamic = [key for key in project.texts("dynamic") if key in _KEYS]
    includes = Includes(draft.path)
    for key in dynamic:
        given = list(_files(key, tool))
        if not given:
            place = f"{draft.path}:{line}: project.{key}"
            draft.elsewhere.append(f"{place} was not read: it is dynamic (computed by the build backend)")
        for extra, file in given:
            try:
                opened = includes.open(draft.path, file, f"{key} {extra}", 1)
            except NotRead as reason:
                draft.elsewhere.append(f"{draft.path}:{line}: {file} (project.{key}) was not read: {reason}")
                continue
            node = draft.choice("extra", extra) if extra else ROOT
            for listing in read_requirements(opened[0], decode(opened[1], opened[0])) if opened is not None else ():
                draft.notes += listing.notes
                draft.elsewhere += listing.unread
                for entry in listing.entries:
                    draft.add(draft.uv.sourced(entry.distribution, None, None), entry.line, node, entry.file or listing.file)


def _files(key: str, tool: Table) -> Iterator[tuple[str, str]]:
    """Yield (extra or "", path) of the files that the build backend reads for a key of ``[project]``."""
    settings = (
        (tool.section("setuptools").section("dynamic"), "file"),
        (tool.section("hatch").section("metadata").section("hooks").section("requirements_txt"), "files"),
    )
    for table, inner in settings:
        if key == "optional-dependencies":
            for extra, value in table.section(key).content.items():
                yield from ((extra, path) for path in _paths(value.get("file") if isinstance(value, dict) else value))
        elif inner == "file":
            yield from (("", path) for path in _paths(table.section(key).content.get("file")))
        else:
            yield from (("", path) for path in _paths(table.content.get("files") or table.content.get("filename")))


def _paths(value: object) -> list[str]:
    """Return the paths of a string or a list of strings; setuptools also splits at commas."""
    given = value if isinstance(value, list) else [value]
    return [part.strip() for each in given if isinstance(each, str) for part in each.split(",") if part.strip()]
