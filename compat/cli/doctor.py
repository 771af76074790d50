"""``compat doctor``: inspect this machine, check it and suggest fixes."""

from __future__ import annotations

import os

from compat.api.commands import Options
from compat.api.report import filter_findings, machine_report
from compat.errors import InputError
from compat.model import Environment, Finding, Fix, Outcome, Report
from compat.output.stream import emit, emit_json
from compat.records import replace
from compat.rules.compiled import Matrix, open_matrix
from compat.rules.evaluate import quoted
from compat.versions import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.api.machine import Machine
    from compat.checks.memory import Memory
    from compat.probe.request import ProbeReport
    from compat.workload.model_files import ModelSize


def run(options: Options) -> int:
    """Check this machine, or the described one, for the workload of the command after ``--``.

    Findings that the project in the current directory ignores are counted in a note, as in ``compat check``.
    """
    matrix = open_matrix(options.values.get("rules", ()))
    model = _model(options.one("model"))
    if model is not None:  # rules know architectures, not folders
        options = replace(options, values={**options.values, "model": [model.kind] * bool(model.kind)})
    environment, machine, notes = _read(options, matrix)
    if options.rest:
        environment, machine, notes, options = _inside(environment, machine, notes, options)
    report = machine_report(environment, options, matrix, notes)
    if machine and not (options.flag("os") or options.flag("driver")):
        report = replace(report, findings=with_system_of(machine, report.findings))
    memory, report = (None, report) if model is None else _with_memory(model, report, options)
    if options.flag("python") and machine and machine.interpreter:
        together = tuple(each.replace("pip ", f"{quoted(machine.interpreter)} -m pip ", 1) for each in report.together)
        report = replace(report, findings=with_pip_of(machine.interpreter, report.findings), together=together)
    if options.flag("probe") and options.one("format") == "html":
        raise InputError("--format html does not show the results of --probe; use text or json")
    probes = _probed(options, report.environment) if options.flag("probe") else None
    code = report.exit if probes is None else report.exit or probes.exit
    if options.one("format") == "json":
        document = report.to_json()
        if probes is not None:
            document.update(probes=probes.to_json()["probes"], exit=code)
        if memory is not None:
            document["memory"] = memory.to_json()
        emit_json(document)
    else:
        _show(options, report, machine, probes, memory, len(matrix))
    return code


def _show(
    options: Options, report: Report, machine: Machine | None, probes: ProbeReport | None, memory: Memory | None, rules: int
) -> None:
    """Print the findings as text or as an HTML page."""
    label = machine.label if machine else None
    if not options.flag("all"):
        from compat.checks.together import fold_missing

        report = replace(report, findings=fold_missing(report.findings))
    if options.one("format") == "html":
        from compat.output.html.report import outcomes_page

        if memory is not None:
            report = replace(report, notes=(*report.notes, *memory.rows()))
        emit(outcomes_page([Outcome(label or "", report)]))
        return
    from compat.output.terminal import coloured, nothing_found, render_text, wrap_text
    from compat.tables.hardware import driver_cuda

    # this machine's driver says nothing about another machine
    measured = machine.driver_cuda if machine and not options.flag("driver") else None
    supported = measured or driver_cuda(report.environment)
    emit(coloured(render_text(report, label=label, driver_cuda=supported, nothing=nothing_found(report, rules=rules))))
    if memory is not None:
        first, *others = memory.rows()
        lines = wrap_text(first, "  memory    ", " " * 12)
        emit("\n".join(("", *lines, *(line for row in others for line in wrap_text(row, " " * 12, " " * 14)))))
    if probes is not None:
        from compat.cli.probe import show

        emit("")
        show(probes, "text", label or probes.python)


def _model(given: str | None) -> ModelSize | None:
    """Return the model whose folder or ``config.json`` ``--model`` gives; ``None`` if it is only a name (``org/model``)."""
    if given is None:
        return None
    is_nested = given.count("/") > 1 and "://" not in given  # deeper than the name of a model on a hub
    if not (os.path.exists(given) or given.startswith((".", "/", "~")) or given.endswith(".json") or is_nested):
        return None
    from compat.workload.model_files import read_model

    return read_model(os.path.expanduser(given))


def _with_memory(model: ModelSize, report: Report, options: Options) -> tuple[Memory, Report]:
    """Return the memory estimates, and the report with their findings and those about the model's support added."""
    from compat.checks import models
    from compat.checks.memory import estimate_memory, judge_memory

    memory = estimate_memory(model, report.environment)
    found = (*models.judge(model, report.environment), *judge_memory(memory, report.environment))
    chosen = filter_findings((*report.findings, *found), (), options)
    return memory, replace(report, findings=chosen.findings, exit=chosen.exit)


def _probed(options: Options, environment: Environment) -> ProbeReport:
    """Run the probes on this machine, with the trainer and the launcher of the command.

    Without an installed torch there is a single result that says so.
    """
    from compat.api.probe import probe
    from compat.cli.probe import interpreter
    from compat.probe.request import COULD_NOT_RUN, LAUNCHERS, TRAINERS, ProbeReport, ProbeResult, Request
    from compat.probe.session import NoTorch

    workload = environment.workload
    task = options.one("task") or (workload.task if workload else None)
    launcher = options.one("launcher") or (workload.launcher if workload else None)
    request = Request(
        interpreter(options.one("python")),
        trainer=task if task in TRAINERS else None,
        launcher=launcher if launcher in LAUNCHERS else None,
    )
    try:
        return probe(request, environment)
    except NoTorch as reason:
        return ProbeReport((ProbeResult("torch/import", "cpu", COULD_NOT_RUN, str(reason)),), request.python, {}, 0.0, 0)


def _read(options: Options, matrix: Matrix) -> tuple[Environment, Machine | None, tuple[str, ...]]:
    if options.flag("environment"):
        if options.flag("probe"):
            raise InputError("--probe runs on this machine; it cannot be combined with --environment")
        if options.flag("python") or options.flag("deep"):
            raise InputError("--python and --deep read this machine; they cannot be combined with --environment")
        from compat.formats.described import read_described

        environment, notes = read_described(options.one("environment") or "")
        return environment, None, notes
    from compat.api.machine import read_machine

    machine = read_machine(options.one("python"), matrix, states_gpus=options.flag("gpu"))
    notes = machine.notes
    if options.flag("deep"):
        if not machine.running:
            raise InputError("--deep only works for the running environment; it cannot be combined with --python")
        from compat.machine.interpreter import disagreements

        notes = (*notes, *disagreements(machine.environment))
    return machine.environment, machine, notes


def _inside(
    environment: Environment, machine: Machine | None, notes: tuple[str, ...], options: Options
) -> tuple[Environment, Machine | None, tuple[str, ...], Options]:
    """Return what a command that starts a container runs on this machine: the packages of its image instead of those here."""
    from compat.workload.wrappers import CONTAINERS

    words = options.rest or ()
    if not set(CONTAINERS).intersection(words):
        return environment, machine, notes, options
    from compat.formats.containers import in_container

    found = in_container(environment, words)
    if found is None:
        return environment, machine, notes, options
    image, environment, notes = found
    values = {name: each for name, each in options.values.items() if name != "python"}
    machine = machine and replace(machine, label=image)
    return environment, machine, notes, replace(options, rest=None, values=values)


def with_system_of(machine: Machine, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings with this system's commands for fixes that install a driver or a toolkit."""
    if not any(fix.kind in ("driver", "config") for finding in findings for fix in finding.fixes):
        return findings

    from compat.checks.fix_commands import host_of, with_host_commands
    from compat.machine.system import first_text, in_container

    environment = machine.environment
    conda = any(os.path.isdir(f"{os.path.dirname(os.path.dirname(os.path.dirname(each)))}/conda-meta")
                for each in environment.folders or ())  # fmt: skip
    old = any(each.vendor == "nvidia" and each.compute_capability and key_of(each.compute_capability) < key_of("7.5")
              for each in environment.accelerators or ())  # fmt: skip
    host = host_of(environment.os or "", first_text("/etc/os-release"), wsl=(environment.platform or "").startswith("wsl"),
                   container=in_container() is True, conda=conda, old=old)  # fmt: skip
    return with_host_commands(host, findings)


def with_pip_of(interpreter: str, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings with pip commands that act on the checked environment instead of the active one."""
    pip = f"{quoted(interpreter)} -m pip "

    def aimed(fix: Fix) -> Fix:
        command = fix.command
        return replace(fix, command=command.replace("pip ", pip)) if command and command.startswith("pip ") else fix

    return tuple(replace(finding, fixes=tuple(map(aimed, finding.fixes))) for finding in findings)
