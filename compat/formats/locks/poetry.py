"""poetry.lock (lock-version 1.x and 2.x) → listing.

Since 2.1 every release has its groups and its marker. Before, the file is a graph without roots: the project's own
dependencies are in pyproject.toml, so releases that nothing depends on are taken for them.
"""

from __future__ import annotations

from collections.abc import Callable

from compat.formats.listing import Choice, Edge, Entry, Listing
from compat.formats.locks.graph import LockedGraph, edges_by_group
from compat.formats.locks.tables import (
    Table,
    index_source,
    or_markers,
    packages_of,
    path_source,
    read_toml,
    url_source,
    vcs_source,
)
from compat.formats.registry import ProjectLock
from compat.formats.requirements.requirement import name_at_start
from compat.formats.specifiers import alternatives, matcher, python_marker
from compat.model import Distribution, Source, normalized
from compat.redact import excerpt

_ADDRESSES = ("url", "git", "path", "file")


class PoetryLock(ProjectLock):
    """poetry.lock; :class:`InputError` if it is not a valid one, or has an unknown lock-version."""

    kind, sources = "poetry.lock", ("pyproject.toml",)
    add, remove, sync = "poetry add", "poetry remove", "poetry install"
    add_from = "poetry source add --priority explicit {name} {url} && poetry add {what} --source {name}"
    update, relock = "poetry update --lock", "poetry lock"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        document = read_toml(path, text)
        metadata = document.needed_table("metadata", "a table, as in every poetry.lock")
        written = metadata.needed_text("lock-version")
        major, _, minor = written.partition(".")
        if major not in ("1", "2") or not (minor.isascii() and minor.isdecimal() and len(minor) < 4):
            raise metadata.wrong(f"lock-version: expected 1.x or 2.x, not {excerpt(written, 40)!r}", "lock-version")
        version = int(major), int(minor)
        if "package" not in document.content:
            raise document.expected("package", "a list of tables")
        packages = packages_of(document, "package", text)
        extra_table = document.section("extras")
        extras = {normalized(name): extra_table.texts(name) for name in extra_table.content}
        choices = [Choice("extra", name) for name in extras]
        entries = tuple(Entry(_distribution(package), package.line) for package in packages)
        if version >= (2, 1):
            edges = edges_by_group(map(_groups, packages), choices, "main")
        else:
            edges = _Graph(packages, entries).edges(list(extras.values()), choices)
        requires_python, environments = _pythons(metadata)
        return (
            Listing(
                path, "poetry.lock", entries, tuple(edges), tuple(choices), requires_python=requires_python,
                environments=environments, complete=True,
            ),
        )  # fmt: skip


def _pythons(metadata: Table) -> tuple[str | None, tuple[str, ...]]:
    """Return the supported Pythons, as a specifier set or (if that takes several) as markers."""
    text = metadata.text("python-versions")
    try:
        sets = alternatives(text) if text else [""]
    except ValueError as problem:
        raise metadata.wrong(f"python-versions: {problem}", "python-versions") from None
    if "" in sets:
        return None, ()
    return (sets[0], ()) if len(sets) == 1 else (None, tuple(filter(None, map(python_marker, sets))))


def _distribution(package: Table) -> Distribution:
    extra: dict[str, object] = {"optional": True} if package.flag("optional") else {}
    groups = package.texts("groups")
    if groups:
        extra["groups"] = groups
    return Distribution(
        package.distribution(), package.version(package.needed_text("version")),
        _source(package), _marker(package, groups), extra=extra,
    )  # fmt: skip


def _source(package: Table) -> Source:
    source = package.table("source")
    if source is None:
        return index_source(None)
    kind, url = source.needed_text("type"), source.needed_text("url")
    if kind in ("legacy", "pypi"):
        return index_source(url)
    if kind in ("directory", "file"):
        return path_source(url, editable=package.flag("develop"))
    if kind == "url":
        return url_source(url)
    return vcs_source(url, source.text("resolved_reference"), source.text("reference"), source.text("subdirectory"))


def _marker(package: Table, groups: list[str]) -> str | None:
    """Return the marker of a release across all groups; ``None`` if one of its groups installs it everywhere."""
    given = _markers(package)
    if "" not in given and any(given.get(normalized(group), "*") == "*" for group in groups):
        return None
    return or_markers(list(dict.fromkeys(given.values())))


def _markers(package: Table) -> dict[str, str]:
    """Return the markers of a release (2.1) by group; ``""`` applies to every group."""
    given = package.content.get("markers")
    if isinstance(given, dict):
        table = package.section("markers")
        return {normalized(group): table.text(group) or "*" for group in given}
    text = package.text("markers")
    return {"": text} if text is not None and text != "*" else {}


def _groups(package: Table) -> dict[str, str | None]:
    """Return the groups of a release (2.1) with its marker for each."""
    if "groups" not in package.content:
        raise package.expected("groups", "a list of strings")
    given = _markers(package)
    found = {group: given.get(group, given.get("", "*")) for group in map(normalized, package.texts("groups"))}
    return {group: None if marker == "*" else marker for group, marker in found.items()}


class _Graph:
    """The dependency graph of a lock before 2.1."""

    def __init__(self, packages: list[Table], entries: tuple[Entry, ...]) -> None:
        self._packages = packages
        self._versions = [entry.distribution.version or "" for entry in entries]
        self._urls = [package.content.get("source", {}).get("url") for package in packages]
        names = [entry.distribution.name for entry in entries]
        conditions = [_condition(package) for package in packages]
        self._graph: LockedGraph = LockedGraph(names, conditions, self._admits)

    def edges(self, extras: list[list[str]], choices: list[Choice]) -> list[Edge]:
        """Return all edges; the group ``dev`` of a version 1.x file is added to ``choices``."""
        graph = self._graph
        for number, package in enumerate(self._packages):
            dependencies = package.section("dependencies")
            for name, given in dependencies.content.items():
                for each in given if isinstance(given, list) else [given]:
                    if isinstance(each, str):
                        each = {"version": each}
                    if not isinstance(each, dict):
                        raise dependencies.expected(name, "a version or a table")
                    dependency = Table(each, package.file, package.line, f"{package.name}: {name}")
                    self._depend_on(number, normalized(name), dependency)
        named = [
            (graph.resolved(name_at_start(name) or "", ""), choice) for choice, names in enumerate(extras) for name in names
        ]
        graph.add_extras_of_roots()
        graph.add_chosen((node, choice) for node, choice in named if node is not None)
        kept = {
            number: package.text("category") for number, package in enumerate(self._packages) if not package.flag("optional")
        }
        main = {number for number, category in kept.items() if category != "dev"}
        reached: set[int] = set()
        graph.add_roots(sorted(main), main, reached)
        if len(main) < len(kept):
            choices.append(Choice("group", "dev", default=True))
            graph.add_roots(list(kept), kept, reached, len(choices) - 1)
        return graph.edges

    def _depend_on(self, number: int, name: str, dependency: Table) -> None:
        address = next((key for key in _ADDRESSES if key in dependency.content), None)
        constraint = f"@{dependency.text(address)}" if address else (dependency.text("version") or "*")
        child = self._graph.resolved(name, constraint)
        if child is None:
            return  # not needed on any platform of the lock
        marker = dependency.text("markers")
        try:
            self._graph.depend(number, child, marker)
            for extra in dependency.texts("extras"):
                node = self._graph.resolved(name, constraint, normalized(extra))
                if node is not None:
                    self._graph.depend(number, node, marker)
        except ValueError as problem:
            raise dependency.wrong(f"markers: {problem}") from None

    def _admits(self, constraint: str) -> Callable[[int], bool]:
        if constraint.startswith("@"):
            return lambda number: self._urls[number] == constraint[1:]
        fits = matcher(constraint)
        return lambda number: fits(self._versions[number])


def _condition(package: Table) -> str | None:
    """Return the supported Pythons of a release as a marker; ``None`` if unknown or if it takes several markers."""
    text = package.text("python-versions")
    try:
        sets = alternatives(text) if text else []
    except ValueError:
        return None
    return or_markers([each for each in map(python_marker, sets) if each]) if sets and all(sets) else None
