"""Reports to print, made small."""

from __future__ import annotations

from typing import Any

from compat.errors import InputError
from compat.model import Environment, Finding, Fix, Outcome, Report


def finding(**changes: Any) -> Finding:
    values: dict[str, Any] = {
        "rule": "widget-drops-data",
        "origin": "rule",
        "verdict": "hit",
        "severity": "error",
        "effect": "wrong-result",
        "title": "Every second widget gets no data",
        "why": "The first takes it all.",
        "confidence": "reproduced",
        "packages": {"widget": "1.0"},
        "here": "widget 1.0, 2 GPUs",
        "fixes": (
            Fix("upgrade", "widget", ">=1.1", "the first release that shares", 'pip install "widget>=1.1"'),
            Fix("launch", text="start one process per GPU"),
        ),
        "evidence": ("https://github.com/example/widget/pull/7", "https://github.com/example/widget/issues/6"),
    }
    return Finding(**{**values, **changes})


def possible(**changes: Any) -> Finding:
    return finding(verdict="possible", unknown=("workload.launcher",), missing=("workload",), **changes)


def outcome(*findings: Finding, file: str | None = "uv.lock", name: str | None = None, **changes: Any) -> Outcome:
    report = Report(environment=Environment(), findings=findings, file=file, **changes)
    return Outcome(name if name is not None else file or "installed", report)


def failed(name: str = "broken.lock", message: str = "is not TOML", line: int | None = 3) -> Outcome:
    return Outcome(name, error=InputError(message, name, line))
