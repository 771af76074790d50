"""A report as a reply in an issue."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from compat.model import Environment, Finding, Fix, Report
from compat.output.markdown import markdown

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SCRIPTS = "RuntimeError: Dataset scripts are no longer supported, but found superb.py\n"


def report_with(**changes: Any) -> Report:
    given = {
        "rule": "x-rule", "origin": "rule", "verdict": "hit", "severity": "error", "effect": "crash", "title": "It fails",
        "why": "Because.", "confidence": "confirmed", "fixes": (Fix("pin", "trl", ">=1", "a newer one",
        'pip install "trl>=1"'),),
        "evidence": ("https://example.org/1",), "here": "trl 0.9",
    }  # fmt: skip
    return Report(Environment(), (Finding(**{**given, **changes}),))


def test_verdict_why_fix_and_evidence() -> None:
    assert markdown(report_with()) == (
        "**This is a known problem: It fails**\n\nBecause.\n\n**Applies because:** trl 0.9\n\n"
        '**Fix:** a newer one\n\n```bash\npip install "trl>=1"\n```\n\n'
        "**Evidence:** https://example.org/1 (`x-rule`, confirmed)"
    )


def test_the_question_that_would_settle_the_rest(compat: Run) -> None:
    done = compat("diagnose", "-", "--format", "markdown", stdin=SCRIPTS)
    assert done.returncode == 0
    assert done.stdout.startswith("**This may be a known problem: ")
    assert done.stdout.endswith("**To settle it:** Which version of `datasets` is installed (`pip show datasets`)?\n")


def test_nothing_found_says_so_with_what_to_search_for(compat: Run) -> None:
    out = compat("diagnose", "-", "--format", "markdown", stdin="ValueError: strange *thing* of mine\n").stdout
    assert out.startswith("No rule explains this text.")
    assert "strange \\*thing\\*" in out


@given(st.text(max_size=80))
def test_a_text_cannot_break_out(text: str) -> None:
    """What an error says is shown as it is: it makes no heading, link, code or HTML of its own."""
    out = markdown(report_with(title=text, why=text, here=text, fixes=()))
    assert all(line.isprintable() for line in out.split("\n"))
    plain = out.replace("\\\\", "")
    assert "<" not in plain.replace("\\<", "")
    assert "[" not in plain.replace("\\[", "")
