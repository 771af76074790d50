"""Findings about what the author of a report has observed: releases that work, and releases that cause the failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import shorten
from typing import TYPE_CHECKING

from compat.checks.fix_commands import by_pip
from compat.diagnosis.frame_packages import version_of
from compat.model import Finding, Fix
from compat.reports.experiences import Experience, experiences_in
from compat.reports.words import is_version
from compat.versions import key_of

if TYPE_CHECKING:
    from compat.rules.facts import Facts

_MOST = 4
"""Maximum number of distributions reported per text."""
_QUOTED = 140
"""Maximum number of characters quoted from a report."""
EXPERIENCE = "report-says"
"""The rule of findings about what the author of a report has observed."""


def experience_findings(text: str, facts: Facts) -> list[Finding]:
    """Return a finding for each distribution with a release that, according to the report, works or causes the failure."""
    lines = dict(enumerate(text.split("\n"), 1))  # HTML breaks add lines
    return [
        _experience_finding(each, lines.get(each.line, "").strip(" >*-#`\r"), facts) for each in experiences_in(text)[:_MOST]
    ]


def _experience_finding(experience: Experience, words: str, facts: Facts) -> Finding:
    name, works, fails = experience.name, experience.works, experience.fails
    there = version_of(name, facts)
    good = f"{name} {' and '.join(works)} works" if works else ""
    bad = f"{'' if works else f'{name} '}{' and '.join(fails)} {'does' if len(fails) == 1 else 'do'} not work" if fails else ""
    return Finding(
        rule=EXPERIENCE,
        origin="release",
        verdict="possible",
        severity="warning",
        title=f"The report says that {', and that '.join(filter(None, (good, bad)))}",
        why="This is what a user observed; nothing else confirms it.",
        confidence="reported",
        packages={name: there or next((each for each in reversed(fails) if is_version(each)), None)},
        fixes=tuple(_fixes(name, works, fails)),
        here=f"line {experience.line} of the text" + (f': "{shorten(words, _QUOTED, placeholder=" …")}"' if words else ""),
    )


def _fixes(name: str, works: Sequence[str], fails: Sequence[str]) -> Iterator[Fix]:
    """Yield the release that works, or those beside the ones that do not."""
    if works:
        spec = f"=={works[-1]}" if is_version(works[-1]) else works[-1]
        pair = all(map(is_version, (works[-1], *fails[-1:])))
        kind = "downgrade" if fails and pair and key_of(works[-1]) < key_of(fails[-1]) else "pin"
        yield by_pip(kind, name, spec, "the release that works for the reporter")
        return
    sign, release = _parted(fails[-1])
    if not sign.startswith("<"):
        least = "<=" if sign == ">" else "<"
        yield by_pip("downgrade", name, f"{least}{release}", "a release before the ones that the report blames")
    if not sign.startswith(">"):
        above = ">=" if sign == "<" else ">"
        yield by_pip("upgrade", name, f"{above}{release}", "a later release, which may contain a fix")


def _parted(said: str) -> tuple[str, str]:
    """Return the sign of a specifier (``""`` for a release) and its release."""
    release = said.lstrip("<>=~")
    return said.removesuffix(release), release
