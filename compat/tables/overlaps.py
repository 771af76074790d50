"""Modules and libraries that distributions of different names install (``matrix/facts/overlaps.csv``), compiled."""

from __future__ import annotations

import marshal
import os

from compat.files import DATA, read_table
from compat.records import cached, record
from compat.versions import is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from compat.model import Distribution

FILE = os.path.join(DATA, "overlaps.bin")
_Row = tuple[str, tuple[tuple[str, str], ...], tuple[str, ...], tuple[str, ...], bool, str, int]


@record(frozen=True)
class Installs:
    """A file that releases of a package install, and other packages too.

    ``runs`` are the first and last releases that have it, the last one "" if it is the newest that was read. ``alike`` are the
    packages whose files are the same, with ``=`` if only those of the same release are; ``mixed`` are those whose modules do
    not go with these, with ``=`` if not even those of the same release do. ``part``: the package has more than this. ``build``
    is the hardware that it is for (``cuda12``), "" for any. If nothing else decides, the lowest ``rank`` is kept.
    """

    file: str
    runs: tuple[tuple[str, str], ...]
    alike: tuple[str, ...]
    mixed: tuple[str, ...]
    part: bool
    build: str
    rank: int

    def is_in(self, version: str) -> bool:
        """Whether a release has it; those between two that were read and agree are taken to agree with them."""
        key = key_of(version.partition("+")[0])
        return any(key_of(first) <= key and (not last or key <= key_of(last)) for first, last in self.runs)

    @property
    def until(self) -> str:
        """The last release that has it, "" if the newest has."""
        return self.runs[-1][1]


@record(frozen=True)
class Group:
    """Distributions that install one file, and at least two of them other content."""

    file: str
    copies: tuple[Distribution, ...]
    installs: tuple[Installs, ...]

    @property
    def module(self) -> str:
        """The folder of the module, or the file of the library."""
        return self.file.removesuffix("/__init__.py")

    @property
    def does_not_mix(self) -> bool:
        """Whether files of two of them do not work together."""
        pairs = list(zip(self.copies, self.installs))
        return any(_is_among(installs.mixed, copy, other) for copy, installs in pairs for other in self.copies)

    @property
    def is_library(self) -> bool:
        """Whether it is a library for other packages to load, rather than a module."""
        return not self.file.endswith(".py")


class Overlaps:
    """The shipped rows by package."""

    def __init__(self, content: bytes) -> None:
        self._rows: dict[str, tuple[_Row, ...]] = marshal.loads(content)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._rows)

    def concerns(self, copies: Iterable[Distribution]) -> bool:
        """Whether some of them overwrite each other, or the files of one are known not to be its own."""
        found = [copy for copy in copies if copy.name in self._rows]
        return any("files" in copy.extra for copy in found) or any(True for _ in self.groups(found))

    def of(self, copy: Distribution) -> tuple[Installs, ...]:
        """The shared files of a distribution with a known version."""
        if copy.version is None or copy.name not in self._rows or not is_version(copy.version):
            return ()
        found = (Installs(*row) for row in self._rows[copy.name])
        return tuple(each for each in found if each.is_in(copy.version))

    def owners(self, copies: Iterable[Distribution]) -> dict[str, list[tuple[Distribution, Installs]]]:
        """Map each shared file to the distributions that install it into the same folder, also if there is only one.

        Those of conda are none: it may give several names to one package. Neither are editable ones, whose files are elsewhere.
        """
        found: dict[str, list[tuple[Distribution, Installs]]] = {}
        for copy in copies:
            source = copy.source
            if copy.name not in self._rows or copy.marker is not None:
                continue
            if source is None or (source.kind != "conda" and not source.details.get("editable")):
                for each in self.of(copy):
                    found.setdefault(each.file, []).append((copy, each))
        return found

    def groups(self, copies: Iterable[Distribution]) -> Iterator[Group]:
        """Yield the distributions that overwrite each other, without those that are installed in two versions."""
        for file, owners in self.owners(copies).items():
            names = [copy.name for copy, _ in owners]
            once = [owner for owner in owners if names.count(owner[0].name) == 1]
            apart = [owner for owner in once if any(not _alike(owner, other) for other in once if other is not owner)]
            if apart:
                yield Group(file, tuple(copy for copy, _ in apart), tuple(each for _, each in apart))


def _alike(one: tuple[Distribution, Installs], other: tuple[Distribution, Installs]) -> bool:
    return _is_among(one[1].alike, one[0], other[0])


def _is_among(names: tuple[str, ...], one: Distribution, other: Distribution) -> bool:
    """Whether a distribution is listed, or with ``=`` and of the same release, up to local labels and 1.9.0.post1."""
    same_release = key_of(one.version or "0")[:2] == key_of(other.version or "0")[:2]
    return other.name in names or (f"={other.name}" in names and same_release)


@cached
def open_overlaps() -> Overlaps:
    """The shipped table, read once."""
    return Overlaps(read_table(FILE))
