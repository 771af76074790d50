"""Install commands applied one after the other: what is there in the end."""

from __future__ import annotations

from compat.read.files.listing import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from compat.environment import Distribution
    from compat.read.files.installs.install_command import Install


class Installed:
    """The distributions that are installed so far, by name; one that has markers may be there several times."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.changes = 0
        """How often something was installed or uninstalled."""
        self._entries: dict[str, dict[str | None, Entry]] = {}
        for entry in entries:
            self._entries.setdefault(entry.distribution.name, {})[entry.distribution.marker] = entry

    def apply(self, install: Install, line: int | None, file: str | None = None) -> None:
        """One command: its requirements replace what was there, what it uninstalls is gone."""
        for name in install.removed:
            self.remove(name)
        for distribution in install.requirements:
            self.add(Entry(distribution, line, file), upgrade=install.upgrade)

    def add(self, entry: Entry, *, upgrade: bool = False) -> None:
        """The last explicit statement holds; without ``upgrade`` what already fits is left as it is."""
        wanted = entry.distribution
        there = self._entries.get(wanted.name, {})
        earlier = there.get(wanted.marker) or there.get(None)
        if earlier is not None and not upgrade and fits(earlier.distribution, wanted):
            return
        self.changes += 1
        copies = self._entries.pop(wanted.name, {})
        if wanted.marker is None:
            copies = {}
        copies.pop(None, None)
        copies[wanted.marker] = entry
        self._entries[wanted.name] = copies

    def remove(self, name: str) -> None:
        """What ``pip uninstall`` does; a name that is not there is no error."""
        if self._entries.pop(name, None):
            self.changes += 1

    def has(self, name: str) -> bool:
        """Whether a distribution is there."""
        return name in self._entries

    def entries(self) -> tuple[Entry, ...]:
        """What is there, in the order of the statements that hold."""
        return tuple(entry for copies in self._entries.values() for entry in copies.values())


def fits(there: Distribution, wanted: Distribution) -> bool:
    """Whether an installer leaves a distribution as it is when ``wanted`` is asked for."""
    if wanted.version is not None or (wanted.source is not None and wanted.source.kind not in ("index", "nightly", "conda")):
        return False
    if wanted.specifier is None:
        return True
    if there.version is None:
        return False
    from compat.versions import contains, key_of, ranges_of

    try:
        return contains(ranges_of(wanted.specifier), key_of(there.version))
    except ValueError:
        return False
