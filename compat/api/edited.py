"""The edited file of a plan: its edits, the commands that install them, the case that it describes then, and its lock."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from compat.api.case import Case, environments_in, part_of, read_again
from compat.api.planning import planner_of
from compat.api.resolution import resolve_case
from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import commands_for, edits_for
from compat.formats.edit.files import Edit, as_if_written, merged
from compat.formats.edit.installer import Installer
from compat.formats.listing import ROOT, Edge, Entry, Listing
from compat.formats.registry import Commands, Relocking, format_of, read_content
from compat.model import Distribution, Finding, Source
from compat.records import record, replace
from compat.repair.plan import Plan
from compat.repair.planner import Planner
from compat.repair.relock import Relocked, relock
from compat.repair.target import Target
from compat.repair.verify import Verified

_COMPILED = Source("index", {"build": True})
"""Source of a release without a wheel, which is compiled against the installed torch."""


@record(frozen=True)
class Written:
    """The edits and commands of a plan; ``refused`` is the reason why the file cannot be edited.

    ``changes`` are those that were written. ``locked``: the edits include the lock, as uv makes it for the edited source;
    ``unlocked`` is the reason why it does not, ``contradicts`` whether it is that there is no solution.
    """

    edits: tuple[Edit, ...] = ()
    commands: Commands | None = None
    refused: InputError | None = None
    changes: tuple[Change, ...] = ()
    locked: bool = False
    unlocked: str = ""
    contradicts: bool = False


def written_for(case: Case, plan: Plan) -> Written:
    """The edits of a plan, and the commands that install its changes and roll them back."""
    if not plan.stands:
        return Written()
    lines = _own_lines(case)
    changes = [
        replace(each, lines=lines, left_out=case.left_out, choices=case.excluding)
        for each in plan.changes
        if each.name not in plan.along or not _by_itself(case, plan, each)
    ]
    edits: tuple[Edit, ...] = ()
    file, refused = case.file, None
    spared = _left_to_the_tool(case, plan)
    try:
        edits = (
            edits_for(file, [replace(each, implied=True) if each.name in spared else each for each in changes]) if file else ()
        )
    except InputError as problem:
        refused = problem
        file = file if file and lock_alone(file) else None
    architectures = _architectures(case)
    to_run = partial(commands_for, file, python=case.interpreter, architectures=architectures)
    run = [replace(each, source=_COMPILED) if each.name in plan.compiled else each for each in changes]
    try:
        commands = to_run(run)
    except InputError:  # a lock file that can only be generated from its source, which is missing
        to_run = partial(commands_for, None, python=case.interpreter, architectures=architectures)
        commands = to_run(run)
    elsewhere = file is not None and format_of(file, read_content(file)).installs_elsewhere
    # the commands of a conda file install torch in its environment
    own = elsewhere or (case.listing is not None and case.listing.kind == "environment.yml")
    torch = [each for each in plan.changes if each.name == "torch" and each.after is not None]
    if plan.compiled and torch and not own:  # what they are compiled against
        first = commands_for(None, torch, python=case.interpreter).install
        commands = replace(commands, install=tuple(dict.fromkeys((*first, *commands.install))))
    if not case.environment.distributions_complete:  # unlisted packages may have been installed before
        moved = [each for each in run if each.before is not None]
        commands = replace(commands, rollback=to_run(moved).rollback)
    if file is None and any(each.before_source is not None and each.before_source.kind == "conda" for each in changes):
        commands = replace(commands, rollback=())  # pip does not bring back what conda has installed
    if plan.rebuilt and not elsewhere:
        again = commands_for(None, plan.rebuilt, python=case.interpreter, architectures=architectures).install
        back = (*commands.rollback, *again) if commands.rollback else ()
        commands = replace(commands, install=(*commands.install, *again), rollback=back)
    return Written(edits, commands, refused, tuple(changes))


_WITHOUT_CONSTRAINTS = ("poetry.lock", "pdm.lock", "Pipfile.lock")
"""Locks of tools that only limit what the project itself requires."""


def _left_to_the_tool(case: Case, plan: Plan) -> frozenset[str]:
    """The changed transitive packages without an error, which the tool of a lock moves when it updates them: it has no
    constraints, and a requirement of the project would stay there for good."""
    if case.listing is None or case.listing.kind not in _WITHOUT_CONSTRAINTS:
        return frozenset()
    return frozenset(
        each.name for each in plan.changes
        if not each.direct and not each.override and each.before is not None and each.name not in plan.subjects
    )  # fmt: skip


def _architectures(case: Case) -> tuple[str, ...]:
    return tuple(sorted({each.compute_capability for each in case.environment.accelerators or () if each.compute_capability}))


def installer_of(case: Case) -> Installer:
    """uv for the interpreter of a case."""
    return Installer("uv", case.interpreter, _architectures(case))


def _own_lines(case: Case) -> frozenset[int] | None:
    """The lines of the file that install this environment; ``None`` if it is the only one."""
    if case.part is None or case.listing is None:
        return None
    return frozenset(each.line for each in case.listing.entries if each.file is None and each.line is not None)


def _by_itself(case: Case, plan: Plan, change: Change) -> bool:
    """Whether the installer makes an implied change by itself, because the file or environment is only partially listed."""
    if case.file is not None and format_of(case.file, read_content(case.file)).sources:
        return True
    limits = case.listing.constraints if case.listing is not None else ()
    if any(each.name == change.name and each.version is not None for each in limits):
        return False
    return not case.whole or (change.before is None and (plan.partial or change.name in case.listed))


def lock_alone(path: str) -> str:
    """The warning for a lock file whose source file is missing; "" for every other file."""
    form = format_of(path, read_content(path))
    try:
        if form.sources:
            form.source_of(path)
    except InputError:
        return f"{path}: the source of this lock file is not next to it: the plan is only printed"
    return ""


def as_written(case: Case, plan: Plan, written: Written, planner: Planner) -> Case:
    """The case of the edited file, read again with its includes; that of a lock file has the releases of the plan."""
    assert case.file is not None
    assert case.listing is not None
    named = plan.changes if case.whole else [each for each in plan.changes if each.name not in plan.along]
    listing = moved_listing(case.listing, named)  # what goes along in an incomplete list is the installer's choice
    if written.locked or (written.edits and not format_of(case.file, read_content(case.file)).sources):
        with as_if_written(written.edits):
            read = environments_in(case.file)
            listing = part_of(case, read) or listing
    after = read_again(case, listing, planner.means)
    if after.direct is not None:
        after = replace(after, direct=after.direct - {each.name for each in plan.changes if each.before is None})
    indexes = tuple(dict.fromkeys(each.index_url for each in plan.changes if each.index_url is not None))
    return after if after.whole else resolve_case(after, planner.means, indexes)


def moved_listing(listing: Listing, changes: Iterable[Change]) -> Listing:
    """A listing with the releases of a plan; additions and removals apply to every selection."""
    by_name = {each.name: each for each in changes}
    entries = tuple(replace(each, distribution=_as_changed(each.distribution, by_name)) for each in listing.entries)
    gone = {at for at, each in enumerate(entries) if (moved := by_name.get(each.distribution.name)) and moved.after is None}
    there = {each.distribution.name for each in entries}  # a bound on what others require is new, too
    added = {n for n, each in by_name.items() if each.after is not None and (each.before is None or n not in there)}
    here = [
        at for at, each in enumerate(entries) if each.distribution.name in added
    ]  # entries that so far apply to other selections
    new = tuple(
        Entry(Distribution(name, by_name[name].after, source=by_name[name].source or Source("index")))
        for name in sorted(added - {entries[at].distribution.name for at in here})
    )
    listing = replace(listing, constraints=tuple(each for each in listing.constraints if each.name not in by_name))
    if listing.edges is None:
        return replace(listing, entries=(*(each for at, each in enumerate(entries) if at not in gone), *new))
    last = len(entries)

    def shifted(node: int) -> int:
        return node + len(new) if node >= last else node

    kept = (each for each in listing.edges if each.child not in gone)
    edges = [Edge(shifted(parent), shifted(child), marker, choice) for parent, child, marker, choice in kept]
    edges += [Edge(ROOT, at) for at in (*here, *range(last, last + len(new)))]
    return replace(listing, entries=(*entries, *new), edges=tuple(edges))


def _as_changed(copy: Distribution, changes: dict[str, Change]) -> Distribution:
    change = changes.get(copy.name)
    if change is None or change.after is None or copy.version is None or change.before not in (copy.version, None):
        return copy
    return replace(copy, version=change.after, source=change.source or Source("index"))


# --- The lock of a plan: made again by uv for the edited source, in a copy, and judged before it is proposed or written.


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
    """Add to the plan the lock file that uv generates from its edits.

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
        if shorter.unlocked and not shorter.contradicts:  # the command that locks names the releases, so the source need not
            return plan, replace(written, edits=shorter.edits, unlocked=shorter.unlocked)
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
    return relock(lock.path, lock.content, lock.how, edits, target, requires_python=requires, offline=offline)


def _errors(case: Case, plan: Plan, written: Written, planner: Planner) -> tuple[Finding, ...]:
    """The errors of the lock in any selection, other than those that the plan leaves."""
    after = as_written(case, plan, written, planner)
    return plan.not_left(planner_of(after, planner.problem.policy, planner.means).errors)


def _transitive(case: Case, plan: Plan, planner: Planner) -> frozenset[str]:
    """The changed packages that the source of the lock leaves to uv: it does not name them, and neither did the user."""
    assert case.file is not None
    form = format_of(case.file, read_content(case.file))
    if not form.sources:  # a complete list of releases: uv keeps the old ones
        return frozenset()
    source = form.source_of(case.file)
    named = {entry.distribution.name for listing in environments_in(source) for entry in listing.entries}
    named |= {need.name for need in planner.problem.keep}
    return frozenset(
        each.name for each in plan.changes
        if each.name not in named and not each.override and each.source is None and (each.before is not None or each.implied)
    )  # fmt: skip
