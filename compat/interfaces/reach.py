"""What importing a package, or a module of one, runs in the other packages of an environment, as far as rows depend on it.

``unsloth`` imports ``unsloth_zoo.dataset_utils``, which imports a trainer of ``trl``: a row about that trainer's module then
decides whether ``import unsloth`` works.
"""

from __future__ import annotations

from compat.interfaces.imports import FRAMEWORKS, importable
from compat.interfaces.rows import E1, E2, Row, Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Reach:
    """The modules that are run in one environment; ``installed`` are versions by normalised name."""

    def __init__(self, rows: Rows, installed: Mapping[str, str]) -> None:
        self._rows, self._installed = rows, installed
        self._here = importable(installed)
        self._steps: dict[str, Mapping[str, tuple[str, ...]]] = {}

    def run_by(self, entries: Iterable[str]) -> dict[str, str]:
        """Every module that importing these runs, with the one that imports it (an entry: with itself).

        An entry is ``module``, or ``module:name`` for ``from module import name``.
        """
        found: dict[str, str] = {}
        waiting = [(entry, entry) for entry in entries]
        while waiting:
            node, origin = waiting.pop(0)
            if node not in found:
                found[node] = origin
                waiting += [(target, node) for target in self._targets(node)]
        return found

    def chain(self, run: Mapping[str, str], module: str) -> tuple[str, ...]:
        """The imports that lead to a module, the entry first."""
        found = [module]
        while run[found[-1]] != found[-1]:
            found.append(run[found[-1]])
        return tuple(reversed(found))

    def _targets(self, node: str) -> Iterable[str]:
        package = self._rows.package_of(node)
        if package is None or package not in self._installed:
            return ()
        if package not in self._steps:
            self._steps[package] = self._rows.steps(package, self._installed[package], self._here)
        module, _, name = node.partition(":")
        outer = [module[:at] for at, sign in enumerate(module) if sign == "."]
        return (*outer, *([module] if name else []), *self._steps[package].get(node, ()))


def eager_rows(
    rows: Rows, installed: Mapping[str, str], consumers: Iterable[str] | None = None
) -> list[tuple[Row, tuple[str, ...]]]:
    """The rows that break the import of an installed package: its own, and those of modules that a framework imports of it.

    Each with the imports that lead there. ``consumers``: the only packages of which something may fail.
    """
    entries = [top for package in sorted(FRAMEWORKS & installed.keys()) for top in rows.tops(package)]
    broken = rows.broken(installed, tiers=(E1, E2) if entries else (E1,), consumers=consumers)
    found: list[tuple[Row, tuple[str, ...]]] = [(row, (row.module,)) for row in broken if row.tier == E1]
    later = [row for row in broken if row.tier == E2]
    if later:
        reach = Reach(rows, installed)
        run = reach.run_by(entries)
        found += [(row, reach.chain(run, row.module)) for row in later if row.module in run]
    return found
