"""Errors in which a package, installer or resolver states the release it requires; reports that state which one works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.checks import derived_findings
from compat.diagnosis.frame_packages import version_of
from compat.model import Distribution, Environment, Finding, Fix
from compat.records import replace
from compat.reports.stated import Experience, Wanted, experiences_in, meets, wanted_in
from compat.versions import key_of

if TYPE_CHECKING:
    from compat.rules.facts import Facts


_MOST = 4
"""Maximum number of requirements reported per text; pip lists dozens."""


def stated(text: str, line: int, facts: Facts, *, in_words: bool = True) -> list[Finding]:
    """Return a finding for each release that ``text`` requires and that is not installed; ``line`` is the text's first line.

    Unless ``in_words``, only for messages that are about nothing but a requirement.
    """
    found = []
    for wanted in (each for each in wanted_in(text) if in_words or not each.in_words):
        there = wanted.found or (facts.environment.python if wanted.name == "python" else version_of(wanted.name, facts))
        if there is not None and wanted.specifier and meets(there, wanted.specifier):
            continue  # another release was running
        found.append(_finding(replace(wanted, found=there, line=line + wanted.line - 1)))
    # compiled companions require an exact pin; a range is often only what was tested
    found.sort(key=lambda finding: not any((fix.spec or "").startswith("==") for fix in finding.fixes))
    return found[:_MOST]


def _finding(wanted: Wanted) -> Finding:
    name, spec, there = wanted.name, wanted.specifier, wanted.found
    of_python = name == "python"
    by = " ".join(filter(None, (wanted.by, wanted.by_version)))
    asked = f"{by} requires {name}{spec}" if by else f"{name}{spec or ' in a newer release'} is required"
    return Finding(
        rule="symptom-stated-requirement",
        origin="metadata",
        verdict="possible" if there is None or not spec else "hit",
        severity="error",
        effect="install" if wanted.by_version or of_python else "crash",
        title=f"{asked}, but {there} is installed" if there else asked,
        why=(wanted.by or "A package")
        + (" declares this; resolvers reject other versions." if wanted.by_version else " checks this itself, at run time."),
        confidence="confirmed",
        packages={
            **({} if of_python else {name: there}),
            **({wanted.by: wanted.by_version} if wanted.by and wanted.by != name else {}),
        },
        facts=("python",) if of_python else (),
        fixes=_fixes(wanted),
        here=f"the error on line {wanted.line} of the text",
    )


def _fixes(wanted: Wanted) -> tuple[Fix, ...]:
    """Return the required release, or, if both releases are known, the fixes derived for this pair of distributions."""
    name, spec = wanted.name, wanted.specifier
    if name == "python":
        return (Fix("config", text=f"use a Python {spec}", command="uv venv --python 3.11"),)
    command = f'pip install "{name}{spec}"' if spec else f"pip install -U {name}"
    asked = Fix("pin" if spec else "upgrade", name, spec or None, "what is required", command)
    if wanted.found is None or wanted.by is None or wanted.by_version is None:
        return (asked,)
    both = Environment(distributions=(Distribution(wanted.by, wanted.by_version), Distribution(name, wanted.found)))
    known = next((each for each in derived_findings(both) if each.rule == f"requires-{wanted.by}-{name}"), None)
    return (asked,) if known is None else known.fixes


def told(text: str, facts: Facts) -> list[Finding]:
    """Return a finding for each distribution with a release that, according to the report, works or causes the failure."""
    return [_told(each, facts) for each in experiences_in(text)][:_MOST]


def _told(said: Experience, facts: Facts) -> Finding:
    name, works, fails = said.name, said.works, said.fails
    there = version_of(name, facts)
    good = f"{name} {' and '.join(works)} works" if works else ""
    bad = f"{'' if works else f'{name} '}{' and '.join(fails)} {'does' if len(fails) == 1 else 'do'} not work" if fails else ""
    if works:
        kind = "downgrade" if fails and _is_older(works[-1], fails[-1]) else "pin"
        fix = Fix(kind, name, f"=={works[-1]}", "the release that works for the reporter", f'pip install "{name}=={works[-1]}"')
    else:
        fix = Fix("pin", name, f"!={fails[-1]}", "a release other than the one the report blames")
    return Finding(
        rule="report-says",
        origin="release",
        verdict="possible",
        severity="warning",
        effect="crash",
        title=f"The report says that {', and that '.join(filter(None, (good, bad)))}",
        why="This is what a user observed; nothing else confirms it.",
        confidence="reported",
        packages={name: there or (fails[-1] if fails else None)},
        fixes=(fix,),
        here=f"line {said.line} of the text",
    )


def _is_older(one: str, other: str) -> bool:
    return key_of(one) < key_of(other)
