"""``compat why NAME``: why a package is at its version, and what would have to change for it to move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.api.planning import planning
from compat.errors import InputError, Undecided
from compat.model import normalized
from compat.output.stream import emit
from compat.records import replace
from compat.rules.compiled import open_matrix

if TYPE_CHECKING:
    from compat.api.words import Words
    from compat.repair.plan import Planner


def run(words: Words) -> int:
    """Prints who asks for the package, and what a move to its newest release (or to ``--to``) would take along."""
    from compat.repair.problem import Policy

    if not words.operands:
        raise InputError("expected the name of a package: compat why vllm")
    name = normalized(words.operands[0])
    matrix = open_matrix(words.values.get("rules", ()))
    policy = Policy(prefer="stay", any_age=words.flag("any-age"))
    with planning(replace(words, operands=words.operands[1:]), matrix, policy) as (_, planner):
        emit(_told(name, planner, words))
    return 0


def _told(name: str, planner: Planner, words: Words) -> str:
    from compat.repair.target import Need
    from compat.repair.verify import Checks

    current = planner.problem.current.get(name)
    if current is None:
        raise InputError(f"{name} is not there")
    lines = [f"{name} {current.version} is there."]
    asking = planner.asking(name)
    lines += [f"  asked for by  {text}" for text in asking] or ["  nobody asks for it but you"]
    newest = words.one("to") or planner.newest(name)
    if newest is None:
        raise Undecided(f"the releases of {name} could not be read: {planner.unread(name)}")
    if newest == current.version:
        return "\n".join([*lines, f"  newest        {newest}: it is the one that is there"])
    moved = planner.moved(Need(name, f"=={newest}", ())).plan(checks=Checks(uv=False))
    if moved.core and moved.unread:  # what could not be read is no contradiction
        other, reason = next(iter(moved.unread.items()))
        raise Undecided(f"{other} could not be read: {reason}")
    if moved.core:
        lines.append(f"  {newest} cannot be had:")
        return "\n".join([*lines, *(f"    - {text}" for text in moved.core)])
    lines.append(f"  to move to {newest}:")
    lines += [f"    {each.name}  {each.before or '—'} → {each.after or 'removed'}" for each in moved.changes]
    lines += [f"    and then: {finding.title} ({finding.rule})" for finding in moved.left]
    return "\n".join(lines)
