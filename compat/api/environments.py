"""Fixes for a file that describes several environments: the services of a compose file, the jobs of a workflow."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from time import monotonic

from compat.api.case import environments_in
from compat.api.commands import Options
from compat.api.fixing import Repair, joined, repair_of
from compat.api.planning import TIME_LIMIT, seconds_of
from compat.api.report import part_name
from compat.errors import InputError
from compat.formats.edit.files import Edit, as_if_written, merged
from compat.model import Finding
from compat.records import replace
from compat.repair.plan import Plan
from compat.rules.compiled import Matrix

_MOST = 50
"""Environments of a file."""
_ROUNDS = 2
"""How often each is planned for: what is edited for one may be shared with those before."""
_LEAST = 5.0
"""Seconds for each, even if those before have taken all the time."""


def repairs_of(options: Options, matrix: Matrix) -> tuple[tuple[str, Repair], ...]:
    """The repair of each environment that the input named by the options describes, with its name ("" for a single one).

    Each is planned for in the file as it is edited for those before, and all together have one time limit.
    :class:`InputError` for a file with too many.
    """
    environments = environments_in(options.operands[0]) if options.operands else []
    if len(environments) < 2:
        return (("", repair_of(options, matrix)),)
    if len(environments) > _MOST:
        raise InputError(f"contains {len(environments)} environments: expected at most {_MOST}", options.operands[0])
    end = monotonic() + seconds_of(options.one("time-limit") or str(TIME_LIMIT))
    found: list[Repair] = []
    edits: dict[str, Edit] = {}
    for round_ in range(_ROUNDS):
        before = edits
        for number in range(len(environments)):
            left = str(max(end - monotonic(), _LEAST))
            with as_if_written(edits.values()):
                each = repair_of(replace(options, values={**options.values, "time-limit": [left]}), matrix, part=number)
            edits = merged(edits, each.written.edits)
            if round_:
                found[number] = _together(found[number], each)
            else:
                found.append(each)
        if edits == before:
            break
    return tuple((part_name(environment), each) for environment, each in zip(environments, found))


def whole_plan(found: Sequence[tuple[str, Repair]]) -> Plan:
    """The plans of all environments as one, which leaves the errors of those for which none stands."""
    first = next((each for _, each in found if each.errors), found[0][1])
    standing = [each.plan for _, each in found if each.plan.stands]
    if not standing:
        return first.plan
    unfixed = tuple(error for _, each in found if not each.plan.stands for error in each.errors)
    plan = reduce(joined, standing)
    return replace(plan, left=(*plan.left, *unfixed))


def _together(first: Repair, again: Repair) -> Repair:
    """The repair of an environment and what was planned for it again after the edits for others."""
    if again.plan.stands:
        plan = joined(replace(first.plan, left=()), again.plan) if first.plan.stands else again.plan
        return Repair(again.case, (*first.errors, *_new(again, first)), plan, again.written)
    if first.plan.stands and again.errors:
        errors = (*first.errors, *_new(again, first))
        return replace(first, errors=errors, plan=replace(first.plan, left=again.errors))
    return first


def _new(again: Repair, first: Repair) -> tuple[Finding, ...]:
    return tuple(each for each in again.errors if each not in first.errors)
