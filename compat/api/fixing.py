"""Fixes for the errors of a check: a plan, the edits for it, and a check of the edited file.

Every plan is applied to the file in memory, and the edited file is read, resolved and checked again. Errors that remain, in
any selection of extras and groups, are planned for in the next round, with all previous changes kept. A file may describe
several environments: see :mod:`compat.api.environments`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, starmap

from compat.api.case import Case
from compat.api.commands import Options
from compat.api.conda import from_conda_forge
from compat.api.edited import Written, as_written, is_lockable, with_lock, written_for
from compat.api.obstacles import (
    Settled,
    contradictory_lines,
    drop_contradicting_lines,
    for_newer_pythons,
    on_another_image,
    on_image_with_torch,
    on_newer_pythons_of,
)
from compat.api.pins import as_installed, beside_extras, drifted, leaner, ranged, with_pins
from compat.api.planning import planner_of, planning
from compat.api.pythons import unserved_pythons, without_pythons
from compat.api.wheels import with_wheels
from compat.formats.edit.changes import Change
from compat.formats.edit.files import as_if_written, merged
from compat.model import Finding
from compat.records import record, replace
from compat.repair.plan import Plan, cost_of, joined, key_of
from compat.repair.planner import Planner
from compat.repair.problem import Policy, family
from compat.repair.verify import NOT_FOUND, Checks, Verified
from compat.rules.compiled import Matrix

_ROUNDS = 4
"""Maximum number of plans merged into one, each for the errors left by the previous one."""
_MORE = 15.0
"""Seconds past the deadline in which another of them is begun."""


@record(frozen=True)
class Repair:
    """A plan and its edits; ``errors`` are those of all selections of the file before the fix.

    ``pythons`` is the warning that the edited project admits Pythons for which it cannot be locked.
    """

    case: Case
    errors: tuple[Finding, ...]
    plan: Plan
    written: Written
    pythons: tuple[Finding, ...] = ()


def repair_of(options: Options, matrix: Matrix, case: Case | None = None, part: int | None = None) -> Repair:
    """The repair of the input named by the options, of its environment number ``part`` if it has several, or of ``case``."""
    policy = Policy(
        prefer=options.one("prefer") or "stay",
        prereleases=options.flag("pre"),
        any_age=options.flag("any-age"),
        allow_source=options.flag("allow-source"),
        warnings=options.one("level") == "warning",
    )
    with planning(options, matrix, policy, case, part) as (case, planner):
        checks = Checks(install=options.one("verify") == "install", python=None if case.file else case.interpreter)
        repair = partial(
            repaired,
            keep=options.values.get("keep", ()),
            explained=not options.flag("brief"),
            contrasted=options.flag("explain"),
            checks=checks,
        )
        kept = drop_contradicting_lines(case, planner) or on_another_image(case, planner)
        if kept is not None:
            return _repaired_rest(kept, repair)
        hopeless = planner.without_remedy()
        found = _on_newer_pythons(case, planner, hopeless, repair) if hopeless else None
        if found is None:
            try:
                found = repair(case, planner)
            except TimeoutError as problem:
                return Repair(case, planner.errors, Plan(unread={"time limit": str(problem)}), Written())
            left = found.plan.left or (() if found.plan.stands else found.errors)
            other = None if hopeless else _on_newer_pythons(found.case, planner, left, repair)
            found = found if other is None else other
        found = _on_image_with_torch(found, planner, repair)
        return _for_fewer_pythons(found, planner, repair)


def _on_newer_pythons(case: Case, planner: Planner, left: Sequence[Finding], repair: Callable[..., Repair]) -> Repair | None:
    """The first repair that fixes everything for a newer Python, or on an image with one; ``None`` if there is none.

    ``left`` are the errors that none fixes for this Python.
    """
    keep = [need.text for need in planner.problem.keep]
    others = () if planner.means.is_late() else for_newer_pythons(case, planner, left, keep)
    images = on_newer_pythons_of(case, planner, left) if left and planner.for_other_pythons(left) else ()
    tried = chain(starmap(repair, others), (_repaired_rest(each, repair) for each in images))
    with suppress(TimeoutError):
        return next(filter(_fixes_everything, tried), None)
    return None


def _on_image_with_torch(found: Repair, planner: Planner, repair: Callable[..., Repair]) -> Repair:
    """The repair on the tag of the image that has the torch of the plan, if that needs no further change."""
    torch = next((each.after for each in found.plan.changes if each.name == "torch" and each.after), None)
    if torch is None or not found.plan.stands or found.plan.left:
        return found
    with suppress(TimeoutError):
        settled = on_image_with_torch(found.case, planner, torch)
        other = None if settled is None else _repaired_rest(settled, repair)
        if other is not None and _fixes_everything(other) and len(other.plan.changes) <= len(found.plan.changes) + 1:
            return other
    return found


def _for_fewer_pythons(found: Repair, planner: Planner, repair: Callable[..., Repair]) -> Repair:
    """The repair of a project that no longer admits the Pythons for which the releases of the plan do not exist, if uv refuses
    to lock it for them; else with the warning about them."""
    case, index = found.case, planner.means.index
    if found.plan.stands:
        return replace(found, pythons=unserved_pythons(case, found.written.edits, index))
    edits = written_for(case, replace(found.plan, verified=None, refused="")).edits if found.plan.changes else ()
    warned = unserved_pythons(case, edits, index) if edits and case.whole else ()
    narrower = without_pythons(warned) if warned and not planner.means.is_late() else None
    with suppress(TimeoutError):
        if narrower is not None:
            change, edit = narrower
            other = _repaired_rest(Settled((), (change,), (edit,), case, planner), repair)
            return other if other.plan.stands else found
    return found


def _fixes_everything(found: Repair) -> bool:
    return (found.plan.stands and not found.plan.left) or (not found.errors and found.case.resolves is True)


def _repaired_rest(kept: Settled, repair: Callable[[Case, Planner], Repair]) -> Repair:
    """The repair that leaves out the lines that contradict others, and fixes what then remains."""
    if kept.refused:
        return Repair(kept.case, kept.findings, Plan(proven=True, refused=kept.refused), Written())
    with as_if_written(kept.edits):
        rest = repair(kept.case, kept.planner)
        unsaid = kept.case.resolves is False and NOT_FOUND in kept.case.unresolved  # which says nothing about the lines
        plan = Plan(
            kept.changes, cost_of(kept.changes), proven=True, policies=kept.planner.problem.policy.said(),
            verified=Verified(rules=True, uv=None if unsaid else kept.case.resolves, why=kept.case.unresolved),
            left=rest.errors,
        )  # fmt: skip
        own = tuple(each for each in kept.changes if not each.is_image)  # an image is no package to install
        written = rest.written if rest.plan.stands else written_for(rest.case, replace(plan, changes=own)) if own else Written()
    if rest.plan.stands:
        plan = replace(joined(replace(plan, left=()), rest.plan), verified=rest.plan.verified)
    edits = merged(merged({}, kept.edits), written.edits)
    written = replace(written, edits=tuple(edits.values())) if plan.stands else Written()
    return Repair(rest.case, (*kept.findings, *rest.errors), plan, written)


def repaired(
    case: Case, planner: Planner, *, keep: Sequence[str], explained: bool, contrasted: bool, checks: Checks
) -> Repair:  # fmt: skip
    """The repair of a case; ``TimeoutError`` if no plan was found in time."""
    errors = planner.errors
    wished = bool(keep)
    if not errors and not wished:
        refused = f"uv cannot resolve this file: {case.unresolved}" if case.resolves is False or case.is_refused else ""
        case = case.without_note() if refused else case
        return Repair(case, (), Plan(proven=True, refused=refused), Written())
    later = checks.uv and case.listing is not None and case.resolves is not None and not checks.install
    checks = replace(checks, uv=checks.uv and not later)  # uv resolves the written file instead
    planned = partial(_planned, case, explained=explained, contrasted=contrasted, checks=checks)
    plan, movable = planned(planner), frozenset[str]()
    while not plan.stands and (staying := _in_the_way(plan, planner)) and not planner.means.is_late():
        movable |= staying
        planner = planner_of(case, planner.problem.policy, planner.means, keep, movable)
        plan = planned(planner)
    after = None
    plan = beside_extras(case, plan, planner)
    if plan.stands and case.listing is not None and not case.whole:
        plan, after = leaner(case, plan, planner)
    written = written_for(case, plan)
    seen = {key_of(each) for each in errors}
    rounds = _ROUNDS
    while case.listing is not None and plan.stands:
        after = after or as_written(case, plan, written, planner)
        resolved = _resolved(plan, after) if later else plan
        # uv may refuse what the plan leaves in another selection, which is planned for as well
        plan = resolved if resolved.stands or after.selection == case.selection else plan
        if contradictory := contradictory_lines(after):
            plan = replace(plan, refused=f"the edited file would contradict itself: {contradictory[0].finding.title}")
        if not plan.stands:
            break
        plan = as_installed(case, plan, after, locked=written.locked)
        again = planner_of(after, planner.problem.policy, planner.means, [*keep, *_moved(plan.changes, after)])
        new = plan.not_left(again.errors)
        if not new and (not resolved.stands or written.locked or not is_lockable(case, written)):
            plan = plan if resolved.stands else resolved
            break
        if not new:
            plan, written = with_lock(case, plan, written, planner)
            after = None
            continue
        errors += tuple(each for each in new if key_of(each) not in seen and _held_before(each, case))
        seen |= {key_of(each) for each in new}
        rounds -= 1
        if held := drifted(case, plan, after, new, planner):
            plan, after = with_pins(plan, held), None
            written = written_for(case, plan)
            continue
        try:
            more = (
                Plan()
                if not rounds or planner.means.is_late(_MORE)
                else with_wheels(from_conda_forge(again.plan(explained=explained, checks=checks), after), after.environment)
            )
        except TimeoutError:
            more = Plan()
        if not more.stands or _caused(more, more.not_left_before(again.errors)):
            plan = _left(plan, new, planner)
            break
        plan, after = joined(plan, more), None
        written = written_for(case, plan)
    plan, written, after = _without_needless_pins(case, plan, written, after, planner, rounds)
    return Repair(case, errors, *(ranged(case, plan, written, after, planner) if plan.stands else (plan, Written())))


def _without_needless_pins(
    case: Case, plan: Plan, written: Written, after: Case | None, planner: Planner, rounds: int
) -> tuple[Plan, Written, Case | None]:
    """A plan of several rounds without the pins of the first ones that the last ones made needless.

    Those of a file with extras may be for another selection than the one that is judged.
    """
    alone = case.listing is not None and not case.listing.choices and not case.whole
    if not plan.stands or rounds == _ROUNDS or not alone or planner.means.is_late(_MORE):
        return plan, written, after
    lean, judged = leaner(case, plan, planner)
    return (plan, written, after) if judged is None else (lean, written_for(case, lean), judged)


def _in_the_way(plan: Plan, planner: Planner) -> frozenset[str]:
    """Packages of conda that stay and keep others from moving: an error of the plan is about them."""
    return frozenset(planner.problem.conda.keys() & {name for each in plan.left for name in each.packages})


def _planned(case: Case, planner: Planner, *, explained: bool, contrasted: bool, checks: Checks) -> Plan:
    """The plan of a planner; if it leaves an error, with old releases of transitive packages, or with recommended commits."""

    def of(planner: Planner) -> Plan:
        plan = from_conda_forge(planner.plan(explained=explained, contrasted=contrasted, checks=checks), case)
        return with_wheels(plan, case.environment)

    plan = of(planner)
    for wider in (planner.with_older, planner.with_commits):
        if not planner.errors or (plan.stands and not plan.left) or planner.means.is_late():
            break
        more = wider()
        other = None if more is None else of(more)
        if other is not None and other.stands and (not plan.stands or len(other.left) < len(plan.left)):
            plan = other
    if case.resolves is not False:
        return plan
    # what the installer adds is no change where it is unknown what was installed before
    return replace(plan, changes=tuple(each for each in plan.changes if each.before or each.name not in plan.along))


def _resolved(plan: Plan, after: Case) -> Plan:
    """The plan with the result of resolving the edited file with uv, which cannot find builds whose index was not read."""
    rules = plan.verified is None or plan.verified.rules
    unread = tuple(each.name for each in plan.changes if each.index_url and f"{each.name} {each.after}" in plan.assumed)
    if unread and not after.resolves:
        why = f"not checked with uv, which cannot read the index of {' and '.join(unread)}"
        return replace(plan, verified=Verified(rules, None, why, unread))
    if after.is_refused:
        return replace(plan, verified=Verified(rules, None, f"uv refuses the edited file: {after.unresolved}", unread))
    why = f"where pins override requirements: {after.unresolved}" if after.overrides else after.unresolved
    return replace(plan, verified=Verified(rules, after.resolves, why, unread))


def _held_before(finding: Finding, case: Case) -> bool:
    """Whether a finding of a later round is about the original file, rather than a result of the plan."""
    listed = (entry.distribution for entry in (case.listing.entries if case.listing else ()))
    there = {(copy.name, copy.version) for copy in (*(case.environment.distributions or ()), *listed)}
    return there.issuperset(finding.packages.items())


def _moved(changes: Iterable[Change], after: Case) -> list[str]:
    """Changes of previous rounds to packages of this selection, as pins to keep; what torch pins follows it once more."""
    there = {copy.name for copy in after.environment.distributions or ()}
    ordinary = (each for each in changes if each.after is not None and not each.is_built and not each.is_direct_url)
    moved = (each for each in ordinary if not each.implied and each.name in there and family(each.name) == each.name)
    return [f"{each.name}=={each.after}" for each in moved]


def _left(plan: Plan, new: tuple[Finding, ...], planner: Planner) -> Plan:
    """The plan with the errors it leaves in other selections or causes; refused unless it reduces their number."""
    left = (*plan.left, *new)
    titles = "; ".join(dict.fromkeys(f"{each.title} ({each.rule})" for each in new))
    refused = "" if len(left) < len(planner.errors) + len(new) else "it would not reduce the number of errors"
    if _caused(plan, new):
        refused = f"the edited file would still have errors: {titles}"
    return replace(plan, left=left, refused=refused)


def _caused(plan: Plan, new: Iterable[Finding]) -> bool:
    """Whether one of these errors, which were not there before, is about a package that the plan changes."""
    return any(change.name in each.packages for each in new for change in plan.changes)
