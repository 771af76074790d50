"""pdm.lock (lock_version 3.x and 4.x) → listing.

With inherited metadata (PDM's default since 2.11), every entry has its groups and its marker. Otherwise the file is a
graph without roots, like an old poetry.lock. ``name[extra]`` is a separate entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compat.formats.edit.changes import Change
from compat.formats.edit.installer import Installer
from compat.formats.listing import Choice, Edge, Entry, Listing
from compat.formats.locks.graph import LockedGraph, edges_by_group
from compat.formats.locks.tables import (
    Table,
    and_markers,
    index_source,
    packages_of,
    path_source,
    read_toml,
    url_source,
    vcs_source,
)
from compat.formats.registry import ProjectLock
from compat.formats.specifiers import matcher, python_marker
from compat.model import Distribution, Source, normalized
from compat.redact import excerpt

_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
_SYSTEMS = {
    "manylinux": "linux", "musllinux": "linux", "linux": "linux", "alpine": "linux", "windows": "win32", "macos": "darwin",
}  # fmt: skip
_MACHINES = {"linux": "x86_64", "alpine": "x86_64", "windows": "amd64", "macos": "arm64"}
"""The architecture of a target that names only a system."""


class PdmLock(ProjectLock):
    """pdm.lock; :class:`InputError` if it is not a valid one, or has an unknown lock_version."""

    kind, sources = "pdm.lock", ("pyproject.toml",)
    add, remove, sync = "pdm add", "pdm remove", "pdm sync"

    def lock(self, changes: Sequence[Change], pip: Installer) -> str:
        return "pdm lock --update-reuse"  # moves the changed pins only

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        document = read_toml(path, text)
        metadata = document.needed_table("metadata", "a table, as in every pdm.lock")
        version = metadata.needed_text("lock_version")
        if version.partition(".")[0] not in ("3", "4"):
            raise metadata.wrong(f"lock_version: expected 3.x or 4.x, not {excerpt(version, 40)!r}", "lock_version")
        packages = packages_of(document, "package", text)
        entries = tuple(Entry(_distribution(package), package.line) for package in packages)
        choices: list[Choice] = []
        if any("groups" in package.content for package in packages):
            # "pdm install" installs every group that the file was made for (measured with 2.22)
            made_for = list(map(normalized, metadata.texts("groups")))
            choices += [Choice("group", group, default=True) for group in dict.fromkeys(made_for) if group != "default"]
            groups = [
                dict.fromkeys(map(normalized, each.texts("groups") or ["default"]), each.text("marker")) for each in packages
            ]
            edges = edges_by_group(groups, choices, "default", made_for)
        else:
            edges = _edges_by_dependency(packages, entries)
        requires_python, environments = _targets(metadata)
        return (
            Listing(
                path, "pdm.lock", entries, tuple(edges), tuple(choices), requires_python=requires_python,
                environments=environments, complete=True,
            ),
        )  # fmt: skip


def _distribution(package: Table) -> Distribution:
    extra: dict[str, object] = {key: value for key in ("extras", "groups") if (value := package.texts(key))}
    return Distribution(
        package.distribution(), package.version(package.text("version")), _source(package),
        package.text("marker"), extra=extra,
    )  # fmt: skip


def _source(package: Table) -> Source:
    if (repository := package.repository()) is not None:
        return vcs_source(repository, package.text("revision"), package.text("ref"), package.text("subdirectory"))
    path, url = package.text("path"), package.text("url")
    if path is not None:
        return path_source(path, editable=package.flag("editable"))
    return index_source(None) if url is None else url_source(url)


def _edges_by_dependency(packages: list[Table], entries: tuple[Entry, ...]) -> list[Edge]:
    names = [_identity(entry.distribution.name, package.texts("extras")) for package, entry in zip(packages, entries)]
    pythons = [python_marker(package.text("requires_python") or "") for package in packages]
    versions = [entry.distribution.version or "" for entry in entries]

    def admits(constraint: str) -> Callable[[int], bool]:
        fits = matcher(constraint)
        return lambda number: fits(versions[number])

    graph = LockedGraph(names, pythons, admits)
    for number, package in enumerate(packages):
        for text in package.texts("dependencies"):
            name, extras, constraint, marker = _requirement(text)
            child = graph.resolved(_identity(name, extras), constraint)
            child = graph.resolved(name, constraint) if child is None else child
            if child is not None:  # otherwise it is not needed on any platform of the lock
                graph.add(number, child, marker)
    every = range(len(packages))
    graph.add_roots(every, every, set())
    return graph.edges


def _identity(name: str, extras: list[str]) -> str:
    return f"{name}[{','.join(sorted(map(normalized, extras)))}]" if extras else name


def _requirement(text: str) -> tuple[str, list[str], str, str | None]:
    """Parse a dependency as PDM writes it: name, extras, version constraint and marker."""
    rest = text.lstrip(_NAME)
    name = normalized(text[: len(text) - len(rest)])
    extras: list[str] = []
    if rest.startswith("["):
        inside, _, rest = rest[1:].partition("]")
        extras = [each.strip() for each in inside.split(",")]
    rest = rest.strip()
    if rest.startswith("@"):
        _, _, marker = rest.partition("; ")
        return name, extras, "", marker.strip() or None
    constraint, _, marker = rest.partition(";")
    return name, extras, constraint.strip(" ()"), marker.strip() or None


def _targets(metadata: Table) -> tuple[str | None, tuple[str, ...]]:
    """Return the supported Pythons if the file restricts nothing else, or one marker for each target."""
    targets = [Table(each, metadata.file, name="metadata.targets") for each in metadata.tables("targets")]
    if not targets:
        return None, ()
    if len(targets) == 1 and not targets[0].text("platform") and not targets[0].text("implementation"):
        return targets[0].text("requires_python") or None, ()
    markers = [_target_marker(target) for target in targets]
    return None, () if None in markers else tuple(filter(None, markers))


def _target_marker(target: Table) -> str | None:
    marker = python_marker(target.text("requires_python") or "")
    implementation = target.text("implementation")
    if implementation:
        marker = and_markers(marker, f'implementation_name == "{_plain(target, implementation)}"')
    platform = target.text("platform")
    return and_markers(marker, _platform_marker(_plain(target, platform))) if platform else marker


def _plain(target: Table, word: str) -> str:
    if not word.replace("_", "").isalnum():
        raise target.wrong(f"expected a platform such as manylinux_2_17_x86_64, not {excerpt(word, 80)!r}")
    return word


def _platform_marker(platform: str) -> str | None:
    """``manylinux_2_17_x86_64`` or ``windows`` → marker; ``None`` for an unknown system."""
    system, _, rest = platform.partition("_")
    if system not in _SYSTEMS:
        return None
    machine = rest.lstrip("0123456789_") if system != "windows" else rest
    machine = machine or _MACHINES.get(system, "")
    machine = {("windows", "amd64"): "AMD64", ("macos", "aarch64"): "arm64"}.get((system, machine), machine)
    marker = f'sys_platform == "{_SYSTEMS[system]}"'
    return f'{marker} and platform_machine == "{machine}"' if machine else marker
