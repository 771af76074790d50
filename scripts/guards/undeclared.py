"""Imports of packages that a release does not declare: it cannot be imported, or used, where nothing else installs them.

They become rows of ``matrix/guards`` like any other refusal: ``ModuleNotFoundError`` if the package is not installed.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

from packaging.markers import Marker

from compat.checks.code import PROVIDERS
from compat.index import File, Index
from compat.interfaces.at_once import ENTRIES
from compat.interfaces.imports import Eager
from compat.interfaces.release import SourceSurface
from compat.interfaces.source.records import Import, Module
from compat.model import normalized
from scripts.surface.collect import PACKAGE_OF, passed_over
from scripts.surface.fetch import missing
from scripts.surface.imports import closure
from scripts.surface.mined import Mined
from scripts.surface.packages import tops_of
from scripts.surface.store import Store

_OLDER = frozenset(("distutils", "imp", "asyncore", "asynchat", "pipes", "cgi", "telnetlib", "audioop", "tomllib"))
"""Modules of the standard library of some of the supported releases of Python."""
_NEWEST = 4
"""Releases of a requirement that are tried: a source distribution may not state its own."""
_NAME = re.compile(r"[A-Za-z_]\w*")


def undeclared_of(store: Store, package: str, requirements: Requirements) -> Iterator[tuple[str, str, frozenset[str], int]]:
    """Yield (importing module, imported module, reach, releases) for each undeclared import that a use of the package runs.

    Releases without readable requirements are left out, and packages that another missing one of the same module brings along.
    """
    mined = Mined(store)
    releases = mined.releases(package)
    brought = requirements.of(package, [release.version for release in releases])
    found: dict[tuple[str, str, frozenset[str]], int] = defaultdict(int)
    for at, release in enumerate(releases):
        names = brought.get(release.version)
        if names is not None:
            reached = _reached(mined.surface(release), package, names)
            for (module, top), reach in reached.items():
                others = {other for place, other in reached if place == module and other != top}
                if not any(_provider(top) in requirements.closed(_provider(other)) for other in others):
                    found[module, top, frozenset(reach)] |= 1 << at
    for (module, top, ways), mask in found.items():
        yield module, top, ways, mask


def _reached(surface: SourceSurface, package: str, declared: frozenset[str]) -> dict[tuple[str, str], set[str]]:
    tops = tops_of(package)
    modules = dict(_modules(surface, tops))
    wanting = {name: found for name, record in modules.items() if (found := _undeclared(record, tops, declared))}
    if not wanting:
        return {}
    eager = Eager(surface)
    importers: dict[str, set[str]] = defaultdict(set)
    for name, record in modules.items():
        for each in record.imports:
            if not each.flags and each.module.partition(".")[0] in tops:
                for target in eager.loaded(each):
                    importers[target].add(name)
    reached: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, absent in wanting.items():
        running = closure((name,), lambda module: importers.get(module, ()))  # a package runs before its modules
        reach = {"import"} if running & {*tops, *ENTRIES.get(package, ())} else set(_trainers(surface, eager, tops, running))
        if reach:
            for top in absent:
                reached[name, top] |= reach
    return _first_of_each(reached)


def _modules(surface: SourceSurface, tops: Iterable[str]) -> Iterator[tuple[str, Module]]:
    for name in surface.names:
        if name.partition(".")[0] in tops and not passed_over(name) and surface.holds(name) == "source":
            record = surface.module(name)
            if record is not None:
                yield name, record


def _undeclared(record: Module, tops: Iterable[str], declared: frozenset[str]) -> set[str]:
    """The top-level modules that a module always imports and that no requirement provides."""
    found = set()
    for each in record.imports:
        top = each.module.partition(".")[0]
        if each.flags or top in tops or not _NAME.fullmatch(top) or top in sys.stdlib_module_names or top in _OLDER:
            continue
        provider = _provider(top)
        if provider and not declared & {provider, *PROVIDERS.get(top, ())}:
            found.add(top)
    return found


@cache
def _provider(top: str) -> str:
    """The only distribution that provides a module; "" if there are several, or it is not known."""
    known = PROVIDERS.get(top) or ((PACKAGE_OF[top],) if top in PACKAGE_OF else ())
    return known[0] if len(known) == 1 else ""


def _trainers(surface: SourceSurface, eager: Eager, tops: Iterable[str], running: set[str]) -> Iterator[str]:
    """The public trainers whose module runs one of these modules."""
    for top in tops:
        record = surface.module(top) if surface.holds(top) == "source" else None
        names = {*record.lazy, *record.definitions} if record is not None else set()
        for name in sorted(names):
            if name.endswith("Trainer") and running.intersection(eager.loaded(Import(top, name, 0, 0))):
                yield f"trainer={name.lower()}"


def _first_of_each(found: dict[tuple[str, str], set[str]]) -> dict[tuple[str, str], set[str]]:
    """One module for each imported package and way to it: the import stops at the first that fails."""
    kept: dict[tuple[str, str], set[str]] = {}
    said: dict[str, set[str]] = defaultdict(set)
    for (module, top), reach in sorted(found.items()):
        new = reach - said[top]
        if new and "import" not in said[top]:
            kept[module, top] = {"import"} if "import" in new else new
            said[top] |= new
    return kept


class Requirements:
    """What releases install: their requirements without an extra, and what the newest releases of these require in turn.

    What only older releases of a requirement bring along counts as undeclared.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._of_newest: dict[str, frozenset[str]] = {}

    def of(self, package: str, versions: Iterable[str]) -> dict[str, frozenset[str]]:
        """The distributions that each release brings along; none for releases without readable metadata."""
        wanted = set(versions)
        files = [file for file in missing(self._index.files(package) or (), package, set()) if file.version in wanted]
        return {version: self.closed(*names) for version, names in self._read(files).items()}

    def closed(self, *names: str) -> frozenset[str]:
        """These distributions and what their newest releases install."""
        return frozenset(closure(names, self._newest))

    def _newest(self, name: str) -> frozenset[str]:
        if name not in self._of_newest:
            files = missing(self._index.files(name) or (), name, set())[:_NEWEST]
            self._of_newest[name] = next(filter(None, self._read(files).values()), frozenset())
        return self._of_newest[name]

    def _read(self, files: list[File]) -> dict[str, frozenset[str]]:
        return {
            file.version: frozenset(normalized(each.name) for each in metadata.requires if _applies(each.marker))
            for file, metadata in zip(files, self._index.metadata_many(files))
            if metadata is not None
        }


@cache
def _applies(marker: str) -> bool:
    """Whether a requirement is one of this machine (Linux, the Python that runs), without an extra."""
    return not marker or Marker(marker).evaluate({"extra": ""})
