"""Rank open questions: ask likely ones about installed packages, and fold the rest into one line or drop them."""

from __future__ import annotations

from compat.model import Finding
from compat.rules.likelihood import of_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 3
"""The maximum number of open questions asked at a time."""
LEAST = 0.25
"""The minimum likelihood of a question that is asked."""
_WARNING = 0.9
"""The weight of a warning, relative to an error."""


def about_what_is_there(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings without questions that have likelihood 0, such as those about distributions that are not listed."""
    return tuple(finding for finding in findings if finding.verdict != "possible" or likelihood(finding) > 0)


def folded(findings: Sequence[Finding]) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings without unlikely questions, and a note with their number and the facts that would settle most of them."""
    questions = [finding for finding in findings if finding.verdict == "possible"]
    order = sorted(questions, key=lambda finding: -likelihood(finding))
    asked = _distinct([finding for finding in order if likelihood(finding) >= LEAST])[:MOST]
    left = [finding for finding in questions if finding not in asked]
    if not left:
        return tuple(findings), ()
    kept = tuple(finding for finding in findings if finding.verdict != "possible" or finding in asked)
    return kept, (_said(left),)


def likelihood(finding: Finding) -> float:
    """The likelihood (0 to 1) that the unknown facts make the finding apply; a warning is weighted slightly lower."""
    known = of_paths(finding.unknown) if finding.likelihood is None else finding.likelihood
    return known if finding.severity == "error" else known * _WARNING


def _distinct(questions: list[Finding]) -> list[Finding]:
    """The likeliest question for each set of unknown facts; its answer settles the others with the same set."""
    first: dict[tuple[str, ...], Finding] = {}
    for finding in questions:
        first.setdefault(finding.unknown, finding)
    return list(first.values())


def _said(left: Sequence[Finding]) -> str:
    facts: dict[str, int] = {}
    for finding in left:
        for path in finding.unknown:
            word = path.removeprefix("workload.").removeprefix("distributions.")
            word = f"the version of {word}" if path.startswith("distributions.") else word
            facts[word] = facts.get(word, 0) + 1
    most = sorted(facts, key=lambda word: (-facts[word], word))[:4]
    count = len(left)
    return (
        f"{count} more unlikely {'question' if count == 1 else 'questions'} (--all shows {'it' if count == 1 else 'them'}); "
        f"these facts would settle most: {', '.join(most)}"
    )
