"""Errors in which a package says itself which release of another it wants: its own check, whatever its metadata says."""

from __future__ import annotations

import re

from compat.environment import normalized
from compat.report import Finding, Fix
from compat.versions import contains, key_of, ranges_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.judge.facts import Facts
    from compat.read.log.traceback_text import RaisedError

_NAME, _VERSION = r"(?P<name>[A-Za-z][\w-]{0,60})", r"(?P<least>\d[\w.]{0,40}?)"
_SPEC = r"(?P<spec>[<>=!~]{1,2} ?\d[\w.]{0,40}?(?:, ?[<>=!~]{1,2} ?\d[\w.]{0,40}?){0,8})"
_STATED = (
    # transformers.utils.versions, and its copies in diffusers and LLaMA-Factory
    re.compile(rf"{_NAME}{_SPEC} is required for a normal functioning of this module, but found [\w-]+==(?P<found>\d[\w.+]*)"),
    re.compile(rf"[Tt]he version of (?P<name>PEFT) you are using is not compatible, .{{0,80}}?{_VERSION}(?=[\s.]*$|\s)"),
    re.compile(rf"requires `{_NAME}{_SPEC}`"),
    re.compile(rf"\brequires\b.{{0,160}}?`pip install ['\"]?{_NAME}{_SPEC}['\"]?`"),
    re.compile(rf"{_NAME} with minimum required version {_VERSION} is not installed"),
    re.compile(r"requires the latest version of (?P<name>[A-Za-z][\w-]{0,60})"),
)


def stated(error: RaisedError, facts: Facts) -> list[Finding]:
    """What the error asks for; nothing where the release that is known to be there meets it: then another one ran."""
    match = next((found for pattern in _STATED if (found := pattern.search(error.message))), None)
    if match is None:
        return []
    groups = match.groupdict()
    name = normalized(groups["name"])
    spec = (groups.get("spec") or (f">={groups['least']}" if groups.get("least") else "")).replace(" ", "")
    copies = facts.package(name)
    version = (groups.get("found") or "").rstrip(".") or (copies[0].version if isinstance(copies, list) and copies else None)
    if version is not None and spec and _meets(version, spec):
        return []
    return [
        Finding(
            rule="symptom-stated-requirement",
            origin="metadata",
            verdict="possible" if version is None or not spec else "hit",
            severity="error",
            effect="crash",
            title=f"{name}{f' {version}' if version else ''} is refused: {spec or 'a newer release'} is asked for",
            why="A package checks this when it is imported or started, whatever its metadata says.",
            confidence="confirmed",
            packages={name: version},
            fixes=(Fix("pin" if spec else "upgrade", name, spec or None, "what is asked for", _command(name, spec)),),
            here=f"the error on line {error.line} of the text",
        )
    ]


def _command(name: str, spec: str) -> str:
    return f'pip install "{name}{spec}"' if spec else f"pip install -U {name}"


def _meets(version: str, spec: str) -> bool:
    try:
        return contains(ranges_of(spec), key_of(version.partition("+")[0]))
    except ValueError:
        return False
