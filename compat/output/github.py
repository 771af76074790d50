"""Findings as workflow commands of GitHub Actions, which shows them beside the lines they are about.

The runner reads ``::error file=…,line=…,title=…::message`` from the output of a step, takes it apart at ``::``, ``,`` and
line ends, and then turns ``%25``, ``%0D``, ``%0A`` (everywhere) and ``%3A``, ``%2C`` (in properties) back into what they
stand for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from compat.errors import InputError, printable
from compat.model import Finding, Fix, Outcome
from compat.output.terminal import flags_for

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def workflow_commands(outcomes: "Sequence[Outcome]") -> str:
    """One command a line, for every finding and every file that could not be read; ``""`` where there is none.

    An open question is a notice. Paths are relative to the root of the repository, as the runner expects them.
    """
    root = source_root()
    return "\n".join(line for outcome in outcomes for line in _commands(outcome, root))


def _commands(outcome: "Outcome", root: str) -> "Iterator[str]":
    if outcome.error is not None:
        error = outcome.error
        file = named_file(error.file or outcome.name)
        yield _command("error", "compat cannot read this", one_line(error.message), file, error.line, root)
    if outcome.report is not None:
        for finding in outcome.report.findings:
            yield _annotation(finding, outcome.report.file, root)


def _annotation(finding: "Finding", read_from: str | None, root: str) -> str:
    name = _COMMANDS[finding.severity] if finding.verdict == "hit" else "notice"
    file, line = (finding.location.file, finding.location.line) if finding.location else (read_from, None)
    return _command(name, finding.title, "\n".join(lines_of(finding)), file, line, root)


def _command(name: str, title: str, message: str, file: str | None, line: int | None, root: str) -> str:
    properties = {} if file is None else {"file": in_source(file, root) or file}
    if file is not None and line and line > 0:
        properties["line"] = str(line)
    properties["title"] = one_line(title)
    said = ",".join(f"{key}={escaped_property(value)}" for key, value in properties.items() if value)
    return f"::{name} {said}::{escaped_data(message)}"


def escaped_data(text: str) -> str:
    """A message as the runner unescapes it. What is no character at all (a lone surrogate) becomes an escape."""
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escaped_property(text: str) -> str:
    """The value of a property as the runner unescapes it."""
    return escaped_data(text).replace(":", "%3A").replace(",", "%2C")


# --- A finding as lines of plain text, for formats that lay text out themselves.


def one_line(text: str) -> str:
    """The text on one line that no reader takes for a command: runs of white space are one space, the rest is escaped."""
    return printable(" ".join(text.split()))


def lines_of(finding: Finding, every_fix: bool = False) -> list[str]:
    """What there is to say about a finding besides its title; of its fixes only the best, unless ``every_fix``."""
    lines = [finding.why]
    if finding.here:
        lines.append(f"applies because: {finding.here}")
    if finding.target is not None or finding.selections:
        lines.append(f"in: {', '.join([*([] if finding.target is None else [finding.target]), *finding.selections])}")
    if finding.verdict != "hit":
        lines.append(f"settle: {flags_for(finding.unknown) or 'cannot be settled'}")
    for position, fix in enumerate(finding.fixes if every_fix else finding.fixes[:1]):
        lines.append(f"{'or' if position else 'fix'}: {fix_of(fix)}")
    lines += [f"see: {address}" for address in finding.evidence[:1]]
    lines.append(f"rule: {finding.rule} ({finding.confidence})")
    return [line for line in map(one_line, lines) if line]


def fix_of(fix: Fix) -> str:
    """A fix in words: its command, and what it does."""
    if fix.command is None:
        return fix.text
    return f"{fix.command} ({fix.text})" if fix.text else fix.command


# --- Paths as services that show findings beside the source want them: relative to the root of the source tree.


def source_root() -> str:
    """The repository that the current directory belongs to; the current directory where it belongs to none.

    :class:`InputError` where the current directory is gone.
    """
    try:
        here = folder = os.getcwd()
    except OSError as problem:
        raise InputError(f"the current directory cannot be read: {problem.strerror}") from None
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return here
        folder = parent
    return folder


def named_file(name: str | None) -> str | None:
    """The file that a name stands for; ``None`` for standard input and for what is installed."""
    return None if name in ("", "-", "standard input") else name


def in_source(path: str, root: str) -> str | None:
    """A path relative to the root, with ``/`` between its parts; ``None`` where it lies outside."""
    try:
        relative = os.path.relpath(os.path.abspath(path), root)
    except ValueError:  # another drive
        return None
    if relative == os.pardir or relative.startswith(os.pardir + os.sep):
        return None
    return relative.replace(os.sep, "/")
