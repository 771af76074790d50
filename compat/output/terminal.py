"""Text reports for the terminal: wrapped to its width, worst findings first, readable without colour and in a pipe."""

from __future__ import annotations

import os
import sys

from compat.errors import printable
from compat.model import Environment, Finding, Fix, Report
from compat.output.stream import encoding, is_utf_8
from compat.redact import redacted
from compat.rules.facts import comparable, cuda_facts, device_counts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_NARROWEST, _WIDEST, _USUAL = 40, 120, 80
"""Columns: text follows the terminal between the first two, and has the third where it is written elsewhere."""
_STACK = (
    "torch", "vllm", "sglang", "transformers", "trl", "unsloth", "accelerate", "peft", "deepspeed", "flash-attn", "xformers",
    "bitsandbytes", "triton", "datasets",
)  # fmt: skip
_PARTS = ("service ", "stage ")
"""How the name of one of several parts of a file begins; the other selections are extras, groups and the like."""
_SIGNS = {"error": ("✗", "x"), "warning": ("!", "!"), "info": ("·", "-"), "possible": ("?", "?")}


def render_text(
    report: Report,
    title: str | None = None,
    label: str | None = None,
    driver_cuda: str | None = None,
    nothing: str = "No known problems found.",
    at_length: bool = False,
) -> str:
    """Render the report as text.

    ``label`` names the environment, ``driver_cuda`` is the CUDA release that its driver supports; ``nothing`` is the text shown
    without findings; ``at_length`` shows open questions in as much detail as findings.
    """
    lines = [f"{title}:"] if title else []
    for number, (name, environment) in enumerate(report.parts or (("", report.environment),)):
        supported = driver_cuda if environment.driver == report.environment.driver else None
        lines += [*([""] if number else []), *([f"  {name}"] if name else [])]
        for row, text in seen_rows(environment, label, supported):
            lines += wrap_text(text, f"  {row:<10}", " " * 12)
    certain = [finding for finding in report.findings if finding.verdict == "hit"]
    open_questions = [finding for finding in report.findings if finding.verdict != "hit"]
    for alike in _grouped(certain):
        lines += ["", *finding_lines(alike[0], report.file, alike[1:])]
    for finding in open_questions:
        lines += ["", *(finding_lines if at_length else _question)(finding, report.file)]
    if report.together:
        lines += ["", *(f"  {'' if number else 'together':<10}{each}" for number, each in enumerate(report.together))]
        lines += wrap_text("one command for all findings above that need other releases", " " * 12 + "# ", " " * 12 + "# ")
    if report.notes:
        lines.append("")
        for note in report.notes:
            lines += wrap_text(note, "  note      ", " " * 12)
    lines += ["", "  " + (summary(certain, open_questions) or nothing)]
    return _encodable("\n".join(map(printable, lines)))


def seen_rows(environment: Environment, label: str | None = None, driver_cuda: str | None = None) -> list[tuple[str, str]]:
    """Return the known facts about an environment as (name, text): machine, gpus or cuda, stack and workload, if known."""
    system = {"linux": "Linux", "darwin": "macOS", "windows": "Windows"}.get(environment.os or "", environment.os or "")
    machine = " ".join(part for part in (system, environment.machine) if part)
    parts = [machine, environment.platform, environment.glibc and f"glibc {environment.glibc}"]
    if environment.python or label:
        parts.append(f"Python {environment.python or 'of unknown version'}" + (f" in {label}" if label else ""))
    gpus = _gpus(environment, driver_cuda)
    rows = [
        ("machine", ", ".join(part for part in parts if part)),
        ("cuda" if gpus.startswith("CUDA toolkit") else "gpus", gpus),  # a toolkit alone is no GPU
        ("stack", _stack(environment)),
        ("workload", _workload(environment)),
    ]
    return [(name, text) for name, text in rows if text]


def _gpus(environment: Environment, driver_cuda: str | None) -> str:
    parts = []
    if environment.accelerators == ():
        parts.append("none")
    elif environment.accelerators:
        names = [_device(device) for device in environment.accelerators]
        parts += device_counts(environment.accelerators, names)
    parts += cuda_facts(environment, driver_cuda)
    chosen = (environment.variables or {}).get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        parts.append(f"CUDA_VISIBLE_DEVICES={chosen}")
    return ", ".join(parts)


def _device(device: object) -> str:
    name = getattr(device, "name", None) or getattr(device, "vendor", None) or "GPU"
    kind = getattr(device, "compute_capability", None) or getattr(device, "gfx", None)
    return f"{name} ({kind})" if kind and kind not in name else str(name)


def _stack(environment: Environment) -> str:
    if environment.distributions is None:
        return ""
    versions: dict[str, str] = {}
    for each in environment.distributions:
        version = comparable(each).version or each.specifier or "?"
        known_version = versions.get(each.name, version)
        versions[each.name] = version if known_version == version else f"{known_version} | {version}"
    known = [f"{name} {versions[name]}" for name in _STACK if name in versions]
    others = len(versions) - len(known)
    if not known:
        if others == 1:
            return "1 package, not part of the usual stack"
        return f"{others} packages, none of them part of the usual stack" if others else "no packages"
    return ", ".join(known) + (f" and {others} more" if others else "")


def _workload(environment: Environment) -> str:
    work = environment.workload
    if work is None:
        return ""
    launcher = {"python": "plain python"}.get(work.launcher or "", work.launcher)
    parts = [
        work.task, work.trainer, work.model and f"model {work.model}", launcher,
        work.processes and f"{work.processes} process{'es' if work.processes > 1 else ''}",
        work.batch_size and f"batch size {work.batch_size}", work.precision, work.quantization, *(work.features or ()),
    ]  # fmt: skip
    text = ", ".join(part for part in parts if part)
    places = [place for place in dict.fromkeys(work.origins.values()) if place]
    return text + (f" (from {', '.join(places)})" if text and places else "")


def _question(finding: Finding, read_from: str | None) -> list[str]:
    """Render an open question in brief: the possible problem, the facts that would settle it, and the best fix."""
    lines = [*wrap_text(finding.title, f"  {_SIGNS['possible'][0]} ", "    "), *_where(finding, read_from)]
    if finding.here:
        lines += wrap_text(finding.here, "    applies because ", " " * 14)
    if finding.unknown:
        lines += wrap_text(flags_for(finding.unknown), "    settle    ", " " * 14)
    lines += [line for fix in finding.fixes[:1] for line in _fix(fix, "if so")]
    more = " (see compat rules show)" if finding.origin == "rule" else ""
    return [*lines, *wrap_text(finding.rule + more, "    rule      ", " " * 14)]


def _grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Return the findings in groups that differ in nothing but where they hold and for which releases."""
    groups: dict[object, list[Finding]] = {}
    for each in findings:
        groups.setdefault((each.rule, each.severity, each.title, each.why, each.fixes, each.evidence), []).append(each)
    return list(groups.values())


def sign_of(finding: Finding) -> str:
    return _SIGNS["possible" if finding.verdict != "hit" else finding.severity][0]


def finding_lines(finding: Finding, read_from: str | None = None, others: Sequence[Finding] = ()) -> list[str]:
    """Render a finding in full; ``read_from`` is a file that is not repeated.

    Of ``others``, which say the same, only the places and the reasons why they apply are shown.
    """
    lines = wrap_text(finding.title, f"  {sign_of(finding)} ", "    ")
    lines += wrap_text(finding.why, "    ", "    ")
    at = None
    for each in (finding, *others):
        for name, text in places_of(each, read_from):
            if (name, text) != at:
                lines += wrap_text(text, f"    {name:<10}", " " * 14)
            at = (name, text) if name == "at" else at
        if each.here:
            lines += wrap_text(each.here, "    applies because ", " " * 14)
    if finding.verdict != "hit" and finding.unknown:
        lines += wrap_text(flags_for(finding.unknown), "    settle    ", " " * 14)
    for position, fix in enumerate(finding.fixes):
        lines += _fix(fix, "or" if position else "fix")
    for address in finding.evidence[:1]:
        lines.append(f"    see       {address}")
    lines.append(f"    rule      {finding.rule} ({finding.confidence})")
    return lines


def _where(finding: Finding, read_from: str | None) -> list[str]:
    return [line for name, text in places_of(finding, read_from) for line in wrap_text(text, f"    {name:<10}", " " * 14)]


def places_of(finding: Finding, read_from: str | None) -> list[tuple[str, str]]:
    """Return the file line, declared target and selections that a finding concerns, as (name, text)."""
    rows = []
    if finding.location and (finding.location.line or finding.location.file != read_from):
        rows.append(("at", finding.location.file + (f":{finding.location.line}" if finding.location.line else "")))
    if finding.target:
        rows.append(("target", finding.target))
    parts = [name for name in finding.selections if name.startswith(_PARTS)]
    chosen = [name for name in finding.selections if name not in parts]
    rows += [(name, ", ".join(found)) for name, found in (("in", parts), ("with", chosen)) if found]
    return rows


def _fix(fix: Fix, label: str) -> list[str]:
    head, indent = f"    {label:<10}", " " * 14
    if fix.command is None:
        return wrap_text(fix.text, head, indent)
    # commands are never wrapped, so that they can be pasted
    return [f"{head}{fix.command}", *(wrap_text(fix.text, indent + "# ", indent + "# ") if fix.text else [])]


def summary(certain: list[Finding], open_questions: list[Finding]) -> str:
    """Return a count such as ``2 errors, 1 open question.``; "" if there are none."""
    counts = [
        f"{number} {word}{'s' if number > 1 else ''}"
        for word in ("error", "warning", "info")
        if (number := sum(finding.severity == word for finding in certain))
    ]
    if open_questions:
        counts.append(f"{len(open_questions)} open question{'s' if len(open_questions) > 1 else ''}")
    return ", ".join(counts) + "." if counts else ""


def width() -> int:
    """Return the number of columns available for text."""
    if not sys.stdout.isatty():
        return _USUAL
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return _USUAL
    return max(_NARROWEST, min(columns or _USUAL, _WIDEST))


def wrap_text(text: str, first: str, following: str) -> list[str]:
    """Wrap words to :func:`width` columns; a longer word gets a line of its own and is not broken.

    Credentials are redacted before, as the pattern of one may span several words."""
    lines: list[str] = []
    line, empty, most = first, True, width()
    for word in redacted(text).split():
        if not empty and len(line) + 1 + len(word) > most:
            lines.append(line)
            line, empty = following, True
        line += word if empty else f" {word}"
        empty = False
    lines.append(line)
    return lines


def _encodable(text: str) -> str:
    """Replace symbols that the output encoding does not support."""
    if is_utf_8():
        return text
    name = encoding()
    for sign, plain in _SIGNS.values():
        text = text.replace(f"  {sign} ", f"  {plain} ")
    return text.replace("×", "x").replace("…", "...").encode(name, "replace").decode(name)


def coloured(text: str, variables: dict[str, str] | None = None) -> str:
    """Colour the symbols of findings if the output is a terminal (``NO_COLOR`` and ``FORCE_COLOR`` are honoured)."""
    variables = dict(os.environ) if variables is None else variables
    terminal = sys.stdout.isatty() and variables.get("TERM") != "dumb"
    if variables.get("NO_COLOR") or not (terminal or variables.get("FORCE_COLOR")):
        return text
    colours = {"✗": "31", "!": "33", "?": "36"}
    lines = []
    for line in text.split("\n"):
        sign = line[2:3]
        if line.startswith("  ") and line[3:4] == " " and sign in colours:
            line = f"  \x1b[1;{colours[sign]}m{sign}\x1b[0m \x1b[1m{line[4:]}\x1b[0m"
        lines.append(line)
    return "\n".join(lines)


# --- The flag, or the key of a described environment, that would settle an open question.


_FLAGS = {
    "python": "--python-version VERSION",
    "os": "--os NAME",
    "machine": "--machine NAME",
    "glibc": "--glibc VERSION",
    "accelerators": '--gpu "NAME:COUNT"',
    "driver": "--driver VERSION",
    "cuda_toolkit": "--cuda-toolkit VERSION",
    "container": "nvidia-smi in a container of the image",
    "extras": "--extras NAMES",
    "groups": "--groups NAMES",
    "workload.launcher": "--launcher NAME, or the command itself after --",
    "workload.task": "--task TASK",
    "workload.trainer": "--trainer CLASS",
    "workload.model": "--model NAME",
    "workload.processes": "--processes N",
    "workload.batch_size": "--batch-size N",
    "workload.precision": "--precision NAME",
    "workload.quantization": "--quantization NAME",
}


def flags_for(unknown: tuple[str, ...]) -> str:
    """Describe the flags that would settle a finding, such as "--gpu …; --launcher …", joined by semicolons."""
    flags: list[str] = []
    packages = [
        path.partition(".")[2] for path in unknown if path.startswith("distributions.") and not path.endswith(".source")
    ]
    if packages:
        flags.append(
            f"the version of {' and '.join(dict.fromkeys(packages))}, or that it is not installed (--python, --environment)"
        )
    features = [path.rpartition(".")[2] for path in unknown if path.startswith("workload.features.")]
    for path in unknown:
        if path.startswith("workload.features.") or path.partition(".")[2] in packages:
            continue
        flags.append(_one(path))
    if features:
        flags.append(f"--features {' or '.join(features)} (or --without {','.join(features)})")
    return "; ".join(dict.fromkeys(flags))


def _one(path: str) -> str:
    if path in _FLAGS:
        return _FLAGS[path]
    if path.endswith(".source"):
        return f"where {path.split('.')[1]} was installed from (source and commit in the environment description)"
    if path.startswith("variables."):
        return f"whether {path.partition('.')[2]} is set (variables in the environment description)"
    if path.startswith("build."):
        return f"which build of {path.partition('.')[2]} is installed (its version with the label, such as +cu128)"
    return f"{path} in the environment description"


# --- The text for a report without findings: it must not claim more than was checked.


def nothing_found(report: Report, baseline: str | None = None, *, rules: int = 0) -> str:
    """Return the sentence for a report without findings, which may have ignored findings or unread input.

    ``rules``: how many there are, for an environment of which all distributions were checked.
    """
    if report.known:
        more = f", {report.ignored} more {_are(report.ignored)} ignored" if report.ignored else ""
        return f"Nothing new since {baseline}: {_counted(report.known)} known{more}."
    if report.ignored:
        return f"No other known problems found: {_counted(report.ignored)} ignored."
    if report.partial:
        return "No known problems found in what could be read."
    copies = len(report.environment.distributions or ())
    checked = f": {copies} distribution{'' if copies == 1 else 's'}, {rules} rules" if rules and copies else ""
    return f"No known problems found{checked}."


def _counted(number: int) -> str:
    return f"{number} finding{'' if number == 1 else 's'} {_are(number)}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
