"""pyproject.toml: what a project declares (PEP 621, PEP 735, Poetry, PDM, uv) → one listing of ranges and pins."""

from __future__ import annotations

from compat.environment import Environment, normalized
from compat.errors import printable
from compat.read.files.listing import Listing
from compat.read.files.locks.locked_tables import Table
from compat.read.files.project.poetry_project import PoetryProject
from compat.read.files.project.project_draft import Draft
from compat.read.files.project.uv_settings import UvSettings
from compat.read.files.requirements.requirement import Unnamed, editable, parse_requirement
from compat.toml import parse_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def read_pyproject(path: str, text: str) -> tuple[Listing, ...]:
    """The listing of a project: each extra and each dependency group is a choice. None for a file of tool settings only.

    It is never complete: what the dependencies need in turn stands nowhere. Dependencies that the build backend works out
    (``dynamic``) are in ``unread``. Raises :class:`InputError` for what is not TOML and for values of a wrong type.
    """
    document = Table(parse_text(text, path), path)
    tool = document.table("tool") or Table({}, path)
    project, groups = document.table("project"), document.table("dependency-groups")
    poetry, pdm, uv = tool.table("poetry"), tool.table("pdm"), tool.table("uv")
    if not any((project, groups, poetry, pdm, uv)):
        return ()
    name = (project and project.text("name")) or (poetry and poetry.text("name"))
    draft = Draft(path, text, normalized(name) if name else None)
    settings = UvSettings(uv or Table({}, path), draft)
    requires_python = _project(project, draft, settings) if project is not None else None
    if poetry is not None:
        tables = PoetryProject(poetry, draft)
        if project is not None and "dependencies" in project.content:
            tables.enrich()
        else:
            tables.read()
        requires_python = requires_python or tables.requires_python
    _groups(groups, draft, settings, uv is not None)
    _development(uv, pdm, draft, settings)
    return (listing_of(draft, "pyproject", settings, requires_python, uv),)


def listing_of(draft: Draft, kind: str, settings: UvSettings, requires_python: str | None, uv: Table | None) -> Listing:
    """The listing that a draft has become."""
    edges = draft.edges()
    entries = settings.applied(draft.entries, draft.notes)
    markers = {number: entry.distribution.marker for number, entry in enumerate(entries)
               if entry.distribution.marker != draft.entries[number].distribution.marker}  # fmt: skip
    edges = tuple((parent, child, markers.get(child, marker), choice) for parent, child, marker, choice in edges)
    environments = _environments(uv)
    return Listing(
        draft.path, kind, entries, edges, tuple(draft.choices), settings.conflicts(), requires_python=requires_python,
        environments=environments, context=Environment(), notes=tuple(map(printable, dict.fromkeys(draft.notes))),
        unread=tuple(map(printable, draft.unread)),
    )  # fmt: skip


def _environments(uv: Table | None) -> tuple[str, ...]:
    value = None if uv is None else uv.content.get("environments")
    if uv is None or value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(uv.texts("environments"))


def python_range(draft: Draft, value: Any, place: str, line: int | None) -> str | None:
    """The specifier set of a ``requires-python``; :class:`InputError` for what is none."""
    if value is None:
        return None
    try:
        asked = parse_requirement(f"python {value}") if isinstance(value, str) else None
    except ValueError:
        asked = None
    if asked is None or asked.marker is not None or asked.extra or asked.name != "python":
        raise draft.wrong(place, "expected a version specifier such as '>=3.10'", line)
    return f"=={asked.version}" if asked.version is not None else asked.specifier


def _project(project: Table, draft: Draft, settings: UvSettings) -> str | None:
    """``[project]``: dependencies and extras into the draft; the Pythons it is made for come back."""
    line = draft.places.key("project", "dependencies")
    value = project.content.get("dependencies", [])
    for found, at in draft.requirements(value, "project.dependencies", line):
        draft.add(settings.sourced(found), at)
    extras = project.table("optional-dependencies")
    for extra, value in ({} if extras is None else extras.content).items():
        node = draft.choice("extra", extra)
        line = draft.places.key("project.optional-dependencies", extra)
        for found, at in draft.requirements(value, f"project.optional-dependencies.{extra}", line):
            draft.add(settings.sourced(found, "extra", extra), at, node)
    line = draft.places.key("project", "dynamic")
    for key in project.texts("dynamic"):
        if key in ("dependencies", "optional-dependencies"):
            draft.unread.append(
                f"{draft.path}:{line}: project.{key} was not read: it is dynamic, the build backend works it out"
            )
    line = draft.places.key("project", "requires-python")
    return python_range(draft, project.content.get("requires-python"), "project.requires-python", line)


def _groups(groups: Table | None, draft: Draft, settings: UvSettings, has_uv: bool) -> None:
    """``[dependency-groups]`` (PEP 735)."""
    if groups is None:
        return
    defaults = settings.default_groups() if has_uv else ()
    for name in groups.content:
        draft.choice("group", name, default=defaults is None or normalized(name) in defaults)
    included: dict[int, list[int]] = {}
    for name, items in groups.content.items():
        line = draft.places.key("dependency-groups", name)
        place, node = f"dependency-groups.{name}", draft.choice("group", name)
        if not isinstance(items, list):
            raise draft.wrong(place, "expected a list of requirements", line)
        for item in items:
            if isinstance(item, dict):
                other = item.get("include-group")
                child = draft.node("group", other) if isinstance(other, str) and len(item) == 1 else None
                if child is None:
                    raise draft.wrong(place, 'expected {include-group = "…"} with the name of another group', line)
                draft.link(node, child)
                included.setdefault(node, []).append(child)
                continue
            line = draft.places.string(item, line) if isinstance(item, str) else line
            draft.add(settings.sourced(draft.requirement(item, place, line), "group", name), line, node)
    if _has_cycle(included):
        raise draft.wrong(
            "dependency-groups", "the groups include each other in a circle", draft.places.key("dependency-groups")
        )


def _has_cycle(included: dict[int, list[int]]) -> bool:
    """Takes away what includes nothing until nothing is left, or a circle."""
    waiting = {node: len(children) for node, children in included.items()}
    above: dict[int, list[int]] = {}
    for node, children in included.items():
        for child in children:
            above.setdefault(child, []).append(node)
    free = [node for node in above if node not in waiting]
    while free:
        for parent in above.get(free.pop(), ()):
            waiting[parent] -= 1
            if not waiting[parent]:
                del waiting[parent]
                free.append(parent)
    return bool(waiting)


def _development(uv: Table | None, pdm: Table | None, draft: Draft, settings: UvSettings) -> None:
    """Development dependencies as uv and PDM wrote them before PEP 735."""
    if uv is not None and "dev-dependencies" in uv.content:
        node = draft.choice("group", "dev", default=True)
        line = draft.places.key("tool.uv", "dev-dependencies")
        for found, at in draft.requirements(uv.content["dev-dependencies"], "tool.uv.dev-dependencies", line):
            draft.add(settings.sourced(found, "group", "dev"), at, node)
    groups = None if pdm is None else pdm.table("dev-dependencies")
    for name in () if groups is None else groups.content:
        assert groups is not None
        node = draft.choice("group", name, default=True)
        line = draft.places.key("tool.pdm.dev-dependencies", name)
        for text in groups.texts(name):
            line = draft.places.string(text, line)
            _pdm_requirement(draft, node, text, f"tool.pdm.dev-dependencies.{name}", line)


def _pdm_requirement(draft: Draft, node: int, text: str, place: str, line: int | None) -> None:
    """A requirement, or ``-e`` and an address."""
    operand = text.strip().removeprefix("-e ")
    try:
        draft.add(editable(operand) if operand != text.strip() else parse_requirement(text), line, node)
    except Unnamed as problem:
        draft.notes.append(f"{draft.path}:{line}: {problem}; it is left out")
    except ValueError as problem:
        raise draft.wrong(place, str(problem), line) from None
