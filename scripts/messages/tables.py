"""``python -m scripts.messages.tables``: writes ``matrix/messages/`` from what ``scripts.messages.extract`` read.

In the table of each package named (default: all), the releases that were read replace theirs, and all others stay as they
are: to add a release, it alone has to be in the store. The index always holds every table of the folder.
"""

from __future__ import annotations

import argparse
import functools
import json
import lzma
import operator
import re
import sys
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from compat.interfaces.messages import HOLE, MAGIC, NATIVE, Content, Table, anchors_in, hash_of, letters_in
from compat.interfaces.table import FILTERS, value_of
from compat.versions import key_of
from scripts.messages.extract import extracted, occurrences
from scripts.messages.packages import PACKAGES
from scripts.messages.raised import Message
from scripts.surface.store import Store

FOLDER = Path(__file__).resolve().parents[2] / "matrix" / "messages"
MOST_PLACES = 16
"""Places of one message that are kept, those of the most releases first: what stands in more is copied everywhere."""
INDEXES = ("index", "cut")
"""Files of the folder that are no tables."""
LEAST_LETTERS = 12
LONG, RARE = 60, 16
"""Letters of a message that is likely to be cut off, and templates that may share a further anchor of it."""
INTERNAL = re.compile(r"^torch\.(_|fx\.|export\.|jit\.)|(^|\.)(_?kernels?|jit_kernel|cute_dsl|prims_ts|cute)\.")
"""Compilers and kernels, whose assertions are about their own state."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.messages.tables", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all)")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    parser.add_argument("--out", type=Path, metavar="FOLDER", default=FOLDER)
    words = parser.parse_args(arguments)
    store = Store(words.store)
    words.out.mkdir(parents=True, exist_ok=True)
    tables = {path.stem: value_of(path.read_bytes()) for path in words.out.glob("*.bin") if path.stem not in INDEXES}
    made_anew = set()
    for package in words.packages or PACKAGES:
        releases, left_out = extracted(store, package)
        if releases:
            made = table_of(package, [release.version for release in releases], occurrences(store, releases))
            tables[package] = merged(tables[package], made) if package in tables else made
            made_anew.add(package)
            texts = len(tables[package]["texts"])
            print(f"{package}: {len(releases)} releases ({left_out} not read), {texts} messages", flush=True)
    store.close()
    write(words.out, tables, made_anew)
    return 0


_Key = tuple[str, str, str]
"""Template, kind and name of a message."""
_Place = tuple[str, str, tuple[str, ...]]
"""Module, function and guards."""


def table_of(package: str, versions: list[str], found: dict[tuple[str, Message], int]) -> dict[str, Any]:
    """Return the plain values of a package's table. ``found``: each message by module, with its releases."""
    places: dict[_Key, dict[_Place, int]] = defaultdict(lambda: defaultdict(int))
    for (module, message), mask in found.items():
        internal = message.name == "AssertionError" and INTERNAL.search(module)
        if not internal and _is_findable(message.template):
            key = message.template, message.kind, message.name
            places[key][module, message.function, message.guards] |= mask
    return _tabled(package, versions, places, {})


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return a table with the releases of both; those that both have are as the new one says."""
    versions = sorted({*old["versions"], *new["versions"]}, key=key_of)
    places: dict[_Key, dict[_Place, int]] = defaultdict(lambda: defaultdict(int))
    lives: dict[_Key, int] = defaultdict(int)
    for content, without in ((old, frozenset(new["versions"])), (new, frozenset[str]())):
        table = Table(cast("Content", content))
        bits = {version: 1 << at for at, version in enumerate(versions) if version not in without}
        for each in table.templates():
            key = each.text, each.kind, each.name
            if life := sum(bits.get(version, 0) for version in each.versions):
                lives[key] |= life
                for place in each.places:
                    if mask := sum(bits.get(version, 0) for version in place.versions):
                        places[key][place.module, place.function, place.guards] |= mask
    return _tabled(new["package"], versions, {key: places[key] for key in lives if places[key]}, lives)


def _tabled(
    package: str, versions: list[str], places: Mapping[_Key, Mapping[_Place, int]], lives: Mapping[_Key, int]
) -> dict[str, Any]:
    """Return the plain values of a table. ``lives``: the releases with a message, also in places that are not kept."""
    names, modules, functions, texts, guards, spans = (_Pool() for _ in range(6))
    ordered = sorted(places)
    rows, life = [], []
    for key in ordered:
        row: list[int] = []
        everywhere = functools.reduce(operator.or_, places[key].values(), lives.get(key, 0))
        life.append(spans.number(tuple(bounds_of(everywhere))))
        for (module, function, around), mask in sorted(places[key].items(), key=_most_releases)[:MOST_PLACES]:
            numbers = guards.number(tuple(texts.number(each) for each in around))
            row += (modules.number(module), functions.number(function), numbers, spans.number(tuple(bounds_of(mask))))
        rows.append(row)
    return {
        "package": package, "versions": versions, "texts": [text for text, _, _ in ordered],
        "name": [names.number(f"{kind} {name}") for _, kind, name in ordered], "places": rows, "life": life,
        "names": names.values, "modules": modules.values, "functions": functions.values, "texts_of_guards": texts.values,
        "guards": guards.values, "spans": spans.values,
    }  # fmt: skip


def _most_releases(entry: tuple[Any, int]) -> tuple[int, Any]:
    place, mask = entry
    return -mask.bit_count(), place


def _is_findable(template: str) -> bool:
    return template.isprintable() and letters_in(template.split(HOLE)) >= LEAST_LETTERS and any(anchors_in(template))


def bounds_of(mask: int) -> Iterable[int]:
    """Return the first and the last position of each run of set bits."""
    at = 0
    while mask >> at:
        if mask >> at & 1:
            yield at
            while mask >> at & 1:
                at += 1
            yield at - 1
        at += 1


class _Pool:
    """Distinct values in order of first use."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def number(self, value: Hashable) -> int:
        return self._numbers.setdefault(value, len(self._numbers))

    @property
    def values(self) -> list[Hashable]:
        return list(self._numbers)


def write(folder: Path, tables: dict[str, dict[str, Any]], made_anew: Collection[str]) -> None:
    """Sort the rows of all tables by their anchors, and write those that changed, and the index."""
    of_python, of_all = (
        Counter(
            anchor for name, table in tables.items() if native or not name.endswith(NATIVE)
            for text in table["texts"] for anchor in set(anchors_in(text))
        )
        for native in (False, True)
    )  # fmt: skip
    index: list[tuple[int, int, int]] = []
    cut: list[tuple[int, int, int]] = []
    packages = sorted(tables)
    for owner, package in enumerate(packages):
        table = tables[package]
        # tables of compiled code come and go without a change to the others
        counts = of_all if package.endswith(NATIVE) else of_python
        hashes = [hash_of(min(anchors_in(text), key=lambda anchor: (counts[anchor], anchor))) for text in table["texts"]]
        order = sorted(range(len(hashes)), key=lambda number: (hashes[number], table["texts"][number], table["name"][number]))
        index += [(hashes[number], owner, place) for place, number in enumerate(order)]
        raised = [name.startswith("raise ") for name in table["names"]]
        for place, number in enumerate(order):
            if raised[table["name"][number]]:
                cut += [(each, owner, place) for each in further_anchors(table["texts"][number], hashes[number], counts)]
        if package in made_anew or order != list(range(len(order))):  # compressing all takes a minute
            for column in ("texts", "name", "places", "life"):
                table[column] = [table[column][number] for number in order]
            (folder / f"{package}.bin").write_bytes(_compressed(table))
    _write_index(folder / "index.bin", packages, index, numbered=False)
    _write_index(folder / "cut.bin", packages, cut, numbered=True)
    size = sum(path.stat().st_size for path in folder.glob("*.bin"))
    print(f"{len(index)} messages of {len(packages)} packages, {size >> 10} KiB")


def further_anchors(text: str, chosen: int, counts: Mapping[str, int]) -> set[int]:
    """Return the hashes of the first and the last anchor of a long message that few others share, without the chosen one."""
    if letters_in(text.split(HOLE)) < LONG:
        return set()
    rare = [hash_of(anchor) for anchor in anchors_in(text) if counts[anchor] <= RARE]
    return {*rare[:1], *rare[-1:]} - {chosen}


def _write_index(path: Path, packages: list[str], entries: list[tuple[int, int, int]], *, numbered: bool) -> None:
    entries.sort()
    header = _compressed({"packages": packages, "count": len(entries), "order": sys.byteorder})
    body = array("I", [entry[0] for entry in entries]).tobytes() + bytes(entry[1] for entry in entries)
    if numbered:
        body += array("H", [entry[2] for entry in entries]).tobytes()
    path.write_bytes(MAGIC + len(header).to_bytes(4, "little") + header + body)


def _compressed(value: Any) -> bytes:
    text = json.dumps(value, separators=(",", ":"))
    return lzma.compress(text.encode("ascii"), lzma.FORMAT_RAW, -1, None, FILTERS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
