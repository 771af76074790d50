"""``python -m scripts.surface.extract [PACKAGE…]``: the record of every distinct module in the store that has none yet."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from compat.interfaces.release import is_converter
from compat.interfaces.source.module import FORM, read_module
from compat.interfaces.source.records import pack_module
from scripts.surface.packages import AROUND, BESIDE, TRACKED, USERS
from scripts.surface.store import Release, Store

BATCH = 40
_store: Store | None = None


def place_of(path: str) -> str | None:
    """How a file is to be read: its module, ``/`` behind that of a package, ``?`` behind that of a stub; or not at all."""
    stem, _, suffix = path.rpartition(".")
    parts = stem.split("/")
    if len(parts) > 1 and suffix == "py" and is_converter(parts[-1]):
        return None
    if not all(part.isidentifier() for part in parts):
        return None
    package = parts[-1] == "__init__"
    if package:
        parts.pop()
    if not parts:
        return None
    return ".".join(parts) + ("/" if package else "") + ("?" if suffix == "pyi" else "")


def places_of(release: Release) -> Iterator[tuple[int, str]]:
    """The modules of a release: the number of each source, and its place."""
    for path, source in release.members.items():
        place = place_of(path)
        if place is not None:
            yield source, place


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.extract", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all that are tracked)")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    parser.add_argument("--jobs", type=int, default=2)
    words = parser.parse_args(arguments)
    store = Store(words.store)
    with multiprocessing.Pool(words.jobs, _start, (words.store,)) as pool:
        for package in words.packages or (*TRACKED, *BESIDE, *AROUND, *USERS):
            began = time.monotonic()
            waiting = missing(store, package)
            for made in pool.imap_unordered(_records, _batches(waiting)):
                store.keep_records(FORM, made)
            print(f"{package}: {len(waiting)} modules read in {time.monotonic() - began:.1f} s", flush=True)
    store.close()
    return 0


def missing(store: Store, package: str) -> list[tuple[int, str]]:
    """The modules of a package that have no record of the present form."""
    known = store.recorded(FORM)
    return list({pair for release in store.releases(package) for pair in places_of(release)} - known)


def _batches(pairs: list[tuple[int, str]]) -> Iterable[list[tuple[int, str]]]:
    pairs.sort()
    return [pairs[at : at + BATCH] for at in range(0, len(pairs), BATCH)]


def _start(folder: Path | None) -> None:
    global _store
    _store = Store(folder)


def _records(pairs: list[tuple[int, str]]) -> list[tuple[int, str, bytes]]:
    assert _store is not None
    return read_records(_store, pairs)


def read_records(store: Store, pairs: Iterable[tuple[int, str]]) -> list[tuple[int, str, bytes]]:
    """The packed records of sources, each read as what its place says."""
    made = []
    for source, place in pairs:
        name = place.rstrip("/?")
        record = read_module(store.body(source), name, is_package="/" in place, stub=place.endswith("?"))
        made.append((source, place, pack_module(record)))
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
