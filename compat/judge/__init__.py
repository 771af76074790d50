"""Environment × matrix → findings."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.environment import Environment
    from compat.matrix.compiled import Matrix
    from compat.report import Finding


def judged(environment: Environment, matrix: Matrix) -> tuple[Environment, tuple[Finding, ...], tuple[str, ...]]:
    """Every finding about an environment, worst first; with it the environment as it was judged, and notes about it.

    Names of accelerators are looked up first, so that the environment in a report says what the verdict rests on.
    """
    from compat.judge import derived, installation, rules, surface
    from compat.judge.facts import visible

    environment, notes = named_devices(environment)
    seen = visible(environment)
    found = surface.told_once((*installation.judge(environment), *rules.judge(seen, matrix), *derived.judge(seen)))
    return environment, tuple(sorted(found, key=lambda finding: finding.order())), (*notes, *not_assessed(environment, matrix))


def not_assessed(environment: Environment, matrix: Matrix) -> tuple[str, ...]:
    """A note for every distribution that is newer than the rules know, and where there is nothing to judge at all."""
    from compat.versions import is_version, key_of

    if not environment.distributions:
        return ("no distribution is known, so there is hardly anything to judge",)
    newer = {
        (copy.name, copy.version): newest
        for copy in environment.distributions
        if (newest := matrix.newest.get(copy.name)) and copy.version and is_version(copy.version)
        and key_of(copy.version) > key_of(newest)
    }  # fmt: skip
    return tuple(
        f"{name} {version} is newer than what the rules were held against ({newest}): not assessed"
        for (name, version), newest in newer.items()
    )


def named_devices(environment: Environment) -> tuple[Environment, tuple[str, ...]]:
    """The environment with the capability of every accelerator whose name tells it."""
    if not environment.accelerators:
        return environment, ()
    from compat.matrix.gpus import completed
    from compat.records import replace

    accelerators, notes = completed(environment.accelerators)
    return replace(environment, accelerators=accelerators), notes
