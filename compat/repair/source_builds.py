"""Variants of releases: compiled locally, commits that a rule names as its fix, and torch for another CUDA version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from packaging.version import Version

from compat.model import Source, normalized
from compat.records import record
from compat.repair.builds import Flavours
from compat.repair.candidates import IndexUniverse, Release
from compat.repair.relaxation import Forbidden, Needs
from compat.repair.target import Need
from compat.rules.compiled import Matrix
from compat.tables.builds import EXTENSIONS

COMPILED = frozenset((*EXTENSIONS, "flash-attn", "causal-conv1d", "mamba-ssm"))
"""Packages whose wheels are compiled for specific GPUs, CUDA and torch: a local build matches those installed."""
EVERYWHERE = frozenset(("bitsandbytes",))
"""Those whose wheels also run without CUDA."""
PIN_TORCH = frozenset(("xformers",))
"""Packages whose wheels pin the torch release they were compiled with, while their source supports it and later ones."""


class Builds:
    """Releases with a source distribution, compiled locally for the installed GPUs and torch."""

    def __init__(self, base: IndexUniverse) -> None:
        self._base = base

    def of(self, name: str, releases: Iterable[Release]) -> Iterator[Release]:
        if name in COMPILED:
            for each in releases:
                if self._base.has_source(each):
                    yield Release(name, f"{each.version}+compat.built", each.day, Source("index", {"build": True}), each.yanked)

    def needs(self, release: Release) -> Needs | None:
        """The requirements of the source distribution if known, else those of the wheel of the release."""
        plain = Release(release.name, release.installed)
        told = self._base.source_needs(plain)
        if told is not None:
            return told
        needs = self._base.needs([plain])[plain]
        if needs is None or release.name not in PIN_TORCH:
            return needs
        return {extra: tuple(map(_or_later, found)) for extra, found in needs.items()}


def _or_later(need: Need) -> Need:
    """Relax an exact torch requirement to that release or a later one."""
    pin = need.name == "torch" and need.specifier.startswith("==")
    return need._replace(specifier=f">={need.specifier.removeprefix('==')}") if pin else need


@record(frozen=True)
class Commit:
    """A commit of a package named by a rule, and the version that its code reports."""

    url: str
    commit: str
    version: str
    rule: str


class Commits:
    """The commits named by the rules of a matrix. A commit is assumed to have the requirements of the next release."""

    def __init__(self, base: IndexUniverse, matrix: Matrix) -> None:
        self._base = base
        self._known: dict[str, list[Commit]] = {}
        for name, commit in commits_of(matrix):
            self._known.setdefault(name, []).append(commit)
        self._like: dict[Release, Release] = {}
        self.assumed: dict[Release, str] = {}
        """Assumptions about the requirements of a commit."""

    def of(self, name: str, releases: Iterable[Release]) -> Iterator[Release]:
        known = sorted(releases, key=lambda each: each.key)
        for each in self._known.get(name, ()):
            like = next((release for release in known if release.key >= Version(each.version)), None)
            if like is not None:
                source = Source("vcs", {"url": each.url, "vcs": "git", "commit": each.commit, "pure": name not in COMPILED})
                found = Release(name, f"{each.version}+compat.{each.commit[:12]}", like.day, source)
                self._like[found] = like
                yield found

    def needs(self, release: Release) -> Needs | None:
        like = self._like[release]
        self.assumed[release] = f"assumed to have the requirements of {like.name} {like.version}"
        return self._base.needs([like])[like]


def commits_of(matrix: Matrix) -> Iterator[tuple[str, Commit]]:
    """The commits in the fixes of rules: those with a version and a ``git+`` URL."""
    for rule in matrix.rules():
        for fix in rule.fixes:
            for name, where in fix.packages if fix.kind == "source-install" and fix.version else ():
                url, at, commit = where.removeprefix("git+").rpartition("@")
                if at and where.startswith("git+"):
                    yield normalized(name), Commit(url, commit, fix.version, rule.id)


# --- The releases of an index and their variants: torch for another CUDA version, and builds from source.


class Maker(Protocol):
    """Provides variants of releases."""

    def of(self, name: str, releases: Iterable[Release]) -> Iterator[Release]: ...

    def needs(self, release: Release) -> Needs | None: ...


class Variants:
    """A universe of the releases of an index and their variants from ``flavours`` and ``sources``."""

    def __init__(self, base: IndexUniverse, flavours: Flavours, sources: Iterable[Builds | Commits] = ()) -> None:
        self.base, self._flavours, self._sources = base, flavours, tuple(sources)
        self._makers: tuple[Maker, ...] = (flavours, *self._sources)
        self._made: dict[Release, Maker] = {}

    @property
    def unknown(self) -> Mapping[str, str]:
        return self.base.unknown

    @property
    def narrowed(self) -> Mapping[str, str]:
        """Vendors' indexes whose builds were not candidates, and why."""
        return {**self._flavours.narrowed, **self.base.narrowed}

    @property
    def beyond(self) -> Mapping[str, str]:
        """Packages with newer releases for other Pythons: see :attr:`IndexUniverse.beyond`."""
        return self.base.beyond

    @property
    def unbuilt(self) -> Mapping[str, list[str]]:
        """Releases that are no candidates: see :attr:`IndexUniverse.unbuilt`."""
        return self.base.unbuilt

    @property
    def assumed(self) -> Mapping[Release, str]:
        """Assumptions about releases whose own metadata could not be read."""
        commits = [each for each in self._sources if isinstance(each, Commits)]
        return {
            **self.base.assumed,
            **self._flavours.assumed,
            **{release: text for each in commits for release, text in each.assumed.items()},
        }

    def releases(self, names: Iterable[str]) -> Mapping[str, tuple[Release, ...] | None]:
        found = self.base.releases(names)
        return {name: None if known is None else (*known, *self._variants(name, known)) for name, known in found.items()}

    def _variants(self, name: str, known: tuple[Release, ...]) -> Iterator[Release]:
        there = set(known)
        for maker in self._makers:
            for release in maker.of(name, known):
                if release not in there:
                    self._made[release] = maker
                    yield release

    def needs(self, releases: Iterable[Release]) -> Mapping[Release, Needs | None]:
        wanted = list(releases)
        made = {each: self._made[each].needs(each) for each in wanted if each in self._made}
        if None in made.values():
            ours = (each for each, maker in self._made.items() if maker is self._flavours)
            made |= dict.fromkeys(self._flavours.lost(ours))
        return {**self.base.needs([each for each in wanted if each not in made]), **made}

    def stored_needs(self, releases: Iterable[Release]) -> Mapping[Release, Needs]:
        return self.base.stored_needs(each for each in releases if each not in self._made)

    def forbidden(self, known: Mapping[str, tuple[Release, ...]]) -> Iterator[Forbidden]:
        """Combinations of builds that are forbidden independently of rules."""
        return self._flavours.forbidden(known)

    def origin(self, release: Release) -> Source | None:
        """The index other than the ordinary one that an installed release must come from, if known."""
        return self._flavours.origin(release)

    def default_index(self, release: Release, before: Source | None) -> str | None:
        """The vendor's index that also has the default build of a release; see :meth:`Flavours.default_index`."""
        return self._flavours.default_index(release, before)

    def serves(self, release: Release) -> bool | None:
        """Whether an index provides a wheel of it; ``None`` if its package was not read."""
        return self._flavours.served(release) if release in self._made else self.base.serves(release)

    def hashes(self, release: Release) -> tuple[str, ...]:
        """``sha256:…`` of every file of a release that the target can install."""
        maker = self._made.get(release)
        if maker is None or isinstance(maker, Builds):
            return self.base.hashes(release.name, release.installed)
        return self._flavours.hashes(release) if maker is self._flavours else ()
