"""Candidate releases and their requirements: an index (or an equivalent) behind one small interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Protocol

from packaging.version import InvalidVersion, Version

from compat.index import File, Index, Metadata
from compat.markers import written
from compat.model import Source
from compat.repair.target import Need, Target, satisfies
from compat.tables.declared import Declared, Package


@dataclass(frozen=True)
class Release:
    """A version that can be installed; ``day`` is its upload date ("" if unknown), ``source`` its origin.

    Releases with the same name and version are equal: one that is not installed from the ordinary index has a local label of
    its own, ``+cu128`` if its wheel has that, else one that begins with ``compat.`` and is never passed to installers.
    """

    name: str
    version: str
    day: str = field(default="", compare=False)
    source: Source | None = field(default=None, compare=False)
    yanked: bool = field(default=False, compare=False)

    @cached_property
    def key(self) -> Version:
        return _version(self.version)

    @cached_property
    def public(self) -> str:
        """The normalized version without its local label."""
        return self.key.public

    def meets(self, specifier: str) -> bool:
        """Whether it satisfies a specifier set."""
        return satisfies(self.version, specifier)

    @property
    def installed(self) -> str:
        """The version as used by installers and metadata."""
        return self.version.partition("+compat.")[0]

    @property
    def plain(self) -> bool:
        """Whether installers choose it by default, from the indexes configured for the package."""
        return self.source is None or bool(self.source.details.get("pinned"))

    @property
    def built(self) -> bool:
        """Whether it is built locally: a commit, an archive, or the source distribution of a release."""
        return self.source is not None and (self.source.kind in ("vcs", "url") or bool(self.source.details.get("build")))

    @property
    def told(self) -> str:
        """The version as shown to the user."""
        if self.installed == self.version or self.source is None:
            return self.version
        commit = self.source.details.get("commit")
        return f"{self.installed} {f'at commit {str(commit)[:12]}' if commit else 'built from source'}"


class Universe(Protocol):
    """A provider of releases. Data that cannot be read is unknown (``None``)."""

    @property
    def unknown(self) -> Mapping[str, str]:
        """Packages and files that could not be read, and why."""
        ...

    def releases(self, names: Iterable[str]) -> Mapping[str, tuple[Release, ...] | None]:
        """The releases of each name that the target can install, oldest first; empty if the package does not exist."""
        ...

    def needs(self, releases: Iterable[Release]) -> Mapping[Release, Mapping[str, tuple[Need, ...]] | None]:
        """The requirements of each release: the unconditional ones under ``""``, else by extra; ``None``: unreadable.

        May name other releases that turned out to be unreadable with it.
        """
        ...

    def stored_needs(self, releases: Iterable[Release]) -> Mapping[Release, Mapping[str, tuple[Need, ...]]]:
        """The requirements of those releases for which they are cached; nothing is fetched."""
        ...


class IndexUniverse:
    """The releases of an index for one target. Requirements of source distributions are only used if known without a build."""

    def __init__(self, index: Index, target: Target) -> None:
        self.index = index
        self.target = target
        self._files: dict[tuple[str, str], tuple[File, ...]] = {}
        self._read: set[str] = set()
        self._asked: set[str] = set()
        self._without_wheels: set[str] = set()
        self.assumed: dict[Release, str] = {}
        """Releases of packages without any wheel whose requirements are unknown, and what was assumed instead."""
        self.beyond: dict[str, str] = {}
        """Packages with newer releases that have wheels for the target's system, but not for its Python: the first of these."""
        self.unbuilt: dict[str, list[str]] = {}
        """Releases that are no candidates because only their source can be installed, of packages that have wheels."""
        self.narrowed: dict[str, str] = {}
        """Packages pinned to an index that cannot be reached, and why; the ordinary indexes are used instead."""

    @property
    def unknown(self) -> Mapping[str, str]:
        """Without packages of the project that are pinned to an index, but not part of the problem."""
        others = self.index.settings.pinned.keys() - self._asked
        return {name: why for name, why in self.index.problems.items() if name not in self.narrowed and name not in others}

    def releases(self, names: Iterable[str]) -> Mapping[str, tuple[Release, ...] | None]:
        names = list(names)
        self._asked.update(names)
        pages = self.index.files_many(names)
        lost = [name for name, files in pages.items() if files is None and name in self.index.settings.pinned]
        if lost:  # releases on the ordinary indexes remain candidates
            self.narrowed.update((name, self.index.problems[name]) for name in lost)
            pages = {**pages, **self.index.unpinned().files_many(lost)}
        self._read.update(name for name, files in pages.items() if files is not None)
        return {name: None if files is None else tuple(self._releases(name, files)) for name, files in pages.items()}

    def _releases(self, name: str, files: Iterable[File]) -> Iterable[Release]:
        """Releases with a usable wheel, and newer ones that have no wheel for this system at all; else all with an sdist."""
        files = tuple(files)
        if not any(file.kind == "wheel" for file in files):
            self._without_wheels.add(name)
        by_version: dict[str, list[File]] = {}
        built, elsewhere = set(), set()
        for file in files:  # tens of thousands in a plan that moves torch
            version, usable = file.version, self.target.accepts_python(file.requires_python)
            if file.kind == "wheel":
                tags = file.tags
                if usable := usable and self.target.takes(tags):
                    built.add(version)
                elif version not in elsewhere and self.target.has_system(tags[2]):
                    elsewhere.add(version)
            if usable:
                by_version.setdefault(version, []).append(file)
        last = max(map(_version, built), default=None)
        later = [each for each in elsewhere - by_version.keys() if last is not None and _version(each) > last]
        if first := self._first_for_others(later, files):
            self.beyond[name] = first
        self.unbuilt.pop(name, None)
        for version in sorted(by_version, key=_version):
            if version not in built and last is not None and (version in elsewhere or _version(version) < last):
                self.unbuilt.setdefault(name, []).append(version)
                continue
            found = sorted(by_version[version], key=lambda file: (file.kind != "wheel", file.filename))
            self._files[name, version] = tuple(found)
            day = min((file.uploaded[:10] for file in found if file.uploaded), default="")
            yield Release(name, version, day, self._source(name, found[0]), all(file.yanked is not None for file in found))

    def _first_for_others(self, versions: Iterable[str], files: Iterable[File]) -> str:
        """The oldest of some final releases with a wheel for the target's platform and another Python; "" if there is none."""
        wanted = {each for each in versions if not _version(each).is_prerelease}
        wheels = (each for each in files if each.version in wanted and each.kind == "wheel" and each.yanked is None)
        found = {each.version for each in wheels if self.target.has_platform(each.tags[2])}
        return min(found, key=_version, default="")

    def _source(self, name: str, file: File) -> Source | None:
        """The index that a package is pinned to; ``None`` if it is not pinned."""
        pinned = name in self.index.settings.pinned and name not in self.narrowed
        return Source("index", {"url": file.index, "pinned": True}) if pinned and file.index else None

    def _usable(self, file: File) -> bool:
        return self.target.accepts_python(file.requires_python) and (file.kind != "wheel" or self.target.takes(file.tags))

    def needs(self, releases: Iterable[Release]) -> Mapping[Release, Mapping[str, tuple[Need, ...]] | None]:
        wanted = list(releases)
        self._read_pins([each for each in wanted if each.name not in self._read])
        files = {each: self._files[each.name, each.version][0] for each in wanted if self._files.get((each.name, each.version))}
        read = self._metadata(list(dict.fromkeys(files.values())))
        found: dict[Release, Mapping[str, tuple[Need, ...]] | None] = {}
        for release in wanted:
            metadata = read.get(files[release]) if release in files else None
            if metadata is not None:
                fits = self.target.accepts_python(metadata.requires_python)
                found[release] = self.target.needs_by_extra(metadata.requires) if fits else None
                continue
            unbuilt = release not in files or files[release].kind != "wheel"
            needs = declared_needs(self._declared, release.name, release.version, self.target) if unbuilt else None
            unusable = release in files and files[release].filename in self.index.unusable
            if needs is None and unusable and release.name in self._without_wheels:
                needs = {}
                self.assumed[release] = "assumed to have no requirements: it has no wheel, and compat builds nothing"
            found[release] = needs
        return found

    def stored_needs(self, releases: Iterable[Release]) -> Mapping[Release, Mapping[str, tuple[Need, ...]]]:
        files = {each: found[0] for each in releases if (found := self._files.get((each.name, each.version)))}
        wheels = {each: file for each, file in files.items() if file.kind == "wheel"}
        read = self.index.metadata_stored(wheels.values())
        known = ((each, read.get(file)) for each, file in wheels.items())
        return {
            each: self.target.needs_by_extra(metadata.requires) for each, metadata in known
            if metadata is not None and self.target.accepts_python(metadata.requires_python)
        }  # fmt: skip

    def _read_pins(self, releases: list[Release]) -> None:
        """Look up the usable files of single releases, without reading the whole pages of their packages."""
        wanted = {(each.name, each.version) for each in releases} - self._files.keys()
        self._asked.update(name for name, _ in wanted)
        found = self.index.files_of_pins(wanted)
        lost = {name for (name, _), files in found.items() if files is None and name in self.index.settings.pinned}
        if lost:
            self.releases(lost)
        for pin, files in found.items():
            if files is not None:
                usable = [file for file in files if self._usable(file)]
                self._files[pin] = tuple(sorted(usable, key=lambda file: (file.kind != "wheel", file.filename)))

    def source_needs(self, release: Release) -> Mapping[str, tuple[Need, ...]] | None:
        """The requirements of the source distribution of a release, if known without a build."""
        files = self._files.get((release.name, release.version), ())
        source = next((file for file in files if file.kind != "wheel"), None)
        metadata = None if source is None else self.index.metadata(source)
        return None if metadata is None else self.target.needs_by_extra(metadata.requires)

    def _metadata(self, files: list[File]) -> dict[File, Metadata]:
        """The metadata of files; for a source distribution with dynamic metadata, that of a wheel for another machine."""
        read = {file: found for file, found in zip(files, self.index.metadata_many(files)) if found is not None}
        others = wheels_for_others(self.index, [file for file in files if file.kind != "wheel" and file not in read])
        told = zip(others, self.index.metadata_many(list(others.values())))
        return {**read, **{file: found for file, found in told if found is not None}}

    @cached_property
    def _declared(self) -> Declared:
        return Declared()

    def serves(self, release: Release) -> bool | None:
        """Whether a release has a wheel for the target; ``None`` if its files were not read."""
        files = self._files.get((release.name, release.version))
        if files is None and release.name not in self._read:
            return None
        return any(file.kind == "wheel" for file in files or ())

    def has_source(self, release: Release) -> bool:
        """Whether a release has a source distribution."""
        return any(file.kind != "wheel" for file in self._files.get((release.name, release.version), ()))

    def hashes(self, name: str, version: str) -> tuple[str, ...]:
        """``sha256:…`` of every file of a release that the target can install."""
        return tuple(f"sha256:{file.sha256}" for file in self._files.get((name, version), ()) if file.sha256)


@cache
def _version(text: str) -> Version:
    return Version(text)


def parse_version(version: str) -> Version | None:
    """Parse a version; ``None`` if it is invalid."""
    try:
        return Version(version)
    except InvalidVersion:
        return None


# --- Requirements of releases without a wheel for the target, as far as known without a build.


def wheels_for_others(index: Index, sources: Iterable[File]) -> dict[File, File]:
    """Map source distributions to a wheel of the same release for another machine; installers assume equal metadata, too."""
    found = {}
    wanted = {file: (file.name, file.version) for file in sources}
    known = index.files_of_pins(wanted.values())
    for file, pin in wanted.items():
        wheels = [each for each in known[pin] or () if each.kind == "wheel"]
        if wheels:
            found[file] = min(wheels, key=lambda each: each.filename)
    return found


def declared_needs(declared: Declared, name: str, version: str, target: Target) -> Mapping[str, tuple[Need, ...]] | None:
    """The requirements of a release without extras, according to the matrix; ``None`` if it has none."""
    package = declared.package(name)
    place = None if package is None else package.place(version)
    if package is None or place is None:
        return None
    texts = [text for each in package.asks for text in _texts(package, place, each)]
    named = {text.split()[0] for text in texts}
    texts += [each for each in package.extra(place, "") if each not in named]
    return target.needs_by_extra(texts) if texts else None


def _texts(package: Package, place: int, name: str) -> Iterable[str]:
    for specifier, _, marker, extra in package.requirements(place, name):
        if extra is None:
            yield f"{name} {specifier}" + (f" ; {written(marker)}" if marker is not None else "")
