"""What comes out: findings, fixes and the report (contract ``compat/report/1``, ``docs/schemas/report-1.json``)."""

from __future__ import annotations

from compat.environment import EMPTY, Environment
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from compat.errors import InputError

SCHEMA = "compat/report/1"

SEVERITIES = ("error", "warning", "info")
"""Worst first."""

EFFECTS = ("crash", "wrong-result", "hang", "slow", "memory", "install")
ORIGINS = ("rule", "metadata", "build", "surface", "release")
CONFIDENCES = ("reproduced", "confirmed", "reported")
FIX_KINDS = ("upgrade", "downgrade", "pin", "source-install", "uninstall", "launch", "config", "env-var", "driver")


@record(frozen=True)
class Fix:
    """One way to mend a finding; alternatives of one finding come best first."""

    kind: str
    package: str | None = None
    spec: str | None = None
    text: str = ""
    command: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "package": self.package, "spec": self.spec, "text": self.text, "command": self.command}


@record(frozen=True)
class Location:
    """Where a finding was read: a file, and a 1-based line of it."""

    file: str
    line: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"file": self.file, "line": self.line}


@record(frozen=True)
class Finding:
    """One known-bad combination that holds (``hit``) or could hold (``possible``) here.

    ``packages`` maps each distribution it is about to its version here (``None`` where unknown), ``facts`` lists the
    other facts it rests on, in the vocabulary of the contract; ``missing`` lists in the same vocabulary what would have
    to be known to decide it, and ``unknown`` the same in full (``workload.launcher``, ``distributions.trl``).
    ``here`` says in words why it applies to this environment. ``target`` names the declared deployment and
    ``selections`` the installable selections of a lock file ("extra vllm") it was found for; empty means for all of them.
    """

    rule: str
    origin: str
    verdict: str
    severity: str
    effect: str
    title: str
    why: str
    confidence: str
    packages: Mapping[str, str | None] = EMPTY
    facts: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()
    evidence: tuple[str, ...] = ()
    here: str = ""
    location: Location | None = None
    target: str | None = None
    selections: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        found = {
            "rule": self.rule, "origin": self.origin, "verdict": self.verdict, "missing": list(self.missing),
            "unknown": list(self.unknown), "severity": self.severity, "effect": self.effect, "title": self.title,
            "why": self.why, "here": self.here, "packages": dict(self.packages), "facts": list(self.facts),
            "fixes": [fix.to_json() for fix in self.fixes], "evidence": list(self.evidence),
            "confidence": self.confidence, "location": None if self.location is None else self.location.to_json(),
        }  # fmt: skip
        if self.target is not None:
            found["target"] = self.target
        if self.selections:
            found["selections"] = list(self.selections)
        return found

    def order(self) -> tuple[int, int, str]:
        """Sort key: worst first, certain before possible, then by name, so that every run prints the same."""
        return SEVERITIES.index(self.severity), self.verdict != "hit", self.rule


@record(frozen=True)
class Report:
    """Findings about one environment. ``notes`` are what could not be read or was taken for granted, in words.

    ``file`` is what the environment was read from, ``None`` for a machine. Where a file holds several environments (services
    of a compose file, stages of a Dockerfile), ``parts`` are all of them, each with what it is called, and ``environment``
    is the one with the worst finding. ``ignored`` and ``known`` count the findings that are left out because the project
    ignores them, or because a baseline has them.
    """

    environment: Environment
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    exit: int = 0
    file: str | None = None
    parts: tuple[tuple[str, Environment], ...] = ()
    ignored: int = 0
    known: int = 0

    def to_json(self) -> dict[str, Any]:
        parts = [{"name": name, "environment": environment.to_json()} for name, environment in self.parts]
        return {
            "schema": SCHEMA, **({} if self.file is None else {"file": self.file}), "environment": self.environment.to_json(),
            **({"parts": parts} if parts else {}),
            "findings": [finding.to_json() for finding in self.findings], "notes": list(self.notes),
            "plan": None, "exit": self.exit,
        }  # fmt: skip


@record(frozen=True)
class Outcome:
    """What became of one thing that was to be judged: a report, or the one line that says why there is none."""

    name: str
    report: Report | None = None
    error: InputError | None = None

    @property
    def exit(self) -> int:
        """The exit code of this one; 2 where it could not be read."""
        return 2 if self.report is None else self.report.exit

    def to_json(self) -> dict[str, Any]:
        if self.report is None:
            return {"file": self.name, "error": str(self.error), "exit": 2}
        return {"file": self.name, **self.report.to_json()}


def exit_code(findings: tuple[Finding, ...], threshold: str) -> int:
    """1 where a finding that certainly holds is at or above ``threshold``, else 0 (``"never"``: always 0).

    A finding that is only possible never fails a build by itself: it is a question, and it is printed as one.
    """
    if threshold == "never":
        return 0
    limit = SEVERITIES.index(threshold)
    return int(any(f.verdict == "hit" and SEVERITIES.index(f.severity) <= limit for f in findings))
