"""What is run when a module is imported: itself, the packages it is in, and what those import without a condition."""

from __future__ import annotations

from compat.read.python_source.records import AVAILABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from compat.matrix.surface.release import Surface
    from compat.read.python_source.records import Import, Module

    Asks = frozenset[str]
    """Packages that have to be there for something to be run."""


class Eager:
    """``modules``: each module of the release that is run, with the packages it is run for (none: always).

    ``outside``: (module, name) imported of other packages on the way, likewise.
    """

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self.modules: dict[str, Asks] = {}
        self.outside: dict[tuple[str, str | None], Asks] = {}

    def run(self, names: Iterable[str]) -> Eager:
        """Adds what importing these modules runs; those that need the fewest packages are followed first."""
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
        """The modules of this release that an import of it loads: those around it, itself, and where the name comes from."""
        parts = imported.module.split(".")
        for at in range(1, len(parts) + 1):
            yield ".".join(parts[:at])
        if imported.name and imported.name != "*":
            yield f"{imported.module}.{imported.name}"
            yield from self.provider(imported.module, imported.name)

    def provider(self, module: str, name: str) -> Iterator[str]:
        """The module that a lazy one loads for a name."""
        record = self._surface.module(module) if self._surface.holds(module) == "source" else None
        if record is not None and record.lazy.get(name):
            place = record.lazy[name].rpartition(".")[0]
            parts = place.split(".")
            yield from (".".join(parts[:at]) for at in range(1, len(parts) + 1))
            yield from self.provider(place, name) if place != module else ()

    def holds(self, name: str) -> str | None:
        return self._surface.holds(name)
