"""Findings as a JUnit report for build servers: one suite per file, one test case per finding.

Only widely supported elements and attributes are used: strict readers (Jenkins' xUnit plugin) reject a report
with others. Non-ASCII characters are written as character references, so that the encoding does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence

from compat.model import Finding, Outcome
from compat.output.github import lines_of, one_line
from compat.records import record

_NOTHING = "no known problems found"


@record(frozen=True)
class _Case:
    """A test case; ``result`` is failure, skipped, error or, for one that passed with output, ``system-out``."""

    name: str
    result: str | None = None
    kind: str = ""
    message: str = ""
    text: str = ""


def junit(outcomes: Sequence[Outcome]) -> str:
    """Render the report as XML. Certain errors and warnings are failures, open questions are skipped tests.

    Informational findings pass, with their text as output; so does a file without findings.
    A file that could not be read is an error.
    """
    suites = [(outcome, _cases(outcome)) for outcome in outcomes]
    cases = [case for _, cases in suites for case in cases]
    counts = f'tests="{len(cases)}" failures="{_count(cases, "failure")}" errors="{_count(cases, "error")}"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuites name="compat" {counts}>']
    for outcome, its in suites:
        lines += _suite(outcome, its)
    return "\n".join([*lines, "</testsuites>"])


def _cases(outcome: Outcome) -> list[_Case]:
    cases: list[_Case] = []
    if outcome.error is not None:
        cases.append(_Case("can be read", "error", "InputError", one_line(outcome.error.message), str(outcome.error)))
    findings = () if outcome.report is None else outcome.report.findings
    names: dict[str, int] = {}
    for finding in findings:
        name = _name(finding)
        names[name] = names.get(name, 0) + 1
        cases.append(_case(finding, name if names[name] == 1 else f"{name} #{names[name]}"))
    return cases or [_Case(_NOTHING)]


def _name(finding: Finding) -> str:
    """Return a name that is stable between runs, since servers compare test cases by name."""
    about = () if finding.origin == "rule" else tuple(finding.packages)
    which = [*about, *([] if finding.target is None else [finding.target]), *finding.selections]
    return one_line(f"{finding.rule} ({', '.join(which)})" if which else finding.rule)


def _case(finding: Finding, name: str) -> _Case:
    where = finding.location
    at = [] if where is None else [one_line(f"at: {where.file}:{where.line}" if where.line else f"at: {where.file}")]
    title = one_line(finding.title)
    text = "\n".join([title, *at, *lines_of(finding, every_fix=True)])
    if finding.verdict != "hit":
        return _Case(name, "skipped", "possible", f"undecided: {title}", text)
    return _Case(name, "system-out" if finding.severity == "info" else "failure", finding.severity, title, text)


def _suite(outcome: Outcome, cases: list[_Case]) -> list[str]:
    counts = " ".join(
        f'{label}="{_count(cases, result)}"'
        for label, result in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    )
    name = outcome.name or "installed"
    lines = [f'<testsuite name="{escaped(name)}" tests="{len(cases)}" {counts} time="0">']
    for case in cases:
        lines += _testcase(case, name)
    if outcome.report is not None and outcome.report.notes:
        notes = "\n".join(f"note: {one_line(note)}" for note in outcome.report.notes)
        lines.append(f"<system-out>{_content(notes)}</system-out>")
    return [*lines, "</testsuite>"]


def _testcase(case: _Case, file: str) -> list[str]:
    head = f'<testcase classname="{escaped(file)}" name="{escaped(case.name)}" time="0"'
    if case.result is None:
        return [f"{head}/>"]
    about = "" if case.result == "system-out" else f' message="{escaped(case.message)}" type="{escaped(case.kind)}"'
    return [f"{head}>", f"<{case.result}{about}>{_content(case.text)}</{case.result}>", "</testcase>"]


def _count(cases: list[_Case], result: str) -> int:
    return sum(case.result == result for case in cases)


def _content(text: str) -> str:
    """Escape element text and keep its line breaks, which an attribute value would turn into spaces."""
    return escaped(text).replace("&#10;", "\n")


def escaped(text: str) -> str:
    """Escape element text or an attribute value to ASCII; characters that XML 1.0 does not allow are dropped."""
    text = "".join(filter(_legal, text))
    for sign, reference in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("\t", "&#9;"), ("\r", "&#13;")):
        text = text.replace(sign, reference)
    return text.replace("\n", "&#10;").encode("ascii", "xmlcharrefreplace").decode("ascii")


def _legal(sign: str) -> bool:
    return " " <= sign <= "\ud7ff" or sign in "\t\n\r" or "\ue000" <= sign <= "\ufffd" or sign >= "\U00010000"
