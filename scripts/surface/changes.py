"""``python -m scripts.surface.changes [PACKAGE…]``: writes ``matrix/surface/changes.bin`` from the records in the store.

The tables of packages leave out what scripts do not use: the inside of engines, servers and kernels. Other packages and
plugins do use it, and an error names it, so this table has every argument and member that some releases have and some do not,
and the names of the modules that the tables leave out. A package that is not in the store keeps its rows.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from compat.interfaces.changes import FIELD, KEYWORD, MAGIC, MEMBER, MODULE, NAME, NEW, REQUIRED, Changes
from scripts.surface.history import ModuleHistory, PackageHistory, history_of
from scripts.surface.kept import Detail, detail_of
from scripts.surface.mined import Mined
from scripts.surface.packages import AROUND, BESIDE, TRACKED, tops_of
from scripts.surface.store import Store
from scripts.surface.tables import FOLDER, headed, lzma_of, write, written

PATH = FOLDER / "changes.bin"
CHUNK = 256 << 10
"""Bytes before compression: a question opens one chunk."""
NOT_USED = re.compile(
    r"(^|\.)(tests?|testing(_utils)?|test_\w+|conftest|benchmarks?|examples?|third_party|_?vendor(ed)?)(\.|$)|"
    r"^(diffusers|transformers)\..*dummy_"
)
"""Modules that no program takes anything from."""


_MODELS = re.compile(r"\.models\.|\.pipelines\.")
_TELLING = 10
"""Characters of a member's name from which on it tells the class."""


class Row(NamedTuple):
    """``owner``: the class, function or method, in a module that is ``module``; spans as in :func:`spans_of`."""

    term: str
    kind: str
    package: str
    module: str
    owner: str
    has: tuple[int, ...]
    lacks: tuple[int, ...]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m scripts.surface.changes", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help="only these (default: all that are tracked)")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="default: the user's cache")
    words = parser.parse_args(arguments)
    mined = Mined(Store(words.store), uses=False)
    versions, rows = existing(PATH)
    for package in words.packages or (*TRACKED, *BESIDE, *AROUND):
        history = history_of(mined, package)
        if history.versions and any(module.read for module in history.modules.values()):
            versions[package], rows[package] = history.versions, changes_of(history)
            print(f"{package}: {len(history.versions)} releases, {len(rows[package])} changes", flush=True)
    write(PATH, packed(versions, rows))
    return 0


def changes_of(history: PackageHistory) -> list[Row]:
    """Return everything that some of the releases that could have it do not have, in order.

    Of a class that several modules have, where the name changed in one of them, the others are included: classes move.
    """
    found = list(_present(history))
    changing = {_subject(row) for row in found if row.lacks}
    return sorted(row for row in found if _subject(row) in changing)


def _subject(row: Row) -> tuple[str, ...]:
    return (row.term, row.kind, row.owner or row.module)


def _present(history: PackageHistory) -> Iterator[Row]:
    everywhere = (1 << len(history.versions)) - 1
    tops, classes = tops_of(history.package), _Classes(history)
    for name, module in history.modules.items():
        if name.partition(".")[0] not in tops or NOT_USED.search(name):
            continue
        detail = detail_of(history.package, name)
        found = [*_arguments(module), *classes.members(name, module), *classes.new(name, module), *_left_out(module, detail)]
        if not detail.any:
            found.append((name.rpartition(".")[2], MODULE, "", module.mask, everywhere))
        for term, kind, owner, has, of in found:
            if has:
                yield Row(term, kind, history.package, name, owner, spans_of(has), spans_of(of & ~has))


_Found = tuple[str, str, str, int, int]
"""Term, kind, owner, the releases that have it, and those that could have it."""


def _arguments(module: ModuleHistory) -> Iterator[_Found]:
    """Yield keywords that a function takes, and those that it requires, where releases of it differ."""
    for owner, signatures in _functions(module).items():
        takes: dict[str, int] = defaultdict(int)
        requires: dict[str, int] = defaultdict(int)
        exists = decides = 0
        for (positional, defaults, keyword_only, required, _, double_star, extra, _, decorators), mask in signatures:
            exists |= mask
            if not double_star and not decorators:  # **kwargs and decorators may take anything
                decides |= mask
            for name in (*positional, *keyword_only, *extra):
                takes[name] |= mask
            for name in (*positional[: len(positional) - defaults], *required):
                requires[name] |= mask
        for name in takes.keys() - {"self", "cls"}:
            yield name, KEYWORD, owner, takes[name], takes[name] | decides
            yield name, REQUIRED, owner, requires[name], exists


def _functions(module: ModuleHistory) -> dict[str, list[tuple[tuple, int]]]:  # type: ignore[type-arg]
    """Return the signatures of each function and method, by its qualified name, with the releases that have them."""
    found: dict[str, list[tuple[tuple, int]]] = defaultdict(list)  # type: ignore[type-arg]
    for name, says in module.statements.get("define", {}).items():
        for each, mask in says.items():
            if isinstance(each, tuple) and each[0] == "f":
                found[str(name)].append((each[1], mask))
    for about, says in module.statements.get("method", {}).items():
        assert isinstance(about, tuple)
        for each, mask in says.items():
            assert isinstance(each, tuple)
            found[".".join(about)].append((each, mask))
    return found


class _Classes:
    """The classes of a package, with what they inherit from others in it. Bases in other packages count as having nothing."""

    def __init__(self, history: PackageHistory) -> None:
        self._modules = history.modules
        self._tops = tops_of(history.package)
        tops = [history.modules[top].statements for top in self._tops if top in history.modules]
        self._public = {str(name) for says in tops for part in ("define", "lazy") for name in says.get(part, {})}
        self._members: dict[tuple[str, str], dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for name, module in history.modules.items():
            for section in ("method", "field", "attribute", "instance"):
                for about, says in module.statements.get(section, {}).items():
                    assert isinstance(about, tuple)
                    owner, member = about
                    self._members[name, owner][member] |= _union(says)

    def members(self, name: str, module: ModuleHistory) -> Iterator[_Found]:
        """Yield members of a module's classes; those of a data class are also its arguments."""
        fields = module.statements.get("field", {})
        for owner, says in module.statements.get("define", {}).items():
            life = _union({each: mask for each, mask in says.items() if isinstance(each, tuple) and each[0] == "c"})
            for member, has in self._members.get((name, str(owner)), {}).items() if life else ():
                lacks = life & ~has
                if member.startswith("__"):
                    continue
                inherited, unknown = self._of_bases(name, str(owner), member, lacks, 0) if lacks else (0, 0)
                kind = FIELD if (owner, member) in fields else MEMBER
                yield member, kind, str(owner), has | inherited, life & ~(unknown & ~inherited)

    def new(self, name: str, module: ModuleHistory) -> Iterator[_Found]:
        """Yield the methods of public classes that are new since some release; those of single models are left out."""
        for owner, says in module.statements.get("define", {}).items():
            life = _union({each: mask for each, mask in says.items() if isinstance(each, tuple) and each[0] == "c"})
            since = (life & -life) - 1  # all releases before the first one that has the class
            if not since or owner not in self._public or _MODELS.search(name):
                continue
            for member in self._members.get((name, str(owner)), {}):
                if len(member) >= _TELLING and "_" in member.strip("_") and member[0] != "_":
                    yield member, NEW, str(owner), life, life | since

    def _of_bases(self, module: str, owner: str, member: str, among: int, depth: int) -> tuple[int, int]:
        """Return the releases of ``among`` in which the bases of a class have a member, and those where one is not found."""
        found = unknown = 0
        for each, mask in self._modules[module].statements.get("define", {}).get(owner, {}).items():
            assert isinstance(each, tuple)
            for base in each[1] if each[0] == "c" and mask & among else ():
                place, _, name = base.rpartition(".")
                if place.partition(".")[0] in self._tops:
                    more, open_ = self._of_name(place, name, member, mask & among & ~found, depth + 1)
                    found, unknown = found | more, unknown | open_
        return found, unknown

    def _of_name(self, module: str, name: str, member: str, among: int, depth: int) -> tuple[int, int]:
        known = self._modules.get(module)
        if not among or known is None or depth > 12:
            return 0, among
        found = self._members.get((module, name), {}).get(member, 0) & among
        unknown = settled = 0
        for each, mask in known.statements.get("define", {}).get(name, {}).items():
            assert isinstance(each, tuple)
            more = open_ = 0
            if each[0] == "c":
                more, open_ = self._of_bases(module, name, member, among & mask & ~found, depth + 1)
            elif each[0] == "i" and each[2] is not None:
                more, open_ = self._of_name(each[1], each[2], member, among & mask & ~found, depth + 1)
            else:
                open_ = among & mask
            found, unknown, settled = found | more, unknown | open_, settled | mask
        for place, mask in known.statements.get("lazy", {}).get(name, {}).items():
            where, _, at = str(place).rpartition(".")
            more, open_ = self._of_name(where, at or name, member, among & mask & ~settled & ~found, depth + 1)
            found, unknown, settled = found | more, unknown | open_, settled | mask
        return found, unknown | among & ~settled & ~found


def _left_out(module: ModuleHistory, detail: Detail) -> Iterator[_Found]:
    """Yield names of a module that the table of the package does not have."""
    for name, says in module.statements.get("define", {}).items():
        if not detail.any or not detail.kept("define", name, says):
            yield str(name), NAME, "", _union(says), module.read


def _union(says: Mapping[Hashable, int]) -> int:
    found = 0
    for mask in says.values():
        found |= mask
    return found


def spans_of(mask: int) -> tuple[int, ...]:
    """Return a set of releases as the first and the last of each run: ``0b1110`` is ``(1, 3)``."""
    spans, at = [], 0
    while mask >> at:
        skip = (mask >> at & -(mask >> at)).bit_length() - 1
        run = (~(mask >> at + skip) & ((mask >> at + skip) + 1)).bit_length() - 1
        spans += [at + skip, at + skip + run - 1]
        at += skip + run
    return tuple(spans)


def packed(versions: Mapping[str, tuple[str, ...]], rows: Mapping[str, list[Row]]) -> bytes:
    """Return the file: the rows by term, in chunks in the order of the terms."""
    packages = sorted(versions)
    terms: dict[str, list[tuple[object, ...]]] = defaultdict(list)
    for at, package in enumerate(packages):
        for row in rows[package]:
            terms[row.term].append((row.kind, at, row.module, row.owner, row.has, row.lacks))
    parts: list[dict[str, object]] = []
    firsts, size = [], CHUNK
    for term in sorted(terms):
        if size >= CHUNK:
            parts.append({})
            firsts.append(term)
            size = 0
        parts[-1][term] = terms[term]
        size += len(written(terms[term]))
    chunks = [lzma_of(written(part)) for part in parts]
    known = [[package, versions[package]] for package in packages]
    return headed(MAGIC, {"packages": known, "terms": firsts, "chunks": [*map(len, chunks)]}, chunks)


def existing(path: Path) -> tuple[dict[str, tuple[str, ...]], dict[str, list[Row]]]:
    """Return the releases and the rows of a file by package; empty if there is no file."""
    versions: dict[str, tuple[str, ...]] = {}
    rows: dict[str, list[Row]] = defaultdict(list)
    table = Changes(path.read_bytes()) if path.exists() else None
    for package, known in table.packages if table is not None else ():
        versions[package] = tuple(known)
    for term, found in table.all() if table is not None else ():
        for kind, at, module, owner, has, lacks in found:
            package = list(versions)[at]
            rows[package].append(Row(term, kind, package, module, owner, tuple(has), tuple(lacks)))
    return versions, rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
