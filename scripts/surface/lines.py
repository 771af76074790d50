"""``python -m scripts.surface.lines [PACKAGE…]``: writes ``matrix/surface/lines.bin`` from the sources in the store.

The table has the lines of functions that some releases of a package have and its newest one does not, by function and text. A
package that is not in the store keeps its lines.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from compat.interfaces.lines import MAGIC, PARTS, Lines, encoded, key_of_line
from compat.versions import key_of
from scripts.messages.extract import modules_of
from scripts.messages.packages import FOLLOWED
from scripts.surface.changes import spans_of
from scripts.surface.store import Release, Store
from scripts.surface.tables import FOLDER, compressed, headed, write

PATH = FOLDER / "lines.bin"
LEAST_LETTERS = 8
"""Letters and digits of a line: shorter ones are in many functions of one name."""
_SCOPE = re.compile(r"(?:async )?(?:def|class) (\w+)")
_TRIES = 400
"""Random lines that are tried at most for each that some release no longer has."""
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_QUOTES = ('"""', "'''")

Packages = dict[str, tuple[list[str], dict[int, int]]]
"""The releases of each package, and the releases with each line by its key, as a bit mask."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.lines", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all)")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    parser.add_argument("--out", type=Path, metavar="FILE", default=PATH)
    parser.add_argument("--verify", type=int, metavar="N", help="look N random lines up in the syntax trees of the releases")
    words = parser.parse_args(arguments)
    store = Store(words.store)
    if words.verify:
        return verify(store, Lines(words.out.read_bytes()), words.packages, words.verify)
    packages = existing(words.out)
    for package in words.packages or FOLLOWED:
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


def verify(store: Store, table: Lines, packages: Collection[str], count: int) -> int:
    """Print how many random lines of random releases the table has right; 1 if it has one wrong.

    The releases are read again with ``ast``, which shares nothing with :func:`lines_of`.
    """
    order = random.Random(11)
    right = 0
    wrong: list[str] = []
    for _ in range(count * _TRIES):
        if right + len(wrong) == count:
            break
        package = order.choice(sorted(packages) or table.packages)
        known = table.known(package)
        at = order.randrange(len(known) - 1)
        function, line = _random_line(store, package, known[at], order)
        if not line:
            continue
        near = known[max(at - 1, 0) : at + 2]
        expected = {each for each in near if _has(store, package, each, function, line)}
        if _has(store, package, known[-1], function, line):
            expected = set()
        found = {*table.having(package, function, line)} & {*near}
        if not found and not expected:
            continue  # most lines are still there, and not in the table
        if expected == found:
            right += 1
        else:
            wrong.append(f"{package} {known[at]}: {function}: {line}")
    print(*wrong, f"{right} of {right + len(wrong)} lines are right", sep="\n")
    return int(bool(wrong) or not right)


def _random_line(store: Store, package: str, version: str, order: random.Random) -> tuple[str, str]:
    """Return a function and a line of it in a random module of a release; two empty texts if the module has none."""
    release = store.release(package, version)
    sources = sorted(modules_of(release).values()) if release is not None else []
    found = list(_lines_in_tree(store.body(order.choice(sources)))) if sources else []
    return order.choice(found) if found else ("", "")


def _has(store: Store, package: str, version: str, function: str, line: str) -> bool:
    release = store.release(package, version)
    bodies = (store.body(source) for source in (modules_of(release).values() if release is not None else ()))
    return any((function, line) in _lines_in_tree(body) for body in bodies if line.encode() in body)


def _lines_in_tree(body: bytes) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(body)
    except (SyntaxError, ValueError):
        return
    lines = body.decode("utf-8", "replace").splitlines()
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, function = waiting.pop()
        if function and isinstance(node, ast.stmt) and not isinstance(node, _SCOPES) and not _is_text(node):
            line = lines[node.lineno - 1].strip()
            if sum(map(str.isalnum, line)) >= LEAST_LETTERS and not line.startswith(_QUOTES):
                yield function, line
        name = node.name if isinstance(node, _SCOPES) else function
        waiting += [(child, name) for child in ast.iter_child_nodes(node)]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


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
        keys: list[list[tuple[int, int]]] = [[] for _ in range(PARTS)]
        for key, mask in having.items():
            keys[key % PARTS].append((key // PARTS, number[mask]))
        made = [_part(each) for each in keys]
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
