"""What fails later than at import, where the code, trainer or model that is given comes to it."""

from __future__ import annotations

from compat.judge.surface_rows import evidence_of, fixes_of, paired, said_of_others
from compat.matrix.surface.reach import Reach
from compat.report import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from compat.environment import Environment, Workload
    from compat.matrix.surface.rows import Row, Rows

_HAVE_TRAINERS = ("trl", "transformers", "sentence-transformers", "setfit")


class Reached:
    """What a workload runs: ``modules`` that it imports, and ``classes`` that it uses."""

    def __init__(self, workload: Workload, installed: Mapping[str, str], rows: Rows) -> None:
        self._model = (workload.model or "").lower().replace("-", "_")
        self.classes: set[str] = set()
        self._called = _called_by(workload)
        entries: set[str] = set()
        for module, name in _imports_of(workload, installed, rows):
            entries |= {module, f"{module}:{name}"} if name else {module}
            found = _home(module, name, installed, rows)
            if found:
                entries.add(found)
                self.classes.add(name or "")
        self.modules = Reach(rows, installed).run_by(sorted(entries)) if entries else {}

    def comes_to(self, row: Row) -> bool:
        if self._model and f".models.{self._model}." in f"{row.module}.":
            return True
        if row.tier != "R1":
            return row.module in self.modules
        name, _, method = row.scope.partition(".")
        if row.module not in self.modules or name not in self.classes:
            return False
        return row.kind == "override" or name.endswith("Trainer") or method == "__init__" or method in self._called


def _imports_of(workload: Workload, installed: Mapping[str, str], rows: Rows) -> Iterator[tuple[str, str | None]]:
    if workload.code:
        from compat.judge.code.findings import wanted_of

        for each in wanted_of(workload.code).all:
            if each.need[0] == "import" and each.sure:
                yield each.need[1], each.need[2]
    if workload.trainer:
        for package in _HAVE_TRAINERS:
            if package in installed and package in rows.packages:
                yield package.replace("-", "_"), workload.trainer


def _called_by(workload: Workload) -> frozenset[str]:
    """The methods that code calls itself; of a trainer every method may be run."""
    if not workload.code:
        return frozenset()
    from compat.judge.code.findings import wanted_of

    return frozenset(each.need[2] or "" for each in wanted_of(workload.code).all if each.need[0] == "method")


def _home(module: str, name: str | None, installed: Mapping[str, str], rows: Rows) -> str | None:
    """The module in which an imported class is defined."""
    from compat.judge.code.findings import releases

    package = rows.package_of(module)
    if package is None or package not in installed or not name:
        return None
    return releases().home(package, installed[package], module, name)


def of_reached(
    workload: Workload, installed: Mapping[str, str], rows: Rows, failing: frozenset[str] | None = None
) -> Iterator[Finding]:
    """Rows of submodules and calls that the workload comes to; ``failing``: the only packages of which something may fail."""
    broken = rows.broken(installed, tiers=("E2", "R1"), consumers=failing)
    if not broken:
        return
    reached = Reached(workload, installed, rows)
    found = [row for row in broken if reached.comes_to(row)]
    for (consumer, package), rows_of_pair in paired(found).items():
        yield _finding(consumer, package, rows_of_pair, installed, rows, "hit")


def of_unreached(environment: Environment, installed: Mapping[str, str], rows: Rows) -> Iterator[Finding]:
    """The same where nobody said what is run."""
    from compat.environment import Workload

    reached = Reached(environment.workload or Workload(), installed, rows)
    left = [row for row in rows.broken(installed, tiers=("E2", "R1")) if not reached.comes_to(row)]
    for (consumer, package), found in paired(left).items():
        yield _finding(consumer, package, found, installed, rows, "possible")


def _finding(consumer: str, package: str, found: list[Row], installed: Mapping[str, str], rows: Rows, verdict: str) -> Finding:
    first = min(found, key=lambda row: (row.tier, row.path, row.line))
    here, there = installed[consumer], installed[package]
    fails = f"import of {first.module}" if first.tier == "E2" else f"call in {first.scope or first.module}"
    told = verdict == "hit"
    return Finding(
        rule=f"surface-{consumer}-{package}-later",
        origin="surface", verdict=verdict, severity="error" if told and first.tier == "E2" else "warning",
        effect="crash", confidence="confirmed",
        title=f"{consumer} {here} {_asks(first)} {package} {there} does not have",
        why=f"{first.place}: the {fails} fails{' and what is run comes to it' if told else ' where it is come to'}."
        + said_of_others(found),
        packages={consumer: here, package: there}, facts=("workload",),
        missing=() if told else ("workload",), unknown=() if told else ("workload.task",),
        fixes=tuple(fixes_of(consumer, package, found, installed, rows)),
        evidence=tuple(evidence_of(first, here, there)),
        here=f"{consumer} {here}, {package} {there}",
    )  # fmt: skip


def _asks(row: Row) -> str:
    if row.kind == "import":
        return f"imports {row.what}, which"
    if row.kind == "override":
        return f"overrides {row.target or row.what}.{row.name} without taking {row.missing}, which"
    return f"uses {row.what}, which"
