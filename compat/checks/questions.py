"""Rank open questions: ask likely ones about installed packages, and fold the rest into one line or drop them."""

from __future__ import annotations

from compat.model import Finding
from compat.rules.unknown import of_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


MOST = 3
"""The maximum number of open questions asked at a time."""
LEAST = 0.25
"""The minimum likelihood of a question that is asked."""
_WEIGHTS = {"error": 1.0, "warning": 0.9, "info": 0.2}
"""The weight of a question by the severity of its finding."""


def about_listed_packages(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings without questions that have likelihood 0, such as those about distributions that are not listed."""
    return tuple(finding for finding in findings if finding.verdict != "possible" or likelihood(finding) > 0)


def fold_questions(findings: Sequence[Finding], *, remarks: bool = False) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings without unlikely questions, and notes with their number and the facts that would settle most of them.

    Without ``remarks``, hits of severity ``info`` that rest on nothing but installed releases are counted, too (nothing shows
    that the job uses what they are about), and so are violated requirements that the project overrides.
    """
    rest: list[Finding] = []
    quiet: list[Finding] = []
    for each in findings:
        (quiet if _is_remark(each) and not remarks else rest).append(each)
    shown, notes = _without_unlikely(rest)
    overridden = sum(each.origin == "metadata" for each in quiet)
    return shown, (
        *notes,
        *_counted(overridden, "requirements that the project overrides"),
        *_counted(len(quiet) - overridden, "features not known to be in use"),
    )


def _counted(count: int, subject: str) -> tuple[str, ...]:
    these, them = ("1 remark", "it") if count == 1 else (f"{count} remarks", "them")
    return (f"{these} on {subject} (--all shows {them})",) if count else ()


def _is_remark(finding: Finding) -> bool:
    by_release = finding.origin in ("rule", "build") and set(finding.facts) <= {"build"}
    overridden = finding.origin == "metadata" and finding.rule.startswith("requires-")
    return finding.verdict == "hit" and finding.severity == "info" and (by_release or overridden)


def _without_unlikely(findings: Sequence[Finding]) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    questions = [finding for finding in findings if finding.verdict == "possible"]
    order = sorted(questions, key=lambda finding: -likelihood(finding))
    likeliest: dict[tuple[str, ...], Finding] = {}
    for finding in order:
        # the answer to one settles the others with the same unknown facts, and perhaps those with more of them
        if likelihood(finding) >= LEAST and not any(set(asked) <= set(finding.unknown) for asked in likeliest):
            likeliest[finding.unknown] = finding
    asked = list(likeliest.values())[:MOST]
    left = [finding for finding in questions if finding not in asked]
    if not left:
        return tuple(findings), ()
    kept = tuple(finding for finding in findings if finding.verdict != "possible" or finding in asked)
    return kept, (_note(left),)


def likelihood(finding: Finding) -> float:
    """The likelihood (0 to 1) that the unknown facts make the finding apply, weighted by its severity."""
    return likelihood_of(finding) * _WEIGHTS[finding.severity]


def likelihood_of(finding: Finding) -> float:
    """The likelihood that the unknown facts make the finding apply, whatever its severity."""
    return of_paths(finding.unknown) if finding.likelihood is None else finding.likelihood


def _note(left: Sequence[Finding]) -> str:
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
