"""Text reports: what several findings have in common is said once."""

from __future__ import annotations

from compat.model import Environment, Finding, Fix, Location, Report
from compat.output.terminal import render_text
from compat.records import replace

FOUND = Finding(
    "a-rule", "rule", "It fails", "Because.", location=Location("uv.lock", 3),
    here="transformers 5.5.0", selections=("extra a",), fixes=(Fix("upgrade", "mamba-ssm", ">=2.3.0", "", "uv add x"),),
)  # fmt: skip


def test_findings_that_say_the_same_are_one_block() -> None:
    other = replace(FOUND, here="transformers 5.8.1", selections=("extra b",))
    text = render_text(Report(Environment(), findings=(FOUND, other), file="uv.lock"))
    assert [text.count(part) for part in ("It fails", "Because.", "uv add x", "uv.lock:3", "a-rule")] == [1] * 5
    assert text.index("extra a") < text.index("transformers 5.5.0") < text.index("extra b") < text.index("transformers 5.8.1")
    assert "2 errors." in text


def test_findings_with_other_fixes_or_another_severity_stay_apart() -> None:
    for other in (replace(FOUND, fixes=()), replace(FOUND, severity="warning"), replace(FOUND, title="It fails, too")):
        assert render_text(Report(Environment(), findings=(FOUND, other))).count("a-rule") == 2
