"""``compat.guard()``: check the running interpreter and its script before expensive work starts.

>>> import compat
>>> report = compat.guard()  # doctest: +SKIP

Call it on the first line of a training script. Rank 0 checks and prints findings on standard error; the other ranks and
``multiprocessing`` workers return immediately, so a job is checked once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from compat.errors import InputError, complain, printable
from compat.model import SEVERITIES, Finding, Report, Workload, exit_code
from compat.records import replace, values_of

if TYPE_CHECKING:
    from compat.api.public import Option

SWITCH = "COMPAT_GUARD"
"""Environment variable: ``off``, ``warn`` (print only), or the level from which the guard raises: ``error`` or ``warning``."""
GUARDED = "COMPAT_GUARDED_PID"
"""Set by ``compat run`` for the process it turns into, whose own ``guard()`` has nothing left to do."""


class KnownBad(RuntimeError):
    """Raised by :func:`guard` for findings at or above ``fail_on``; ``report`` contains all findings."""

    def __init__(self, report: Report, worst: Finding) -> None:
        more = len(hits(report)) - 1
        also = f" (and {more} more finding{'s' if more > 1 else ''})" if more else ""
        super().__init__(printable(f"{worst.title} [{worst.rule}]{also}"))
        self.report = report


def guard(*, fail_on: str | None = None, **options: Option) -> Report | None:
    """Check the packages of this interpreter, this machine, and the running script with its arguments.

    Certain findings are printed on standard error. With ``fail_on`` ("error" or "warning"), :class:`KnownBad` is raised if
    one reaches that level. Other keyword arguments are options of ``compat doctor`` with underscores: ``task="grpo"``,
    ``features=["vllm"]`` … Variables set by the launcher are read automatically.

    Returns the report, or ``None`` if nothing was checked: on ranks other than 0, in a ``multiprocessing`` worker, or
    with ``COMPAT_GUARD=off``. Raises :class:`compat.errors.InputError` for an invalid option value. If the check
    itself fails, the error is printed, and raised if ``fail_on`` is set.
    """
    return _checked(started_command(), Workload(), options, fail_on)


def check_command(command: tuple[str, ...], options: Mapping[str, Option], fail_on: str | None = None) -> Report | None:
    """Run the check of :func:`guard` for a command that is about to replace this process."""
    return _checked(command, Workload(), options, fail_on)


def check_workload(workload: Workload, fail_on: str | None = None, task: str | None = None) -> Report | None:
    """Run the check of :func:`guard` for a workload that is known exactly, such as a trainer with its arguments.

    ``task`` is the default for a workload without one.
    """
    if workload.task is None and task is not None:
        workload = replace(workload, task=task)
    return _checked(None, workload, {}, fail_on)


def _checked(
    command: tuple[str, ...] | None, workload: Workload, options: Mapping[str, Option], fail_on: str | None
) -> Report | None:
    """Check this job, enforce and return the report; ``None`` if this process does not check or the guard is off."""
    if not is_first():
        return None
    level = _level(fail_on)
    return None if level == "off" else enforce(_report(command, workload, options, level), level)


def is_first() -> bool:
    """Return whether this process checks for its job: rank 0, and not a ``multiprocessing`` worker."""
    from compat.workload.launch import from_variables

    if os.environ.get(GUARDED) == str(os.getpid()):
        return False
    process = sys.modules.get("multiprocessing.process")  # a worker has already imported it; no other process needs the import
    # while a spawned worker re-imports the script, its parent is not set yet
    if process and (process.parent_process() is not None or getattr(process.current_process(), "_inheriting", False)):
        return False
    return not from_variables(os.environ).rank


def enforce(report: Report | None, level: str) -> Report | None:
    """Print the certain findings of a report, and raise :class:`KnownBad` if one reaches ``level``."""
    if report is None:
        return None
    found = hits(report)
    if found:
        from compat.output.stream import harmless
        from compat.output.terminal import render_text
        from compat.redact import redacted

        complain(harmless(redacted(render_text(replace(report, findings=found, notes=()), title="compat"))))
    if level != "warn" and exit_code(found, level):
        raise KnownBad(report, found[0])
    return report


def hits(report: Report) -> tuple[Finding, ...]:
    """Return the certain findings that are at least warnings, worst first."""
    least = SEVERITIES.index("warning")
    return tuple(each for each in report.findings if each.verdict == "hit" and SEVERITIES.index(each.severity) <= least)


def started_command() -> tuple[str, ...] | None:
    """Return the command line of this program, as a launcher sees it; ``None`` in a notebook or an interactive session."""
    main = sys.modules.get("__main__")
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    python = os.path.basename(sys.executable) or "python"
    if spec is not None and spec.name:
        return (python, "-m", spec.name.removesuffix(".__main__"), *sys.argv[1:])
    return None if file is None else (python, file, *sys.argv[1:])


def _level(fail_on: str | None) -> str:
    """Return ``off``, ``warn``, ``error`` or ``warning``; the environment variable overrides the argument."""
    switch = os.environ.get(SWITCH, "").strip().lower()
    for where, value in ((f"${SWITCH}", switch), ("fail_on", fail_on or "")):
        if value and value not in ("off", "warn", "error", "warning"):
            raise InputError(f"{where}: {value!r} is not one of off, warn, error, warning")
    return switch or fail_on or "warn"


def _report(command: tuple[str, ...] | None, workload: Workload, options: Mapping[str, Option], level: str) -> Report | None:
    from compat.api.machine import read_machine
    from compat.api.public import DisplayedReport, options_of
    from compat.api.report import machine_report
    from compat.machine.interpreter import running_target
    from compat.rules.compiled import open_matrix
    from compat.workload.launch import merge_workloads

    chosen = options_of("doctor", command, options)
    try:
        matrix = open_matrix(chosen.values.get("rules", ()))
        machine = read_machine(running_target(), matrix)
        known = machine.environment.workload or Workload()
        environment = replace(machine.environment, workload=merge_workloads(workload, known), started=True)
        return DisplayedReport(*values_of(machine_report(environment, chosen, matrix, machine.notes)))
    except Exception as problem:  # a guard that cannot check reports that, so that it is not mistaken for a passed check
        if level != "warn":
            raise
        complain(f"compat: could not check this job: {printable(str(problem))}")
        return None
