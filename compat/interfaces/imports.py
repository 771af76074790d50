"""What runs when a module is imported: the module, its parent packages, and their unconditional imports.

:class:`Eager` follows the source of one release; :class:`Reach` follows the rows from release to release: ``unsloth`` imports
``unsloth_zoo.dataset_utils``, which imports a trainer of ``trl``, so a row about that trainer's module decides whether
``import unsloth`` works.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from compat.interfaces.at_once import ENTRIES, JOBS, MAINS, importable
from compat.interfaces.rows import E1, E2, R1, Row, Rows, Walk
from compat.interfaces.source.records import AVAILABLE, Import, Module
from compat.records import kept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.interfaces.release import Surface
    from compat.interfaces.rows import State

    Asks = frozenset[str]
    """Packages that have to be there for something to be run."""


class Eager:
    """The modules of one release that run on import.

    ``modules`` maps each to the packages that must be installed for it to run (none: always). ``outside`` does the same for
    each (module, name) imported from other packages.
    """

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self.modules: dict[str, Asks] = {}
        self.outside: dict[tuple[str, str | None], Asks] = {}

    def run(self, names: Iterable[str]) -> Eager:
        """Add what importing these modules runs, following those that require the fewest packages first."""
        waiting: list[tuple[str, Asks]] = [(name, frozenset()) for name in names]
        while waiting:
            later: list[tuple[str, Asks]] = []
            while waiting:
                name, asks = waiting.pop()
                known = self.modules.get(name)
                if (known is not None and len(known) <= len(asks)) or self._surface.holds(name) != "source":
                    continue
                self.modules[name] = asks
                record = self._surface.module(name)
                for target, more in self._steps(record, asks) if record is not None else ():
                    (waiting if more == asks else later).append((target, more))
            waiting = sorted(later, key=lambda step: -len(step[1]))
        return self

    def _steps(self, record: Module, asks: Asks) -> Iterator[tuple[str, Asks]]:
        for each in record.imports:
            if each.flags & ~AVAILABLE:
                continue
            more = asks | frozenset(each.asks) if each.asks else asks
            if each.module.partition(".")[0] in self._surface.tops:
                for target in self.loaded(each):
                    yield target, more
            else:
                key = each.module, each.name
                if key not in self.outside or len(more) < len(self.outside[key]):
                    self.outside[key] = more

    def loaded(self, imported: Import) -> Iterator[str]:
        """Yield the modules of this release that an import loads: the parents, the module, and the source of the name."""
        parts = imported.module.split(".")
        for at in range(1, len(parts) + 1):
            yield ".".join(parts[:at])
        if imported.name and imported.name != "*":
            yield f"{imported.module}.{imported.name}"
            yield from self.provider(imported.module, imported.name)

    def provider(self, module: str, name: str) -> Iterator[str]:
        """Yield the modules that a lazy module loads for a name."""
        record = self._surface.module(module) if self._surface.holds(module) == "source" else None
        if record is not None and record.lazy.get(name):
            place = record.lazy[name].rpartition(".")[0]
            parts = place.split(".")
            yield from (".".join(parts[:at]) for at in range(1, len(parts) + 1))
            yield from self.provider(place, name) if place != module else ()

    def holds(self, name: str) -> str | None:
        return self._surface.holds(name)


class Reach:
    """The modules that imports run in one environment; ``installed`` maps normalised names to versions."""

    def __init__(self, rows: Rows, installed: Mapping[str, str]) -> None:
        self._rows, self._installed = rows, installed
        self._here = importable(installed)

    def run_by(self, entries: Iterable[str]) -> Mapping[str, str]:
        """Return every module that importing these entries runs, mapped to its importer (an entry: to itself).

        An entry is ``module``, or ``module:name`` for ``from module import name``.
        """
        first = tuple(entries)
        start = self._rows.walks.setdefault(first, Walk())
        known: Walk | None = start
        while known is not None and known.found is None:
            known = known.after.get(self._state(known.package)) if known.package else None
        if known is not None and known.found is not None:
            return known.found
        found: dict[str, str] = {}
        read: list[str] = []
        waiting = [(entry, entry) for entry in first]
        for node, origin in waiting:  # grows
            if node not in found:
                found[node] = origin
                waiting += [(target, node) for target in self._targets(node, read)]
        start.keep([(package, self._state(package)) for package in read], found)
        return found

    def chain(self, run: Mapping[str, str], module: str) -> tuple[str, ...]:
        """Return the chain of imports that leads to a module, entry first."""
        found = [module]
        while run[found[-1]] != found[-1]:
            found.append(run[found[-1]])
        return tuple(reversed(found))

    def _targets(self, node: str, read: list[str]) -> Iterable[str]:
        """What a module runs besides itself; its package is appended to ``read`` if it is not in there."""
        package = self._rows.package_of(node)
        if package is None:
            return ()
        if package not in read:
            read.append(package)
        if package not in self._installed:
            return ()
        module, _, name = node.partition(":")
        outer = [module[:at] for at, sign in enumerate(module) if sign == "."]
        return (*outer, *([module] if name else []), *self._rows.steps(package, self._state(package)).get(node, ()))

    @kept
    def _state(self, package: str) -> State:
        version = self._installed.get(package)
        return None if version is None else self._rows.state(package, version, self._here)


def eager_rows(
    rows: Rows, installed: Mapping[str, str], consumers: Iterable[str] | None = None, *, job: bool = False
) -> list[tuple[Row, tuple[str, ...]]]:
    """Return the rows that break the import of an installed package, or of a module that any use of an application runs.

    Each comes with the chain of imports that leads there. ``consumers`` limits the result to failures in these packages;
    ``job`` adds what almost every job runs of a library.
    """
    used = sorted(ENTRIES.keys() & installed.keys())
    entries = [entry for package in used for entry in (*rows.tops(package), *ENTRIES[package])]
    if job:
        entries += [entry for package in sorted(JOBS.keys() & installed.keys()) for entry in JOBS[package]]
    broken = rows.broken(installed, tiers=(E1, E2) if entries else (E1,), consumers=consumers)
    found: list[tuple[Row, tuple[str, ...]]] = [(row, (row.module,)) for row in broken if row.tier == E1]
    later = [row for row in broken if row.tier == E2]
    if later:
        reach = Reach(rows, installed)
        run = reach.run_by(entries)
        found += [(row, reach.chain(run, row.module)) for row in later if row.module in run]
    return found


def of_main(row: Row) -> bool:
    """Whether a main module of its package cannot be imported, or its trainer cannot be created, whatever else is installed."""
    fails = row.tier == E2 or (row.tier == R1 and row.scope.endswith("Trainer.__init__"))
    return fails and not row.asks and row.module in MAINS.get(row.consumer, ())
