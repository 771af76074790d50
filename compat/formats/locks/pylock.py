"""pylock.toml (PEP 751) → listing. Markers alone decide which packages are installed.

``packaging.pylock`` validates the file. Real files violate the standard in harmless ways (an index without hashes), so its
findings become notes if every package, version and marker can still be read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from compat.formats.edit.changes import Change
from compat.formats.edit.installer import Installer
from compat.formats.listing import ROOT, Choice, Edge, Entry, Listing
from compat.formats.locks.tables import Table, index_source, packages_of, path_source, read_toml, url_source, vcs_source
from compat.formats.registry import Commands, ProjectLock
from compat.markers import parse
from compat.model import Distribution, Source, normalized
from compat.redact import excerpt

_LONGEST = 1000
_MOST = 1 << 18
"""Characters of all markers passed to ``packaging``; the largest real file has 30,000."""


class Pylock(ProjectLock):
    """pylock.toml; :class:`InputError` if it is not a valid one, or has a format version other than 1.

    A defect that leaves packages, versions and markers readable becomes a note.
    """

    kind, sources = "pylock.toml", ("pyproject.toml", "requirements.in", "requirements.txt")

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        here, name = pip.in_folder_of(path), os.path.basename(path)
        name = name if name.endswith(".toml") and "pylock" in name else self.kind
        name, source = pip.quoted(name), pip.quoted(os.path.basename(self.source_of(path)))
        options = f" --output-file {name}{pip.upgrades(changes)}{pip.index_options(changes)}"
        return Commands((f"{here}uv pip compile {source}{options}",), (f"{here}uv pip sync {name}",))

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        document = read_toml(path, text)
        version = document.needed_text("lock-version")
        major, _, minor = version.partition(".")
        if major != "1" or not (minor or "0").isdecimal():
            raise document.wrong(f"lock-version: expected 1.x, not {excerpt(version, 40)!r}", "lock-version")
        document.text("created-by")
        if "packages" not in document.content:
            raise document.expected("packages", "a list of tables")
        packages = packages_of(document, "packages", text)
        requires_python = document.text("requires-python")
        environments = document.texts("environments")
        entries = tuple(Entry(_distribution(package), package.line) for package in packages)
        edges = tuple(Edge(ROOT, number, entry.distribution.marker) for number, entry in enumerate(entries))
        defaults = [normalized(group) for group in document.texts("default-groups")]
        groups = dict.fromkeys([*map(normalized, document.texts("dependency-groups")), *defaults])
        extras = dict.fromkeys(map(normalized, document.texts("extras")))
        choices = [Choice("extra", extra) for extra in extras]
        choices += [Choice("group", group, default=group in defaults) for group in groups]
        note = _note(document, packages)
        return (
            Listing(
                path, "pylock.toml", entries, edges, tuple(choices), requires_python=requires_python,
                environments=tuple(environments), complete=True, notes=() if note is None else (f"{path}: {note}",),
            ),
        )  # fmt: skip


def _distribution(package: Table) -> Distribution:
    package.tables("wheels")
    return Distribution(
        package.distribution(), package.version(package.text("version")), _source(package),
        package.text("marker"),
    )  # fmt: skip


def _source(package: Table) -> Source:
    vcs, directory, archive = (package.table(key) for key in ("vcs", "directory", "archive"))
    if vcs is not None:
        place = vcs.text("url") or vcs.needed_text("path")
        return vcs_source(place, vcs.text("commit-id"), vcs.text("requested-revision"), vcs.text("subdirectory"))
    if directory is not None:
        return path_source(directory.needed_text("path"), editable=directory.flag("editable"))
    if archive is not None:
        url = archive.text("url")
        return url_source(url) if url else path_source(archive.needed_text("path"), editable=False)
    package.table("sdist")
    return index_source(package.text("index"))


def _note(document: Table, packages: list[Table]) -> str | None:
    """Return what ``packaging`` reports about the file as a note; ``None`` if it is valid.

    The markers and specifiers of a file with a defect still have to be valid.
    """
    requires_python = document.text("requires-python")
    markers = [(document, environment) for environment in document.texts("environments")]
    markers += [(package, marker) for package in packages if (marker := package.text("marker")) is not None]
    conditions = [requires_python, *(package.text("requires-python") for package in packages), *(each for _, each in markers)]
    if sum(map(len, filter(None, conditions))) > _MOST:
        note = "not checked against PEP 751: its markers are too long"
    elif (defect := _defect(document)) is None:
        return None
    else:
        note = f"does not fully conform to PEP 751: {defect}"
    if requires_python is not None and not _is_specifier_set(requires_python):
        raise document.wrong(
            f"requires-python: {excerpt(requires_python, 80)!r} is not a set of version specifiers (PEP 440)", "requires-python"
        )
    for table, marker in markers:
        try:
            parse(marker)
        except ValueError as problem:
            raise table.wrong(f"the marker {excerpt(marker, 80)!r} {problem}") from None
    return note


def _defect(document: Table) -> str | None:
    import logging

    from packaging.pylock import Pylock, PylockValidationError

    logging.getLogger("packaging.pylock").disabled = True  # it warns about a later 1.x
    try:
        Pylock.from_dict(document.content)
    except PylockValidationError as problem:
        return " ".join(str(problem).split())[:300]
    return None


def _is_specifier_set(text: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return len(text) < _LONGEST and SpecifierSet(text) is not None
    except InvalidSpecifier:
        return False
