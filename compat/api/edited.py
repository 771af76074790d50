"""The edited file of a plan: its edits, the commands that install them, and the case that it describes then."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from compat.api.case import Case, environments_in, part_of, read_again
from compat.api.resolution import resolved
from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.edit.dispatch import commands_for, edits_for
from compat.formats.edit.files import Edit, as_if_written
from compat.formats.edit.installer import Installer
from compat.formats.listing import ROOT, Edge, Entry, Listing
from compat.formats.registry import Commands, format_of, read_content
from compat.model import Distribution, Source
from compat.records import record, replace
from compat.repair.plan import Plan, Planner

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
        replace(each, lines=lines) for each in plan.changes if each.name not in plan.along or not _by_itself(case, plan, each)
    ]
    edits: tuple[Edit, ...] = ()
    file, refused = case.file, None
    try:
        edits = edits_for(file, changes) if file else ()
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
    if plan.compiled and (torch := [each for each in changes if each.name == "torch"]):  # what they are compiled against
        first = commands_for(None, torch, python=case.interpreter).install
        commands = replace(commands, install=tuple(dict.fromkeys((*first, *commands.install))))
    if not case.environment.distributions_complete:  # unlisted packages may have been installed before
        moved = [each for each in changes if each.before is not None]
        commands = replace(commands, rollback=to_run(moved).rollback)
    if file is None and any(each.before_source is not None and each.before_source.kind == "conda" for each in changes):
        commands = replace(commands, rollback=())  # pip does not bring back what conda has installed
    if plan.rebuilt:
        again = commands_for(None, plan.rebuilt, python=case.interpreter, architectures=architectures).install
        back = (*commands.rollback, *again) if commands.rollback else ()
        commands = replace(commands, install=(*commands.install, *again), rollback=back)
    return Written(edits, commands, refused, tuple(changes))


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
    return after if after.whole else resolved(after, planner.means, indexes)


def moved_listing(listing: Listing, changes: Iterable[Change]) -> Listing:
    """A listing with the releases of a plan; additions and removals apply to every selection."""
    by_name = {each.name: each for each in changes}
    entries = tuple(replace(each, distribution=_as_changed(each.distribution, by_name)) for each in listing.entries)
    gone = {at for at, each in enumerate(entries) if (moved := by_name.get(each.distribution.name)) and moved.after is None}
    added = {each.name for each in by_name.values() if each.before is None and each.after is not None}
    here = [at for at, each in enumerate(entries) if each.distribution.name in added]  # in other selections so far
    new = tuple(
        Entry(Distribution(name, by_name[name].after, source=by_name[name].source or Source("index")))
        for name in sorted(added - {entries[at].distribution.name for at in here})
    )
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
