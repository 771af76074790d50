"""``compat check``: findings for files, described or pasted environments, and the installed environment."""

from __future__ import annotations

import os
import sys

from compat.api.commands import REPORTS, Options
from compat.api.inputs import files_in, read_subject
from compat.api.report import config_of, report_of
from compat.api.targets import threshold_code, unread_code
from compat.errors import InputError, Undecided, unexpected
from compat.model import Outcome
from compat.output.stream import emit, emit_json
from compat.records import replace
from compat.rules.compiled import open_matrix

_PRECEDENCE = (2, 1, 3, 0)
"""Exit codes of a call with several files: unusable input before findings before undecided."""


def run(options: Options) -> int:
    """Check every input. Invalid input sets the exit code to 2; the remaining inputs are still checked."""
    things = _named(options) or _here()
    matrix = open_matrix(options.values.get("rules", ()))
    outcomes = [Outcome(problem.file or "", error=problem) for problem in unread_code(options)]
    for kind, name in things:
        try:
            subject = read_subject(kind, name, matrix)
            config = config_of(name if kind == "file" else ".", options)
            outcomes.append(Outcome(name, report_of(subject, options, config, matrix)))
        except InputError as problem:
            outcomes.append(Outcome(name, error=problem))
        except Undecided:
            raise
        except Exception as problem:
            outcomes.append(Outcome(name, error=unexpected(problem, name)))
    if options.flag("baseline"):
        outcomes = _new_ones(outcomes, options)
    form = options.one("format") or "text"
    if form in ("text", "json"):
        for outcome in outcomes:
            if outcome.error is not None:
                print(f"compat: {outcome.error}", file=sys.stderr)
    if form == "text":
        _print_text(outcomes, options)
    else:
        _print_formatted(form, outcomes, options)
    codes = {outcome.exit for outcome in outcomes}
    return next(code for code in _PRECEDENCE if code in codes)


def _named(options: Options) -> list[tuple[str, str]]:
    """Return the inputs with their kinds. ``--script`` alone is checked against the installed environment."""
    things = [("file", name) for operand in options.operands for name in _expanded(operand)]
    things += [("described", name) for name in options.values.get("environment", ())]
    things += [("pasted", name) for name in options.values.get("pasted", ())]
    installed = options.flag("installed") or (options.flag("script") and not things)
    if options.flag("python") and not installed:
        raise InputError("--python needs --installed; to check an environment on this machine, use 'compat doctor --python'")
    return [*things, ("installed", options.one("python") or "")] if installed else things


def _expanded(operand: str) -> list[str]:
    """Return the files of a folder that list what gets installed, or the operand itself."""
    if not os.path.isdir(operand):
        return [operand]

    return files_in(operand)


def _here() -> list[tuple[str, str]]:
    """Return the files of the working directory that list what gets installed."""
    try:
        return [("file", name) for name in files_in(".")]
    except InputError:
        problem = "nothing to check: no file here lists packages; pass files, a folder, --environment, --pasted or --installed"
        raise InputError(problem) from None


def _new_ones(outcomes: list[Outcome], options: Options) -> list[Outcome]:
    """Return the outcomes without the findings in the baseline; exit codes reflect the remaining findings."""
    from compat.checks.baseline import new_only, read_baseline

    baseline = read_baseline(options.one("baseline") or "")
    left = []
    for outcome in outcomes:
        outcome = new_only(outcome, baseline)
        report = outcome.report
        if report is not None and report.exit == 1:
            outcome = replace(outcome, report=replace(report, exit=threshold_code(report.findings, options)))
        left.append(outcome)
    return left


def _print_formatted(form: str, outcomes: list[Outcome], options: Options) -> None:
    """Print the outcomes in the format of ``--format``: JSON here, the others by their module."""
    if form != "json":
        import importlib

        _, module, function = REPORTS[form]
        project = _project_file(options)
        text = getattr(importlib.import_module(module), function)([replace(each, project=project) for each in outcomes])
        if text:
            emit(text, utf_8=form == "github")
    elif len(outcomes) > 1:
        emit_json([outcome.to_json() for outcome in outcomes])
    else:
        for outcome in outcomes:
            if outcome.report is not None:
                emit_json(outcome.report.to_json())


def _project_file(options: Options) -> str | None:
    """Return the file that declares the targets: code scanning attaches findings about an installation to it."""
    from compat.formats.project.config import FILE, find_config

    given = options.one("config")
    if given is not None and given != "none":
        return given
    try:
        declared = None if given == "none" else find_config(".").file
    except InputError as problem:
        declared = problem.file  # reported where it is used
    return declared or (FILE if os.path.isfile(FILE) else None)


def _print_text(outcomes: list[Outcome], options: Options) -> None:
    from compat.output.terminal import coloured, nothing_found, render_text

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
        nothing = nothing_found(report, options.one("baseline"))
        emit(coloured(render_text(report, title=title, driver_cuda=supported, nothing=nothing)))
