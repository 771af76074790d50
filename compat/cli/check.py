"""``compat check``: findings for files, described or pasted environments, and what is installed."""

from __future__ import annotations

import sys

from compat.api.inputs import read_subject
from compat.api.report import config_of, report_of
from compat.errors import InputError, Undecided, unexpected
from compat.model import Outcome
from compat.output.stream import emit
from compat.rules.compiled import open_matrix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.api.options import Options


def run(options: Options) -> int:
    """Judges everything that is named; one that cannot be used makes the exit code 2, the others are judged all the same."""
    things = list(_named(options))
    if not things:
        raise InputError("expected files to check, or --environment, --pasted or --installed")
    matrix = open_matrix(options.values.get("rules", ()))
    outcomes = _unreadable_code(options)
    for kind, name in things:
        try:
            subject = read_subject(kind, name, matrix)
            config = config_of(name if kind == "file" else ".", options)
            outcomes.append(Outcome(name, report_of(subject, options, config, matrix)))
        except InputError as problem:
            outcomes.append(Outcome(name, error=problem))
        except Undecided:
            raise
        except Exception as problem:  # what is given beside it is judged all the same
            outcomes.append(Outcome(name, error=unexpected(problem, name)))
    if options.flag("baseline"):
        outcomes = _new_ones(outcomes, options)
    _print(outcomes, options)
    codes = {outcome.exit for outcome in outcomes}
    return next(code for code in _PRECEDENCE if code in codes)


_PRECEDENCE = (2, 1, 3, 0)
"""What a call with several files ends with: unusable input before findings before what could not be decided."""


def _named(options: Options) -> Iterator[tuple[str, str]]:
    if options.flag("python") and not options.flag("installed") and not _only_code(options):
        raise InputError("--python goes with --installed; 'compat doctor --python' judges an environment on this machine")
    for name in options.operands:
        yield "file", name
    for name in options.values.get("environment", ()):
        yield "described", name
    for name in options.values.get("pasted", ()):
        yield "pasted", name
    if options.flag("installed") or _only_code(options):
        yield "installed", options.one("python") or ""


def _only_code(options: Options) -> bool:
    """Whether nothing is named that code could be judged against: then it is what is installed here."""
    named = options.operands or options.flag("environment") or options.flag("pasted")
    return options.flag("script") and not named


def _unreadable_code(options: Options) -> list[Outcome]:
    """The files of ``--script`` that cannot be read, each with its line and reason; the others are judged."""
    if not options.flag("script"):
        return []
    from compat.checks.code import wanted_of

    return [Outcome(problem.file or "", error=problem) for problem in wanted_of(tuple(options.values["script"])).code.problems]


def _new_ones(outcomes: list[Outcome], options: Options) -> list[Outcome]:
    """What the baseline does not have; the exit codes are those of what is left."""
    from compat.api.targets import threshold_code
    from compat.checks.baseline import known, new_only
    from compat.records import replace

    baseline = known(options.one("baseline") or "")
    left = []
    for outcome in outcomes:
        outcome = new_only(outcome, baseline)
        report = outcome.report
        if report is not None and report.exit == 1:
            outcome = replace(outcome, report=replace(report, exit=threshold_code(report.findings, options)))
        left.append(outcome)
    return left


def _print(outcomes: list[Outcome], options: Options) -> None:
    form = options.one("format") or "text"
    if form in ("text", "json"):
        for outcome in outcomes:
            if outcome.error is not None:
                print(f"compat: {outcome.error}", file=sys.stderr)
    if form == "text":
        _print_text(outcomes, options)
        return
    text = _formatted(form, outcomes, options)
    if text:
        emit(text, utf_8=form == "github")


def _formatted(form: str, outcomes: list[Outcome], options: Options) -> str:
    if form == "github":
        from compat.output.github import workflow_commands

        return workflow_commands(outcomes)
    if form == "junit":
        from compat.output.junit import junit

        return junit(outcomes)
    if form == "html":
        from compat.output.html.report import outcomes_page

        return outcomes_page(outcomes)
    from compat.output.json import dumped

    if form == "sarif":
        from compat import __version__
        from compat.output.sarif import sarif

        return dumped(sarif(outcomes, __version__, _project_file(options)))
    if len(outcomes) > 1:
        return dumped([outcome.to_json() for outcome in outcomes])
    return "".join(dumped(outcome.report.to_json()) for outcome in outcomes if outcome.report is not None)


def _project_file(options: Options) -> str | None:
    """The file of the project beside which code scanning shows what is found about an installation."""
    import os

    from compat.formats.project.config import FILE, find_config

    given = options.one("config")
    if given is not None and given != "none":
        return given
    try:
        declared = None if given == "none" else find_config(".").file
    except InputError as problem:
        declared = problem.file  # what is wrong with it is said where it is used
    return declared or (FILE if os.path.isfile(FILE) else None)


def _print_text(outcomes: list[Outcome], options: Options) -> None:
    from compat.output.terminal import coloured, nothing_found, rendered

    for outcome in outcomes:
        report = outcome.report
        if report is None or (
            options.flag("quiet") and not report.exit and not any(each.verdict == "hit" for each in report.findings)
        ):
            continue
        described = outcome.name in options.values.get("environment", ())
        title = outcome.name if len(outcomes) > 1 or (report.file and not described) else None
        supported = None
        if report.environment.driver:
            from compat.tables.hardware import driver_cuda

            supported = driver_cuda(report.environment)
        said = nothing_found(report, options.one("baseline"))
        emit(coloured(rendered(report, title=title, driver_cuda=supported, nothing=said)))
