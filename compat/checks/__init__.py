"""Checks of one environment against the rule matrix and the derived tables."""

from __future__ import annotations

from compat.model import Environment, Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from compat.rules.compiled import Matrix
    from compat.rules.evaluate import Answers


def check_environment(
    environment: Environment, matrix: Matrix, answers: Answers | None = None
) -> tuple[Environment, tuple[Finding, ...], tuple[str, ...]]:
    """The environment as it was checked, its findings (most severe first), and notes.

    Accelerator names are resolved first, so the environment in a report shows the facts that the verdict is based on.
    ``answers`` caches the results of rules for similar environments.
    """
    from compat.checks import installation
    from compat.rules import evaluate as rules
    from compat.rules.facts import seen_by_torch, visible

    environment, notes = named_devices(environment)
    seen = visible(environment)
    curated = rules.judge(seen_by_torch(seen), matrix, answers=answers)
    found = deduplicated((*installation.judge(environment), *curated, *derived_findings(seen)))
    if environment.workload is None or environment.workload.task != "install":
        # what is described is installed, from wherever a build for this processor came
        found = tuple(each for each in found if not (each.rule.startswith("wheels-") and each.facts == ("machine",)))
    if _starts_something(environment):
        from compat.checks.running import without_repeats

        found = without_repeats(found)
    if environment.workload is not None and any(each.severity == "error" for each in found):
        from compat.checks.unused import softened

        found = softened(seen, found)
    if not environment.distributions_complete:
        from compat.checks.implied import with_implied

        found = with_implied(seen, found, matrix)
    return environment, tuple(sorted(found, key=lambda finding: finding.order())), (*notes, *not_assessed(environment, matrix))


def derived_findings(environment: Environment, suspects: frozenset[str] | None = None) -> tuple[Finding, ...]:
    """Every finding from tables rather than rules: wheels and hardware, declared requirements, releases, published source.

    The accelerators of ``environment`` are those visible to the job. ``suspects`` limits the checks of published source to
    these packages (``None``: no limit).
    """
    from compat.checks import builds, guards, installation, requirements
    from compat.checks import interfaces as surface
    from compat.rules.facts import Facts
    from compat.tables.declared import open_declared
    from compat.tables.overlaps import open_overlaps

    facts, declared = Facts(environment), open_declared()
    found = [
        *builds.judge(facts), *requirements.judge(facts, declared), *installation.judge_releases(facts, declared),
        *guards.judge(facts), *installation.judge_ignored(facts),
        *(() if suspects is not None and not suspects else surface.judge(facts, suspects)),
    ]  # fmt: skip
    on_machine = environment.accelerators or environment.driver
    open_ = (each for each in environment.distributions or () if each.version is None)
    if on_machine and any(each.specifier or each.name == "torch" for each in open_):
        from compat.checks import ranges

        found += ranges.judge(environment)
    if open_overlaps().concerns(environment.distributions or ()):
        from compat.checks import overlaps

        found += overlaps.judge(facts)
    # the modules that read the job, its code and its options are imported only if there are any
    if environment.workload is not None:
        from compat.checks import launching

        found += launching.judge(facts)
        if environment.workload.task in ("grpo", "rloo") or environment.workload.trainer in ("GRPOTrainer", "RLOOTrainer"):
            from compat.checks import batches

            found += batches.judge(facts)
    if environment.workload is not None and environment.workload.code:
        from compat.checks.code import judge_imports

        found += judge_imports(environment)
    if _starts_something(environment):
        from compat.checks import running

        found += running.judge(environment)
    if environment.workload is not None and environment.workload.model:
        from compat.checks import models

        found += models.judge_named(environment)
    if environment.workload is not None and environment.workload.options:
        from compat.checks import given_values, options

        found += (*options.judge(environment), *given_values.judge(environment))
    return tuple(found)


def _starts_something(environment: Environment) -> bool:
    """Whether a script or a command is about to start, and the folders of the environment it runs in are known."""
    workload = environment.workload
    if workload is None or environment.folders is None or environment.started:
        return False
    return bool(workload.code or workload.program)


def distributions_checked() -> frozenset[str]:
    """The names of all distributions that :func:`derived_findings` can concern."""
    from compat.checks.builds import NAMES
    from compat.tables.declared import open_declared
    from compat.tables.overlaps import open_overlaps

    return NAMES | open_declared().names | open_overlaps().names


def deduplicated(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings without those from published source and wheels that another one reports.

    A missing name is reported by a curated rule about its packages that mentions it, a wheel compiled for another torch or CUDA
    by a curated error about its packages, packages that overwrite each other by any curated rule about them, a guard by any
    error about its packages.
    """
    found = tuple(findings)
    curated = [each for each in found if each.origin == "rule" and each.verdict == "hit"]
    found = tuple(each for each in found if each.origin != "surface" or not any(_mentions(rule, each) for rule in curated))
    found = tuple(each for each in found if not each.rule.startswith("overwritten-") or not _covered(each, curated))
    errors = [each for each in found if each.origin != "guard" and each.verdict == "hit" and each.severity == "error"]
    known = [each for each in errors if each.origin == "rule"]
    found = tuple(each for each in found if not _of_wheels(each) or not _covered(each, known))
    return tuple(
        each for each in found
        if each.origin != "guard" or not _covered(each, errors)
    )  # fmt: skip


def _of_wheels(finding: Finding) -> bool:
    return finding.rule.startswith("build-") and finding.rule.endswith(("-torch", "-cuda", "-numpy"))


def _covered(finding: Finding, errors: list[Finding]) -> bool:
    absent = {name for name, version in finding.packages.items() if version is None}
    return any(
        finding.packages.keys() - absent <= error.packages.keys()
        and all(name in error.packages or name in error.title.split() for name in absent)
        for error in errors
    )


def _mentions(rule: Finding, found: Finding) -> bool:
    used = found.title.partition(" imports ")[2] or found.title.partition(" uses ")[2]
    path, _, keyword = used.partition(", which")[0].removesuffix("=)").partition("(")
    name = keyword or path.rpartition(".")[2]
    same = name != "" and found.packages.keys() <= rule.packages.keys()
    return same and name in f"{rule.title} {rule.why} {rule.rule.replace('-', '_')}"


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
    """The environment with what the names of its accelerators imply, and notes: compute capability, and an Arm processor."""
    if not environment.accelerators:
        return environment, ()
    from compat.records import replace
    from compat.tables.hardware import completed, machine_beside

    accelerators, notes = completed(environment.accelerators)
    machine = environment.machine or (machine_beside(accelerators) if environment.os in (None, "linux") else None)
    return replace(environment, accelerators=accelerators, machine=machine), notes
