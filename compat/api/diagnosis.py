"""Diagnosis of pasted text, which is read both as a description of an environment and as an error."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compat.api.targets import stated, threshold_code
from compat.checks import named_devices
from compat.checks.advice import with_ranked_fixes
from compat.diagnosis.diagnose import diagnose
from compat.diagnosis.frame_packages import meeting
from compat.errors import InputError
from compat.model import Distribution, Environment, Finding, Report, Workload
from compat.records import record, replace
from compat.reports.lines import cut_lines
from compat.reports.log.native import FAILURE, NOTICE, native_weight
from compat.reports.log.traceback import RaisedError, decisive, parse_log, versions_in
from compat.reports.pasted import read_pasted
from compat.reports.stated import told_in

if TYPE_CHECKING:
    from compat.api.commands import Options
    from compat.rules.compiled import Matrix


@record(frozen=True)
class Diagnosis:
    """The diagnosis of the errors in a text, with the environment used for it."""

    environment: Environment
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    errors: tuple[RaisedError, ...]


def environment_in(text: str) -> tuple[Environment, tuple[str, ...]]:
    """The environment described in a text, by reports, lists, logs, error messages or prose."""
    try:
        environment, notes = read_pasted(text, "the text")
    except InputError:  # an error alone describes no environment
        environment, notes = Environment(), ()
    return _filled(environment, told_in(text)), notes


def shows_error(errors: tuple[RaisedError, ...]) -> bool:
    """Whether any of them is a real error, or a warning known to name a cause, rather than noise in the log."""
    return any(error.exception or error.frames or native_weight(error.message) in (FAILURE, NOTICE) for error in errors)


def with_versions_of(text: str, environment: Environment) -> tuple[Environment, tuple[str, ...]]:
    """A known environment with the facts a text adds, and a note for each package whose versions differ."""
    named = versions_in(text)
    known = {copy.name: copy.version for copy in environment.distributions or ()}
    notes = tuple(
        f"the text names {name} {version}, but the environment has {known[name]}: the error may come from another environment"
        for name, version in named.items()
        if known.get(name) not in (None, version) and str(known[name]).partition("+")[0] != version.partition("+")[0]
    )
    told = Environment(distributions=tuple(Distribution(name=name, version=version) for name, version in named.items()))
    return _filled(_filled(environment, told), told_in(text)), notes


def report_on(text: str, given: Environment | None, options: Options, matrix: Matrix) -> Report:
    """Diagnose the errors in a text for the environment ``given``, or (``None``) for the one that the text describes."""
    text = cut_lines(text)
    if not text.strip():
        raise InputError("the text is empty: expected a traceback or a log")
    environment, notes = environment_in(text) if given is None else with_versions_of(text, given)
    found = diagnosed(text, stated(environment, options), matrix)
    notes = (*notes, *found.notes, *(() if found.findings else unexplained(found.errors)))
    return Report(found.environment, found.findings, notes, threshold_code(found.findings, options))


def diagnosed(text: str, environment: Environment, matrix: Matrix) -> Diagnosis:
    """Diagnose the errors in a text for an environment."""
    errors = parse_log(text)
    environment, notes = named_devices(_with_task(environment, errors))
    findings = diagnose(text, errors, decisive(errors), environment, matrix)
    return Diagnosis(environment, with_ranked_fixes(findings, environment, matrix), notes, errors)


def _filled(environment: Environment, told: Environment) -> Environment:
    """The environment completed with facts from the other one; a complete package list is never extended."""
    names = {copy.name for copy in environment.distributions or ()}
    new = tuple(copy for copy in told.distributions or () if copy.name not in names)
    changes = {
        name: getattr(told, name)
        for name in ("python", "accelerators", "cuda_toolkit", "os", "machine", "glibc")
        if getattr(environment, name) is None and getattr(told, name) is not None
    }
    if new and not environment.distributions_complete:
        changes["distributions"] = (*(environment.distributions or ()), *new)
    return replace(environment, **changes) if changes else environment


_TRAINER = re.compile(
    r"trl[/\\]trainer[/\\](?P<task>sft|grpo|dpo|ppo|orpo|kto|cpo|bco|reward|rloo|online_dpo|xpo|nash_md)_trainer\.py$"
)


def _with_task(environment: Environment, errors: tuple[RaisedError, ...]) -> Environment:
    """The environment with the task shown by the frames of the errors, if neither task nor trainer is known."""
    workload = environment.workload or Workload()
    if workload.task is not None or workload.trainer is not None:
        return environment
    tasks = {match["task"] for error in errors for frame in error.frames if (match := _TRAINER.search(frame.file))}
    if len(tasks) != 1:  # trainers import one another, so several tasks are ambiguous
        return environment
    return replace(environment, workload=replace(workload, task=tasks.pop().replace("_", "-")))


def unexplained(errors: tuple[RaisedError, ...]) -> tuple[str, ...]:
    """Notes on errors that no rule matches: the main error, search terms, and the packages involved."""
    order = [number for number in decisive(errors) if errors[number].exception or errors[number].message.strip()]
    if not order:
        cut = " (it ends before the error message)" if errors else ""
        return (f"no error found in the text{cut}; paste the whole traceback, from 'Traceback' to the last line",)
    error = errors[order[0]]
    last = _first_line(error)
    name = f"{error.exception}: {last}" if error.exception else last
    both = meeting(error)
    where = f" (in the issues of {' and '.join(both)})" if both else ""
    return (
        f"no rule matches the main error (line {error.line}): {name}",
        f"search for: {search_terms(error)}{where}",
    )


def _first_line(error: RaisedError) -> str:
    return error.message.strip().partition("\n")[0].strip()


def search_terms(error: RaisedError) -> str:
    """The error without the parts specific to one run: numbers, addresses, paths."""
    message = re.sub(r"0x[0-9a-f]+|(?<![\w.+-])(?:/[\w.+-]+){2,}|\d+", " ", _first_line(error)[:2000])
    words = " ".join(message.split())[:120]
    parts = (error.exception.rpartition(".")[2] if error.exception else "", words)
    return " ".join(f'"{part}"' for part in parts if part)
