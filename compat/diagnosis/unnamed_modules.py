"""Names that a message reports without the module they are imported from, as titles and last lines of issues do.

The rows of what packages import from each other say where they get such a name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compat.checks.interfaces import open_rows_once
from compat.diagnosis.frame_packages import distribution_of_module, modules_of
from compat.interfaces.announced import is_telling
from compat.records import replace

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts


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
