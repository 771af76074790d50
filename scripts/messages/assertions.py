"""``python -m scripts.messages.assertions [PACKAGE…]``: writes ``matrix/surface/assertions.bin`` from the sources in the store.

The table has the assertions without a message that some releases of a function have and some do not, by the line that a
traceback shows of them. A package that is not in the store keeps its rows.
"""

from __future__ import annotations

import argparse
import ast
import functools
import operator
import re
import sys
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from compat.interfaces.changes import ASSERTION
from scripts.messages.extract import MODELS, modules_of
from scripts.messages.packages import FOLLOWED
from scripts.messages.tables import INTERNAL
from scripts.surface.by_source import Kind, write_table
from scripts.surface.changes import Row, spans_of
from scripts.surface.store import Release, Store
from scripts.surface.tables import FOLDER

PATH = FOLDER / "assertions.bin"
LONGEST = 160
"""Characters of a line; a longer one is rarely the same in two releases."""
MOST_LINES = 12
"""Lines of one assertion."""
_ASSERT = re.compile(rb"^[ \t]+assert\b", re.MULTILINE)
_DEFINED = re.compile(rb"\bdef (\w+)")
_SCOPE = re.compile(r"(\s*)(?:async )?(?:def|class) (\w+)")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.messages.assertions", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all)")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    parser.add_argument("--jobs", type=int, default=2)
    words = parser.parse_args(arguments)
    write_table(PATH, KIND, words.packages or FOLLOWED, words.store, words.jobs)
    return 0


def assertions_of(source: bytes) -> list[tuple[str, ...]]:
    """Return the function, the first line and the test of each assertion in a function; an empty line if it has a message.

    Only the statements are parsed: whole modules take much longer, and few of them have an assertion.
    """
    if not _ASSERT.search(source):
        return []
    lines = source.decode("utf-8", "replace").splitlines()
    scopes = [(at, len(match[1]), match[2]) for at, line in enumerate(lines) if (match := _SCOPE.match(line))]
    found = set()
    for at, line in enumerate(lines):
        text = line.strip()
        if line[:1].isspace() and re.match(r"assert\b", text) and (node := _assertion_in(lines[at : at + MOST_LINES])):
            function = _function(scopes, at, len(line) - len(line.lstrip()))
            found.add((function, text if node.msg is None and len(text) <= LONGEST else "", ast.unparse(node.test)))
    return sorted(each for each in found if each[0])


def _assertion_in(lines: list[str]) -> ast.Assert | None:
    """Return the first statement of the lines if it is an assertion."""
    for end in range(1, len(lines) + 1):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                (statement,) = ast.parse(textwrap.dedent("\n".join(lines[:end]))).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return statement if isinstance(statement, ast.Assert) else None
    return None


def _function(scopes: list[tuple[int, int, str]], line: int, indent: int) -> str:
    """Return the qualified name of the innermost function or class around a line. ``scopes``: line, indentation, name."""
    names: list[str] = []
    for at, depth, name in reversed(scopes):
        if at < line and depth < indent:
            names.append(name)
            indent = depth
    return ".".join(reversed(names))


def rows_of(store: Store, releases: list[Release]) -> list[Row]:
    """Return the assertions without a message that releases with the same function do not have.

    A release has it as well if the same test, perhaps with a message, is in another function of the module or in a function
    of that name in another module.
    """
    package = releases[0].package
    sources: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for at, release in enumerate(releases):
        for module, source in read(release):
            sources[module][source] |= 1 << at
    has: dict[tuple[str, str, str], int] = defaultdict(int)
    tests: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    alike: dict[tuple[str, str], int] = defaultdict(int)
    for module, found in sources.items():
        for source, mask in found.items():
            for function, line, test in KIND.recorded(store, source):
                alike[test, module] |= mask
                alike[test, _last(function)] |= mask
                if line:
                    has[line, module, function] |= mask
                    tests[line, module, function].add(test)
    defining = {module: _defining(store, sources[module]) for module in {module for _, module, _ in has}}
    lacks = {}
    for (line, module, function), mask in has.items():
        same = (alike[test, name] for test in tests[line, module, function] for name in (module, _last(function)))
        lacks[line, module, function] = defining[module].get(_last(function), 0) & ~functools.reduce(operator.or_, same, mask)
    return sorted(
        Row(line, ASSERTION, package, module, function, spans_of(mask), spans_of(lacks[line, module, function]))
        for (line, module, function), mask in has.items()
        if lacks[line, module, function]
    )


def _last(function: str) -> str:
    return function.rpartition(".")[2]


def _defining(store: Store, sources: dict[int, int]) -> dict[str, int]:
    """Return the releases of a module with a function of each name.

    Without those that raise ``AssertionError`` themselves, which torch 2.10 made of all its assertions.
    """
    found: dict[str, int] = defaultdict(int)
    for source, mask in sources.items():
        body = store.body(source)
        for name in {match[1].decode() for match in _DEFINED.finditer(body)} if b"raise AssertionError" not in body else ():
            found[name] |= mask
    return found


def read(release: Release) -> Iterator[tuple[str, int]]:
    """Yield the modules whose assertions are about what users do, with their sources."""
    for module, source in modules_of(release).items():
        if not MODELS.search(module) and not INTERNAL.search(module):
            yield module, source


KIND = Kind(1104, "assertions", read, assertions_of, rows_of)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
