"""The releases of an index, and other ways to install them: torch for another CUDA, and from source where that is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from compat.repair.builds import Flavours
from compat.repair.candidates import IndexUniverse, Release
from compat.repair.relaxation import Forbidden, Needs
from compat.repair.source_builds import Builds, Commits


class Maker(Protocol):
    """Who knows another way to install releases."""

    def of(self, name: str, releases: Iterable[Release]) -> Iterator[Release]: ...

    def needs(self, release: Release) -> Needs | None: ...


class Variants:
    """A universe with the releases of an index and what ``flavours`` and ``sources`` make of them."""

    def __init__(self, base: IndexUniverse, flavours: Flavours, sources: Iterable[Builds | Commits] = ()) -> None:
        self.base, self._flavours, self._sources = base, flavours, tuple(sources)
        self._makers: tuple[Maker, ...] = (flavours, *self._sources)
        self._made: dict[Release, Maker] = {}

    @property
    def unknown(self) -> Mapping[str, str]:
        return self.base.unknown

    @property
    def narrowed(self) -> Mapping[str, str]:
        """The vendors' indexes whose builds were no candidates, and why."""
        return {**self._flavours.narrowed, **self.base.narrowed}

    @property
    def assumed(self) -> Mapping[Release, str]:
        """What was taken for granted of releases whose own metadata could not be read."""
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

    def forbidden(self, known: Mapping[str, tuple[Release, ...]]) -> Iterator[Forbidden]:
        """What must not be together whatever the rules say."""
        return self._flavours.forbidden(known)

    def serves(self, release: Release) -> bool | None:
        """Whether an index was read that has a wheel of it; ``None`` where its package was not looked at."""
        return self._flavours.served(release) if release in self._made else self.base.serves(release)

    def hashes(self, release: Release) -> tuple[str, ...]:
        """``sha256:…`` of every file of a release that the target can take."""
        maker = self._made.get(release)
        if maker is None or isinstance(maker, Builds):
            return self.base.hashes(release.name, release.installed)
        return self._flavours.hashes(release) if maker is self._flavours else ()
