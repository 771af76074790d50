"""Tables in the form of ``changes.bin`` that are made from what is read of each distinct source: values and assertions."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from compat.versions import key_of
from scripts.surface.changes import Row, existing, packed
from scripts.surface.store import Release, Store
from scripts.surface.tables import write

_BATCH = 40
_store: Store | None = None


@dataclass(frozen=True)
class Kind:
    """``sources``: the modules of a release that matter, with their sources; ``found``: what one source has;
    ``rows``: what some releases of a package have and some do not. ``form`` and ``place`` mark the records in the store:
    ``form`` is to be raised when ``found`` changes."""

    form: int
    place: str
    sources: Callable[[Release], Iterable[tuple[str, int]]]
    found: Callable[[bytes], Iterable[tuple[str, ...]]]
    rows: Callable[[Store, list[Release]], list[Row]]

    def recorded(self, store: Store, source: int) -> Iterator[tuple[str, ...]]:
        """Yield what was found in a source."""
        body = store.record(self.form, source, self.place)
        yield from (tuple(each) for each in json.loads(body)) if body is not None else ()


def write_table(path: Path, kind: Kind, packages: Iterable[str], folder: Path | None, jobs: int) -> None:
    """Read the sources of packages that have no record yet and write the table; packages outside the store keep their rows."""
    store = Store(folder)
    versions, rows = existing(path)
    with multiprocessing.Pool(jobs, _start, (folder,)) as pool:
        for package in packages:
            releases = sorted(store.releases(package), key=lambda release: key_of(release.version))
            if not releases:
                continue
            began, waiting = time.monotonic(), missing(store, kind, releases)
            batches = [(kind, waiting[at : at + _BATCH]) for at in range(0, len(waiting), _BATCH)]
            for made in pool.imap_unordered(_records, batches):
                store.keep_records(kind.form, made)
            versions[package] = tuple(release.version for release in releases)
            rows[package] = kind.rows(store, releases)
            seconds = time.monotonic() - began
            print(f"{package}: {len(waiting)} sources in {seconds:.1f} s, {len(rows[package])} rows", flush=True)
    write(path, packed(versions, rows))
    store.close()


def missing(store: Store, kind: Kind, releases: Iterable[Release]) -> list[int]:
    """Return the sources that have no record of the present form."""
    known = {source for source, place in store.recorded(kind.form) if place == kind.place}
    return sorted({source for release in releases for _, source in kind.sources(release)} - known)


def _start(folder: Path | None) -> None:
    global _store
    _store = Store(folder)


def _records(batch: tuple[Kind, list[int]]) -> list[tuple[int, str, bytes]]:
    kind, sources = batch
    assert _store is not None
    return [(source, kind.place, json.dumps(sorted(kind.found(_store.body(source)))).encode()) for source in sources]
