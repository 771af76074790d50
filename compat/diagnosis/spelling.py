"""Names that a module has in another spelling only: ``LLaMATokenizer`` for ``LlamaTokenizer``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.diagnosis.frame_packages import location_text, version_of
from compat.diagnosis.named_releases import of_name
from compat.interfaces.table import open_table, tracked
from compat.model import Finding, Fix
from compat.reports.log.frames import RaisedError

if TYPE_CHECKING:
    from compat.rules.facts import Facts


def spelled_otherwise(module: str, name: str, where_to: str, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding if a module has the name in another spelling only; ``where_to`` says where to change it."""
    package = tracked().get(module.partition(".")[0])
    table = None if package is None else open_table(package)
    names = frozenset[str]() if table is None else table.names_in(module)
    others = [each for each in names if _plain(each) == _plain(name)]
    if package is None or len(others) != 1 or others[0] == name:
        return []
    other = others[0]
    known, version = of_name(module, other), version_of(package, facts)
    fixes = [Fix("config", text=f"use {other} {where_to}")]
    why = f"No release of {package} that was analyzed has {name}; {other} is in all of them."
    if known is not None:
        why = f"No release of {package} that was analyzed has {name}; {other} is in {package} {known.span}."
        if version is None or known.lacked_by(version):
            fixes += known.fixes(version)
    return [
        Finding(
            rule="symptom-spelling",
            origin="surface",
            verdict="possible",
            title=f"{package} spells {name} as {other}",
            why=why,
            packages={package: version},
            fixes=tuple(fixes),
            here=location_text(error),
        )
    ]


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
