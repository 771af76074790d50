"""pyproject.toml: what a project declares (PEP 621, PEP 735, Poetry, PDM, uv) → one listing of ranges and pins.

Dependencies that setuptools, and hatchling's plugin for them, read from requirements files are part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from compat.formats.edit.changes import Change, Statement
from compat.formats.edit.dispatch import verified
from compat.formats.edit.files import Edit
from compat.formats.edit.installer import Installer
from compat.formats.include import Includes, NotRead
from compat.formats.listing import ROOT, Listing
from compat.formats.locks.tables import Table, read_toml
from compat.formats.pins import outside_requirements
from compat.formats.project.draft import Draft, indexes_of
from compat.formats.project.poetry import PoetryProject
from compat.formats.registry import Commands, Format, lock_next_to
from compat.formats.requirements.file import decode, read_requirements
from compat.formats.requirements.requirement import Unnamed, parse_editable, parse_requirement
from compat.model import normalized
from compat.redact import without_credentials
from compat.syntax.toml import Places, Slot

_OTHER_TOOLS = {
    "pixi": ("dependencies", "pypi-dependencies", "feature", "target"), "hatch": ("envs",), "rye": ("dev-dependencies",),
    "flit": ("metadata",),
}  # fmt: skip
_LOCKED = {"pixi": ": check pixi.lock", "rye": ": check requirements.lock"}


class Pyproject(Format):
    """A project's pyproject.toml: each extra and dependency group is a choice. No listing for a file of tool settings only.

    It is never complete: transitive dependencies are not in the file. Dependencies computed by the build backend
    (``dynamic``) are in ``elsewhere``, unless it reads them from requirements files. :class:`InputError` for invalid TOML and
    values of a wrong type.
    """

    kind = "pyproject"
    says_build = True

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        document, places = read_toml(path, text), Places(text)
        draft = project_of(document, places)
        unread = tuple(_unread(document, places, path))
        if draft is None:
            return (Listing(path, self.kind, notes=unread, elsewhere=unread),) if unread else ()
        draft.elsewhere += unread
        draft.notes += unread
        return (draft.listing(self.kind),)

    def commands_in(self, path: str, text: str) -> Iterable[tuple[int, str]] | None:
        return outside_requirements(text)

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        """Return the edit.

        :class:`InputError` for dependencies computed by the build backend, for a local directory, and for what no tool of
        the project can express.
        """
        # tomlkit takes 30 ms to import, and a check does not edit
        from compat.formats.project.edit import Project
        from compat.formats.project.toml_edit import TomlFile

        lock, file = lock_next_to(path), TomlFile(path, content)
        project = Project(file, project_of(file.root, file.places), lock.program if lock is not None else None)
        for change in changes:
            project.change(change)
        return verified((file.edit(),), self, changes)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        lock = lock_next_to(path)
        return Commands() if lock is None else lock.load().commands(path, content, changes, pip)


def _unread(document: Table, places: Places, path: str) -> Iterator[str]:
    """Yield a note for each table of a tool that lists packages in a way that is not read."""
    tool = document.table("tool")
    for name, keys in _OTHER_TOOLS.items():
        table = None if tool is None else tool.table(name)
        for key in keys if table is not None else ():
            if table is not None and table.content.get(key):
                line = places.key(f"tool.{name}", key) or 1
                yield f"{path}:{line}: tool.{name}.{key} was not read{_LOCKED.get(name, '')}"


def project_of(document: Table, places: Places) -> Draft | None:
    """Read the tables of a pyproject.toml; ``None`` if none of them is about dependencies."""
    tool = document.section("tool")
    project, groups = document.table("project"), document.table("dependency-groups")
    poetry, pdm, uv = tool.table("poetry"), tool.table("pdm"), tool.table("uv")
    if not any((project, groups, poetry, pdm, uv)):
        return None
    name = (project and project.text("name")) or (poetry and poetry.text("name"))
    draft = Draft(document, places, uv, normalized(name) if name else None)
    for table, key in ((uv, "index"), (poetry, "source"), (pdm, "source")):
        draft.indexes += map(without_credentials, indexes_of(table, key).values()) if table is not None else ()
    draft.indexes += uv.texts("find-links") if uv is not None and "find-links" in uv.content else ()
    if project is not None:
        _project(project, tool, draft)
    if poetry is not None:
        tables = PoetryProject(poetry, draft)
        if project is not None and "dependencies" in project.content:
            tables.enrich()
        else:
            tables.read()
    if groups is not None:
        _groups(groups, draft, () if uv is None else draft.uv.default_groups())
    if uv is not None and "dev-dependencies" in uv.content:
        node = draft.choice("group", "dev", default=True)
        line = places.key("tool.uv", "dev-dependencies")
        needed = draft.requirements(uv.content["dev-dependencies"], "tool.uv.dev-dependencies", line)
        draft.require(needed, node, "group", "dev")
    if pdm is not None:
        development = pdm.section("dev-dependencies")
        for name in development.content:
            _pdm_group(draft, name, development.texts(name), development.content[name])
    return draft


def _project(project: Table, tool: Table, draft: Draft) -> None:
    """``[project]``: dependencies, extras, and the supported Python versions."""
    line = draft.places.key("project", "dependencies")
    draft.require(draft.requirements(project.content.get("dependencies", []), "project.dependencies", line))
    for extra, value in project.section("optional-dependencies").content.items():
        node = draft.choice("extra", extra)
        line = draft.places.key("project.optional-dependencies", extra)
        needed = draft.requirements(value, f"project.optional-dependencies.{extra}", line)
        draft.require(needed, node, "extra", extra)
    read_dynamic(project, tool, draft)
    draft.requires_python = draft.python_range(project, "project")


def _groups(groups: Table, draft: Draft, defaults: Sequence[str] | None) -> None:
    """``[dependency-groups]`` (PEP 735); ``defaults`` are those that uv installs without being asked, ``None`` for all."""
    for name in groups.content:
        draft.choice("group", name, default=defaults is None or normalized(name) in defaults)
    included: dict[int, list[int]] = {}
    for name, items in groups.content.items():
        line = draft.places.key("dependency-groups", name)
        place, node = f"dependency-groups.{name}", draft.choice("group", name)
        if not isinstance(items, list):
            raise draft.wrong(place, "expected a list of requirements", line)
        for number, item in enumerate(items):
            if isinstance(item, dict):
                other = item.get("include-group")
                child = draft.node("group", other) if isinstance(other, str) and len(item) == 1 else None
                if child is None:
                    raise draft.wrong(place, 'expected {include-group = "…"} with the name of another group', line)
                draft.link(node, child)
                included.setdefault(node, []).append(child)
                continue
            found = draft.requirement(items, number, place, line)
            line = found.line
            draft.require([found], node, "group", name)
    try:
        TopologicalSorter(included).prepare()
    except CycleError:
        line = draft.places.key("dependency-groups")
        raise draft.wrong("dependency-groups", "the groups include each other in a cycle", line) from None


def _pdm_group(draft: Draft, name: str, texts: list[str], array: list[object]) -> None:
    """A development group of PDM from before PEP 735: requirements, or ``-e`` and an address."""
    node = draft.choice("group", name, default=True)
    line = draft.places.key("tool.pdm.dev-dependencies", name)
    for number, text in enumerate(texts):
        line = draft.places.string(text, line)
        operand = text.strip().removeprefix("-e ")
        try:
            found = parse_editable(operand) if operand != text.strip() else parse_requirement(text)
        except Unnamed as problem:
            draft.notes.append(f"{draft.path}:{line}: {problem}; skipped")
            continue
        except ValueError as problem:
            raise draft.wrong(f"tool.pdm.dev-dependencies.{name}", str(problem), line) from None
        draft.statements.append(Statement(found, draft.path, line, Slot(array, number)))
        draft.add(found, line, node)


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
