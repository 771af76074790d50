"""``python -m scripts.surface.values [PACKAGE…]``: writes ``matrix/surface/values.bin`` from the sources in the store.

The table has the strings that some releases of a package accept and some do not, by the string: quantization methods, loss
types, parsers, attention implementations, optimizers. A package that is not in the store keeps its rows.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from compat.interfaces.changes import VALUE
from compat.versions import key_of
from scripts.surface.accepted import accepted_by
from scripts.surface.changes import Row, existing, packed, spans_of
from scripts.surface.extract import place_of
from scripts.surface.packages import AROUND, BESIDE, TRACKED
from scripts.surface.store import Release, Store
from scripts.surface.tables import FOLDER, write

PATH = FOLDER / "values.bin"
FORM = 102
"""Of the records in the store; another number than those of modules, to be raised when ``accepted_by`` changes."""
_PLACE = "="
_BATCH = 40
_ELSEWHERE = frozenset(("fastapi", "gradio", "langchain-core", "openai", "pydantic", "ray", "starlette", "tensordict"))
"""Packages whose strings are those of protocols and of web pages."""
_NOT_READ = re.compile(
    r"(^|\.)(tests?|testing(_utils)?|test_\w+|conftest|benchmarks?|examples?|third_party|_?vendor(ed)?|pynvml)(\.|$)"
    r"|^transformers\.(models\.(?!auto\.(configuration_auto|auto_mappings)$)|.*dummy_)|^diffusers\.(models|pipelines|.*dummy_)|^(unsloth|unsloth_zoo)\..*temporary"
)
"""Modules whose strings no user states, and the many models of two packages, but not the list of their types."""
_NO_CHOICES = re.compile(
    r"(^|\.)(__slots__|_fields_|_fmt_|_defaults|_paper|_tag_names|attribute_map|attributes|required_packages)$"
)
_store: Store | None = None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.values", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all that are tracked)")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verify", type=int, metavar="N", help="write nothing: look N random rows up in the releases before")
    words = parser.parse_args(arguments)
    store = Store(words.store)
    versions, rows = existing(PATH)
    if words.verify:
        return verify(store, versions, [row for package in rows for row in rows[package]], words.verify)
    with multiprocessing.Pool(words.jobs, _start, (words.store,)) as pool:
        for package in words.packages or (*TRACKED, *BESIDE, *AROUND):
            releases = sorted(store.releases(package), key=lambda release: key_of(release.version))
            if package in _ELSEWHERE or not releases:
                continue
            began, waiting = time.monotonic(), missing(store, releases)
            for made in pool.imap_unordered(_records, [waiting[at : at + _BATCH] for at in range(0, len(waiting), _BATCH)]):
                store.keep_records(FORM, made)
            versions[package] = tuple(release.version for release in releases)
            rows[package] = values_of(store, releases)
            seconds = time.monotonic() - began
            print(f"{package}: {len(waiting)} sources in {seconds:.1f} s, {len(rows[package])} rows", flush=True)
    write(PATH, packed(versions, rows))
    store.close()
    return 0


def missing(store: Store, releases: list[Release]) -> list[int]:
    """Return the sources that have no record of the present form."""
    known = {source for source, _ in store.recorded(FORM)}
    return sorted({source for release in releases for _, source in _read(release)} - known)


def values_of(store: Store, releases: list[Release]) -> list[Row]:
    """Return the strings that some of the releases accept and some do not, in all containers that have them."""
    package = releases[0].package
    holding: dict[tuple[str, int], int] = defaultdict(int)
    for at, release in enumerate(releases):
        for module, source in _read(release):
            holding[module, source] |= 1 << at
    has: dict[tuple[str, str, str], int] = defaultdict(int)
    life: dict[tuple[str, str], int] = defaultdict(int)
    for (module, source), mask in holding.items():
        body = store.record(FORM, source, _PLACE)
        for container, value in json.loads(body) if body is not None else ():
            if container and not _NO_CHOICES.search(container):
                where = "" if container[0] == "=" or container.endswith("()") else module
                has[value, where, container] |= mask
                life[where, container] |= mask
    changing = {value for (value, *place), mask in has.items() if life[place[0], place[1]] & ~mask}
    return sorted(
        Row(value, VALUE, package, module, container, spans_of(mask), spans_of(life[module, container] & ~mask))
        for (value, module, container), mask in has.items()
        if value in changing
    )


def verify(store: Store, versions: Mapping[str, tuple[str, ...]], rows: Sequence[Row], number: int) -> int:
    """Print the random rows whose string stands somewhere in the last release that is said to lack it."""
    new = [row for row in rows if row.has and row.has[0] - 1 in row.lacks[1::2]]
    sample = random.Random(number).sample(new, min(number, len(new)))
    found = 0
    for row in sample:
        before = store.release(row.package, versions[row.package][row.has[0] - 1])
        quoted = [f"{quote}{row.term}{quote}".encode() for quote in "'\""]
        for module, source in _read(before) if before is not None else ():
            if any(each in store.body(source) for each in quoted):
                found += 1
                print(f"{row.package} {before.version if before else ''}: {row.term} of {row.owner} is also in {module}")
                break
    print(f"{len(sample)} rows, {found} of strings that the release before has in another place")
    return 0


def _read(release: Release) -> Iterator[tuple[str, int]]:
    """Yield the modules of a release whose strings matter, with their sources."""
    for path, source in release.members.items():
        place = place_of(path)
        if place is not None and not place.endswith("?") and not _NOT_READ.search(module := place.rstrip("/")):
            yield module, source


def _start(folder: Path | None) -> None:
    global _store
    _store = Store(folder)


def _records(sources: list[int]) -> list[tuple[int, str, bytes]]:
    assert _store is not None
    return [(source, _PLACE, json.dumps(sorted(accepted_by(_store.body(source)))).encode()) for source in sources]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
