"""Later patch releases of the packages of an error that nothing explains: patch releases fix regressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compat.checks.fix_commands import by_pip
from compat.diagnosis.frame_packages import distribution_of_module, inferred, innermost_packages
from compat.model import Environment, Finding, is_release
from compat.tables.declared import open_declared
from compat.tables.linked import series_of
from compat.versions import is_final, is_version, key_of

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError

_MOST_PATCHES = 2
_FEW = 6
"""Distributions that are listed, up to which any of them may be the one at fault."""


def later_patches(
    text: str, errors: Sequence[RaisedError], environment: Environment
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return a finding for the package that failed if it has a later patch release, and notes on others that have one.

    The package that failed is that of the innermost frame, or, without frames, the only one whose release is known. The others
    are those of the outer frames, or the few whose releases are known.
    """
    copies = {copy.name: copy.version for copy in environment.distributions or () if copy.version and is_release(copy)}
    frames = [distribution_of_module(name) for error in errors for name in reversed(innermost_packages(error))]
    listed = [] if frames or len(copies) > _FEW else sorted(copies, key=text.find)
    names = list(dict.fromkeys((*frames, *listed)))
    newer = {name: newest for name in names if (newest := _newest_of_series(name, copies.get(name) or "")) is not None}
    notes = [
        f"{name} {copies[name]} has later patch releases, up to {newest}: try that one first" for name, newest in newer.items()
    ]
    failed = names[0] if frames or len(names) == 1 else None
    if failed not in newer:
        return (), tuple(notes[:_MOST_PATCHES])
    found = inferred(
        rule="later-patch",
        origin="release",
        title=f"{failed} {copies[failed]} has later patch releases, up to {newer[failed]}",
        why="Nothing that is known explains the error. Patch releases fix regressions: it may be one of those.",
        packages={failed: copies[failed]},
        fixes=(by_pip("upgrade", failed, f"=={newer[failed]}", "the newest release of the same series"),),
        here="the releases that are known",
    )
    return (found,), ()


def _newest_of_series(name: str, version: str) -> str | None:
    """Return the newest release with the same first two numbers, if it is newer; ``None`` for development versions."""
    package, release = open_declared().package(name), version.partition("+")[0]
    if package is None or not is_version(release) or package.place(release) is None:
        return None
    same = [each.version for each in package.releases if each.yanked is None and series_of(each.version) == series_of(release)]
    newest = max((each for each in same if is_final(key_of(each))), key=key_of, default=None)
    return newest if newest is not None and key_of(newest) > key_of(release) else None
