"""The releases of an index and their variants: torch for another CUDA version, and builds from source if allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from compat.model import Source
from compat.repair.builds import Flavours
from compat.repair.candidates import IndexUniverse, Release
from compat.repair.relaxation import Forbidden, Needs
from compat.repair.source_builds import Builds, Commits


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
