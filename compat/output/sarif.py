"""Reports as SARIF 2.1.0 (OASIS) for code scanning services and editors.

A certain finding is a result of kind ``fail``, an open question one of kind ``open``, for which the standard allows no
level but ``none``. Unreadable input marks the run as unsuccessful.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from compat.checks.baseline import fingerprint
from compat.model import Finding, Outcome, Report
from compat.output.github import fix_of, in_source, lines_of, named_file, one_line, source_root
from compat.output.stream import to_json
from compat.redact import redacted

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_PRECISIONS = {"reproduced": "very-high", "confirmed": "high", "reported": "medium"}
_STANDARD_INPUT = "-"
_UNRESERVED = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/")
_NOTIFICATIONS = (
    ("unreadable-input", "UnreadableInput", "A file could not be read.",
     "The message says what was expected and at which line. Files that cannot be read are not checked."),
    ("taken-for-granted", "TakenForGranted", "Something was assumed or not taken into account.",
     "The findings depend on it; there is nothing to fix."),
)  # fmt: skip


def sarif_text(outcomes: Sequence[Outcome]) -> str:
    """Render the outcomes as a SARIF 2.1.0 log."""
    from compat import __version__

    return to_json(sarif(outcomes, __version__))


def sarif(outcomes: Sequence[Outcome], version: str) -> dict[str, Any]:
    """Return the log as plain JSON values: one run, with the matching rules and a result for every finding.

    Paths are relative to the root of the source tree; files outside it get a ``file:`` URI. Results about an installation are
    attached to the project file: code scanning requires a file and a line.
    """
    root = source_root()
    by_rule: dict[str, list[Finding]] = {}
    for outcome in outcomes:
        for finding in outcome.report.findings if outcome.report else ():
            by_rule.setdefault(finding.rule, []).append(finding)
    positions = {rule: position for position, rule in enumerate(by_rule)}
    driver = {
        "name": "compat", "version": version, "rules": [_rule(findings) for findings in by_rule.values()],
        "notifications": [
            {"id": each, "name": name, "shortDescription": {"text": text}, "fullDescription": {"text": f"{text} {more}"},
             "help": {"text": more}}
            for each, name, text, more in _NOTIFICATIONS
        ],
    }  # fmt: skip
    run = {
        "tool": {"driver": driver},
        "invocations": [{
            "executionSuccessful": all(outcome.error is None for outcome in outcomes),
            "toolExecutionNotifications": [each for outcome in outcomes for each in _notifications(outcome, root)],
        }],
        "originalUriBaseIds": {"%SRCROOT%": {
            "uri": _file_uri(root).rstrip("/") + "/", "description": {"text": "The root of the source tree."},
        }},
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(finding, outcome, outcome.report, positions[finding.rule], root)
            for outcome in outcomes if outcome.report for finding in outcome.report.findings
        ],
    }  # fmt: skip
    log: dict[str, Any] = well_formed({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})
    return log


def _rule(findings: list[Finding]) -> dict[str, object]:
    """Return the properties shared by a rule's findings: their title, unless it differs between them."""
    first = findings[0]
    words = redacted(first.rule).replace("_", "-").split("-")
    same = all(each.title == first.title for each in findings)
    title = first.title if first.origin == "rule" or same else f"{' '.join(words).capitalize()}."
    worst = min(findings, key=lambda finding: finding.order()).severity
    rule: dict[str, object] = {
        "id": first.rule, "name": "".join(word[:1].upper() + word[1:] for word in words),
        "shortDescription": {"text": plain(title)}, "fullDescription": {"text": plain(first.why)},
        "help": {"text": plain(*_help(first, title)), "markdown": _markdown_help(first)},
        "defaultConfiguration": {"level": _LEVELS[worst]},
        "properties": {
            "tags": list(dict.fromkeys(("compatibility", first.origin, first.effect))), "effect": first.effect,
            "confidence": first.confidence, "precision": _PRECISIONS.get(first.confidence, "medium"),
            "problem.severity": "recommendation" if worst == "info" else worst,
        },
    }  # fmt: skip
    address = next(filter(_is_address, first.evidence), None)
    return rule if address is None else {**rule, "helpUri": address}


def _help(finding: Finding, title: str) -> Iterator[str]:
    yield title
    yield finding.why
    for fix in finding.fixes:
        yield f"fix: {fix_of(fix)}"
    for address in finding.evidence:
        yield f"see: {address}"


def _markdown_help(finding: Finding) -> str:
    parts = [markdown_text(finding.why)]
    if finding.fixes:
        parts.append("Fixes, best first:")
        fixes = [
            markdown_text(fix.text) if fix.command is None
            else markdown_code(fix.command) + (f" ({markdown_text(fix.text)})" if fix.text else "")
            for fix in finding.fixes
        ]  # fmt: skip
        parts.append("\n".join(f"- {fix}" for fix in fixes))
    if finding.evidence:
        parts.append("Evidence:")
        addresses = [f"<{each}>" if _is_address(each) else markdown_text(each) for each in finding.evidence]
        parts.append("\n".join(f"- {address}" for address in addresses))
    parts.append(f"Confidence: {markdown_text(finding.confidence)}")
    return doubled_braces("\n\n".join(parts))


def _result(finding: Finding, outcome: Outcome, report: Report, position: int, root: str) -> dict[str, object]:
    holds = finding.verdict == "hit"
    properties = {
        "packages": dict(finding.packages), "target": finding.target, "selections": list(finding.selections),
        "missing": list(finding.missing),
    }  # fmt: skip
    where = finding.location
    file, line = (where.file, where.line) if where else (report.file, None)
    if file is None and outcome.name != _STANDARD_INPUT:
        file = outcome.project
    result = {
        "ruleId": finding.rule, "ruleIndex": position, "kind": "fail" if holds else "open",
        "level": _LEVELS[finding.severity] if holds else "none",
        "message": {"text": plain(one_line(finding.title) + ".", *lines_of(finding, every_fix=True))},
        "locations": [_location(file, line or 1, outcome.name, root)],
        "partialFingerprints": {"compatFinding/v1": fingerprint(finding, report.file or outcome.name)},
        "properties": {key: value for key, value in properties.items() if value is not None},
    }  # fmt: skip
    if report.file is not None and report.file != file:
        result["analysisTarget"] = _artifact(report.file, root)
    return result


def _notifications(outcome: Outcome, root: str) -> Iterator[dict[str, object]]:
    if outcome.error is not None:
        error = outcome.error
        where = _location(named_file(error.file or outcome.name), error.line, outcome.name, root)
        yield _notification(0, "error", error.message, where)
    if outcome.report is not None:
        for note in outcome.report.notes:
            yield _notification(1, "note", note, _location(outcome.report.file, None, outcome.name, root))


def _notification(kind: int, level: str, message: str, location: dict[str, object]) -> dict[str, object]:
    return {
        "descriptor": {"id": _NOTIFICATIONS[kind][0], "index": kind}, "level": level, "message": {"text": plain(message)},
        "locations": [location],
    }  # fmt: skip


def _location(file: str | None, line: int | None, name: str, root: str) -> dict[str, object]:
    """Return a location in a file, or a logical location for a finding without one (a machine)."""
    if not file:
        return {"logicalLocations": [{"name": one_line(name) or "installed", "kind": "environment"}]}
    place: dict[str, object] = {"artifactLocation": _artifact(file, root)}
    if line and line > 0:
        place["region"] = {"startLine": line}
    return {"physicalLocation": place}


def _artifact(file: str, root: str) -> dict[str, str]:
    file = redacted(file)  # before it is percent-encoded, which hides a credential from every later look
    relative = in_source(file, root)
    if relative is None:
        return {"uri": _file_uri(os.path.abspath(file))}
    return {"uri": _percent_encoded(relative), "uriBaseId": "%SRCROOT%"}


def _file_uri(path: str) -> str:
    encoded = _percent_encoded(path.replace(os.sep, "/"))
    return f"file://{encoded}" if encoded.startswith("/") else f"file:///{encoded}"


def _percent_encoded(path: str) -> str:
    """Percent-encode a path for any part of a URI; bytes that are not valid UTF-8 are preserved."""
    try:
        content = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        content = path.encode("utf-8", "surrogatepass")
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in content)


def _is_address(text: str) -> bool:
    """Return whether a text is a web address that is valid in the log without escaping."""
    return text.startswith(("https://", "http://")) and all("!" <= sign <= "~" and sign not in '"<>\\^`{|}' for sign in text)


# --- Text in SARIF messages: what comes from files must not become a placeholder, a link or markup there.


_SPECIAL = frozenset("\\`*_[]<>#|~&!@:$")


def plain(*lines: str) -> str:
    """Lines of a plain text message. ``{0}`` would be a placeholder in it, and ``[text](target)`` a link."""
    return doubled_braces("\n".join(map(one_line, lines)).replace("](", "] ("))


def markdown_text(text: str) -> str:
    """Text that Markdown shows as it is; braces are left for :func:`doubled_braces`."""
    return "".join(f"\\{sign}" if sign in _SPECIAL else sign for sign in one_line(text))


def markdown_code(text: str) -> str:
    """Text as code, between more back ticks than it has in a row."""
    text = one_line(text)
    fence = "`"
    while fence in text:
        fence += "`"
    return f"{fence} {text} {fence}" if text[:1] == "`" or text[-1:] == "`" else f"{fence}{text}{fence}"


def doubled_braces(text: str) -> str:
    """A message without placeholders."""
    return text.replace("{", "{{").replace("}", "}}")


def well_formed(value: object) -> Any:
    """The same JSON value, with escapes where a text holds what is no character at all (lone surrogates)."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {well_formed(key): well_formed(each) for key, each in value.items()}
    return [well_formed(each) for each in value] if isinstance(value, list) else value
