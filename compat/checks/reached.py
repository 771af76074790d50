"""What code of the installed packages a workload runs, by its script, trainer, task or model."""

from __future__ import annotations

from compat.interfaces.at_once import MAINS, SERVERS
from compat.records import replace
from compat.rules.facts import TASKS_WITH_TRL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from compat.interfaces.rows import Row, Rows
    from compat.model import Workload


_WITH_TRAINERS = (*TASKS_WITH_TRL, "unsloth")
"""Packages that replace trainers, or create them otherwise than their own code does."""


ALWAYS_USED = ("accelerate", "datasets", "torch", "transformers")
"""What trl's trainers use whatever their options are."""


def with_trainer(workload: Workload, installed: Mapping[str, object]) -> Workload:
    """Add trl's trainer for a stated task, unless the code shows what runs or a tool brings trainers of its own."""
    if workload.trainer or workload.code or "trl" not in installed or any(name in installed for name in _WITH_TRAINERS):
        return workload
    from compat.workload.trainers import TRAINERS

    trainer = TRAINERS.get(workload.task or "")
    return workload if trainer is None else replace(workload, trainer=trainer)


def may_be_any_job(workload: Workload, installed: Mapping[str, object]) -> bool:
    """Whether nothing says which trainer of an installed package runs."""
    named = any(name in installed for name in MAINS) and not any(name in installed for name in _WITH_TRAINERS)
    return named and workload.task is None


def loads_models(workload: Workload) -> bool:
    """Whether the job is likely to load a model. Code says itself what it runs."""
    return not workload.code and workload.task not in ("import", "install", "build")


def says_what_runs(workload: Workload) -> bool:
    return bool(workload.trainer or workload.model or workload.code) or workload.task == "serve"


_HAVE_TRAINERS = ("trl", "transformers", "sentence-transformers", "setfit")


class Reached:
    """The code that a workload runs: the ``modules`` it imports and the ``classes`` it uses."""

    def __init__(self, workload: Workload, installed: Mapping[str, str], rows: Rows) -> None:
        self._model = (workload.model_type or workload.model or "").lower().replace("-", "_")
        self.classes: set[str] = set()
        self._called = _called_by(workload)
        entries: set[str] = set()
        for module, name in _imports_of(workload, installed, rows):
            entries |= {module, f"{module}:{name}"} if name else {module}
            found = _home(module, name, installed, rows)
            if found:
                entries.add(found)
                self.classes.add(name or "")
        from compat.interfaces.imports import Reach

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
        from compat.checks.code import code_needs

        for each in code_needs(workload.code).all:
            if each.need.kind == "import" and each.sure:
                yield each.need.target, each.need.name
    if workload.trainer:
        for package in _HAVE_TRAINERS:
            if package in installed and package in rows.packages:
                yield package.replace("-", "_"), workload.trainer
    if workload.task == "serve":
        for package in sorted(SERVERS.keys() & installed.keys()):
            for module in SERVERS[package]:
                yield module, None


def _called_by(workload: Workload) -> frozenset[str]:
    """The methods that the code calls directly; any method of a trainer may run."""
    if not workload.code:
        return frozenset()
    from compat.checks.code import code_needs

    return frozenset(each.need.name or "" for each in code_needs(workload.code).all if each.need.kind == "method")


def _home(module: str, name: str | None, installed: Mapping[str, str], rows: Rows) -> str | None:
    """The module that defines an imported class; ``None`` if unknown."""
    from compat.checks.code import releases

    package = rows.package_of(module)
    if package is None or package not in installed or not name:
        return None
    return releases().home(package, installed[package], module, name)
