"""Findings as workflow commands of GitHub Actions, which shows them beside the lines they are about.

The runner reads ``::error file=…,line=…,title=…::message`` from the output of a step, takes it apart at ``::``, ``,`` and
line ends, and then turns ``%25``, ``%0D``, ``%0A`` (everywhere) and ``%3A``, ``%2C`` (in properties) back into what they
stand for.
"""

# no 'from __future__ import annotations' here: it would take the name of the function this module is for

from compat.show.plain_text import lines_of, one_line
from compat.show.source_root import in_source, named_file, source_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compat.report import Finding, Outcome

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def annotations(outcomes: "Sequence[Outcome]") -> str:
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
