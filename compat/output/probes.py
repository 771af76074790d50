"""Results of probes for people: what passed in a line a group, what failed in full, what could not run with its reason."""

from __future__ import annotations

from compat.errors import printable
from compat.output.terminal import wrapped
from compat.probe.request import NO_ACCELERATOR
from compat.probe.results import COULD_NOT_RUN, FAILED, PASSED, ProbeReport, ProbeResult

_WORDS = 4
_ABSENT = " is not installed"


def rendered(report: ProbeReport, label: str | None = None) -> str:
    """The report as text of 80 columns."""
    lines = wrapped(_stack(report, label), "  stack     ", " " * 12)
    nothing_else = any(result.device == "cuda" and result.why.startswith(NO_ACCELERATOR) for result in report.results)
    for device in dict.fromkeys(result.device for result in report.results):
        of_device = [result for result in report.results if result.device == device]
        if device == "cpu" and nothing_else:  # said once, below cuda
            of_device = [result for result in of_device if not result.why.startswith(NO_ACCELERATOR)]
        lines += ["", f"  {device}", *_device(of_device)]
    lines += ["", f"  {_summary(report)}"]
    return "\n".join(map(printable, lines))


def _stack(report: ProbeReport, label: str | None) -> str:
    stack = next(iter(report.stacks.values()), {})
    where = f" in {label}" if label else ""
    if not stack:
        return f"Python at {report.python}"
    cuda = f"CUDA {stack['cuda']}" if stack.get("cuda") else f"ROCm {stack['hip']}" if stack.get("hip") else "CPU only"
    return f"Python {stack['python']}{where}, torch {stack['torch']} ({cuda})"


def _device(results: list[ProbeResult]) -> list[str]:
    lines: list[str] = []
    for group in dict.fromkeys(result.group for result in results):
        of_group = [result for result in results if result.group == group]
        passed = [result for result in of_group if result.status == PASSED]
        if passed:
            seconds = sum(result.seconds for result in passed)
            names = ", ".join(_short(result) for result in passed)
            lines += wrapped(f"{names} ({seconds:.1f} s)", f"  ✓ {group:<12}", " " * 16)
        for result in of_group:
            if result.status == FAILED:
                lines += _failed(result)
    return lines + _not_run([result for result in results if result.status == COULD_NOT_RUN])


def _short(result: ProbeResult) -> str:
    name = result.probe.partition("/")[2] or result.probe
    share = result.measured.get("of_peak")
    return f"{name} ({share:.0%} of the card's figure)" if isinstance(share, float) else name


def _failed(result: ProbeResult) -> list[str]:
    lines = [f"  ✗ {result.probe}", *wrapped(result.why, "      ", "      ")]
    said = [word for word in result.last_words if word.strip() and word.strip() not in result.why]
    fatal = bool(result.last_words) and result.last_words[0].startswith("Fatal Python error")  # innermost call first
    said = said[:_WORDS] if fatal else said[-_WORDS:]
    lines += [line for word in said for line in wrapped(word.strip(), "      │ ", "      │ ")]
    if result.fix:
        lines += wrapped(result.fix, "      fix       ", " " * 16)
    return lines


def _not_run(results: list[ProbeResult]) -> list[str]:
    """A line a reason; what is not installed, and what needs an accelerator, in one line each."""
    absent = [result.why[: -len(_ABSENT)] for result in results if result.why.endswith(_ABSENT)]
    by_reason: dict[str, list[str]] = {}
    for result in results:
        if not result.why.endswith(_ABSENT):
            reason = NO_ACCELERATOR if result.why.startswith(NO_ACCELERATOR) and result.device == "cpu" else result.why
            by_reason.setdefault(reason, []).append(result.probe)
    lines: list[str] = []
    for why, names in by_reason.items():
        lines += wrapped(f"could not run: {why}: {', '.join(names)}", "  – ", "    ")
    if absent:
        lines += wrapped(f"could not run: not installed: {', '.join(dict.fromkeys(absent))}", "  – ", "    ")
    return lines


def _summary(report: ProbeReport) -> str:
    counts = {status: sum(1 for each in report.results if each.status == status) for status in (PASSED, FAILED, COULD_NOT_RUN)}
    return (f"{counts[PASSED]} passed, {counts[FAILED]} failed, {counts[COULD_NOT_RUN]} could not run, "
            f"in {report.seconds:.1f} s.")  # fmt: skip
