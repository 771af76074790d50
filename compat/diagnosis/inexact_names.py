"""Names that a message does not give as packages define them: in another spelling, or without the module that they are from.

A module may have ``LlamaTokenizer`` where the code has ``LLaMATokenizer``. Titles and last lines of issues often leave out the
module; the rows of what packages import from each other say where they get such a name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compat.checks.interfaces import open_rows_once
from compat.diagnosis.frame_packages import distribution_of_module, location_text, modules_of, version_of
from compat.diagnosis.named_releases import of_name
from compat.interfaces.announced import is_telling
from compat.interfaces.table import open_table, tracked
from compat.model import Finding, Fix
from compat.records import replace
from compat.reports.log.frames import RaisedError

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError
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


_BARE = re.compile(r"(?:cannot import name )?['\"`]?(?P<name>[A-Za-z_]\w{5,80})['\"`]?[,.]?")
_MOST_IMPORTING = 3
"""Packages that are named as importing a name."""


def with_module(error: RaisedError, facts: Facts) -> tuple[RaisedError, str] | None:
    """Return the error of an import with the module of the name, and a sentence on who imports it from there.

    Of several packages that have the name, the one that the frames or the installed packages import it from is meant.
    """
    match = _BARE.fullmatch(error.message.strip()) if error.exception == "ImportError" else None
    rows = open_rows_once() if match is not None and is_telling(match["name"]) else None
    if match is None or rows is None:
        return None
    found = list(rows.importing(match["name"]))
    shown = {distribution_of_module(module) for module in modules_of(error)}
    installed = {copy.name for copy in facts.environment.distributions or ()}
    meant = [each for each in found if each[0] in shown] or [each for each in found if {each[0], each[1]} <= installed] or found
    if len({package for _, package, _ in meant}) != 1:
        return None
    module = min({each[2] for each in meant}, key=lambda each: (each.count("."), each))  # the most public one
    importing = list(dict.fromkeys(each[0] for each in meant))
    who = ", ".join(importing[:_MOST_IMPORTING]) + (" and others" if importing[_MOST_IMPORTING:] else "")
    whole = replace(error, message=f"cannot import name '{match['name']}' from '{module}'")
    verb = "import" if importing[1:] else "imports"
    return whole, f"The message does not say from where; {who} {verb} it from {module}."
