"""``conda-lock.yml`` and ``pixi.lock``: conda and pip packages, by platform."""

from __future__ import annotations

import os
from collections.abc import Sequence

from compat.errors import InputError
from compat.formats.conda_spec import conda_distribution, pip_source, split_artefact
from compat.formats.edit.changes import Change
from compat.formats.edit.installer import Installer
from compat.formats.listing import ROOT, Choice, Edge, Entry, Listing
from compat.formats.registry import Commands, Format, ProjectLock
from compat.model import Distribution, normalized
from compat.redact import excerpt
from compat.syntax.yaml import Document, Value
from compat.versions import key_of

Table = dict[str, Value]

_SYSTEMS = {"linux": "linux", "osx": "darwin", "win": "win32"}
_MACHINES = {"64": "x86_64", "32": "i686"}
_WINDOWS_MACHINES = {"32": "x86", "arm64": "ARM64"}
_WINDOWS = "sys_platform == 'win32'"
_WINDOWS_64 = f"{_WINDOWS} and (platform_machine == 'AMD64' or platform_machine == 'x86_64')"
_UNIX = "(sys_platform == 'linux' or sys_platform == 'darwin')"


def platform_marker(platform: str) -> str | None:
    """Return the marker of a platform; ``None`` for ``noarch``, which matches all. ``ValueError`` for an unknown platform."""
    if platform == "noarch":
        return None
    system, dash, machine = platform.partition("-")
    if not (dash and system.isalnum() and machine.isalnum() and platform.isascii()):
        raise ValueError(f"{excerpt(platform, 40)!r} is not a platform such as linux-64")
    if platform == "win-64":
        return _WINDOWS_64
    if system == "win":
        return f"{_WINDOWS} and platform_machine == '{_WINDOWS_MACHINES.get(machine, machine)}'"
    return f"sys_platform == '{_SYSTEMS.get(system, system)}' and platform_machine == '{_MACHINES.get(machine, machine)}'"


_SELECTORS = {
    "linux": "sys_platform == 'linux'", "osx": "sys_platform == 'darwin'", "win": _WINDOWS, "unix": _UNIX,
    "linux64": platform_marker("linux-64"), "osx64": platform_marker("osx-64"), "win64": _WINDOWS_64,
    "aarch64": platform_marker("linux-aarch64"), "ppc64le": platform_marker("linux-ppc64le"),
    "arm64": platform_marker("osx-arm64"), "x86_64": "platform_machine == 'x86_64'",
}  # fmt: skip
_NEGATED = {
    "linux": "sys_platform != 'linux'", "osx": "sys_platform != 'darwin'", "win": "sys_platform != 'win32'",
    "unix": "sys_platform != 'linux' and sys_platform != 'darwin'",
    "arm64": "(sys_platform != 'darwin' or platform_machine != 'arm64')", "aarch64": "platform_machine != 'aarch64'",
    "x86_64": "platform_machine != 'x86_64'",
}  # fmt: skip


def selector_marker(comment: str) -> str | None:
    """Return the marker of a comment such as ``# [linux and not aarch64]``; ``None`` if the selector is unknown."""
    for part in comment.split("#"):
        text = part.strip()
        if text.startswith("[") and "]" in text:
            return _condition(text[1 : text.index("]")].split())
    return None


def _condition(words: list[str]) -> str | None:
    """Convert ``["linux", "or", "not", "win"]`` to a marker."""
    parts: list[str] = []
    wanted, negated = True, False
    for word in words:
        if wanted and word == "not" and not negated:
            negated = True
        elif wanted:
            known = _NEGATED.get(word) if negated else _selected(word)
            if known is None:
                return None
            parts.append(f"({known})" if len(words) > 2 and " and " in known else known)
            wanted = negated = False
        elif word in ("and", "or"):
            parts.append(word)
            wanted = True
        else:
            return None
    return None if wanted else " ".join(parts)


def _selected(word: str) -> str | None:
    if "-" not in word:
        return _SELECTORS.get(word)
    try:
        return platform_marker(word)
    except ValueError:
        return None


# --- ``conda-lock.yml`` (version 1, all platforms in one file) → listing: one entry per package and platform.


_MAIN, _DEV = "main", "dev"
"""The category that is always installed, and the one that is installed unless ``--no-dev`` is passed."""


class CondaLock(Format):
    """conda-lock.yml; :class:`InputError` unless it is version 1."""

    kind, sources = "conda-lock.yml", ("environment.yml", "environment.yaml")

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        return Commands(lock_commands(self.source_of(path), changes, pip), (f"conda-lock install {pip.quoted(path)}",))

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return (_Lock(path, text).listing(),)


def lock_commands(path: str, changes: Sequence[Change], pip: Installer) -> tuple[str, ...]:
    """Return the commands that relock an environment file, if its lock file is next to it."""
    for name in ("conda-lock.yml", "conda-lock.yaml"):
        lock = os.path.join(os.path.dirname(path), name)
        if os.path.isfile(lock):
            names = "".join(f" --update {change.name}" for change in changes if change.after is not None)
            return (f"conda-lock lock --file {pip.quoted(path)} --lockfile {pip.quoted(lock)}{names}",)
    return ()


class LockReading:
    """A lock with conda and pip packages, by platform, being converted to a listing."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.document = Document(text, path)
        self.entries: list[Entry] = []
        self.edges: list[Edge] = []
        self.markers: dict[str, str | None] = {}
        """platform → marker."""

    def marker(self, value: Value, platform: str) -> str | None:
        """Return the marker of a platform; :class:`InputError` for an unknown platform."""
        if platform not in self.markers:
            try:
                self.markers[platform] = platform_marker(platform)
            except ValueError as problem:
                raise self.document.wrong(str(problem), value) from None
        return self.markers[platform]

    def version(self, name: str, version: str, value: Value) -> str:
        """Return the version (PEP 440) of a pip package; :class:`InputError` if it is invalid."""
        try:
            key_of(version)
        except ValueError:
            raise self.document.wrong(f"{name}: {excerpt(version, 60)!r} is not a version (PEP 440)", value) from None
        return version


class _Lock(LockReading):
    def __init__(self, path: str, text: str) -> None:
        super().__init__(path, text)
        self.choices: dict[str, int] = {}

    def listing(self) -> Listing:
        document = self.document
        root = document.table(document.root, "the file")
        version = document.text(root.get("version"), "version") or ""
        if version != "1":
            raise InputError(f"expected a conda-lock.yml of version 1, not {excerpt(version, 40)!r}", self.path, 1)
        if "package" not in root:
            raise InputError("expected the list 'package' of a conda-lock.yml", self.path, 1)
        for item in document.items(root["package"], "package"):
            self._package(item)
        metadata = document.table(root.get("metadata"), "metadata")
        platforms = document.items(metadata.get("platforms"), "metadata.platforms")
        markers = [self.marker(each, document.needed_text(each, "a platform", each)) for each in platforms]
        return Listing(
            self.path, "conda-lock.yml", tuple(self.entries), tuple(self.edges),
            choices=tuple(Choice("group", name, default=name == _DEV) for name in self.choices),
            environments=tuple(marker for marker in markers if marker is not None), complete=True,
        )  # fmt: skip

    def _package(self, item: Value) -> None:
        document = self.document
        package = document.table(item, "a package")
        name = document.needed_text(package.get("name"), "the name of a package", item)
        platform = document.needed_text(package.get("platform"), f"the platform of {name}", item)
        manager = document.text(package.get("manager"), f"the manager of {name}") or "conda"
        if manager not in ("conda", "pip"):
            raise document.wrong(f"{name}: expected the manager conda or pip, not {manager!r}", package["manager"])
        version = document.needed_text(package.get("version"), f"the version of {name}", item)
        url = document.needed_text(package.get("url"), f"the url of {name}", item)
        if manager == "pip":
            source = document.table(package.get("source"), f"the source of {name}")
            direct = document.text(source.get("type"), f"the source of {name}") == "url"
            pip = pip_source(url, {"platform": platform}, direct=direct)
            found = Distribution(normalized(name), self.version(name, version, item), pip)
        else:
            artefact = split_artefact(url)
            found = conda_distribution(name, version, artefact and artefact.build, {"platform": platform, "url": url})
        marker = self.marker(package["platform"], platform)
        several = document.items(package.get("categories"), f"the categories of {name}")
        categories = [document.needed_text(each, f"a category of {name}", each) for each in several]
        for category in categories or [document.text(package.get("category"), f"the category of {name}") or _MAIN]:
            choice = None if category == _MAIN else self.choices.setdefault(category, len(self.choices))
            self.edges.append(Edge(ROOT, len(self.entries), marker, choice))
        self.entries.append(Entry(found, item.line))


# --- ``pixi.lock`` (versions 4 to 6) → listing: packages once, and which environment uses which on which platform.


_OLDEST, _NEWEST = 4, 6
_MANAGERS = ("conda", "pypi")


class PixiLock(ProjectLock):
    """pixi.lock, of which one environment is installed; :class:`InputError` unless it is version 4 or later.

    A package that an environment uses and the lock does not describe is in ``unread``.
    """

    kind, sources = "pixi.lock", ("pixi.toml", "pyproject.toml")
    add, remove, sync = "pixi add --pypi", "pixi remove --pypi", "pixi install"
    add_from, add_conda = "pixi add --pypi {what} --index {url}", "pixi add"
    update, relock = "pixi update --no-install", "pixi lock"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return (_PixiReading(path, text).listing(),)


class _PixiReading(LockReading):
    def __init__(self, path: str, text: str) -> None:
        super().__init__(path, text)
        self.unread: list[str] = []
        self._places: dict[tuple[str, str], int] = {}
        """(manager, address) → the entry."""

    def listing(self) -> Listing:
        document = self.document
        root = document.table(document.root, "the file")
        text = document.text(root.get("version"), "version") or ""
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else 0
        if number < _OLDEST:
            raise InputError(f"expected a pixi.lock of version {_OLDEST} or later, not {excerpt(text, 40)!r}", self.path, 1)
        if number > _NEWEST:
            self.unread.append(f"pixi.lock of version {number}: read as version {_NEWEST}")
        for key in ("environments", "packages"):
            if key not in root:
                raise InputError(f"expected the {key!r} of a pixi.lock", self.path, 1)
        for item in document.items(root["packages"], "packages"):
            self._package(item)
        environments = document.table(root["environments"], "environments")
        for choice, (name, value) in enumerate(environments.items()):
            self._environment(name, value, choice)
        default = "default" if "default" in environments or len(environments) != 1 else next(iter(environments))
        return Listing(
            self.path, "pixi.lock", tuple(self.entries), tuple(self.edges), exclusive=True,
            choices=tuple(Choice("environment", name, default=name == default) for name in environments),
            environments=tuple(marker for marker in self.markers.values() if marker is not None),
            complete=not self.unread, unread=tuple(self.unread),
        )  # fmt: skip

    def _package(self, item: Value) -> None:
        package = self.document.table(item, "a package")
        manager = self.document.text(package.get("kind"), "the kind of a package")
        if manager is None:  # since version 6 the address is the value of the kind
            manager = next((each for each in _MANAGERS if each in package), None)
            address = package.get(manager or "")
        else:
            address = package.get("url") or package.get("path")
        if manager not in _MANAGERS:
            raise self.document.wrong("expected a conda or pypi package", item)
        location = self.document.needed_text(address, "the address of a package", item)
        if manager == "conda":
            found = self._from_conda(package, item, location)
        else:
            name = self.document.needed_text(package.get("name"), "the name of a package", item)
            version = self.document.text(package.get("version"), f"the version of {name}")
            if version is not None:
                version = self.version(name, version, package["version"])
            editable = self.document.flag(package.get("editable"), f"editable of {name}")
            found = Distribution(normalized(name), version, pip_source(location, {}, editable=editable))
        self._places.setdefault((manager, location), len(self.entries))
        self.entries.append(Entry(found, item.line))

    def _from_conda(self, package: Table, item: Value, location: str) -> Distribution:
        document = self.document
        artefact = split_artefact(location)
        name = document.text(package.get("name"), "the name of a package") or (artefact and artefact.name)
        version = document.text(package.get("version"), "the version of a package") or (artefact and artefact.version)
        build = document.text(package.get("build"), "the build of a package") or (artefact and artefact.build)
        if name is None:
            raise document.wrong(f"{excerpt(location, 100)!r} does not contain the name of a conda package", item)
        folder = location.rpartition("/")[0].rpartition("/")[2] if artefact is not None else None
        subdir = document.text(package.get("subdir"), "the subdir of a package") or folder
        return conda_distribution(name, version, build, {"platform": subdir, "url": location})

    def _environment(self, name: str, value: Value, choice: int) -> None:
        document = self.document
        packages = document.table(document.table(value, f"environments.{name}").get("packages"), f"packages of {name}")
        for platform, items in packages.items():
            marker = self.marker(items, platform)
            for item in document.items(items, f"packages of {name} for {platform}"):
                used = document.table(item, f"a package of {name}")
                manager = next((each for each in _MANAGERS if each in used), None)
                if manager is None:
                    raise document.wrong(f"environments.{name}: expected a conda or pypi package", item)
                location = document.needed_text(used[manager], f"a package of {name}", item)
                number = self._places.get((manager, location))
                if number is None:
                    self.unread.append(
                        f"{self.path}:{item.line}: {excerpt(location, 200)} is not in the package list of the lock"
                    )
                else:
                    self.edges.append(Edge(ROOT, number, marker, choice))
