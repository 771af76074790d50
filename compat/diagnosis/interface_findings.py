"""Findings about a name or a call that two packages, or code and a package, do not agree on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compat.checks.fix_commands import by_pip
from compat.diagnosis.contemporaries import published_after, without_needing, written_for
from compat.diagnosis.foreign_attributes import without_reading
from compat.diagnosis.frame_packages import MODELS_OWN, inferred, location_text, version_of
from compat.diagnosis.installations import DEPENDENCIES
from compat.diagnosis.missing_names import Named
from compat.diagnosis.overrides import before_the_member, of_older_base
from compat.diagnosis.python_messages import CALL, KEYWORD, MEMBER, NAME, Lack
from compat.model import Finding, Fix
from compat.records import record
from compat.rules.facts import Facts

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError


INTERFACE = "symptom-interface"
"""The rule of findings about a name or an argument that some releases have and others do not."""
FIND_IT = Fix(
    kind="config", text="find the copy that ran: compare the paths in the traceback with the environment that was checked"
)
ELSEWHERE = "Another copy of the package, or another environment, was running (see 'compat doctor --deep')."


_CHECKOUT = re.compile(r"\((?![^()\n]{0,400}-packages)[^()\n]{1,400}[/\\]__init__\.py\)")
"""The place of a package that was not installed from a wheel, in a message about a name that it does not have."""


@record(frozen=True)
class Sides:
    """The distribution that lacks a name (``owner``) and the one that uses it (``asking``); ``None`` if unknown."""

    owner: str | None
    asking: str | None


def lacking_name(known: Named | None, error: RaisedError, facts: Facts, asking: str | None = None) -> list[Finding]:
    """Return a finding for a name that code, of ``asking`` if known, takes from a release that lacks it or is unknown."""
    if known is None:
        return []
    version = version_of(known.package, facts)
    if version is not None and not known.lacked_by(version):
        if known.derived and (before := before_the_member(known)):
            return [of_older_base(known, version, before, error)]
        return [] if known.derived or known.doubt else [_another_copy(known, version, error)]
    fixes = [*known.fixes(version)]
    if known.derived and version is None:
        fixes += before_the_member(known)
    if asking is not None and asking not in (known.package, MODELS_OWN):
        newer = _moved(asking, known.package, known.what.rpartition(".")[2], known, facts)
        fixes.insert(0 if known.gone else len(fixes), newer)
    return [
        Finding(
            rule=INTERFACE,
            origin="surface",
            verdict="hit" if _is_sure(known, version, error) else "possible",
            title=known.title,
            why=known.sentence(),
            packages={name: version_of(name, facts) for name in dict.fromkeys((asking or known.package, known.package))},
            fixes=tuple(fixes),
            here=location_text(error),
        )
    ]


def _moved(asking: str, owner: str, member: str, known: Named | None, facts: Facts) -> Fix:
    """Return the release of ``asking`` to move to: one that does not use the name, if the tables show which."""
    found = without_reading(member, asking, version_of(asking, facts)) if member else None
    found = found or (without_needing(known, asking, facts) if known is not None else None)
    found = found or published_after(asking, owner, facts)
    return found or by_pip("upgrade", asking, None, f"a release of {asking} written for this {owner}")


def _another_copy(known: Named, version: str, error: RaisedError) -> Finding:
    """Return a finding for a name that the listed release has: the error is from another release of the package."""
    other = f"release than {known.package} {version}"
    return inferred(
        rule="symptom-another-copy",
        title=f"{known.title}: the code that failed is from another {other}",
        why=f"{known.sentence()} {ELSEWHERE} A development build may lack it as well.",
        packages={known.package: version},
        facts=("install",),
        fixes=(FIND_IT, *known.fixes(None)),
        here=location_text(error),
    )


def _is_sure(known: Named, version: str | None, error: RaisedError) -> bool:
    """Whether the tables show that the installed release is the one that failed, and not just one that might have."""
    guessed = known.derived or bool(known.doubt and not error.frames)
    return version is not None and not guessed and not known.unread(version) and known.lacked_by(version)


def mismatch(lack: Lack, sides: Sides, known: Named | None, error: RaisedError, facts: Facts) -> Finding:
    owner, asking = sides.owner or "", sides.asking
    newer: tuple[Fix, ...] = ()
    if asking is None or asking == MODELS_OWN:
        asking, who = None, "the code" if asking is None else "the model's own code"
        start = who.capitalize()
    else:
        start = who = asking
        newer = (_moved(asking, owner, lack.name if lack.kind == MEMBER else "", known, facts),)
    if known is None and lack.kind == NAME and _CHECKOUT.search(error.message) is not None:
        text = (
            f"import the module of {owner} that defines {lack.name} on its own: a checkout's __init__.py often hides its error"
        )
        newer = (*newer, Fix("config", text=text))
    then = None if asking is None else written_for(asking, owner, facts)
    then = then or Fix("pin", owner, None, f"the release of {owner} that {who} was written for", None)
    fixes: tuple[Fix, ...] = (*newer, then)
    why = "The message alone does not show which of the two has to change."
    version, sure = version_of(owner, facts), False
    if known is not None and known.package == owner and (version is None or known.lacked_by(version)):
        sure = _is_sure(known, version, error)
        why = f"{known.title}. {known.sentence()}"
        moved = next(fix for fix in known.fixes(version) if fix.package)
        fixes = (*newer, moved) if known.gone else (moved, *newer)
    of_call = lack.kind in (KEYWORD, CALL)
    action = f"calls {lack.what} of {owner}" if of_call else f"uses {_short(lack)} of {owner}"
    lacks = f"this {owner} does not {'accept' if of_call else 'have'} it"
    if lack.required:
        action, lacks = f"calls {lack.what}", f"this {owner} requires {'them' if lack.required[1:] else 'it'}"
    written = "The releases do not match" if newer else "The code and the release do not match"
    return Finding(
        rule=INTERFACE,
        origin="surface",
        verdict="hit" if sure else "possible",
        title=f"{start} {action}, but {lacks}",
        why=f"{written}: {who} was written for an older or a newer {owner}. {why}",
        confidence="confirmed" if sure else "reported",
        packages={name: version_of(name, facts) for name in (asking, owner) if name},
        fixes=fixes,
        evidence=(DEPENDENCIES,),
        here=location_text(error),
    )


def _short(lack: Lack) -> str:
    return lack.what if lack.kind == MEMBER else lack.name or lack.owner
