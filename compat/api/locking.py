"""The lock of a plan: made again by uv for the edited source, in a copy, and judged before it is proposed or written."""

from __future__ import annotations

from compat.api.case import Case, environments_in
from compat.api.edited import Written, as_written, installer_of, written_for
from compat.api.planning import planner_of
from compat.errors import InputError
from compat.formats.edit.files import merged
from compat.formats.registry import Relocking, format_of, read_content
from compat.model import Finding
from compat.records import record, replace
from compat.repair.plan import Plan, Planner
from compat.repair.relock import Relocked, relocked
from compat.repair.target import Target
from compat.repair.verify import Verified

_LATE = 20.0
"""Seconds past the deadline after which no lock is begun."""


@record(frozen=True)
class Lock:
    """A lock file and how uv makes it again."""

    path: str
    content: bytes
    how: Relocking


def is_lockable(case: Case, written: Written) -> bool:
    """Whether uv can be asked to make the lock of a plan, which it was not yet."""
    return not written.unlocked and written.refused is None and _lock_of(case, written) is not None


def _lock_of(case: Case, written: Written) -> Lock | None:
    """The lock file of a case, and how the changes that were written are locked."""
    if case.file is None:
        return None
    content = read_content(case.file)
    try:
        how = format_of(case.file, content).relocking(case.file, content, written.changes, installer_of(case))
    except InputError:  # without its source
        return None
    return None if how is None else Lock(case.file, content, how)


def with_lock(case: Case, plan: Plan, written: Written, planner: Planner) -> tuple[Plan, Written]:
    """The plan with the lock that uv makes of its edits.

    Packages that the source does not name are pinned there only if uv would otherwise lock a release with an error. The plan
    is refused if uv finds that the edited source cannot be locked, while the old one can.
    """
    if planner.means.is_late(_LATE):
        return plan, replace(written, unlocked="the time limit was reached")
    lean = replace(plan, along=plan.along | _transitive(case, plan, planner))
    if lean.along != plan.along and any(each.name not in lean.along for each in lean.changes):
        shorter = _locked(case, written_for(case, lean), planner)
        if shorter.locked and not _errors(case, lean, shorter, planner):
            return _said(lean), shorter
        if shorter.unlocked and not shorter.contradicts:
            return plan, replace(written, unlocked=shorter.unlocked)
    found = _locked(case, written, planner)
    if found.contradicts:
        why = f"uv refuses to lock the edited file: {found.unlocked}"
        return replace(plan, verified=Verified(rules=True, uv=False, why=why)), found
    return (_said(plan), found) if found.locked else (plan, found)


def _said(plan: Plan) -> Plan:
    return replace(plan, verified=Verified(rules=True, uv=True, locked=True))


def _locked(case: Case, written: Written, planner: Planner) -> Written:
    lock = _lock_of(case, written)
    assert lock is not None
    found = _made(case, lock, written, planner)
    if found.edit is not None:
        edits = merged(merged({}, written.edits), (found.edit,))
        return replace(written, edits=tuple(edits.values()), locked=True)
    before = _lock_of(case, Written()) if found.refused else None
    if before is not None and (old := _made(case, before, Written(), planner)).edit is None:
        return replace(written, unlocked=f"uv cannot lock the project as it is: {old.why}")
    return replace(written, unlocked=found.why, contradicts=found.refused)


def _made(case: Case, lock: Lock, written: Written, planner: Planner) -> Relocked:
    requires = None if case.listing is None else case.listing.requires_python
    edits, target = written.edits, Target(case.environment)
    offline = planner.means.index.offline
    return relocked(lock.path, lock.content, lock.how, edits, target, requires_python=requires, offline=offline)


def _errors(case: Case, plan: Plan, written: Written, planner: Planner) -> tuple[Finding, ...]:
    """The errors of the lock in any selection, other than those that the plan leaves."""
    after = as_written(case, plan, written, planner)
    return plan.not_left(planner_of(after, planner.problem.policy, planner.means).errors)


def _transitive(case: Case, plan: Plan, planner: Planner) -> frozenset[str]:
    """The changed packages that the source of the lock leaves to uv: it does not name them, and neither did the user."""
    assert case.file is not None
    form = format_of(case.file, read_content(case.file))
    if not form.sources:  # a list of all releases, the old ones of which uv keeps by itself
        return frozenset()
    source = form.source_of(case.file)
    named = {entry.distribution.name for listing in environments_in(source) for entry in listing.entries}
    named |= {need.name for need in planner.problem.keep}
    return frozenset(
        each.name for each in plan.changes
        if each.name not in named and not each.override and each.source is None and (each.before is not None or each.implied)
    )  # fmt: skip
