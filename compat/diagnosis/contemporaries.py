"""The other side of a name that a release lacks: the releases of two packages that were written for each other.

The rows of published source say which releases of the user need a name. Where no table tells which releases fit, those that
were published at the same time are the ones to try first: a release is tested with what its dependencies had published some
days before.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from compat.checks.code import releases
from compat.checks.fix_commands import by_pip, downgrade_to, upgrade_to
from compat.checks.interfaces import open_rows_once
from compat.diagnosis.failing_lines import is_of_the_machine
from compat.diagnosis.frame_packages import (
    MODELS_OWN,
    distribution_of_module,
    inferred,
    innermost_packages,
    location_text,
    version_of,
)
from compat.interfaces.at_once import place_of
from compat.model import Finding, Fix
from compat.records import replace
from compat.tables.declared import open_declared
from compat.versions import is_final, is_version, key_of

if TYPE_CHECKING:
    from compat.diagnosis.missing_names import Named
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts


_BEFORE = datetime.timedelta(days=14)
"""How long a release has to be out for another package's next release to have been tested with it."""


def without_needing(known: Named, asking: str, facts: Facts) -> Fix | None:
    """Return the move of ``asking`` to releases that do not need a name, before or after those that do.

    ``None`` if all releases do, if none is known to, or if the installed one does not. Where newer releases of the owner lack
    the name, the releases after are preferred.
    """
    rows, here = open_rows_once(), version_of(asking, facts)
    if rows is None or asking not in rows.consumers:
        return None
    found = (each for kind in ("E", "R") for each in rows.all_of(asking, kind=kind))
    of_name = (versions for versions, row in found if row.package == known.package and row.what == known.what)
    needing = sorted({version for versions in of_name for version in versions}, key=key_of)
    if not needing or (here is not None and here not in needing):
        return None
    finals = [version for version, _ in _finals(asking)]
    first = next((version for version in finals if key_of(version) > key_of(needing[-1])), None)
    after = None if first is None else by_pip("upgrade", asking, f">={first}", f"releases that no longer use {known.what}")
    if not finals or key_of(finals[0]) >= key_of(needing[0]) or (known.gone and after is not None):
        return after
    return by_pip("downgrade", asking, f"<{needing[0]}", f"releases that do not use {known.what} yet")


def written_for(asking: str, owner: str, facts: Facts) -> Fix | None:
    """Return the move of ``owner`` to its newest release two weeks before the installed ``asking`` was published.

    ``None`` if that is the installed one, or if a release or a day is not known.
    """
    day, here = _published(asking, version_of(asking, facts)), version_of(owner, facts)
    if day is None:
        return None
    last = str(datetime.date.fromisoformat(day) - _BEFORE)
    newest = next((version for version, uploaded in reversed(_finals(owner)) if uploaded <= last), None)
    if newest is None or here is None or not is_version(here) or key_of(newest) == key_of(here):
        return None
    text = f"the newest release two weeks before {asking} {version_of(asking, facts)} was published"
    return downgrade_to(owner, newest, text) if key_of(newest) < key_of(here) else upgrade_to(owner, newest, text)


def published_after(asking: str, owner: str, facts: Facts) -> Fix | None:
    """Return the upgrade of ``asking`` to its first release that was published after the installed ``owner``.

    ``None`` if the installed one was, or if a release or a day is not known.
    """
    here, needed = version_of(asking, facts), version_of(owner, facts)
    day = _published(owner, needed)
    if day is None or here is None or not is_version(here):
        return None
    first = next((version for version, uploaded in _finals(asking) if uploaded > day), None)
    if first is None or key_of(first) <= key_of(here):
        return None
    return upgrade_to(asking, first, f"the releases that were published after {owner} {needed}; try the newest")


def of_their_time(asking: str, owner: str, facts: Facts) -> tuple[Fix, ...]:
    """Return the moves of two packages to releases that were published at the same time: of ``asking``, then of ``owner``."""
    return tuple(filter(None, (published_after(asking, owner, facts), written_for(asking, owner, facts))))


def not_yet_there(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for two packages that the failing call connects, if one was published before the series of the other.

    A last resort: nothing explains the error itself, and the user of the newer package cannot have been tested with it.
    """
    if is_of_the_machine(error):
        return []
    here = [distribution_of_module(name) for name in innermost_packages(error) if name != MODELS_OWN]
    for asking, owner in (here, here[::-1]) if len(here) == 2 else ():
        declared, mine, theirs = open_declared().package(asking), version_of(asking, facts), version_of(owner, facts)
        if declared is None or owner not in declared.asks or owner == "torch" or theirs is None or not is_version(theirs):
            continue
        day, series = _published(asking, mine), theirs.split(".")[:2]
        began = min((uploaded for each, uploaded in _finals(owner) if each.split(".")[:2] == series), default="")
        newer = f"{owner} {'.'.join(series)}"
        if day is None or began <= day:
            return []
        return [
            replace(
                inferred(
                    rule="symptom-newer-than-its-user",
                    title=f"{asking} {mine} was published before {newer}: it was not tested with it",
                    why="The call that fails is between these two, and nothing explains its error. "
                    f"{asking} {mine} was published on {day}, the first {newer} on {began}.",
                    packages={asking: mine, owner: theirs},
                    fixes=of_their_time(asking, owner, facts),
                    here=location_text(error),
                ),
                severity="warning",
            )
        ]
    return []


def _published(package: str, version: str | None) -> str | None:
    """Return the day of a release, or ``None``."""
    table = releases().table(package)
    at = None if table is None or version is None else place_of(table.versions, version)
    return None if table is None or at is None else table.uploaded[at]


def _finals(package: str) -> list[tuple[str, str]]:
    """Return the final releases with their days, by version; patches of older lines are published later than newer lines."""
    table = releases().table(package)
    return [] if table is None else [each for each in zip(table.versions, table.uploaded) if is_final(key_of(each[0]))]
