"""Baselines: compare a report with an earlier one and show only the new findings.

Two findings are the same if they have the same rule, target and file. Findings about the installation itself share one rule
for all distributions, so their identity also includes the distribution names. Versions are never part of the identity: a
finding that persists after a version bump is not new.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from compat.errors import InputError
from compat.model import REPORT_SCHEMA as SCHEMA
from compat.model import Finding, Outcome
from compat.records import record, replace

Identity: TypeAlias = tuple[str, str, str | None, tuple[str, ...]]
"""File, rule, target, and the distributions where a rule finds one thing for each."""
Place: TypeAlias = tuple[str | int, ...]


_VERDICTS = ("possible", "hit")


@record(frozen=True)
class Baseline:
    """The findings of an earlier report: the identity of each one, and whether its verdict was ``hit``."""

    certain: Mapping[Identity, bool]

    def has(self, finding: Finding, file: str | None) -> bool:
        """Whether the baseline contains the finding; one that was only possible and is now a hit counts as new."""
        certain = self.certain.get(_identity(file, finding.rule, finding.origin, finding.target, finding.packages))
        return certain is not None and (certain or finding.verdict != "hit")


def read_baseline(path: str) -> Baseline:
    """Read the baseline from a JSON report of ``compat check`` or a list of reports; raises :class:`InputError` otherwise."""
    from compat.files import regular_path
    from compat.syntax.json import parse_json, read_text

    text = read_text(regular_path(path))
    document = parse_json(text, path)
    certain: dict[Identity, bool] = {}
    try:
        for identity, verdict in _entries(document):
            certain[identity] = certain.get(identity, False) or verdict == "hit"
    except _Misplaced as problem:
        raise InputError(problem.message, path, _line(text, problem.place)) from None
    return Baseline(certain)


def new_only(outcome: Outcome, baseline: Baseline) -> Outcome:
    """The outcome without the findings in the baseline, and with a note of how many were dropped.

    The exit code is unchanged: it depends on the findings and a threshold that only the caller knows.
    """
    report = outcome.report
    if report is None:
        return outcome
    # a single report may have no file name; in a list every entry has one
    files = (None, outcome.name) if report.file is None else (report.file,)
    new = tuple(f for f in report.findings if not any(baseline.has(f, file) for file in files))
    dropped = len(report.findings) - len(new)
    if not dropped:
        return outcome
    note = f"{dropped} finding{'s' if dropped > 1 else ''} of the baseline {'are' if dropped > 1 else 'is'} not shown"
    return replace(outcome, report=replace(report, findings=new, notes=(*report.notes, note), known=dropped))


def fingerprint(finding: Finding, file: str | None) -> str:
    """A hash of the finding's identity (32 hexadecimal digits), stable across reports."""
    from hashlib import sha256

    where, rule, target, names = _identity(file, finding.rule, finding.origin, finding.target, finding.packages)
    parts = [where, rule, "" if target is None else f"={target}", *names]
    text = "".join(f"{len(part)}:{part}" for part in parts)  # the lengths make the parts unambiguous
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _identity(file: str | None, rule: str, origin: str, target: str | None, packages: Iterable[str]) -> Identity:
    return _normal(file), rule, target, () if origin == "rule" else tuple(sorted(packages))


def _normal(file: str | None) -> str:
    """The path relative to the current directory, with ``/`` as the separator."""
    if not file:
        return ""
    try:
        return os.path.relpath(file).replace("\\", "/")
    except (ValueError, OSError):  # a path on another drive, or a deleted current directory
        return file.replace("\\", "/")


class _Misplaced(Exception):
    """An unexpected value: what was expected, and its location in the document."""

    def __init__(self, message: str, place: Place) -> None:
        super().__init__(message)
        self.message = message
        self.place = place


def _entries(document: object) -> Iterator[tuple[Identity, str]]:
    if not isinstance(document, list):
        yield from _report_entries(document, ())
        return
    for position, report in enumerate(document):
        if isinstance(report, dict) and not isinstance(report.get("file"), str):
            raise _Misplaced("expected a file name under 'file'", (position, "file"))
        yield from _report_entries(report, (position,))


def _report_entries(report: object, place: Place) -> Iterator[tuple[Identity, str]]:
    if not isinstance(report, dict):
        raise _Misplaced("expected a JSON report of 'compat check', or a list of them", place)
    file = _checked(report, "file", (str, type(None)), "a text", place)
    if "schema" not in report and isinstance(report.get("error"), str):
        return  # this file could not be read when the report was written
    if report.get("schema") != SCHEMA:
        raise _Misplaced(f"expected a report of schema {SCHEMA!r}", (*place, "schema"))
    for position, finding in enumerate(_checked(report, "findings", (list,), "a list", place)):
        yield _finding_entry(finding, file, (*place, "findings", position))


def _finding_entry(finding: object, file: str | None, place: Place) -> tuple[Identity, str]:
    if not isinstance(finding, dict):
        raise _Misplaced("expected a finding, an object", place)
    rule = _checked(finding, "rule", (str,), "a text", place)
    origin = _checked(finding, "origin", (str,), "a text", place)
    target = _checked(finding, "target", (str, type(None)), "a text", place)
    packages = _checked(finding, "packages", (dict,), "an object", place)
    verdict = _checked(finding, "verdict", (str,), "a text", place)
    if verdict not in _VERDICTS:
        raise _Misplaced("expected 'verdict' to be 'hit' or 'possible'", (*place, "verdict"))
    return _identity(file, rule, origin, target, packages), verdict


def _checked(document: dict[str, Any], key: str, kinds: tuple[type, ...], expected: str, place: Place) -> Any:
    value = document.get(key)
    if not isinstance(value, kinds):
        raise _Misplaced(f"expected {expected} under {key!r}", (*place, key))
    return value


def _line(text: str, place: Place) -> int | None:
    """The line of a location in the document, or of its nearest existing parent; ``None`` if unknown."""
    from compat.syntax.json import line_of

    for length in range(len(place), -1, -1):
        try:
            line = line_of(text, place[:length])
        except RecursionError:
            return None
        if line is not None:
            return line
    return None
