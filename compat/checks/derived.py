"""Findings derived from tables rather than rules: wheels and hardware, declared requirements, yanked releases."""

from __future__ import annotations

from compat.model import Environment, Finding


def judge(environment: Environment, suspects: frozenset[str] | None = None) -> tuple[Finding, ...]:
    """Every derived finding about an environment whose accelerators are those visible to the job.

    ``suspects`` limits the checks of published source to these packages (``None``: no limit).
    """
    from compat.checks import builds, guards, releases
    from compat.checks import interfaces as surface
    from compat.checks import requirements as metadata
    from compat.rules.facts import Facts
    from compat.tables.declared import open_declared

    facts = Facts(environment)
    declared = open_declared()
    of_source = () if suspects is not None and not suspects else surface.judge(facts, suspects)
    return (
        *builds.judge(facts), *metadata.judge(facts, declared), *releases.judge(facts, declared), *guards.judge(facts),
        *of_source,
        *_of_code(environment),
    )  # fmt: skip


def _of_code(environment: Environment) -> tuple[Finding, ...]:
    """Findings about the user's code and options; the modules that read them are imported only when needed."""
    found: list[Finding] = []
    if environment.workload is not None and environment.workload.code:
        from compat.checks import missing_modules

        found += missing_modules.judge(environment)
    if environment.workload is not None and environment.workload.options:
        from compat.checks import options

        found += options.judge(environment)
    return tuple(found)


def asked_about() -> frozenset[str]:
    """The names of all distributions that derived findings can concern."""
    from compat.checks.builds import NAMES
    from compat.tables.declared import open_declared

    return NAMES | open_declared().names
