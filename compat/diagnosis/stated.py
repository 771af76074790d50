"""Errors in which a package, an installer or a resolver says itself which release of what it wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.checks import derived
from compat.diagnosis.interface_errors import version_of
from compat.model import Distribution, Environment, Finding, Fix
from compat.records import replace
from compat.reports.stated import Wanted, meets, wanted_in

if TYPE_CHECKING:
    from compat.rules.facts import Facts


_MOST = 4
"""Wants of one text that are reported; pip lists dozens."""


def stated(text: str, line: int, facts: Facts) -> list[Finding]:
    """A finding for each release that ``text``, which begins on ``line``, asks for and that is not known to be there."""
    found = []
    for wanted in wanted_in(text):
        there = wanted.found or (facts.environment.python if wanted.name == "python" else version_of(wanted.name, facts))
        if there is not None and wanted.specifier and meets(there, wanted.specifier):
            continue  # another release ran
        found.append(_finding(replace(wanted, found=there, line=line + wanted.line - 1)))
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
        title=f"{asked}, and {there} is installed" if there else asked,
        why=f"{wanted.by or 'A package'} says so itself"
        + (": a resolver refuses what its metadata excludes." if wanted.by_version else ", whatever its metadata says."),
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
    """What is asked for, or where both releases are known a release of the one that asks which takes the other."""
    name, spec = wanted.name, wanted.specifier
    if name == "python":
        return (Fix("config", text=f"use a Python {spec}", command="uv venv --python 3.11"),)
    command = f'pip install "{name}{spec}"' if spec else f"pip install -U {name}"
    asked = Fix("pin" if spec else "upgrade", name, spec or None, "what is asked for", command)
    if wanted.found is None or wanted.by is None or wanted.by_version is None:
        return (asked,)
    both = Environment(distributions=(Distribution(wanted.by, wanted.by_version), Distribution(name, wanted.found)))
    known = next((each for each in derived.judge(both) if each.rule == f"requires-{wanted.by}-{name}"), None)
    return (asked,) if known is None else known.fixes
