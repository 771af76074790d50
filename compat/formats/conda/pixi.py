"""``pixi.lock`` (versions 4 to 6) → listing: the packages once, and which environment uses which on which platform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.formats.conda.lock import LockReading
from compat.formats.conda.spec import conda_distribution, pip_source, split_artefact
from compat.formats.format import ProjectLock
from compat.formats.listing import ROOT, Choice, Edge, Entry, Listing
from compat.model import Distribution, normalized
from compat.syntax.yaml import Value

if TYPE_CHECKING:
    from compat.formats.edit.changes import Change
    from compat.formats.edit.commands import Installer

    Table = dict[str, Value]


_OLDEST, _NEWEST = 4, 6
_MANAGERS = ("conda", "pypi")


class PixiLock(ProjectLock):
    """pixi.lock, one of whose environments is installed; :class:`InputError` unless it is of version 4 or later.

    A package that an environment uses and the lock does not describe is in ``unread``.
    """

    kind, sources = "pixi.lock", ("pyproject.toml",)
    add, sync = "pixi add --pypi", "pixi install"

    def lock(self, changes: Sequence[Change], pip: Installer) -> str:
        names = " ".join(change.name for change in changes if change.after is not None)
        return f"pixi update --no-install {names}" if names else "pixi lock"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return (_Lock(path, text).listing(),)


class _Lock(LockReading):
    def __init__(self, path: str, text: str) -> None:
        super().__init__(path, text)
        self.unread: list[str] = []
        self._places: dict[tuple[str, str], int] = {}
        """(manager, address) → the entry."""

    def listing(self) -> Listing:
        document = self.document
        root = document.table(document.root, "the file")
        self._check_version(root)
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

    def _check_version(self, root: Table) -> None:
        """A newer version may say what is not read; :class:`InputError` for one that is laid out otherwise."""
        text = self.document.text(root.get("version"), "version") or ""
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else 0
        if number < _OLDEST:
            raise InputError(f"expected a pixi.lock of version {_OLDEST} or later, not {text[:40]!r}", self.path, 1)
        if number > _NEWEST:
            self.unread.append(f"pixi.lock of version {number}: read as version {_NEWEST}")

    def _package(self, item: Value) -> None:
        package = self.document.table(item, "a package")
        manager = self.document.text(package.get("kind"), "the kind of a package")
        if manager is None:  # since version 6 the address is the value of the kind
            manager = next((each for each in _MANAGERS if each in package), None)
            address = package.get(manager or "")
        else:
            address = package.get("url") or package.get("path")
        if manager not in _MANAGERS:
            raise self.document.wrong("expected a package of conda or pypi", item)
        location = self.document.needed_text(address, "the address of a package", item)
        found = self._from_conda(package, item, location) if manager == "conda" else self._from_pypi(package, item, location)
        self._places.setdefault((manager, location), len(self.entries))
        self.entries.append(Entry(found, item.line))

    def _from_conda(self, package: Table, item: Value, location: str) -> Distribution:
        document = self.document
        artefact = split_artefact(location)
        name, version, build = artefact or (None, None, None)
        name = document.text(package.get("name"), "the name of a package") or name
        version = document.text(package.get("version"), "the version of a package") or version
        build = document.text(package.get("build"), "the build of a package") or build
        if name is None:
            raise document.wrong(f"{location[:100]!r} does not contain the name of a conda package", item)
        folder = location.rpartition("/")[0].rpartition("/")[2] if artefact is not None else None
        subdir = document.text(package.get("subdir"), "the subdir of a package") or folder
        return conda_distribution(name, version, build, {"platform": subdir, "url": location})

    def _from_pypi(self, package: Table, item: Value, location: str) -> Distribution:
        document = self.document
        name = document.needed_text(package.get("name"), "the name of a package", item)
        version = document.text(package.get("version"), f"the version of {name}")
        if version is not None:
            version = self.version(name, version, package["version"])
        editable = document.flag(package.get("editable"), f"editable of {name}")
        return Distribution(normalized(name), version, pip_source(location, {}, editable=editable))

    def _environment(self, name: str, value: Value, choice: int) -> None:
        document = self.document
        packages = document.table(document.table(value, f"environments.{name}").get("packages"), f"packages of {name}")
        for platform, items in packages.items():
            marker = self.marker(items, platform)
            for item in document.items(items, f"packages of {name} for {platform}"):
                used = document.table(item, f"a package of {name}")
                manager = next((each for each in _MANAGERS if each in used), None)
                if manager is None:
                    raise document.wrong(f"environments.{name}: expected a package of conda or pypi", item)
                location = document.needed_text(used[manager], f"a package of {name}", item)
                number = self._places.get((manager, location))
                if number is None:
                    self.unread.append(f"{self.path}:{item.line}: {location[:200]} is not among the packages of the lock")
                else:
                    self.edges.append(Edge(ROOT, number, marker, choice))
