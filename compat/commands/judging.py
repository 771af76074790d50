"""One thing that was read × every declared target → a report."""

from __future__ import annotations

from compat.commands.given import command_of, stated, threshold_code
from compat.environment import Environment
from compat.errors import InputError
from compat.judge import judged, not_assessed
from compat.judge.choices import Asked
from compat.records import replace
from compat.report import Location, Report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from compat.commands.subjects import Subject
    from compat.matrix.compiled import Matrix
    from compat.options import Words
    from compat.read.files.listing import Listing
    from compat.read.project_config import Ignore, ProjectConfig, Target
    from compat.report import Finding


def report_of(subject: Subject, words: Words, config: ProjectConfig, matrix: Matrix) -> Report:
    """Findings for every chosen target, worst first; ignored ones are left out and counted in a note."""
    found: list[Finding] = []
    notes: list[str] = list(subject.notes)
    environment = Environment()
    targets = chosen_targets(words, config)
    for target in targets:
        if subject.environment is not None:
            environment, more, remarks = _environment(subject, subject.environment, target, words, matrix)
            found += more
            notes += remarks
        for listing in subject.listings:
            environment, more, remarks = _listing(listing, len(subject.listings) > 1, target, words, matrix)
            found += more
            notes += remarks
    kept, ignored = _not_ignored(_distinct(found), config.ignores)
    unread = tuple(dict.fromkeys(text for listing in subject.listings for text in listing.unread))
    code = threshold_code(kept, words)
    notes += [*ignored, *unread]
    return Report(
        environment=environment, findings=tuple(sorted(kept, key=lambda finding: finding.order())),
        notes=tuple(dict.fromkeys(notes)), exit=3 if unread and not code else code, file=subject.file,
    )  # fmt: skip


def chosen_targets(words: Words, config: ProjectConfig) -> Sequence[Target | None]:
    """The targets to judge for: those named, else all that are declared, else one about which nothing is known."""
    names = words.all("target")
    if not names:
        return config.targets or (None,)
    known = {target.name: target for target in config.targets}
    for name in names:
        if name not in known:
            where = f"{config.file} declares {', '.join(known) or 'none'}" if config.file else "no [tool.compat] was found"
            raise InputError(f"there is no target {name!r}: {where}")
    return [known[name] for name in names]


def _environment(
    subject: Subject, environment: Environment, target: Target | None, words: Words, matrix: Matrix
) -> tuple[Environment, list[Finding], tuple[str, ...]]:
    known, notes = targeted(environment, target, words)
    known, findings, remarks = judged(known, matrix)
    location = None if subject.file is None else Location(subject.file)
    return known, [replace(each, location=location, target=_name(target)) for each in findings], (*notes, *remarks)


def _listing(
    listing: Listing, labelled: bool, target: Target | None, words: Words, matrix: Matrix
) -> tuple[Environment, list[Finding], tuple[str, ...]]:
    from compat.judge.selections import described, judged_listing

    known, notes = targeted(listing.context, target, words)
    findings, remarks = judged_listing(listing, known, matrix, _asked(target, words))
    if labelled and listing.label:
        findings = tuple(replace(each, selections=(listing.label, *each.selections)) for each in findings)
    whole = described(listing)
    whole = replace(known, distributions=whole.distributions, distributions_complete=whole.distributions_complete)
    assessed = not_assessed(whole, matrix) if listing.entries else ()
    shown = [replace(each, target=_name(target)) for each in findings]
    return whole, shown, (*listing.notes, *notes, *remarks, *assessed)


def _name(target: Target | None) -> str | None:
    return None if target is None else target.name


def targeted(environment: Environment, target: Target | None, words: Words) -> tuple[Environment, tuple[str, ...]]:
    """The environment with what the target declares and, over it, what the command line states."""
    notes: tuple[str, ...] = ()
    if target is not None:
        environment, notes = _declared(environment, target, words)
    environment, more = command_of(environment, words)
    return stated(environment, words), (*notes, *more)


def _declared(environment: Environment, target: Target, words: Words) -> tuple[Environment, tuple[str, ...]]:
    """The environment with what a target says; what is wrong with it is reported where the target stands."""
    rest = None
    if target.command is not None and words.rest is None:
        import shlex

        try:
            rest = tuple(shlex.split(target.command))
        except ValueError as problem:
            raise InputError(f"target {target.name}: command: {problem}", target.file, target.line) from None
    declared = replace(words, values=target.values, rest=rest or None)
    if target.variables:
        environment = replace(environment, variables={**(environment.variables or {}), **target.variables})
    try:
        environment, notes = command_of(environment, declared, target.variables)
        return stated(environment, declared, f"target {target.name}"), notes
    except InputError as problem:
        if problem.file is not None:
            raise
        raise InputError(f"target {target.name}: {problem.message}", target.file, target.line) from None


def _asked(target: Target | None, words: Words) -> Asked:
    def named(option: str) -> tuple[str, ...] | None:
        if words.flag(option):
            return tuple(words.all(option))
        return None if target is None or option not in target.values else tuple(target.values[option])

    environment = named("lock-environment")
    declared = not words.flag("extras") and not words.flag("groups")
    return Asked(named("extras"), named("groups"), environment[-1] if environment else None, declared)


def _distinct(findings: Iterable[Finding]) -> list[Finding]:
    """Each finding once, where several listings of a file show the same."""
    return list({repr(finding): finding for finding in findings}.values())


def _not_ignored(findings: list[Finding], ignores: Sequence[Ignore]) -> tuple[tuple[Finding, ...], list[str]]:
    """What no ignore covers, and a note for every ignore that covers something, or would if it had not expired."""
    if not ignores:
        return tuple(findings), []
    import time

    today = time.strftime("%Y-%m-%d")
    notes: list[str] = []
    kept = findings
    for ignore in ignores:
        covered = [each for each in kept if each.rule == ignore.rule and ignore.target in (None, each.target)]
        if not covered:
            continue
        if ignore.until is not None and ignore.until < today:
            where = f"{ignore.file}:{ignore.line}" if ignore.line else ignore.file
            notes.append(f"the ignore of {ignore.rule} expired on {ignore.until} ({where}): it is reported again")
            continue
        kept = [each for each in kept if each not in covered]
        until = f" until {ignore.until}" if ignore.until else ""
        notes.append(f"{ignore.rule} is ignored{until}: {ignore.reason}")
    return tuple(kept), notes
