"""Checks of one environment against the rule matrix and the derived tables."""

from __future__ import annotations

from compat.model import Environment, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.rules.compiled import Matrix


def judged(environment: Environment, matrix: Matrix) -> tuple[Environment, tuple[Finding, ...], tuple[str, ...]]:
    """The environment as it was checked, its findings (most severe first), and notes.

    Accelerator names are resolved first, so the environment in a report shows the facts that the verdict is based on.
    """
    from compat.checks import derived, guards, installation
    from compat.checks import interfaces as surface
    from compat.rules import evaluate as rules
    from compat.rules.facts import seen_by_torch, visible

    environment, notes = named_devices(environment)
    seen = visible(environment)
    used = seen_by_torch(seen)
    found = guards.told_otherwise(
        surface.told_once((*installation.judge(environment), *rules.judge(used, matrix), *derived.judge(seen)))
    )
    if not environment.distributions_complete:
        from compat.checks import implied

        found = implied.judge(seen, found, matrix)
    return environment, tuple(sorted(found, key=lambda finding: finding.order())), (*notes, *not_assessed(environment, matrix))


def not_assessed(environment: Environment, matrix: Matrix) -> tuple[str, ...]:
    """A note that lists distributions newer than the assessed releases, or one that says that no packages are known."""
    from compat.versions import is_version, key_of

    if not environment.distributions:
        return ("no packages are known, so there is almost nothing to check",)
    newer = {
        (copy.name, copy.version): newest
        for copy in environment.distributions
        if (newest := matrix.newest.get(copy.name)) and copy.version and is_version(copy.version)
        and key_of(copy.version) > key_of(newest)
    }  # fmt: skip
    if not newer:
        return ()
    listed = [f"{name} {version} ({newest})" for (name, version), newest in newer.items()]
    more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    return (f"newer than the releases that were assessed (in parentheses): {', '.join(listed[:_LISTED])}{more}",)


_LISTED = 6
"""The maximum number of distributions listed in one note."""


def named_devices(environment: Environment) -> tuple[Environment, tuple[str, ...]]:
    """The environment with the compute capability filled in for every recognized accelerator name, and notes."""
    if not environment.accelerators:
        return environment, ()
    from compat.records import replace
    from compat.tables.hardware import completed

    accelerators, notes = completed(environment.accelerators)
    return replace(environment, accelerators=accelerators), notes
