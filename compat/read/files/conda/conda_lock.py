"""``conda-lock.yml`` (version 1, all platforms in one file) → listing: one entry for each package and platform."""

from __future__ import annotations

from compat.environment import Distribution, normalized
from compat.errors import InputError
from compat.read.files.conda.conda_artefacts import conda_distribution, pip_source, split_artefact
from compat.read.files.conda.conda_platforms import platform_marker
from compat.read.files.listing import ROOT, Choice, Entry, Listing
from compat.read.yaml_nodes import Document
from compat.versions import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.read.files.listing import Edge
    from compat.read.yaml_nodes import Value

    Table = dict[str, Value]

_MAIN, _DEV = "main", "dev"
"""The category that is always installed, and the one that is unless ``--no-dev`` is given."""


def read_conda_lock(path: str, text: str) -> tuple[Listing, ...]:
    """The one listing of a lock; :class:`InputError` where it is no conda-lock.yml of version 1."""
    return (_Lock(path, text).listing(),)


class _Lock:
    """One lock on its way to a listing."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.document = Document(text, path)
        self.entries: list[Entry] = []
        self.edges: list[Edge] = []
        self.choices: dict[str, int] = {}
        self._markers: dict[str, str | None] = {}

    def listing(self) -> Listing:
        document = self.document
        root = document.table(document.root, "the file")
        version = document.text(root.get("version"), "version") or ""
        if version != "1":
            raise InputError(f"expected a conda-lock.yml of version 1, not {version[:40]!r}", self.path, 1)
        if "package" not in root:
            raise InputError("expected the list 'package' of a conda-lock.yml", self.path, 1)
        for item in document.items(root["package"], "package"):
            self._package(item)
        metadata = document.table(root.get("metadata"), "metadata")
        platforms = document.items(metadata.get("platforms"), "metadata.platforms")
        markers = [self._marker(each, document.needed_text(each, "a platform", each)) for each in platforms]
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
            found = self._from_pip(package, item, name, version, url, platform)
        else:
            artefact = split_artefact(url)
            build = artefact[2] if artefact is not None else None
            found = conda_distribution(name, version, build, {"platform": platform, "url": url})
        marker = self._marker(package["platform"], platform)
        for category in self._categories(package, name):
            self.edges.append((ROOT, len(self.entries), marker, self._choice(category)))
        self.entries.append(Entry(found, item.line))

    def _from_pip(self, package: Table, item: Value, name: str, version: str, url: str, platform: str) -> Distribution:
        try:
            key_of(version)
        except ValueError:
            raise self.document.wrong(f"{name}: {version[:60]!r} is not a version (PEP 440)", item) from None
        source = self.document.table(package.get("source"), f"the source of {name}")
        direct = self.document.text(source.get("type"), f"the source of {name}") == "url"
        return Distribution(normalized(name), version, pip_source(url, {"platform": platform}, direct=direct))

    def _categories(self, package: Table, name: str) -> list[str]:
        """The groups a package belongs to; :data:`_MAIN` stands for the package itself."""
        several = self.document.items(package.get("categories"), f"the categories of {name}")
        if several:
            return [self.document.needed_text(each, f"a category of {name}", each) for each in several]
        return [self.document.text(package.get("category"), f"the category of {name}") or _MAIN]

    def _choice(self, category: str) -> int | None:
        return None if category == _MAIN else self.choices.setdefault(category, len(self.choices))

    def _marker(self, value: Value, platform: str) -> str | None:
        if platform not in self._markers:
            try:
                self._markers[platform] = platform_marker(platform)
            except ValueError as problem:
                raise self.document.wrong(str(problem), value) from None
        return self._markers[platform]
