"""Reports: one input, checked for every declared target."""

from __future__ import annotations

from compat.api.targets import apply_options, command_of, threshold_code
from compat.checks import check_environment, named_devices, not_assessed
from compat.checks.questions import about_listed_packages, fold_questions
from compat.checks.torch_build import own_image_of
from compat.errors import InputError
from compat.model import SEVERITIES, Environment, Finding, Location, Report
from compat.records import record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compat.api.commands import Options
    from compat.api.inputs import Subject
    from compat.checks.advice import Shared
    from compat.checks.choices import Requested
    from compat.formats.listing import Listing
    from compat.formats.project.config import Ignore, ProjectConfig, Target
    from compat.rules.compiled import Matrix


def report_of(subject: Subject, options: Options, config: ProjectConfig, matrix: Matrix) -> Report:
    """Check a subject for every selected target; findings are sorted worst first, ignored ones omitted and noted."""
    judgements = [
        judgement for target in chosen_targets(options, config) for judgement in _judgements(subject, target, options, matrix)
    ]
    found = _distinct([finding for judgement in judgements for finding in judgement.findings])
    unread = tuple(dict.fromkeys(text for listing in subject.listings for text in (*listing.unread, *_loose(listing, matrix))))
    elsewhere = tuple(dict.fromkeys(text for listing in subject.listings for text in listing.elsewhere))
    undecided = unread or (elsewhere if options.flag("strict") else ())
    errors = _distinct([finding for judgement in judgements for finding in judgement.errors])
    chosen = filter_findings(found, config.ignores, options, errors)
    notes = (*subject.notes, *(note for each in judgements for note in each.notes), *elsewhere, *unread, *chosen.notes)
    names = dict.fromkeys(judgement.name for judgement in judgements)
    if _have_several_fixes(chosen.findings):
        from compat.checks.together import contradiction, fixed_together

        if contradiction(chosen.findings) and len(judgements) == 1:
            chosen = replace(chosen, findings=fixed_together(chosen.findings, judgements[0].environment, matrix)[0])
        notes = (*notes, *contradiction(chosen.findings))
    return Report(
        environment=_worst(judgements), findings=chosen.findings, notes=tuple(dict.fromkeys(notes)),
        exit=3 if undecided and not chosen.exit else chosen.exit, file=subject.file, partial=bool(unread or elsewhere),
        parts=tuple((name, _worst([each for each in judgements if each.name == name])) for name in names if name),
        ignored=chosen.ignored,
    )  # fmt: skip


def _loose(listing: Listing, matrix: Matrix) -> Iterator[str]:
    """Yield what to say about pins in a file that no statement accounts for, if findings can concern their packages."""
    if not listing.loose:
        return
    from compat.checks import distributions_checked

    concerned = {*matrix.names, *distributions_checked()}
    for entry in listing.loose:
        found = entry.distribution
        if found.name in concerned:
            yield (
                f"{entry.file or listing.file}:{entry.line}: {found.name}=={found.version} was not read: "
                "no recognized command installs it"
            )


def machine_report(
    environment: Environment,
    options: Options,
    matrix: Matrix,
    notes: tuple[str, ...] = (),
    ignores: Sequence[Ignore] | None = None,
    shared: Shared | None = None,
) -> Report:
    """Check one machine, for the command and workload given in ``options``.

    Findings covered by ``ignores`` (default: those of the project in the current directory) are omitted and noted.
    ``notes`` come first in the report. ``shared`` is what reports on similar machines have in common.
    """
    if ignores is None:
        from compat.formats.project.config import find_config

        ignores = find_config(".").ignores
    environment, more = command_of(environment, options)
    environment, findings, remarks = check_environment(
        apply_options(environment, options), matrix, shared.answers if shared else None
    )
    findings = _advised(findings, environment, matrix, shared)
    chosen = filter_findings((*findings, *unreached(environment, options)), ignores, options)
    findings, together, conflict = chosen.findings, _NOTHING, _NOTHING
    if _have_several_fixes(findings):
        from compat.checks.together import fixed_together

        findings, together, conflict = fixed_together(findings, environment, matrix)
    if any(copy.source is not None and copy.source.details.get("editable") for copy in environment.distributions or ()):
        from compat.checks import distributions_checked
        from compat.machine.checkouts import checkout_notes

        notes = (*notes, *checkout_notes(environment, {*matrix.names, *distributions_checked()}))
    return Report(
        environment=environment, findings=findings, notes=(*notes, *more, *remarks, *chosen.notes, *conflict),
        exit=chosen.exit, ignored=chosen.ignored, together=together,
    )  # fmt: skip


_NOTHING: tuple[str, ...] = ()


def _have_several_fixes(findings: Sequence[Finding]) -> bool:
    """Whether fixes of two findings may contradict each other, or go into one command."""
    return sum(each.verdict == "hit" and bool(each.fixes) for each in findings) > 1


@record(frozen=True)
class Choice:
    """The findings to show, worst first, notes about the others, the exit code and the number of ignored findings."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    exit: int
    ignored: int


def filter_findings(
    found: Sequence[Finding], ignores: Sequence[Ignore], options: Options, errors: Sequence[Finding] = ()
) -> Choice:
    """Filter out findings the project ignores and, without ``--all``, unlikely ones and those about unmentioned packages.

    ``errors`` are findings about an error that was seen: these are never filtered as unlikely, and come first, in their order.
    """
    kept, notes = not_ignored([*errors, *found], ignores)
    ignored = len(errors) + len(found) - len(kept)
    seen = tuple(each for each in kept if each in errors)
    kept = tuple(each for each in kept if each not in errors)
    shown: tuple[Finding, ...] = kept
    folded_away: tuple[str, ...] = ()
    if not options.flag("all"):
        kept = about_listed_packages(kept)
        shown, folded_away = fold_questions(kept, remarks=options.one("fail-on") == "info")
    ordered = tuple(sorted(shown, key=lambda finding: finding.order()))
    return Choice((*seen, *ordered), (*notes, *folded_away), threshold_code((*seen, *kept), options), ignored)


@record(frozen=True)
class _Judgement:
    """The findings for one environment: a whole subject for one target, or the part of it called ``name``.

    ``errors`` are findings about an error in pasted text, the likeliest first.
    """

    environment: Environment
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    name: str = ""
    errors: tuple[Finding, ...] = ()


def _judgements(subject: Subject, target: Target | None, options: Options, matrix: Matrix) -> Iterator[_Judgement]:
    if subject.environment is not None:
        yield _environment(subject, subject.environment, target, options, matrix)
    for listing in subject.listings:
        yield _listing(listing, target, options, matrix)


def _worst(judgements: list[_Judgement]) -> Environment:
    """The first environment with the worst finding."""
    if not judgements:
        return Environment()
    worst = min(judgements, key=lambda each: min((finding.order()[:2] for finding in each.findings), default=_NO_FINDING))
    return worst.environment


_NO_FINDING = (len(SEVERITIES), 1)


def config_of(start: str, options: Options) -> ProjectConfig:
    """The configuration of the project that contains a file or folder, or of the file passed with ``--config``."""
    from compat.formats.project.config import ProjectConfig, find_config, read_config

    given = options.one("config")
    if given == "none":
        return ProjectConfig()
    return find_config(start) if given is None else read_config(given)


def chosen_targets(options: Options, config: ProjectConfig) -> Sequence[Target | None]:
    """The targets to check for: those passed with ``--target``, else all declared ones, else ``None`` (unknown)."""
    names = options.all("target")
    if not names:
        return config.targets or (None,)
    known = {target.name: target for target in config.targets}
    for name in names:
        if name not in known:
            where = f"{config.file} declares {', '.join(known) or 'none'}" if config.file else "no [tool.compat] table found"
            raise InputError(f"unknown target {name!r}: {where}")
    return [known[name] for name in names]


def _environment(
    subject: Subject, environment: Environment, target: Target | None, options: Options, matrix: Matrix
) -> _Judgement:
    known, notes = apply_target(environment, target, options)
    known, findings, remarks = check_environment(known, matrix)
    findings = _advised(findings, known, matrix)
    errors = () if subject.text is None else _errors(subject, known, matrix)
    location = None if subject.file is None else Location(subject.file)

    def placed(each: Finding) -> Finding:
        return replace(each, location=each.location or location, target=_name(target))

    shown = {finding.rule for finding in errors}  # the error confirms findings that were only possible
    found = tuple(placed(each) for each in (*findings, *unreached(known, options)) if each.rule not in shown)
    return _Judgement(known, found, (*notes, *remarks), errors=tuple(map(placed, errors)))


def _errors(subject: Subject, environment: Environment, matrix: Matrix) -> tuple[Finding, ...]:
    """The findings about the error in pasted text; empty for a report that describes an environment without an error.

    Text that does not describe an environment has to show an error; otherwise :class:`InputError` is raised.
    """
    from compat.api.diagnosis import diagnose_text, shows_error
    from compat.reports.pasted import read_pasted

    text = subject.text or ""
    found = diagnose_text(text, environment, matrix)
    alone = subject.environment == Environment()
    if alone and not found.findings and not shows_error(found.errors):
        read_pasted(text, subject.name)  # raises an error that states what was expected
    return found.findings if alone or shows_error(found.errors) else ()


def _listing(listing: Listing, target: Target | None, options: Options, matrix: Matrix) -> _Judgement:
    from compat.checks import unresolvable
    from compat.checks.notebook_python import with_possible_python
    from compat.checks.over_images import with_replaced
    from compat.checks.selections import judged_listing, to_environment

    listing = with_replaced(with_possible_python(listing))
    known, notes = apply_target(listing.context, target, options)
    known, more = named_devices(known)
    asked = requested_of(target, options)
    findings, remarks = judged_listing(listing, known, matrix, asked)
    findings = (*findings, *unresolvable.judge(listing, known, asked), *unresolvable.not_in_only_index(listing))
    if listing.requires_python is not None:
        from compat.checks import python_range

        findings = (*findings, *python_range.judge(listing, asked))
    if listing.branches:
        findings = _with_branches(findings, listing, known, matrix, asked)
    part = part_name(listing)
    shown = tuple(
        replace(each, target=_name(target), selections=(*((part,) if part else ()), *each.selections)) for each in findings
    )
    whole = to_environment(listing)
    whole = replace(known, distributions=whole.distributions, distributions_complete=whole.distributions_complete)
    shown = _advised(shown, whole, matrix)
    is_silent = not (listing.notes or listing.unread or listing.context.workload)
    assessed = not_assessed(whole, matrix) if listing.entries or is_silent else ()
    shown += tuple(
        replace(each, location=Location(listing.file), target=_name(target), selections=(part,) if part else ())
        for each in unreached(whole, options)
    )
    return _Judgement(whole, shown, (*listing.notes, *notes, *more, *remarks, *assessed), part)


def _with_branches(
    findings: tuple[Finding, ...], listing: Listing, known: Environment, matrix: Matrix, asked: Requested
) -> tuple[Finding, ...]:
    """The findings, with those that hold if a command under a condition runs; they settle questions of the same rules."""
    from compat.checks import unresolvable
    from compat.checks.over_images import with_replaced
    from compat.checks.selections import judged_listing

    held = {(each.rule, *sorted(each.packages.items())) for each in findings if each.verdict == "hit"}
    more: list[Finding] = []
    for branch in listing.branches:
        taken = replace(listing, entries=branch.entries, edges=branch.edges, together=branch.together, branches=())
        taken = with_replaced(taken)
        for each in (*judged_listing(taken, known, matrix, asked)[0], *unresolvable.judge(taken, known, asked)):
            key = (each.rule, *sorted(each.packages.items()))
            if each.verdict == "hit" and key not in held:
                held.add(key)
                more.append(replace(each, selections=(branch.label, *each.selections)))
    settled = {each.rule for each in more}
    return (*(each for each in findings if each.verdict == "hit" or each.rule not in settled), *more)


def _advised(
    findings: tuple[Finding, ...], environment: Environment, matrix: Matrix, shared: Shared | None = None
) -> tuple[Finding, ...]:
    """The findings with their fixes, best first, and with fixes for images."""
    if any(finding.fixes for finding in findings):
        from compat.checks.advice import with_best_fixes  # imported late: not needed where nothing is found

        findings = with_best_fixes(findings, environment, matrix, shared)
    if findings and any(map(own_image_of, environment.distributions or ())):
        from compat.checks.image_tags import with_image_fixes

        findings = with_image_fixes(findings, environment, matrix)
    return findings


def unreached(environment: Environment, options: Options) -> tuple[Finding, ...]:
    """With ``--all``: incompatibilities between releases in code paths that are not known to run."""
    if not options.flag("all"):
        return ()
    from compat.checks import interfaces as surface

    return tuple(surface.unreached(environment))


def part_name(listing: Listing) -> str:
    """The name of a part of a file: ``service trainer``, ``stage build``; "" for a whole file."""
    label = listing.label or ""
    kind = {"compose": "service", "dockerfile": "stage"}.get(listing.kind)
    return label if kind is None or not label or label.startswith(f"{kind} ") else f"{kind} {label}"


def _name(target: Target | None) -> str | None:
    return None if target is None else target.name


def apply_target(environment: Environment, target: Target | None, options: Options) -> tuple[Environment, tuple[str, ...]]:
    """The environment with the facts declared by the target, overridden by those of the command line."""
    notes: tuple[str, ...] = ()
    if target is not None:
        environment, notes = _declared(environment, target, options)
    environment, more = command_of(environment, options)
    return apply_options(environment, options), (*notes, *more)


def _declared(environment: Environment, target: Target, options: Options) -> tuple[Environment, tuple[str, ...]]:
    """The environment with the facts of a target; errors are reported at the location of the target."""
    rest = None
    if target.command is not None and options.rest is None:
        import shlex

        try:
            rest = tuple(shlex.split(target.command))
        except ValueError as problem:
            raise InputError(f"target {target.name}: command: {problem}", target.file, target.line) from None
    declared = replace(options, values=target.values, rest=rest or None)
    if target.variables:
        environment = replace(environment, variables={**(environment.variables or {}), **target.variables})
    try:
        environment, notes = command_of(environment, declared, target.variables)
        return apply_options(environment, declared, f"target {target.name}"), notes
    except InputError as problem:
        if problem.file is not None:
            raise
        raise InputError(f"target {target.name}: {problem.message}", target.file, target.line) from None


def requested_of(target: Target | None, options: Options) -> Requested:
    """The extras, groups and lock environment selected on the command line or by the target."""
    from compat.checks.choices import Requested

    def named(option: str) -> tuple[str, ...] | None:
        if options.flag(option):
            return tuple(options.all(option))
        return None if target is None or option not in target.values else tuple(target.values[option])

    environment = named("lock-environment")
    declared = not options.flag("extras") and not options.flag("groups")
    return Requested(named("extras"), named("groups"), environment[-1] if environment else None, declared)


def _distinct(findings: Sequence[Finding]) -> list[Finding]:
    """Deduplicate findings; a finding shared by several parts of a file lists the names of all of them."""
    found: dict[str, Finding] = {}
    count: dict[str, int] = {}
    for finding in findings:
        count[finding.rule] = count.get(finding.rule, 0) + 1
    for finding in findings:
        alone = len(finding.selections) == 1
        # most are the only one of their rule, and writing a finding out takes as long as to judge one
        key = finding.rule if count[finding.rule] == 1 else repr(replace(finding, selections=()) if alone else finding)
        before = found.setdefault(key, finding)
        if before.selections and alone and finding.selections[0] not in before.selections:
            found[key] = replace(before, selections=(*before.selections, *finding.selections))
    return list(found.values())


# --- Findings that a project ignores: ``[[tool.compat.ignore]]``.


def in_force(ignore: Ignore) -> bool:
    """Whether an ignore has not expired; ``until`` is inclusive."""
    import time

    return ignore.until is None or ignore.until >= time.strftime("%Y-%m-%d")


def not_ignored(findings: Sequence[Finding], ignores: Sequence[Ignore]) -> tuple[tuple[Finding, ...], list[str]]:
    """The findings not covered by an ignore, and a note for every ignore that matches, even if it has expired."""
    notes: list[str] = []
    kept = list(findings)
    for ignore in ignores:
        covered = [each for each in kept if each.rule == ignore.rule and ignore.target in (None, each.target)]
        if not covered:
            continue
        if not in_force(ignore):
            where = f"{ignore.file}:{ignore.line}" if ignore.line else ignore.file
            notes.append(f"the ignore for {ignore.rule} expired on {ignore.until} ({where}); it is reported again")
            continue
        kept = [each for each in kept if each not in covered]
        until = f" until {ignore.until}" if ignore.until else ""
        notes.append(f"{ignore.rule} is ignored{until}: {ignore.reason}")
    return tuple(kept), notes
