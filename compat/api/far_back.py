"""Ranges that uv resolves to a release from years before the newest that they admit.

Whoever writes ``vllm<=0.6.3`` has 0.6.3. An installer takes the newest releases of the other packages first, and then goes back
through the range until one no longer says what it needs: to a release that is incompatible with all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date

from compat.api.case import Case
from compat.model import Finding, Fix
from compat.records import replace
from compat.repair.candidates import IndexUniverse, Release
from compat.repair.planner import Means
from compat.repair.problem import DAYS_BACK
from compat.repair.target import Need, Target

_UPPER = re.compile(r"(^|,)\s*(<|~=|==[^,]*\.\*)")
_RESOLUTION = "https://docs.astral.sh/uv/concepts/resolution/"


def from_newest_of_ranges(case: Case, found: Case, means: Means, resolve: Callable[[Case, Means], Case]) -> Case:
    """The resolved case with an error for each range that uv goes far back in, if it also resolves with the newest releases.

    ``case`` is the one before it was resolved. Where one of several brings the others along, it is the only error.
    """
    far = dict(_far_back(found, means)) if found.resolves is True and not found.overrides else {}
    for names in dict.fromkeys((*((name,) for name in far), tuple(far))) if far else ():
        pins = (Need(name, f"=={far[name].version}", ()) for name in names)
        other = resolve(replace(case, asked=(*case.asked, *pins)), means)
        now = {copy.name: copy.version for copy in other.environment.distributions or ()}
        if other.resolves and not other.overrides and all(now.get(name) == each.version for name, each in far.items()):
            errors = tuple(_finding(name, far[name], found) for name in names)
            floors = tuple(f"{name}>={far[name].version}" for name in names)  # an error of it may need a newer one
            return replace(found, unserved=(*found.unserved, *errors), anchors=floors)
    return found


def _far_back(case: Case, means: Means) -> Iterator[tuple[str, Release]]:
    """The packages whose range uv goes far back in, with the newest release that the range admits."""
    there = {copy.name: copy.version for copy in case.environment.distributions or () if copy.version is not None}
    stated = {need.name: need.specifier for need in case.asked if _UPPER.search(need.specifier) and need.name in there}
    named = [name for name in stated if case.listed.get(name) is False]
    if not named:
        return
    pages = means.index.files_many(named)
    for name, releases in IndexUniverse(means.index, Target(case.environment)).releases(named).items():
        fitting = [each for each in releases or () if each.plain and not each.yanked and not each.key.is_prerelease]
        newest = next((each for each in reversed(fitting) if each.meets(stated[name])), None)
        days = (file.uploaded[:10] for file in pages[name] or () if file.version == there[name] and file.uploaded)
        taken = min(days, default="")
        if newest is not None and newest.day and taken and _days(taken, newest.day) > DAYS_BACK:
            yield name, newest


def _days(earlier: str, later: str) -> int:
    return (date.fromisoformat(later) - date.fromisoformat(earlier)).days


def _finding(name: str, newest: Release, case: Case) -> Finding:
    taken = next(copy.version for copy in case.environment.distributions or () if copy.name == name)
    stated = next(need.text for need in case.asked if need.name == name)
    return Finding(
        rule=f"far-back-{name}", origin="release", effect="install",
        title=f"{stated} installs {name} {taken}, not {newest.version}",
        why="Installers take the newest releases of other packages first, and go back in this range until one states no "
        f"requirement against them. {newest.version} goes with what the file lists, too.",
        packages={name: taken}, facts=(), evidence=(_RESOLUTION,), here=f"{name} {taken}",
        fixes=(Fix("pin", name, f"=={newest.version}", "the newest release that the range admits"),),
    )  # fmt: skip
