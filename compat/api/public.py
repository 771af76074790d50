"""The public API: the commands as functions that return typed values.

>>> import compat
>>> report = compat.check({"distributions": [{"name": "trl", "version": "0.14.0"}, {"name": "vllm", "version": "0.6.6.post1"}]},
...                       gpu="A100:2", task="grpo", features=["vllm"])
>>> report.exit
1

Keyword arguments are the options of the commands, with underscores: ``gpu``, ``driver``, ``task``, ``launcher``, ``processes``,
``features``, ``python_version``, ``target``, ``extras``, ``rules`` … Pass a list for an option that may be repeated.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from compat.api.commands import Options, checked, command_named, nearest
from compat.api.inputs import Subject, read_subject
from compat.api.report import config_of, report_of
from compat.formats.described import parse_described
from compat.model import Environment, Report
from compat.records import replace, values_of
from compat.rules.compiled import Matrix, open_matrix

if TYPE_CHECKING:
    from compat.repair.plan import Plan

Option: TypeAlias = "str | int | bool | os.PathLike[str] | Sequence[str] | None"


class DisplayedReport(Report):
    """A report that a notebook shows as HTML, and everything else as the text of the command."""

    def __str__(self) -> str:
        from compat.output.terminal import render_text

        return render_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from compat.output.html.report import fragment

        return fragment(self)


def check(
    subject: str | os.PathLike[str] | Environment | Mapping[str, object] | None = None,
    *,
    command: Sequence[str] | None = None,
    **options: Option,
) -> Report:
    """Check a file, an environment, or (without ``subject``) the packages installed in the running interpreter.

    ``subject`` is a path (any file that ``compat check FILE`` reads), an :class:`Environment` or a mapping of the contract
    ``compat/environment/1``. ``command`` is the command about to be started, such as ``["python", "train.py"]``; it is read,
    not run. ``report.exit`` is 0 for no finding at or above ``fail_on``, 1 for findings, 3 if it could not be decided.
    A notebook displays the report as HTML; printed, it is the text of the command.

    Raises :class:`compat.errors.InputError` for input that cannot be read or an invalid value of an option, and
    :class:`TypeError` for an unknown option or one of the wrong type.
    """
    chosen = options_of("check", command, options)
    matrix = open_matrix(chosen.values.get("rules", ()))
    read = subject_of(subject, matrix)
    report = report_of(read, chosen, config_of(read.file or ".", chosen), matrix)
    return DisplayedReport(*values_of(report))


def doctor(*, command: Sequence[str] | None = None, **options: Option) -> Report:
    """Check this machine: its GPUs, driver and the packages installed in the running interpreter.

    ``python`` names another interpreter or environment; it is read, not started. ``command``, the other options and the
    exceptions are those of :func:`check`.
    """
    from compat.api.machine import read_machine
    from compat.api.report import machine_report

    chosen = options_of("doctor", command, options)
    matrix = open_matrix(chosen.values.get("rules", ()))
    machine = read_machine(chosen.one("python"), matrix, states_gpus=chosen.flag("gpu"))
    return DisplayedReport(*values_of(machine_report(machine.environment, chosen, matrix, machine.notes)))


def diagnose(text: str, *, environment: Environment | Mapping[str, object] | None = None, **options: Option) -> Report:
    """Explain the errors in a pasted traceback, log or issue, like ``compat diagnose``.

    >>> installed = [{"name": "verl", "version": "0.7.0"}, {"name": "transformers", "version": "5.0.0"}]
    >>> error = "ImportError: cannot import name 'AutoModelForVision2Seq' from 'transformers'"
    >>> report = compat.diagnose(error, environment={"distributions": installed})
    >>> report.findings[0].title
    "verl before 0.7.1 fails with transformers 5: cannot import name 'AutoModelForVision2Seq'"

    Uses ``environment`` and the facts that the text adds; by default, the environment described in the text.
    Options and exceptions are those of :func:`check`.
    """
    from compat.api.diagnosis import report_on

    chosen = options_of("diagnose", None, options)
    matrix = open_matrix(chosen.values.get("rules", ()))
    known = None if environment is None else subject_of(environment, matrix)
    report = report_on(text, None if known is None else known.environment, chosen, matrix)
    notes = report.notes if known is None else (*known.notes, *report.notes)
    return DisplayedReport(*values_of(replace(report, notes=notes)))


def fix(
    subject: str | os.PathLike[str] | Environment | Mapping[str, object] | None = None,
    *,
    command: Sequence[str] | None = None,
    **options: Option,
) -> Plan:
    """Find the smallest set of changes that fixes every error, like ``compat fix``. Nothing is written or installed.

    >>> compat.fix({"python": "3.11", "distributions": [{"name": "trl", "version": "0.16.0"}]}, offline=True).changes
    ()

    ``subject`` is as for :func:`check`. ``plan.changes`` have ``name``, ``before``, ``after`` and ``why``; ``plan.stands`` is
    whether they can be applied, ``plan.why_not`` the reason if not, and ``plan.left`` are the errors that no release fixes.
    Of a file with several environments (services, jobs), it has the changes of all.

    Raises the exceptions of :func:`check`, and :class:`compat.errors.Undecided` if a required index cannot be reached or time
    runs out (``time_limit``, in seconds) before a plan is found.
    """
    from compat.api.case import described_case
    from compat.api.environments import repairs_of, whole_plan
    from compat.api.fixing import repair_of

    operands = (os.fspath(subject),) if isinstance(subject, (str, os.PathLike)) else ()
    chosen = options_of("fix", command, options, operands)
    matrix = open_matrix(chosen.values.get("rules", ()))
    if operands or subject is None:
        return whole_plan(repairs_of(chosen, matrix))
    read = subject_of(subject, matrix)
    return repair_of(chosen, matrix, described_case(read.environment or Environment(), read.notes, chosen)).plan


def subject_of(subject: str | os.PathLike[str] | Environment | Mapping[str, object] | None, matrix: Matrix) -> Subject:
    """Read the ``subject`` argument of a call."""
    if subject is None:
        return read_subject("installed", "", matrix)
    if isinstance(subject, Environment):
        return Subject("environment", environment=subject)
    if isinstance(subject, Mapping):
        environment, notes = parse_described({"schema": "compat/environment/1", **subject}, "environment")
        return Subject("environment", environment=environment, notes=notes)
    return read_subject("file", os.fspath(subject), matrix)


_OF_COMMANDS = ("format", "quiet", "brief", "write", "environment", "pasted", "installed", "baseline", "probe")
"""Options of the commands that calls do not take: they select the output, or the input, which is ``subject`` here."""


def options_of(
    name: str, command: Sequence[str] | None, options: Mapping[str, Option], operands: tuple[str, ...] = ()
) -> Options:
    """Convert keyword arguments to the options of a command: ``python_version="3.11"`` is ``--python-version 3.11``.

    Nothing is silently ignored: an unknown option raises :class:`TypeError`, an invalid value :class:`InputError`.
    """
    known = {each.name.replace("-", "_"): each for each in command_named(name).options if each.name not in _OF_COMMANDS}
    values: dict[str, list[str]] = {}
    for key, value in options.items():
        if key not in known:
            raise TypeError(f"{name}() got an unexpected keyword argument {key!r}{nearest(key, list(known))}")
        option = known[key]
        if value is None or value is False:
            continue
        if (value is True) != (option.metavar is None):
            raise TypeError(f"{key}: expected {'True or False' if option.metavar is None else option.metavar}, not {value!r}")
        given = [value] if isinstance(value, (str, int, os.PathLike)) else list(value)
        if not all(isinstance(each, (str, int, os.PathLike)) for each in given):
            raise TypeError(f"{key}: expected a string, a number, a boolean or a list of strings, not {value!r}")
        values[option.name] = [""] if value is True else [checked(option, str(each)) for each in given]
    return Options(command=name, values=values, operands=operands, rest=None if command is None else tuple(command))
