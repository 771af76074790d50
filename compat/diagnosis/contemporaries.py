"""Releases that were published at the same time: what a package was written for, where nothing else tells it.

A release is tested with what its dependencies had published some days before. Where two packages do not fit and no table says
which of their releases do, these are the ones to try first.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from compat.checks.code import releases
from compat.checks.fix_commands import downgrade_to, upgrade_to
from compat.diagnosis.frame_packages import version_of
from compat.interfaces.at_once import place_of
from compat.model import Fix
from compat.versions import is_final, is_version, key_of

if TYPE_CHECKING:
    from compat.rules.facts import Facts


_BEFORE = datetime.timedelta(days=14)
"""How long a release has to be out for another package's next release to have been tested with it."""


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


def _published(package: str, version: str | None) -> str | None:
    """Return the day of a release, or ``None``."""
    table = releases().table(package)
    at = None if table is None or version is None else place_of(table.versions, version)
    return None if table is None or at is None else table.uploaded[at]


def _finals(package: str) -> list[tuple[str, str]]:
    """Return the final releases with their days, by version; patches of older lines are published later than newer lines."""
    table = releases().table(package)
    return [] if table is None else [each for each in zip(table.versions, table.uploaded) if is_final(key_of(each[0]))]
