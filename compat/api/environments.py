"""The repairs of the environments that one file describes: services of a compose file, jobs of a workflow, extras and groups
of a project that exclude each other.

Each is planned for in the file as it is edited for those before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from time import monotonic

from compat.api.case import environments_in
from compat.api.commands import Options
from compat.api.fixing import Repair, repair_of
from compat.api.planning import TIME_LIMIT, seconds_of
from compat.api.report import part_name
from compat.errors import InputError
from compat.formats.edit.files import Edit, as_if_written, merged
from compat.formats.listing import Choice, Listing
from compat.model import Finding
from compat.records import replace
from compat.repair.plan import Plan, joined
from compat.rules.compiled import Matrix

_MOST = 50
"""Environments of a file."""
_PASSES = 2
"""How often each is planned for: what is edited for one may be shared with those before."""
_LEAST = 5.0
"""Seconds for each, even if those before have taken all the time."""


def repairs_of(options: Options, matrix: Matrix) -> tuple[tuple[str, Repair], ...]:
    """The repair of each environment that the input named by the options describes, with its name ("" for a single one).

    Each is planned for in the file as it is edited for those before, and all together have one time limit. Extras and groups
    that exclude each other are environments as well, if no plan fixes what all of them install.
    :class:`InputError` for a file with too many.
    """
    environments = environments_in(options.operands[0]) if options.operands else []
    start = monotonic()

    def of(number: int, values: dict[str, list[str]]) -> Repair:
        left = str(max(start + seconds_of(options.one("time-limit") or str(TIME_LIMIT)) - monotonic(), _LEAST))
        limited = replace(options, values={**options.values, **values, "time-limit": [left]})
        return repair_of(limited, matrix, part=number if len(environments) > 1 else None)

    if len(environments) > _MOST:
        raise InputError(f"contains {len(environments)} environments: expected at most {_MOST}", options.operands[0])
    if len(environments) > 1:
        found = _one_after_another([partial(of, number, {}) for number in range(len(environments))])
        return tuple((part_name(environment), each) for environment, each in zip(environments, found))
    whole = repair_of(options, matrix)
    choices = _excluding_each_other(whole)
    apart = _one_after_another([partial(of, 0, {f"{each.kind}s": [_option(each)]}) for each in choices])
    planned = tuple((choice.label, each) for choice, each in zip(choices, apart) if each.errors)
    if not planned or _unfixed(apart) > _unfixed([whole]):
        return (("", whole),)
    return planned if len(planned) > 1 else (("", planned[0][1]),)


def _one_after_another(runs: Sequence[Callable[[], Repair]]) -> list[Repair]:
    """The repairs of environments of one file, each of them of the file as it is edited for those before."""
    found: list[Repair] = []
    edits: dict[str, Edit] = {}
    for round_ in range(_PASSES):
        before = edits
        for number, run in enumerate(runs):
            with as_if_written(edits.values()):
                each = run()
            edits = merged(edits, each.written.edits)
            if round_:
                found[number] = _together(found[number], each)
            else:
                found.append(each)
        if edits == before:
            break
    last = max((number for number, each in enumerate(found) if each.written.edits), default=None)
    if last is not None:  # what was planned again for one may not know what was edited for another since
        found[last] = _with_edits(found[last], edits)
    return found


def _with_edits(found: Repair, edits: Mapping[str, Edit]) -> Repair:
    return replace(found, written=replace(found.written, edits=tuple(edits.values())))


_MOST_APART = 8
"""Extras and groups that are planned for one by one."""


def _excluding_each_other(found: Repair) -> tuple[Choice, ...]:
    """The extras and groups with a declared conflict of a file for which no plan fixes everything, or only one that concerns
    several of them."""
    listing, asked = found.case.listing, found.case.asked_choices
    stated = asked is not None and (asked.extras is not None or asked.groups is not None)
    if listing is None or stated or found.case.one_by_one or not found.errors:
        return ()
    if found.plan.stands and not found.plan.left and not _concerns_several(found.plan, listing):
        return ()
    numbers = sorted({number for conflict in listing.conflicts for number in conflict})
    choices = [listing.choices[number] for number in numbers if listing.choices[number].kind in ("extra", "group")]
    return tuple(choices) if len(choices) <= _MOST_APART else ()


def _concerns_several(plan: Plan, listing: Listing) -> bool:
    """Whether a plan moves what several extras or groups that exclude each other pin, or pins what none of them names: one of
    them may not go with it."""
    moved = {each.name: each.direct for each in plan.changes if each.name not in plan.along}
    edges, last = listing.edges or (), len(listing.entries)
    extras = {edge.child: edge.choice for edge in edges if edge.child >= last and edge.choice is not None}
    pinning: dict[str, set[int | None]] = {}
    for edge in edges:
        if edge.child < last:
            pinning.setdefault(listing.entries[edge.child].distribution.name, set()).add(extras.get(edge.parent, edge.choice))
    return any(
        not direct or len(pinning.get(name, set()).intersection(conflict)) > 1
        for name, direct in moved.items() for conflict in listing.conflicts
    )  # fmt: skip


def _option(choice: Choice) -> str:
    return f"{choice.package}[{choice.name}]" if choice.package else choice.name


def _unfixed(found: Iterable[Repair]) -> int:
    """The number of errors that plans leave."""
    return sum(len(each.plan.left if each.plan.stands else each.errors) for each in found)


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
        edits = merged(merged({}, first.written.edits), again.written.edits)
        return _with_edits(Repair(again.case, (*first.errors, *_new(again, first)), plan, again.written), edits)
    if first.plan.stands and again.errors:
        errors = (*first.errors, *_new(again, first))
        return replace(first, errors=errors, plan=replace(first.plan, left=again.errors))
    return first


def _new(again: Repair, first: Repair) -> tuple[Finding, ...]:
    return tuple(each for each in again.errors if each not in first.errors)
