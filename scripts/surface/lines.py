"""``python -m scripts.surface.lines [PACKAGE…]``: writes ``matrix/surface/lines.bin`` from the sources in the store.

The table has the lines of functions that some releases of a package have and its newest one does not, by function and text. A
package that is not in the store keeps its lines.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from compat.interfaces.lines import MAGIC, PARTS, Lines, encoded, key_of_line
from compat.versions import key_of
from scripts.messages.extract import modules_of
from scripts.messages.packages import PACKAGES
from scripts.surface.changes import spans_of
from scripts.surface.store import Release, Store
from scripts.surface.tables import FOLDER, compressed, headed, write

PATH = FOLDER / "lines.bin"
LEAST_LETTERS = 8
"""Letters and digits of a line: shorter ones are in many functions of one name."""
_SCOPE = re.compile(r"(?:async )?(?:def|class) (\w+)")
_QUOTES = ('"""', "'''")

Packages = dict[str, tuple[list[str], dict[int, int]]]
"""The releases of each package, and the releases with each line by its key, as a bit mask."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.lines", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all)")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    parser.add_argument("--out", type=Path, metavar="FILE", default=PATH)
    words = parser.parse_args(arguments)
    store = Store(words.store)
    packages = existing(words.out)
    for package in words.packages or PACKAGES:
        began = time.monotonic()
        releases = sorted(store.releases(package), key=lambda release: key_of(release.version))
        if releases:
            packages[package] = [each.version for each in releases], gone(store, releases)
            seconds = time.monotonic() - began
            print(f"{package}: {len(releases)} releases, {len(packages[package][1])} lines in {seconds:.1f} s", flush=True)
    store.close()
    write(words.out, packed(packages))
    return 0


def gone(store: Store, releases: list[Release]) -> dict[int, int]:
    """Return the releases, as a bit mask, with each line that the newest of them does not have."""
    sources: dict[int, int] = defaultdict(int)
    for at, release in enumerate(releases):
        for source in modules_of(release).values():
            sources[source] |= 1 << at
    having: dict[int, int] = defaultdict(int)
    for source, mask in sources.items():
        for function, line in lines_of(store.body(source).decode("utf-8", "replace")):
            having[key_of_line(function, line)] |= mask
    newest = 1 << len(releases) - 1
    return {key: mask for key, mask in having.items() if not mask & newest}


def lines_of(text: str) -> set[tuple[str, str]]:
    """Return the lines of code that a traceback can show, with the innermost function, class or ``<module>`` around them."""
    found: set[tuple[str, str]] = set()
    scopes: list[tuple[int, str]] = []
    for line in _code(text):
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        defined = _SCOPE.match(stripped)
        while scopes and scopes[-1][0] >= indent and stripped[0] not in ")]}":
            scopes.pop()
        if defined:
            scopes.append((indent, defined[1]))
        elif sum(map(str.isalnum, stripped)) >= LEAST_LETTERS:
            found.add((scopes[-1][1] if scopes else "<module>", stripped))
    return found


def _code(text: str) -> Iterator[str]:
    """Yield the lines outside comments and strings of several lines."""
    inside = ""
    for line in text.splitlines():
        stripped = line.strip()
        if inside:
            inside = "" if inside in stripped else inside
            continue
        if not stripped or stripped.startswith("#"):
            continue
        inside = next((quotes for quotes in _QUOTES if stripped.count(quotes) % 2), "")
        if not stripped.startswith(_QUOTES):
            yield line


def existing(path: Path) -> Packages:
    """Return what a table has."""
    if not path.exists():
        return {}
    table = Lines(path.read_bytes())
    found: Packages = {}
    for package in table.packages:
        masks = [mask_of(spans) for spans in table.sets(package)]
        found[package] = list(table.known(package)), {key: masks[number] for key, number in table.lines(package).items()}
    return found


def mask_of(spans: Iterable[int]) -> int:
    """Return the bit mask of a set of releases given as the first and the last of each run."""
    numbers = list(spans)
    return sum((1 << last + 1) - (1 << first) for first, last in zip(numbers[::2], numbers[1::2]))


def packed(packages: Packages) -> bytes:
    """Return the file."""
    header, parts = [], []
    for package in sorted(packages):
        known, having = packages[package]
        sets = sorted(set(having.values()))
        number = {mask: at for at, mask in enumerate(sets)}
        made = [
            _part([(key // PARTS, number[mask]) for key, mask in having.items() if key % PARTS == at]) for at in range(PARTS)
        ]
        made.append(compressed([spans_of(mask) for mask in sets]))
        header.append((package, known, [len(part) for part in made]))
        parts += made
    return headed(MAGIC, {"packages": header}, parts)


def _part(lines: list[tuple[int, int]]) -> bytes:
    groups: dict[int, list[int]] = defaultdict(list)
    for key, number in sorted(lines):
        groups[number].append(key)
    numbers: list[int] = []
    for number, keys in sorted(groups.items()):
        numbers += [number, len(keys), keys[0], *(after - before for before, after in itertools.pairwise(keys))]
    return encoded(numbers)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
