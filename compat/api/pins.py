"""The pins that a plan needs in a file that lists only a part of what gets installed, and what an installer then takes."""

from __future__ import annotations

from collections.abc import Iterable

from compat.api.case import Case
from compat.api.edited import Written, as_written, written_for
from compat.formats.edit.changes import Change
from compat.formats.registry import read_content
from compat.formats.specifiers import raised
from compat.model import Finding
from compat.records import replace
from compat.repair.inputs import UNBUILT
from compat.repair.plan import Plan, cost_of
from compat.repair.planner import Planner
from compat.repair.target import satisfies
from compat.repair.whole_plans import findings, to_fix
from compat.versions import key_of as key_of_version

_MORE = 15.0
"""Seconds past the deadline in which a file with upper bounds is still resolved."""


def leaner(case: Case, plan: Plan, planner: Planner) -> tuple[Plan, Case | None]:
    """The plan for an incomplete list, with new pins only where uv would otherwise choose a release with an error.

    With the case of the edited file, if it was read.
    """
    unpinned = _unpinned(case, plan, planner)
    if not unpinned or case.resolves is None:
        return plan, None
    best = frozenset(need.name for each in planner.problem.recommended for need in each.alternatives[0])
    pinned: frozenset[str] = frozenset()
    while True:
        after, new = _without_pins(unpinned - pinned, case, plan, planner)
        concerned = [frozenset(each.packages) & unpinned for each in new]
        needed = frozenset[str]().union(*((each & best) - pinned or each - pinned for each in concerned))
        if not needed:
            break
        pinned |= needed
    if new or not after.resolves:
        return plan, None
    spare = sorted(pinned, key=lambda name: (name in best, name in case.listed, name)) if len(pinned) > 1 else ()
    for name in spare:  # two pins may each fix the same error, and one may bring the other along
        other, new = _without_pins(unpinned - pinned | {name}, case, plan, planner)
        if other.resolves and not new:
            pinned, after = pinned - {name}, other
    lean = replace(
        plan, along=(plan.along | unpinned) - pinned, changes=_told_instead(plan, unpinned - pinned, pinned, planner)
    )
    return as_installed(case, lean, after), after


def _told_instead(plan: Plan, spared: frozenset[str], pinned: frozenset[str], planner: Planner) -> tuple[Change, ...]:
    """The changes with the errors that only a spared one was for among the reasons of the pins that bring its release along."""
    told = {each.name: each.why for each in plan.changes if each.name not in plan.along}
    titles = [f"{each.title} ({each.rule})" for each in planner.errors]
    lost = {
        name: [each for each in titles if each in why and not any(each in told[other] for other in told.keys() - spared)]
        for name, why in told.items() if name in spared
    }  # fmt: skip

    def instead(change: Change) -> Change:
        release = plan.chosen.get(change.name)
        if change.name not in pinned or release is None:
            return change
        brought = planner.required_by(release) & lost.keys()
        more = [each for name in sorted(brought) for each in lost[name]]
        return replace(change, why="; ".join(dict.fromkeys((*more, change.why)))) if more and change.why else change

    return tuple(map(instead, plan.changes))


def ranged(case: Case, plan: Plan, written: Written, after: Case | None, planner: Planner) -> tuple[Plan, Written]:
    """The plan and its edits with bounds for what the file does not pin: upper ones for what goes back or is added
    (``pyarrow<26``), and for newer releases the bound that the file states, moved (``transformers<4.56``), or a lower one.

    ``after`` is the case of the edited file. All bounds are written, or those with which, one by one, uv takes the releases of
    the plan, or newer ones that a range admits, without an error.
    """
    late = planner.means.is_late
    limits = {} if case.whole or case.resolves is not True or written.locked else _limits(case, plan, planner)
    if after is None or not limits or late(_MORE) or case.file is None or b"--hash" in read_content(case.file):
        return plan, written
    every = frozenset(limits)
    for names in (every, *(frozenset({each}) for each in sorted(limits) if len(limits) > 1)):
        if late(_MORE):
            break
        changes = tuple(replace(each, limit=limits[each.name]) if each.name in names else each for each in plan.changes)
        loose = replace(plan, changes=changes)
        edits = written_for(case, loose)
        other = as_written(case, loose, edits, planner)
        if not other.resolves or edits.refused or not _takes(other, loose, after, planner, case):
            continue
        now = _versions(other)  # without what only other extras and groups than those with the most errors install
        changes = tuple(
            replace(each, after=now[each.name]) if _is_raised(each) and each.name in now else each for each in changes
        )
        plan, written, after = as_installed(case, replace(plan, changes=changes), other), edits, other
        if names == every:
            break
    return plan, written


def beside_extras(case: Case, plan: Plan, planner: Planner) -> Plan:
    """The plan with upper bounds, instead of pins, for what goes back and only extras and groups pin that are not selected:
    those keep their releases."""
    pinned: dict[str, set[str]] = {}
    for entry in case.listing.entries if case.listing is not None and case.listing.choices and not case.whole else ():
        pinned.setdefault(entry.distribution.name, set()).add(entry.distribution.version or "")

    def bounded(change: Change) -> Change:
        others = pinned.get(change.name, {""})
        if "" in others or change.before in (None, *others) or change.after is None or change.source is not None:
            return change
        limit = planner.limit(change.name, change.after)
        return replace(change, limit=limit) if limit and all(satisfies(each, limit) for each in others) else change

    return replace(plan, changes=tuple(map(bounded, plan.changes)))


def _limits(case: Case, plan: Plan, planner: Planner) -> dict[str, str]:
    """The bounds of the changed packages that the file does not pin, by name."""
    found = {}
    for each in plan.changes:
        ordinary = each.source is None and each.before_source is None and each.name not in plan.along and not each.limit
        pinned = case.listed.get(each.name, False) or (each.before is None and each.name in case.listed)
        if each.after is None or not ordinary or pinned:
            continue
        stated = {need.specifier for need in case.asked if need.name == each.name}
        if each.before is not None and key_of_version(each.after) > key_of_version(each.before):
            found[each.name] = raised(stated.pop(), each.after) if len(stated) == 1 else ""
        elif all(satisfies(each.after, specifier) for specifier in stated):
            found[each.name] = planner.limit(each.name, each.after)
    return {name: limit for name, limit in found.items() if limit}


def _is_raised(change: Change) -> bool:
    """Whether a bound of a change admits newer releases than the planned one."""
    moved_on = change.before is not None and key_of_version(change.after or "0") > key_of_version(change.before)
    return bool(change.limit) and moved_on


def _takes(other: Case, plan: Plan, after: Case, planner: Planner, case: Case) -> bool:
    """Whether uv takes the releases of a plan: others only if a bound admits newer ones, and then without an error."""
    there, now = _versions(after), _versions(other)
    moving = {each.name for each in plan.changes if _is_raised(each)}
    if not moving:
        return there == now
    if any(key_of_version(now.get(each, "0")) < key_of_version(there[each]) for each in moving if each in there):
        return False
    named = {each.name for each in plan.changes if each.name not in plan.along} - moving
    if any(there.get(each) != now.get(each) for each in named):
        return False
    found = findings(other.environment, planner.means.matrix, case.ignored, case.known)
    return not plan.not_left(to_fix(found, planner.problem.policy))


def _unpinned(case: Case, plan: Plan, planner: Planner) -> frozenset[str]:
    """The changed packages that the file leaves to the installer, which may take the release of the plan without a pin."""
    kept = {need.name for need in planner.problem.keep}
    return frozenset(
        each.name for each in plan.changes
        if not (each.before is not None and case.listed.get(each.name)) and each.name not in kept
        and (each.after is None or all(satisfies(each.after, need.specifier) for need in case.asked if need.name == each.name))
    )  # fmt: skip


def _without_pins(spared: frozenset[str], case: Case, plan: Plan, planner: Planner) -> tuple[Case, tuple[Finding, ...]]:
    """The case of the edited file if the plan adds no pins of the spared packages, and the errors that it adds."""
    lean = replace(plan, along=frozenset(each.name for each in plan.changes if each.name in spared))
    after = as_written(case, lean, written_for(case, lean), planner)
    found = findings(after.environment, planner.means.matrix, case.ignored, case.known)
    return after, plan.not_left(to_fix(found, planner.problem.policy))


def as_installed(case: Case, plan: Plan, after: Case, *, locked: bool = False) -> Plan:
    """The plan with the releases that uv chooses for the packages that the edited file does not pin, or in the new lock."""
    if locked:
        there, now = _locked_versions(case), _locked_versions(after)
    elif case.whole or not after.resolves or after.selection != case.selection:
        return plan
    else:
        there, now = _versions(case), _versions(after)
    named = {each.name: replace(each, implied=False) for each in plan.changes if each.name not in plan.along}
    # of a file that uv could not resolve, it is unknown what was installed before
    known = there.keys() | now.keys() if case.resolves or locked else there.keys()
    moved = sorted(name for name in known - named.keys() if there.get(name) != now.get(name))
    named |= {name: Change(name, there.get(name), now.get(name), implied=True) for name in moved}
    changes = tuple(named[name] for name in sorted(named))
    paid = {each: plan.cost.get(each, 0) for each in ("errors", "source", "steps")}
    return replace(plan, changes=changes, along=plan.along | frozenset(moved), cost=cost_of(changes, **paid))


def _versions(case: Case) -> dict[str, str]:
    return {copy.name: copy.version for copy in case.environment.distributions or () if copy.version is not None}


def _locked_versions(case: Case) -> dict[str, str]:
    """The packages of a lock, in all its selections, with their release if it has one of them."""
    found: dict[str, set[str]] = {}
    for entry in case.listing.entries if case.listing else ():
        if entry.distribution.version is not None:
            found.setdefault(entry.distribution.name, set()).add(entry.distribution.version)
    return {name: next(iter(versions)) for name, versions in found.items() if len(versions) == 1}


def drifted(case: Case, plan: Plan, after: Case, new: Iterable[Finding], planner: Planner) -> tuple[Change, ...]:
    """Pins, or upper bounds, of the plan's own releases, where errors of the edited file are only about others that uv chooses.

    A range may admit releases of years, and uv may go back through all of them for what the plan has pinned. One without a
    wheel, to which it went back before, is not kept: it would be compiled, and nothing is known of it.
    """
    if case.whole or not after.resolves or after.selection != case.selection:
        return ()
    there, now = _versions(case), _versions(after)
    named = {each.name for each in plan.changes if each.name not in plan.along}
    named |= {copy.name for copy in case.environment.distributions or () if copy.source == UNBUILT}
    whys = {name: f"{each.title} ({each.rule})" for each in reversed(tuple(new)) for name in each.packages}
    found = {name: plan.chosen[name] for name in whys if name in plan.chosen and name not in named}
    moved = [name for name, each in found.items() if each.source is None and now.get(name, each.version) != each.version]
    listed = [name for name in moved if name in case.listed]  # which bring along what they require
    return tuple(
        Change(
            name, there.get(name), version := found[name].version, why=whys[name], direct=name in (case.direct or ()),
            held=there.get(name) == version, limit="" if name in case.listed else planner.limit(name, version),
        )
        for name in sorted(listed or moved)
    )  # fmt: skip


def with_pins(plan: Plan, pins: tuple[Change, ...]) -> Plan:
    """The plan with more explicit changes."""
    changes = {each.name: each for each in (*plan.changes, *pins)}
    ordered = tuple(changes[name] for name in sorted(changes))
    paid = {each: plan.cost.get(each, 0) for each in ("errors", "source", "steps")}
    return replace(plan, changes=ordered, along=plan.along - {each.name for each in pins}, cost=cost_of(ordered, **paid))
