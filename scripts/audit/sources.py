"""The Python source of releases, from the miner's store or else from the index."""

from __future__ import annotations

import time
from dataclasses import replace

from compat.index import File, Index, gather
from compat.index import Store as IndexStore
from compat.index.metadata import Unread
from compat.index.transport import Transport
from scripts.surface.fetch import preference
from scripts.surface.members import read_members
from scripts.surface.store import Fetched, Release, Store


class Sources:
    """Releases by name and version, each read once and cached."""

    def __init__(self, store: Store | None = None, offline: bool = False) -> None:
        self.store = store or Store()
        settings = replace(gather(), timeout=60.0, retries=3)
        self._index = None if offline else Index(settings, IndexStore())
        self._transport = Transport(settings)
        self._files: dict[str, dict[str, list[File]]] = {}
        self._releases: dict[tuple[str, str], Release | None] = {}

    def versions(self, package: str) -> list[str]:
        """Return the versions with files on the index, or those in the store when offline."""
        if self._index is None:
            return sorted(self.store.known(package))
        return list(self._of_index(package))

    def release(self, package: str, version: str) -> Release | None:
        """Return a release; ``None`` if its source is unavailable."""
        if (package, version) not in self._releases:
            if version not in self.store.known(package):
                self._fetch(package, version)
            self._releases[package, version] = self.store.release(package, version)
        return self._releases[package, version]

    def text(self, release: Release, path: str) -> str:
        """Return the text of one file; ``""`` if the release does not contain it."""
        return self.store.body(release.members[path]).decode("utf-8", "replace") if path in release.members else ""

    def _of_index(self, package: str) -> dict[str, list[File]]:
        if package not in self._files:
            found: dict[str, list[File]] = {}
            for file in (self._index.files(package) if self._index else None) or ():
                found.setdefault(file.version, []).append(file)
            self._files[package] = found
        return self._files[package]

    def _fetch(self, package: str, version: str) -> None:
        files = self._of_index(package).get(version)
        if not files:
            return
        file = min(files, key=preference)
        began, before = time.monotonic(), self._transport.bytes
        try:
            contents = read_members(self._transport, file)
        except Unread:
            return
        self.store.keep(Fetched(
            file.name, file.version, file.filename, file.sha256, file.uploaded, contents.verified,
            self._transport.bytes - before, time.monotonic() - began, tuple(sorted(contents.opaque)), contents.members,
        ))  # fmt: skip
