"""``compat probe``: test the installed stack on the devices of this machine."""

from __future__ import annotations

import os
import sys

from compat.api.commands import Options
from compat.api.machine import read_machine
from compat.api.probe import probe
from compat.errors import InputError, printable
from compat.machine.interpreter import default_target, target_at
from compat.output.stream import emit, emit_json
from compat.output.terminal import coloured, wrap_text
from compat.probe.request import (
    COULD_NOT_RUN,
    FAILED,
    LIMITS,
    NAMES,
    NO_ACCELERATOR,
    NORMAL,
    PASSED,
    QUICK,
    THOROUGH,
    ProbeReport,
    ProbeResult,
    Request,
)
from compat.rules.compiled import open_matrix

_WORDS = 4
"""Last words of a failed probe that are shown."""
_ABSENT = " is not installed"


def run(options: Options) -> int:
    """Probe the stack.

    Returns 0 if nothing failed, 1 if a probe failed, 3 if no accelerator was probed although one is named or required.
    """
    request = requested(options)
    machine = read_machine(options.one("python"), open_matrix(()))
    report = probe(request, machine.environment)
    show(report, options.one("format") or "text", machine.label)
    return report.exit


def show(report: ProbeReport, form: str, label: str) -> None:
    """Print a probe report as text or JSON; ``label`` names the environment."""
    if form == "json":
        emit_json(report.to_json())
    else:
        emit(coloured(rendered(report, label)))


def requested(options: Options) -> Request:
    """Return the request of a command line; raises :class:`InputError` for an unknown group or device or an invalid timeout."""
    if options.flag("quick") and options.flag("thorough"):
        raise InputError("--quick and --thorough are mutually exclusive")
    depth = QUICK if options.flag("quick") else THOROUGH if options.flag("thorough") else NORMAL
    only = tuple(dict.fromkeys(options.all("only")))
    for name in only:
        if name.partition("/")[0] not in NAMES:
            raise InputError(f"--only: {name!r} is not a probe group ({', '.join(NAMES)})")
    if options.flag("only") and not only:
        raise InputError(f"--only: expected probe groups: {', '.join(NAMES)}")
    trainer = options.one("trainer")
    if trainer is not None and only and not any(name.partition("/")[0] == "trainer" for name in only):
        raise InputError("--trainer needs the group 'trainer', which --only leaves out")
    return Request(
        python=interpreter(options.one("python")),
        device=_device_name(options.one("device") or "all"),
        only=only,
        depth=depth,
        trainer=trainer,
        launcher=options.one("launcher"),
        limit=seconds_of(options.one("timeout"), LIMITS[depth]),
        device_required=options.flag("require-device") or options.one("device") not in (None, "all", "cpu"),
    )


def _device_name(name: str) -> str:
    kind, colon, index = name.partition(":")
    if name in ("all", "cpu", "cuda") or (kind == "cuda" and colon and index.isascii() and index.isdecimal()):
        return f"cuda:{int(index)}" if colon else name
    raise InputError(f"--device: expected all, cpu, cuda or cuda:NUMBER, not {name!r}")


def seconds_of(text: str | None, default: float) -> float:
    """Parse the value of ``--timeout`` in seconds; raises :class:`InputError` if it is invalid or more than a day."""
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
    """Return the path of the interpreter to start: the given one, the active environment's, or the running one.

    Raises :class:`InputError` if it is missing or not executable.
    """
    target = target_at(given) if given else default_target(os.environ)
    found = sys.executable if target.running else target.interpreter
    if not found or not os.access(os.path.expanduser(found), os.X_OK):
        where = given or target.label
        raise InputError(f"--python: {where} has no interpreter to start; pass the path of its python")
    return os.path.abspath(os.path.expanduser(found))


def rendered(report: ProbeReport, label: str | None = None) -> str:
    """Render the report as text: passed probes one line per group, failed ones in full, those that could not run by reason."""
    stack = next(iter(report.stacks.values()), {})
    text = f"Python at {report.python}"
    if stack:
        cuda = f"CUDA {stack['cuda']}" if stack.get("cuda") else f"ROCm {stack['hip']}" if stack.get("hip") else "CPU only"
        text = f"Python {stack['python']}{f' in {label}' if label else ''}, torch {stack['torch']} ({cuda})"
    lines = wrap_text(text, "  stack     ", " " * 12)
    nothing_else = any(result.device == "cuda" and result.why.startswith(NO_ACCELERATOR) for result in report.results)
    for device in dict.fromkeys(result.device for result in report.results):
        of_device = [result for result in report.results if result.device == device]
        if device == "cpu" and nothing_else:  # reported once, below cuda
            of_device = [result for result in of_device if not result.why.startswith(NO_ACCELERATOR)]
        lines += ["", f"  {device}", *_device(of_device)]
    passed, failed, open_ones = (
        sum(each.status == status for each in report.results) for status in (PASSED, FAILED, COULD_NOT_RUN)
    )
    lines += ["", f"  {passed} passed, {failed} failed, {open_ones} could not run, in {report.seconds:.1f} s."]
    return "\n".join(map(printable, lines))


def _device(results: list[ProbeResult]) -> list[str]:
    lines: list[str] = []
    for group in dict.fromkeys(result.group for result in results):
        of_group = [result for result in results if result.group == group]
        passed = [result for result in of_group if result.status == PASSED]
        if passed:
            seconds = sum(result.seconds for result in passed)
            names = ", ".join(_short(result) for result in passed)
            lines += wrap_text(f"{names} ({seconds:.1f} s)", f"  ✓ {group:<12}", " " * 16)
        for result in of_group:
            if result.status == FAILED:
                lines += _failed(result)
    return lines + _not_run([result for result in results if result.status == COULD_NOT_RUN])


def _short(result: ProbeResult) -> str:
    name = result.probe.partition("/")[2] or result.probe
    share = result.measured.get("of_peak")
    return f"{name} ({share:.0%} of the card's figure)" if isinstance(share, float) else name


def _failed(result: ProbeResult) -> list[str]:
    lines = [f"  ✗ {result.probe}", *wrap_text(result.why, "      ", "      ")]
    last_words = [word for word in result.last_words if word.strip() and word.strip() not in result.why]
    fatal = bool(result.last_words) and result.last_words[0].startswith("Fatal Python error")  # innermost call first
    last_words = last_words[:_WORDS] if fatal else last_words[-_WORDS:]
    lines += [line for word in last_words for line in wrap_text(word.strip(), "      │ ", "      │ ")]
    if result.fix:
        lines += wrap_text(result.fix, "      fix       ", " " * 16)
    return lines


def _not_run(results: list[ProbeResult]) -> list[str]:
    """Return one line per reason; missing packages share one line, as do missing accelerators."""
    absent = [result.why[: -len(_ABSENT)] for result in results if result.why.endswith(_ABSENT)]
    by_reason: dict[str, list[str]] = {}
    for result in results:
        if not result.why.endswith(_ABSENT):
            reason = NO_ACCELERATOR if result.why.startswith(NO_ACCELERATOR) and result.device == "cpu" else result.why
            by_reason.setdefault(reason, []).append(result.probe)
    lines: list[str] = []
    for why, names in by_reason.items():
        lines += wrap_text(f"could not run: {why}: {', '.join(names)}", "  – ", "    ")
    if absent:
        lines += wrap_text(f"not installed: {', '.join(dict.fromkeys(absent))}", "  – ", "    ")
    return lines
