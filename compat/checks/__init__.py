"""Environment × matrix → findings."""

from __future__ import annotations

from compat.model import Environment, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.rules.compiled import Matrix


def judged(environment: Environment, matrix: Matrix) -> tuple[Environment, tuple[Finding, ...], tuple[str, ...]]:
    """Every finding about an environment, worst first; with it the environment as it was judged, and notes about it.

    Names of accelerators are looked up first, so that the environment in a report says what the verdict rests on.
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
    """A note about the distributions that are newer than rules and tables know, and where there is nothing to judge at all."""
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
"""Distributions that one note names."""


def named_devices(environment: Environment) -> tuple[Environment, tuple[str, ...]]:
    """The environment with the capability of every accelerator whose name is known."""
    if not environment.accelerators:
        return environment, ()
    from compat.records import replace
    from compat.tables.hardware import completed

    accelerators, notes = completed(environment.accelerators)
    return replace(environment, accelerators=accelerators), notes
