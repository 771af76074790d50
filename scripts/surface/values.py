"""``python -m scripts.surface.values [PACKAGE…]``: writes ``matrix/surface/values.bin`` from the sources in the store.

The table has the strings that some releases of a package accept and some do not, by the string: quantization methods, loss
types, parsers, attention implementations, optimizers. A package that is not in the store keeps its rows.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from compat.interfaces.changes import VALUE
from scripts.surface.accepted import accepted_by
from scripts.surface.by_source import Kind, write_table
from scripts.surface.changes import Row, existing, spans_of
from scripts.surface.extract import place_of
from scripts.surface.packages import AROUND, BESIDE, TRACKED
from scripts.surface.store import Release, Store
from scripts.surface.tables import FOLDER

PATH = FOLDER / "values.bin"
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


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.values", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all that are tracked)")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verify", type=int, metavar="N", help="write nothing: look N random rows up in the releases before")
    words = parser.parse_args(arguments)
    if words.verify:
        versions, rows = existing(PATH)
        return verify(Store(words.store), versions, [row for package in rows for row in rows[package]], words.verify)
    packages = words.packages or (*TRACKED, *BESIDE, *AROUND)
    write_table(PATH, KIND, [each for each in packages if each not in _ELSEWHERE], words.store, words.jobs)
    return 0


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
        for container, value in KIND.recorded(store, source):
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


KIND = Kind(102, "=", _read, accepted_by, values_of)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
