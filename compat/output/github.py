"""Findings as GitHub Actions workflow commands, which annotate the affected lines.

The runner reads ``::error file=…,line=…,title=…::message`` from the output of a step, splits it at ``::``, ``,`` and
line ends, and then decodes ``%25``, ``%0D``, ``%0A`` (everywhere) and ``%3A``, ``%2C`` (in properties).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from compat.errors import CI_COMMANDS, InputError, printable
from compat.model import Finding, Fix, Outcome
from compat.output.terminal import flags_for
from compat.redact import redacted

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def workflow_commands(outcomes: "Sequence[Outcome]") -> str:
    """Return one command per line for every finding and every unreadable file; ``""`` if there are none.

    Open questions become notices. Paths are relative to the root of the repository, as the runner expects.
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
        if outcome.report.exit == 3 and outcome.report.notes:  # the step fails, and nothing else says why
            notes = "\n".join(map(one_line, outcome.report.notes))
            yield _command("warning", "compat could not read everything", notes, outcome.report.file, None, root)


def _annotation(finding: "Finding", read_from: str | None, root: str) -> str:
    name = _COMMANDS[finding.severity] if finding.verdict == "hit" else "notice"
    file, line = (finding.location.file, finding.location.line) if finding.location else (read_from, None)
    return _command(name, finding.title, "\n".join(lines_of(finding)), file, line, root)


def _command(name: str, title: str, message: str, file: str | None, line: int | None, root: str) -> str:
    file = None if file is None else redacted(file)  # before the address in it is taken for a path
    properties = {} if file is None else {"file": in_source(file, root) or file}
    if file is not None and line and line > 0:
        properties["line"] = str(line)
    properties["title"] = one_line(title)
    properties_text = ",".join(f"{key}={escaped_property(value)}" for key, value in properties.items() if value)
    return f"::{name} {properties_text}::{escaped_data(message)}"


def escaped_data(text: str) -> str:
    """Escape a message for the runner. Lone surrogates, which cannot be encoded, become escapes.

    Commands of the old form are obeyed within a line, also in the name of a file: they are taken apart.
    """
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    for command in CI_COMMANDS:
        text = text.replace(command, f"#\u200b{command[1:]}")
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escaped_property(text: str) -> str:
    """Escape a property value for the runner."""
    return escaped_data(text).replace(":", "%3A").replace(",", "%2C")


# --- Findings as lines of plain text, for formats that do their own layout.


def one_line(text: str) -> str:
    """Collapse whitespace to single spaces and escape the rest, so that no reader interprets the line as a command."""
    return printable(" ".join(text.split()))


def lines_of(finding: Finding, every_fix: bool = False) -> list[str]:
    """Return the details of a finding without its title, with only the best fix unless ``every_fix`` is set."""
    lines = [finding.why]
    if finding.here:
        lines.append(f"applies because: {finding.here}")
    if finding.target is not None or finding.selections:
        lines.append(f"in: {', '.join([*([] if finding.target is None else [finding.target]), *finding.selections])}")
    if finding.verdict != "hit" and finding.unknown:
        lines.append(f"settle: {flags_for(finding.unknown)}")
    for position, fix in enumerate(finding.fixes if every_fix else finding.fixes[:1]):
        lines.append(f"{'or' if position else 'fix'}: {fix_of(fix)}")
    lines += [f"see: {address}" for address in finding.evidence[:1]]
    lines.append(f"rule: {finding.rule} ({finding.confidence})")
    return [line for line in map(one_line, lines) if line]


def fix_of(fix: Fix) -> str:
    """Describe a fix: its command and its effect."""
    if fix.command is None:
        return fix.text
    return f"{fix.command} ({fix.text})" if fix.text else fix.command


# --- Paths for services that annotate source: relative to the root of the source tree.


def source_root() -> str:
    """Return the root of the current directory's repository, or the current directory if it is not in a repository.

    Raises :class:`InputError` if the current directory no longer exists.
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
    """Return the file with this input name; ``None`` for standard input and for the installed environment."""
    return None if name in ("", "-", "standard input") else name


def in_source(path: str, root: str) -> str | None:
    """Return a path relative to the root, with ``/`` as separator; ``None`` if it is outside the root."""
    try:
        relative = os.path.relpath(os.path.abspath(path), root)
    except ValueError:  # another drive
        return None
    if relative == os.pardir or relative.startswith(os.pardir + os.sep):
        return None
    return relative.replace(os.sep, "/")
