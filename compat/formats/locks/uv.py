"""uv.lock → listing: every release of the lock, and the dependency graph between them.

uv's markers encode conflicting extras and groups as ``extra == 'extra-5-mypkg-gpu'``; they are kept unchanged and
interpreted by ``compat.checks.selections``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from compat.errors import InputError
from compat.formats.listing import ROOT, Choice, Edge, Entry, Listing, notes_on_apart, set_apart
from compat.formats.locks.uv_text import tables_of
from compat.formats.registry import Commands, ProjectLock, Relocking
from compat.model import Distribution, Source, normalized
from compat.records import create_unchecked
from compat.redact import without_credentials
from compat.versions import key_of

if TYPE_CHECKING:
    from compat.formats.edit.changes import Change
    from compat.formats.edit.installer import Installer

    Table = dict[str, Any]


_DEFAULT_GROUP = "dev"
"""What ``uv sync`` installs by default in addition to the project."""


class UvLock(ProjectLock):
    """uv.lock, also of a script; :class:`InputError` unless it is version 1."""

    kind, sources = "uv.lock", ("pyproject.toml",)
    add, remove, sync = "uv add", "uv remove", "uv sync"
    add_from = "uv add {what} --index {url}"

    def source_of(self, path: str) -> str:
        return path.removesuffix(".lock") if path.endswith(".py.lock") else super().source_of(path)

    def lock(self, changes: Sequence[Change], pip: Installer) -> str:
        return f"uv lock{pip.upgrades(changes)}"

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        if not path.endswith(".py.lock"):
            return super().commands(path, content, changes, pip)
        script = pip.quoted(self.source_of(path))
        return Commands((f"uv lock --script {script}{pip.upgrades(changes)}",), (f"uv run {script}",))

    def relocking(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Relocking:
        import shlex

        folder, name = os.path.split(path)
        source = os.path.basename(self.source_of(path))
        script = ("--script", source) if name.endswith(".py.lock") else ()
        (listing,) = self.listings(path, content)
        sources = (entry.distribution.source for entry in listing.entries)
        local = (str(each.details["path"]) for each in sources if each is not None and each.kind == "directory")
        files = dict.fromkeys((source, name, "uv.toml", ".python-version", *local))
        return Relocking(("lock", *script, *shlex.split(pip.upgrades(changes))), tuple(files), folder)

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        document, places = tables_of(text) or _parsed(text, path)
        version = document.get("version")
        if version != 1:
            raise InputError(f"expected a uv.lock of version 1, not {version!r}", path, 1)
        packages = _tables(document.get("package", []), "package", path)
        if not packages and not path.endswith(".py.lock"):  # for a project, uv locks at least the project itself
            raise InputError("expected [[package]] tables of a uv.lock", path, 1)
        if len(places) != len(packages):
            places = []
        return (_Graph(path, document, packages, places).listing(),)


def _parsed(text: str, path: str) -> tuple[Table, list[int]]:
    """Return the document of a lock that is not in the form that uv writes, and the lines of its packages."""
    from compat.syntax.toml import parse_text

    return parse_text(text, path), [at for at, line in enumerate(text.split("\n"), 1) if line.strip() == "[[package]]"]


class _Graph:
    """A lock being converted to a listing; nodes are packages and (package, extra or group) pairs."""

    def __init__(self, path: str, document: Table, packages: list[Table], places: list[int]) -> None:
        self.path = path
        self.document = document
        self.packages = packages
        self.places = places
        self.entries: list[Entry] = []
        self.edges: list[Edge] = []
        self.choices: list[Choice] = []
        self._by_name: dict[str, list[int]] = {}
        self._nodes: dict[tuple[int, str, str], int] = {}
        self._sources: dict[int, Source] = {}
        self._numbers: dict[tuple[str, str, str], int] = {}

    def listing(self) -> Listing:
        for number, package in enumerate(self.packages):
            self.entries.append(self._entry(package, number))
            self._by_name.setdefault(self.entries[-1].distribution.name, []).append(number)
        self._roots()
        for number, package in enumerate(self.packages):
            self._dependencies(number, package.get("dependencies", []), number)
            for extra, needed in self._table(package, "optional-dependencies", number).items():
                self._dependencies(self._node(number, "extra", extra), needed, number)
        requires = self.document.get("requires-python")
        markers = self.document.get("supported-markers") or self.document.get("resolution-markers") or []
        groups = self.document.get("conflicts", [])
        if not isinstance(groups, list):
            raise InputError("expected conflicts to be a list", self.path)
        conflicts, apart = [], set[int]()
        for group in groups:
            members = [
                (self._number(each), "extra" in each or "group" in each) for each in _tables(group, "conflicts", self.path)
            ]
            known = tuple(number for number, _ in members if number is not None)
            if (None, False) in members:  # the project itself, which is no choice where it is the only one
                apart.update(known)
            elif len(known) > 1:
                conflicts.append(known)
        choices = set_apart(self.choices, apart)
        return Listing(
            file=self.path, kind="uv.lock", entries=tuple(self.entries), edges=tuple(self.edges), choices=choices,
            conflicts=tuple(conflicts), notes=tuple(notes_on_apart(choices)),
            requires_python=requires if isinstance(requires, str) else None,
            environments=tuple(_strings(markers, "resolution-markers", self.path)), complete=True,
            overridden=tuple(self._overridden()),
        )  # fmt: skip

    def _overridden(self) -> Iterator[str]:
        """Yield the distributions of ``override-dependencies`` and those whose metadata the project states."""
        manifest = self.document.get("manifest", {})
        for key in ("overrides", "dependency-metadata"):
            for each in _tables(manifest.get(key, []), f"manifest.{key}", self.path):
                yield normalized(str(each.get("name")))

    def _line(self, number: int) -> int | None:
        return self.places[number] + 1 if self.places else None

    def _entry(self, package: Table, number: int) -> Entry:
        name, version = package.get("name"), package.get("version")
        if not isinstance(name, str) or not name:
            raise InputError("expected a package with a name", self.path, self.places[number] if self.places else None)
        line = self._line(number)
        if version is not None:
            _check_version(version, name, self.path, line)
        forks = package.get("resolution-markers")
        markers = [] if forks is None else _strings(forks, f"resolution-markers of {name}", self.path, line)
        source = package.get("source")
        if not isinstance(source, dict):
            raise InputError(f"expected a source for {name}", self.path, line)
        marker = markers[0] if len(markers) == 1 else " or ".join(f"({each})" for each in markers) or None
        found = self._sources.get(id(source))
        if found is None:  # equal tables are one object, and most packages have the same source
            found = self._sources[id(source)] = source_of(source)
        known = {"name": normalized(name), "version": version, "source": found, "marker": marker}
        return create_unchecked(Entry, {"distribution": create_unchecked(Distribution, known), "line": line})

    def _roots(self) -> None:
        """Add the projects of the lock, their extras and their groups."""
        manifest = self.document.get("manifest", {})
        if not isinstance(manifest, dict):
            raise InputError("expected manifest to be a table", self.path)
        members = {normalized(name) for name in _strings(manifest.get("members", []), "manifest.members", self.path)}
        roots = [number for number, package in enumerate(self.packages) if self._is_root(package, members)]
        home = [number for number in roots if "." in self._table(self.packages[number], "source", number).values()]
        for number in roots:
            name = self.entries[number].distribution.name
            owner = name if len(roots) > 1 else None
            # uv installs the project in its own folder, and other workspace members only on request
            choice = self._choice("package", name, default=not home or number in home) if owner else None
            self.edges.append(Edge(ROOT, number, None, choice))
            for extra in self._table(self.packages[number], "optional-dependencies", number):
                self.edges.append(Edge(number, self._node(number, "extra", extra), None, self._choice("extra", extra, owner)))
            for group, needed in self._table(self.packages[number], "dev-dependencies", number).items():
                choice = self._choice("group", group, owner, default=group == _DEFAULT_GROUP)
                node = self._node(number, "group", group)
                self.edges.append(Edge(number if owner else ROOT, node, None, choice))
                self._dependencies(node, needed, number)
        # the requirements of a script or of a workspace without a root project
        self._named(_tables(manifest.get("requirements", []), "manifest.requirements", self.path), None)
        groups = manifest.get("dependency-groups", {})
        if not isinstance(groups, dict):
            raise InputError("expected manifest.dependency-groups to be a table", self.path)
        for group, needed in groups.items():
            choice = self._choice("group", group, default=group == _DEFAULT_GROUP)
            self._named(_tables(needed, f"manifest.dependency-groups.{group}", self.path), choice)

    def _named(self, needed: list[Table], choice: int | None) -> None:
        for each in needed:
            marker = each.get("marker")
            for number in self._by_name.get(normalized(str(each.get("name"))), ()):
                self.edges.append(Edge(ROOT, number, marker if isinstance(marker, str) else None, choice))

    def _is_root(self, package: Table, members: set[str]) -> bool:
        if members:
            return normalized(package["name"]) in members
        return any(package["source"].get(kind) == "." for kind in ("editable", "virtual", "directory"))

    def _choice(self, kind: str, name: str, owner: str | None = None, *, default: bool = False) -> int:
        self._numbers[kind, owner or "", name] = len(self.choices)
        self.choices.append(Choice(kind, name, owner, default))
        return len(self.choices) - 1

    def _node(self, number: int, kind: str, name: str) -> int:
        return self._nodes.setdefault((number, kind, normalized(name)), len(self.packages) + len(self._nodes))

    def _dependencies(self, parent: int, needed: Any, number: int) -> None:
        if type(needed) is not list:
            raise self._wrong(number, "expected a list of dependencies")
        by_name, add = self._by_name, self.edges.append
        for each in needed:
            if type(each) is not dict or type(each.get("name")) is not str:
                raise self._wrong(number, "expected dependencies with names")
            children = by_name.get(each["name"])
            if children is None or len(children) > 1:
                children = self._candidates(each, number)
            if len(each) == 1:
                add(Edge(parent, children[0]))
                continue
            marker, extras = each.get("marker"), each.get("extra")
            if marker is not None and type(marker) is not str:
                raise self._wrong(number, f"expected a string as marker of {each['name']}")
            for child in children:
                add(Edge(parent, child, marker))
                for extra in () if extras is None else _strings(extras, f"extra of {each['name']}", self.path):
                    add(Edge(parent, self._node(child, "extra", extra), marker))

    def _wrong(self, number: int, expected: str) -> InputError:
        return InputError(f"{expected} of {self.entries[number].distribution.name}", self.path, self._line(number))

    def _candidates(self, dependency: Table, number: int) -> list[int]:
        """Return the packages a dependency may mean; it has a version and a source if its name is ambiguous."""
        name = dependency["name"]
        found = self._by_name.get(name) or self._by_name.get(normalized(name), [])
        if len(found) > 1 and ("version" in dependency or "source" in dependency):
            version, source = dependency.get("version"), dependency.get("source")
            found = [
                at for at in found
                if (version is None or self.packages[at].get("version") == version)
                and (source is None or self.packages[at]["source"] == source)
            ]  # fmt: skip
        if not found:
            raise self._wrong(number, f"the lock has no entry for {name}, a dependency")
        return found

    def _table(self, package: Table, key: str, number: int) -> Table:
        table = package.get(key)
        if table is None:
            return {}
        if not isinstance(table, dict):
            name = self.entries[number].distribution.name
            raise InputError(f"expected {key} of {name} to be a table", self.path, self._line(number))
        return table

    def _number(self, item: Table) -> int | None:
        """Return the choice of a conflict's member."""
        kind = "extra" if "extra" in item else "group" if "group" in item else "package"
        owner, name = str(item.get("package", "")), str(item.get(kind, ""))
        keys = ((kind, "", owner),) if kind == "package" else ((kind, owner, name), (kind, "", name))
        return next((self._numbers[key] for key in keys if key in self._numbers), None)


def source_of(table: Table) -> Source:
    """Parse a ``source`` table."""
    for key, kind in (("registry", "index"), ("url", "url"), ("editable", "directory"), ("virtual", "directory"),
                      ("directory", "directory"), ("path", "directory")):  # fmt: skip
        value = table.get(key)
        if isinstance(value, str):
            details: Table = {"url": without_credentials(value)} if kind in ("index", "url") else {"path": value}
            if key in ("editable", "virtual"):
                details[key] = True
            return Source(kind, details)
    git = table.get("git")
    if isinstance(git, str):
        return Source("vcs", git_details(git))
    return Source("url", {key: value for key, value in table.items() if isinstance(value, str)})


def git_details(address: str) -> dict[str, str]:
    """Split ``https://host/repo?subdirectory=x&tag=v1#commit``."""
    rest, _, commit = without_credentials(address).partition("#")
    url, _, query = rest.partition("?")
    details = {"url": url, **({"commit": commit} if commit else {})}
    for part in query.split("&"):
        key, _, value = part.partition("=")
        if key == "subdirectory":
            details[key] = _plain(value)
        elif key in ("rev", "tag", "branch"):
            details["requested_revision"] = _plain(value)
    return details


def _plain(text: str) -> str:
    """Unquote ``a%2Fb``, as uv writes the folder ``a/b``."""
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text)


def _check_version(version: Any, name: str, path: str, line: int | None) -> None:
    if type(version) is str and version.isascii() and version.replace(".", "0").isdecimal() and ".." not in f".{version}.":
        return  # digits and dots: the common case
    try:
        key_of(version)
    except (ValueError, AttributeError, TypeError):
        raise InputError(f"{version!r} is not a version of {name} (PEP 440)", path, line) from None


def _tables(value: object, what: str, path: str) -> list[Table]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise InputError(f"expected {what} to be a list of tables", path)
    return value


def _strings(value: object, what: str, path: str, line: int | None = None) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise InputError(f"expected {what} to be a list of strings", path, line)
    return value
