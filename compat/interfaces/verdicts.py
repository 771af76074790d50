"""Whether a world of releases meets a need; ``None`` unless certain, and such a verdict is never reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.interfaces.release import Complaint, Meaning
from compat.interfaces.source.records import Signature
from compat.records import record

if TYPE_CHECKING:
    from compat.interfaces.needs import Need
    from compat.interfaces.world import World


@record(frozen=True)
class Verdict:
    """``met`` is ``None`` if unknown. ``missing`` is the missing name, or the rejected keyword or number of arguments.

    ``where`` is the definition found, or the owner that lacks it, and ``line`` the line there.
    """

    met: bool | None
    kind: str = ""
    missing: str = ""
    where: Meaning | None = None
    line: int = 0


_UNKNOWN = Verdict(None)


def verdict_on(world: World, need: Need) -> Verdict:
    """Return whether the releases of a world meet a need."""
    kind, target, name, bases, positional, keywords, signature = need
    if kind == "import":
        return _found(world.imported(target, name))
    if kind == "attribute":
        return _found(world.find(target))
    if kind == "call":
        return _called(world, world.find(target), positional, keywords)
    if kind == "method":
        return _method(world, world.find(target), name or "", positional, keywords)
    if kind == "inherited":
        return _inherited(world, bases, name or "", positional, keywords)
    return _override(world, bases, name or "", Signature(*(signature or ())))


def _found(meaning: Meaning) -> Verdict:
    if meaning.kind == "absent":
        return _lacking(meaning)
    return Verdict(None if meaning.kind in ("unknown", "never") else True, where=meaning, line=meaning.line)


def _lacking(meaning: Meaning) -> Verdict:
    return Verdict(met=False, kind="name", missing=meaning.dotted, where=meaning)


def _unfit(kind: str, complaint: Complaint, line: int) -> Verdict:
    return Verdict(met=False, kind=kind, missing=complaint.what, where=complaint.callee, line=line)


def _called(world: World, meaning: Meaning, positional: int, keywords: tuple[str, ...]) -> Verdict:
    callee = world.callee(meaning)
    if callee is None:
        return _UNKNOWN
    return _judged(world.rejected(*callee, positional, keywords), callee[2])


def _judged(complaints: tuple[Complaint, ...], where: Meaning) -> Verdict:
    for complaint in complaints:
        return _unfit(complaint.kind, complaint, complaint.callee.line)
    return Verdict(met=True, where=where, line=where.line)


def _method(world: World, of: Meaning, name: str, positional: int, keywords: tuple[str, ...]) -> Verdict:
    if of.kind != "class":
        return _UNKNOWN
    found = world.member(of, name)
    if found.kind == "absent":
        return _lacking(found)
    if found.kind != "method":
        return _UNKNOWN if found.kind == "unknown" else Verdict(met=True, where=found, line=found.line)
    callee = world.callee(found)
    assert callee is not None
    return _judged(world.rejected(callee[0], 1, callee[2], positional, keywords), callee[2])


def _inherited(world: World, bases: tuple[str, ...], name: str, positional: int, keywords: tuple[str, ...]) -> Verdict:
    lacking = None
    for base in bases:
        of = world.find(base)
        if of.kind != "class":
            return _UNKNOWN
        if name == "__init__":
            return _called(world, of, positional, keywords)
        verdict = _method(world, of, name, positional, keywords)
        if verdict.met is not False or verdict.kind != "name":
            return verdict
        lacking = lacking or verdict
    return lacking or _UNKNOWN


def _override(world: World, bases: tuple[str, ...], name: str, signature: Signature) -> Verdict:
    where = None
    for base in bases:
        of = world.find(base)
        if of.kind != "class":
            return _UNKNOWN
        for complaint, line in world.override_complaints(of, name, signature):
            return _unfit(f"override-{complaint.kind}", complaint, line)
        found = world.member(of, name)
        where = where or (found if found.kind == "method" else None)
    return Verdict(met=True, where=where, line=where.line if where is not None else 0)
