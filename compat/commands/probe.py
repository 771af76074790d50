"""``compat probe``: the installed stack, run on the devices that are there."""

from __future__ import annotations

from compat.probe.request import requested
from compat.probe.session import probe
from compat.show.output import emit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.options import Words
    from compat.probe.results import ProbeReport


def run(words: Words) -> int:
    """Probes the stack; 0 where nothing failed, 1 a failed probe, 3 where ``--require-device`` found none to probe."""
    from compat.commands.machine import read_machine
    from compat.matrix.compiled import open_matrix

    request = requested(words)
    machine = read_machine(words.one("python"), open_matrix(()))
    report = probe(request, machine.environment)
    show(report, words.one("format") or "text", machine.label)
    return report.exit


def show(report: ProbeReport, form: str, label: str) -> None:
    """Prints a report of probes as text or JSON."""
    if form == "json":
        from compat.show.json import dumped

        emit(dumped(report.to_json()))
    else:
        from compat.show.probes import rendered
        from compat.show.terminal import coloured

        emit(coloured(rendered(report, label)))
