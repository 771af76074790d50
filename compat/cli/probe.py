"""``compat probe``: the installed stack, run on the devices that are there."""

from __future__ import annotations

import os
import sys

from compat.api.machine import read_machine
from compat.api.options import Options
from compat.api.probe import probe
from compat.errors import InputError
from compat.machine.interpreter import default_target, target_at
from compat.output.stream import emit
from compat.probe.request import LIMITS, NAMES, NORMAL, QUICK, THOROUGH, Request
from compat.probe.results import ProbeReport
from compat.rules.compiled import open_matrix


def run(options: Options) -> int:
    """Probes the stack; 0 where nothing failed, 1 a failed probe, 3 where ``--require-device`` found none to probe."""
    request = requested(options)
    machine = read_machine(options.one("python"), open_matrix(()))
    report = probe(request, machine.environment)
    show(report, options.one("format") or "text", machine.label)
    return report.exit


def show(report: ProbeReport, form: str, label: str) -> None:
    """Prints a report of probes as text or JSON."""
    if form == "json":
        from compat.output.json import dumped

        emit(dumped(report.to_json()))
    else:
        from compat.output.probes import rendered
        from compat.output.terminal import coloured

        emit(coloured(rendered(report, label)))


def requested(options: Options) -> Request:
    """The request of a command line; :class:`InputError` for a group, a device or a time that is none."""
    if options.flag("quick") and options.flag("thorough"):
        raise InputError("--quick and --thorough: give one or the other")
    depth = QUICK if options.flag("quick") else THOROUGH if options.flag("thorough") else NORMAL
    only = tuple(dict.fromkeys(options.all("only")))
    for name in only:
        if name.partition("/")[0] not in NAMES:
            raise InputError(f"--only: {name!r} is no group of probes: {', '.join(NAMES)}")
    if options.flag("only") and not only:
        raise InputError(f"--only: expected groups of probes: {', '.join(NAMES)}")
    trainer = options.one("trainer")
    if trainer is not None and only and not any(name.partition("/")[0] == "trainer" for name in only):
        raise InputError("--trainer goes with the group 'trainer', which --only leaves out")
    return Request(
        python=interpreter(options.one("python")),
        device=_device(options.one("device") or "all"),
        only=only,
        depth=depth,
        trainer=trainer,
        launcher=options.one("launcher"),
        limit=seconds_of(options.one("timeout"), LIMITS[depth]),
        device_required=options.flag("require-device"),
    )


def _device(name: str) -> str:
    kind, colon, index = name.partition(":")
    if name in ("all", "cpu", "cuda") or (kind == "cuda" and colon and index.isascii() and index.isdecimal()):
        return f"cuda:{int(index)}" if colon else name
    raise InputError(f"--device: expected all, cpu, cuda or cuda:NUMBER, not {name!r}")


def seconds_of(text: str | None, default: float) -> float:
    """The value of ``--timeout``; :class:`InputError` for anything but seconds of one day at most."""
    if text is None:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 86_400:
        raise InputError(f"--timeout: expected seconds between 0 and 86400, not {text!r}")
    return seconds


def interpreter(given: str | None) -> str:
    """The interpreter that is started: the one given, the active environment's, or the one that runs this.

    Raises :class:`InputError` where there is none to start.
    """
    target = target_at(given) if given else default_target(os.environ)
    found = sys.executable if target.running else target.interpreter
    if not found or not os.access(os.path.expanduser(found), os.X_OK):
        where = given or target.label
        raise InputError(f"--python: {where} has no interpreter to start; give the path of its python")
    return os.path.abspath(os.path.expanduser(found))
