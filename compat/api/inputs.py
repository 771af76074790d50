"""Reading of inputs: a file, the files of a folder, a described or pasted environment, or installed packages."""

from __future__ import annotations

import os

from compat.errors import InputError
from compat.model import Environment
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from compat.formats.listing import Listing
    from compat.rules.compiled import Matrix


@record(frozen=True)
class Subject:
    """One input: the listings of a file, or an environment. ``file`` is the location of findings without a line.

    ``text`` is pasted text, which may contain an error in addition to the environment.
    """

    name: str
    listings: tuple[Listing, ...] = ()
    environment: Environment | None = None
    notes: tuple[str, ...] = ()
    file: str | None = None
    text: str | None = None


def read_subject(kind: str, name: str, matrix: Matrix) -> Subject:
    """Read a ``file``, a ``described`` or ``pasted`` environment by name, or the packages ``installed`` in a Python.

    Raises :class:`InputError` with file and line if it cannot be used.
    """
    if kind == "installed":
        from compat.api.machine import read_installation

        environment, notes = read_installation(name or None, matrix)
        return Subject(name or "installed", environment=environment, notes=notes)
    if kind == "pasted":
        return _pasted(name)
    if kind == "file" and name == "-":
        return _from_input()
    if kind == "file":
        from compat.formats.registry import format_of, read_content

        content = read_content(name)
        found = format_of(name, content)
        if found.kind != "described":
            return Subject(name, found.listings(name, content), file=name)
    from compat.formats.described import read_described

    environment, notes = read_described(name)
    return Subject(name, environment=environment, notes=notes, file=None if name == "-" else name)


def _from_input() -> Subject:
    """What standard input holds: a file of a format that its content shows, or else text such as that of ``pip list``."""
    from compat.api.likely_names import likely_name
    from compat.formats.registry import format_of
    from compat.syntax.json import read_standard_input

    text, shown = read_standard_input(), "standard input"
    content = text.encode()
    try:
        found = format_of(likely_name(text) or shown, content)
    except InputError:
        return _pasted(shown, text)
    if found.kind == "described":
        from compat.formats.described import parse_described
        from compat.syntax.json import parse_json

        environment, notes = parse_described(parse_json(text, shown), shown)
        return Subject(shown, environment=environment, notes=notes)
    return Subject(shown, found.listings(shown, content))


def _pasted(name: str, given: str | None = None) -> Subject:
    from compat.api.diagnosis import environment_in
    from compat.files import regular_path
    from compat.reports.lines import legible
    from compat.reports.log.traceback import parse_log
    from compat.reports.pasted import read_pasted
    from compat.syntax.json import read_standard_input, read_text

    from_input = name == "-" or given is not None
    shown = "standard input" if from_input else name
    if given is None:
        given = read_standard_input() if from_input else read_text(regular_path(name))
    text = legible(given)
    environment, notes = environment_in(text)
    if environment == Environment() and not parse_log(text):
        read_pasted(text, shown)  # raises an error that states what was expected
    return Subject(shown, environment=environment, notes=notes, file=None if from_input else name, text=text)


_PROJECTS = (("pyproject.toml", "setup.py", "setup.cfg"), ("Pipfile",), ("pixi.toml",))
"""Files of a project, of which the first that lists requirements counts."""
_IMAGES = ("dockerfile", "containerfile", "compose", "docker-compose", "cog", "singularity", "apptainer")
_NO_IMAGE = (".dockerignore", ".md", ".j2", ".jinja", ".tmpl", ".template", ".sh", ".py", ".txt", ".json")


def _names_in(folder: str) -> list[str]:
    """The files of a folder, those among them that cannot be read: a dangling link, a pipe or a lock file that is a folder.

    The links by which Emacs locks a file that is being edited are none.
    """
    return sorted(each.name for each in os.scandir(folder) if not (_is_folder(each) or each.name.startswith(".#")))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir() and not entry.name.endswith(".lock")
    except OSError:  # links in a circle
        return False


def files_in(folder: str) -> list[str]:
    """Return the files of a folder that list what gets installed: locks before requirements before images.

    What a lock file there is made from is left out. :class:`InputError` if there are none, or if the folder cannot be read.
    """
    from compat.formats.registry import FORMATS

    try:
        names = _names_in(folder)
        inner = os.path.join(folder, "requirements")
        listed = [f"requirements/{name}" for name in _names_in(inner)] if os.path.isdir(inner) else []
    except OSError as problem:
        raise InputError(f"cannot be read: {problem.strerror or problem}", folder) from None
    locks = [(name, each) for each in FORMATS if each.is_lock for name in names if each.is_called(name)]
    sources = {source for _, each in locks if each.program for source in each.load().sources}
    found = [
        *(name for name, _ in locks),
        *_projects(folder, names, sources),
        *_requirements([*names, *listed]),
        *_images(names),
    ]
    if not found:
        raise InputError("is a folder without a lock file, requirements, pyproject.toml, environment.yml or Dockerfile", folder)
    shown = "" if folder in (".", "") else folder
    return [os.path.join(shown, name) for name in found]


def _projects(folder: str, names: list[str], locked: Container[str]) -> Iterable[str]:
    from compat.formats.registry import read_listings

    for group in _PROJECTS:
        for name in group:
            if name not in names or name in locked:
                continue
            try:
                listings = read_listings(os.path.join(folder, name))
            except InputError:
                listings = ()
                yield name  # the check says what is wrong
            if any(each.entries or each.elsewhere for each in listings):
                yield name
                break


def _requirements(names: list[str]) -> Iterable[str]:
    for name in names:
        stem, ending = os.path.splitext(name.lower())
        is_list = "requirements" in stem and ending in (".txt", ".in")
        is_environment = stem.startswith("environment") and ending in (".yml", ".yaml")
        if (is_list or is_environment) and not (ending == ".in" and f"{name[:-3]}.txt" in names):
            yield name


def _images(names: list[str]) -> Iterable[str]:
    for name in names:
        lower = name.lower()
        named = lower.startswith(_IMAGES) or lower.endswith((".dockerfile", ".containerfile", ".def"))
        is_yaml = lower.endswith((".yml", ".yaml"))
        if named and not lower.endswith(_NO_IMAGE) and is_yaml == lower.startswith(("compose", "docker-compose", "cog")):
            yield name
