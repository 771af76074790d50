"""``compat fix``: the smallest set of changes that fixes every error, checked, shown as a diff, written on request."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from compat.api.planning import Case, planning
from compat.errors import InputError, Undecided, printable
from compat.model import Finding
from compat.output.stream import emit
from compat.records import record, replace
from compat.rules.compiled import open_matrix

if TYPE_CHECKING:
    from compat.api.words import Words
    from compat.formats.edit.changes import Change
    from compat.formats.edit.files import Edit
    from compat.formats.registry import Commands
    from compat.repair.plan import Plan


UNDECIDED = 3
"""The exit code where something could not be read, or time was up."""


def run(words: Words) -> int:
    """Plans, prints, and writes where ``--write`` asks for it.

    0: nothing to fix, or a plan that fixes all; 1: an error is left, or no plan exists; 3: it could not be decided.
    """
    from compat.repair.plan import Plan
    from compat.repair.problem import Policy
    from compat.repair.verify import Checks

    matrix = open_matrix(words.values.get("rules", ()))
    locked = _lock_alone(words.operands[0]) if words.operands else ""
    if locked:
        print(f"compat: {locked}", file=sys.stderr)
    policy = Policy(
        prefer=words.one("prefer") or "stay", prereleases=words.flag("pre"), any_age=words.flag("any-age"),
        allow_source=words.flag("allow-source"), warnings=words.one("level") == "warning",
    )  # fmt: skip
    with planning(words, matrix, policy) as (case, planner):
        errors = planner.errors
        if not errors and not words.flag("keep"):
            plan = Plan(proven=True)
        else:
            checks = Checks(install=words.one("verify") == "install", python=None if case.file else case.interpreter)
            explained, contrasted = not words.flag("brief"), words.flag("explain")
            plan = planner.plan(explained=explained, contrasted=contrasted, checks=checks)
    steps = _steps(case, plan)
    code = _code(errors, plan)
    if words.one("format") == "json":
        from compat.model import Report
        from compat.output.json import dumped

        notes = (*case.notes, *([f"not written: {steps.refused}"] if steps.refused else []))
        made = {**plan.to_json(), "target": list(case.told)}
        made["commands"] = [*steps.commands.install, *steps.commands.lock] if steps.commands else []
        emit(dumped({**Report(case.environment, errors, notes, code, case.file).to_json(), "plan": made}))
    else:
        from compat.formats.edit.files import edits_difference
        from compat.output.plan import shown_plan

        if code == UNDECIDED and not plan.stands:
            raise Undecided(_why_not(plan))
        emit(shown_plan(plan, errors, steps.commands, told=case.told, notes=case.notes, explained=not words.flag("brief")))
        emit("".join(edits_difference(edit) for edit in steps.edits))
        if steps.refused and not words.flag("write"):
            emit(f"  not written: {steps.refused}\n")
    if words.flag("write") and plan.stands and not locked:
        if steps.refused is not None:
            raise steps.refused
        _write(case, steps.edits)
    return code


def _lock_alone(path: str) -> str:
    """What is to be said of a lock file without the file that it is made from; "" for every other file."""
    from compat.formats.registry import format_of, read_content

    form = format_of(path, read_content(path))
    try:
        if form.sources:
            form.source_of(path)
    except InputError:
        return f"{path}: the file that this lock file is made from is not beside it: the plan is printed, nothing is written"
    return ""


@record(frozen=True)
class _Steps:
    """What would be written and run; ``refused`` says why the file cannot be edited: the commands are an installer's then."""

    edits: tuple[Edit, ...] = ()
    commands: Commands | None = None
    refused: InputError | None = None


def _steps(case: Case, plan: Plan) -> _Steps:
    from compat.formats.edit.dispatch import commands_for, edits_for

    if not plan.stands:
        return _Steps()
    changes = [each for each in plan.changes if each.name not in plan.along or not _by_itself(case, plan, each)]
    edits: tuple[Edit, ...] = ()
    file, refused = case.file, None
    try:
        edits = edits_for(file, changes) if file else ()
    except InputError as problem:
        refused = problem
        file = file if file and _lock_alone(file) else None
    capabilities = {each.compute_capability for each in case.environment.accelerators or () if each.compute_capability}
    architectures = tuple(sorted(capabilities))
    to_run = partial(commands_for, file, python=case.interpreter, architectures=architectures)
    try:
        commands = to_run(changes)
    except InputError:  # a lock that only the missing file tells how to make
        to_run = partial(commands_for, None, python=case.interpreter, architectures=architectures)
        commands = to_run(changes)
    if not case.environment.distributions_complete:  # what is not listed may have been there
        moved = [each for each in changes if each.before is not None]
        commands = replace(commands, rollback=to_run(moved).rollback)
    return _Steps(edits, commands, refused)


def _by_itself(case: Case, plan: Plan, change: Change) -> bool:
    """Whether an installer makes a change that comes along, as a file or an environment is only listed in part."""
    return not case.whole or (plan.partial and change.before is None)


def _write(case: Case, edits: tuple[Edit, ...]) -> None:
    from compat.formats.edit.files import apply

    if case.file is None:
        raise InputError("--write changes files; run the command above to change an environment")
    apply(edits)
    print(f"written: {printable(', '.join(dict.fromkeys(edit.path for edit in edits)))}", file=sys.stderr)


def _code(errors: tuple[Finding, ...], plan: Plan) -> int:
    """The exit code of a plan for these errors: see :func:`run`."""
    if plan.stands:
        return 1 if plan.left else 0
    if not errors and not plan.core and not plan.refused:
        return 0
    open_ = plan.unread or not plan.proven or (plan.narrowed and not plan.refused)
    return UNDECIDED if open_ else 1


def _why_not(plan: Plan) -> str:
    """What hindered a decision, in a line."""
    unread = {**plan.unread, **plan.narrowed}
    if not unread:
        return "no plan that fixes all was found in time"
    (name, why), *others = unread.items()
    return f"{name}: {why}" + (f" ({len(others)} more could not be read)" if others else "")
