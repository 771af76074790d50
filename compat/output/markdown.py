"""A report as a reply to an issue: verdict, cause, fix, evidence, and the one question that would settle the most findings."""

from __future__ import annotations

from collections import Counter

from compat.errors import printable
from compat.model import Finding, Fix, Report
from compat.output.terminal import flags_for
from compat.redact import redacted

_MOST = 3
"""Findings that are shown in full; the others are counted."""
_VERDICTS = {"hit": "This is", "possible": "This may be"}
_SPECIAL = str.maketrans({**{character: f"\\{character}" for character in "\\`*_[]<>#|~"}, "@": "&#64;"})
"""What is Markdown in a text; a name after an @ would be notified."""


def markdown(report: Report, nothing: str = "No known problems found.") -> str:
    """Render the report as GitHub Flavored Markdown; ``nothing`` is the text shown without findings."""
    shown = report.findings[:_MOST]
    verdicts = [_VERDICTS[finding.verdict] if not number else "It may also be" for number, finding in enumerate(shown)]
    blocks = [
        finding_blocks(finding, f"{verdict} a known problem: {escaped(finding.title)}")
        for verdict, finding in zip(verdicts, shown)
    ] or [escaped(nothing)]
    left = len(report.findings) - len(shown)
    if left:
        blocks.append(f"{left} more {'finding' if left == 1 else 'findings'}: run `compat diagnose` on the text.")
    question = _question(shown)
    if question:
        blocks.append(f"**To settle it:** {question}")
    if report.notes and not shown:
        blocks.append("\n".join(f"- {escaped(note)}" for note in report.notes))
    return "\n".join(map(printable, "\n\n".join(blocks).split("\n")))


def finding_blocks(finding: Finding, title: str) -> str:
    """Render a full finding under its title, which is already Markdown."""
    parts = [f"**{title}**", escaped(finding.why)]
    if finding.here:
        parts.append(f"**Applies because:** {escaped(finding.here)}")
    parts += [_fix(fix, "Fix" if not number else "Or") for number, fix in enumerate(finding.fixes)]
    links = ", ".join(address if address.startswith("https://") else _code(address) for address in finding.evidence[:3])
    parts.append(f"{f'**Evidence:** {links} ' if links else ''}({_code(finding.rule)}, {finding.confidence})")
    return "\n\n".join(part for part in parts if part)


def _fix(fix: Fix, label: str) -> str:
    if fix.command is None:
        return f"**{label}:** {escaped(fix.text)}"
    fence = "````" if "```" in fix.command else "```"
    return f"**{label}:** {escaped(fix.text) or 'run'}\n\n{fence}bash\n{fix.command}\n{fence}"


def _question(findings: tuple[Finding, ...]) -> str:
    """Ask the author of the issue for the fact that most open findings depend on."""
    counted = Counter(path for finding in findings if finding.verdict != "hit" for path in dict.fromkeys(finding.unknown))
    if not counted:
        return ""
    # on a tie the first wins: the most likely finding comes first
    path, _ = max(counted.items(), key=lambda entry: entry[1])
    kind, _, name = path.partition(".")
    if kind == "distributions" and not name.endswith(".source"):
        return f"Which version of {_code(name)} is installed (`pip show {name}`)?"
    asked = _QUESTIONS.get(path) or _QUESTIONS.get(kind)
    return asked or f"What is {_code(flags_for((path,)))}?"


_QUESTIONS = {
    "accelerators": "Which GPUs does the machine have, and how many (`nvidia-smi -L`)?",
    "driver": "Which NVIDIA driver is installed (`nvidia-smi`)?",
    "cuda_toolkit": "Which CUDA toolkit is used (`nvcc --version`)?",
    "python": "Which Python is used (`python --version`)?",
    "os": "Which operating system is used?",
    "glibc": "Which glibc does the system have (`ldd --version`)?",
    "extras": "Which extras are installed?",
    "groups": "Which dependency groups are installed?",
    "workload.launcher": "Which command starts the job?",
    "workload.task": "What runs: which trainer, or which server?",
    "workload.model": "Which model is used?",
    "workload": "Which command and arguments start it?",
    "variables": "Which environment variables are set (`env`)?",
    "distributions": "How was the package installed: from the index, from source, or from conda (`pip freeze`)?",
}


def _code(text: str) -> str:
    return f"`{redacted(text).replace('`', '')}`"


def escaped(text: str) -> str:
    """Escape all Markdown syntax, since error messages may contain any text; credentials are redacted before."""
    return " ".join(redacted(text).translate(_SPECIAL).split())
