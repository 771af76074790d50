"""``compat doctor``: read this machine, judge it, say what to do."""

from __future__ import annotations

from compat.commands.given import command_of, stated, threshold_code
from compat.commands.ignores import not_ignored
from compat.commands.judging import unreached
from compat.errors import InputError
from compat.judge import judged
from compat.judge.ranking import folded
from compat.matrix.compiled import open_matrix
from compat.read.project_config import find_config
from compat.report import Report
from compat.show.output import emit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.commands.machine import Machine
    from compat.environment import Environment
    from compat.matrix.compiled import Matrix
    from compat.options import Words
    from compat.report import Finding, Fix


def run(words: Words) -> int:
    """Judges this machine, or the described one, with what the command behind ``--`` tells about the workload.

    What the project in the current directory ignores is left out and counted in a note, as ``compat check`` does.
    """
    matrix = open_matrix(words.values.get("rules", ()))
    environment, machine, notes = _read(words, matrix)
    environment, more = command_of(environment, words)
    environment, findings, judged_notes = judged(stated(environment, words), matrix)
    findings = (*findings, *unreached(environment, words))
    if words.flag("python") and machine and machine.interpreter:
        findings = with_pip_of(machine.interpreter, findings)
    kept, ignored = not_ignored(findings, find_config(".").ignores)
    shown, folded_away = (kept, ()) if words.flag("all") else folded(kept, environment)
    report = Report(
        environment=environment, findings=tuple(shown), notes=(*notes, *more, *judged_notes, *ignored, *folded_away),
        exit=threshold_code(kept, words), ignored=len(findings) - len(kept),
    )  # fmt: skip
    if words.one("format") == "json":
        from compat.show.json import dumped

        emit(dumped(report.to_json()))
    else:
        from compat.matrix.gpus import driver_cuda
        from compat.show.nothing_found import nothing_found
        from compat.show.terminal import coloured, rendered

        # what this machine's driver supports says nothing about another one
        measured = machine.driver_cuda if machine and not words.flag("driver") else None
        label = machine.label if machine else None
        supported = measured or driver_cuda(report.environment)
        emit(coloured(rendered(report, label=label, driver_cuda=supported, nothing=nothing_found(report))))
    return report.exit


def _read(words: Words, matrix: Matrix) -> tuple[Environment, Machine | None, tuple[str, ...]]:
    if words.flag("environment"):
        if words.flag("python") or words.flag("deep"):
            raise InputError("--environment describes a machine; --python and --deep read this one: give one or the other")
        from compat.read.described import read_described

        environment, notes = read_described(words.one("environment") or "")
        return environment, None, notes
    from compat.commands.machine import read_machine

    machine = read_machine(words.one("python"), matrix)
    notes = machine.notes
    if words.flag("deep"):
        if not machine.running:
            raise InputError("--deep asks pip of the running environment; it is not used on another one")
        from compat.read.machine.pip_view import disagreements

        notes = (*notes, *disagreements(machine.environment))
    return machine.environment, machine, notes


def with_pip_of(interpreter: str, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings with pip commands that act on the environment that was read, not on the active one."""
    from compat.judge.wording import quoted
    from compat.records import replace

    pip = f"{quoted(interpreter)} -m pip "

    def aimed(fix: Fix) -> Fix:
        command = fix.command
        return replace(fix, command=command.replace("pip ", pip)) if command and command.startswith("pip ") else fix

    return tuple(replace(finding, fixes=tuple(map(aimed, finding.fixes))) for finding in findings)
