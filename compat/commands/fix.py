"""``compat fix``: the smallest set of changes that mends every error, checked, shown as a diff, written on request."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from compat.commands.repairing import Case, case_of, needed, planning
from compat.errors import InputError, Undecided
from compat.matrix.compiled import Matrix, open_matrix
from compat.records import record, replace
from compat.show.output import emit

if TYPE_CHECKING:
    from compat.options import Words
    from compat.repair.plan import Plan
    from compat.report import Finding
    from compat.write.commands import Commands
    from compat.write.edits import Edit

UNDECIDED = 3
"""The exit code where something could not be read, or time was up."""


def run(words: Words) -> int:
    """Plans, prints, and writes where ``--write`` asks for it.

    0: nothing to mend, or a plan that mends all; 1: an error is left, or no plan exists; 3: it could not be decided.
    """
    needed()
    from compat.repair.whole_plans import findings

    matrix = open_matrix(words.values.get("rules", ()))
    case = case_of(words, matrix)
    errors = tuple(each for each in findings(case.environment, matrix, case.ignored) if each.severity == "error")
    if not errors and not words.flag("keep"):
        return _nothing(words, case)
    plan = _planned(words, case, matrix)
    return _told(words, case, errors, plan)


def _planned(words: Words, case: Case, matrix: Matrix) -> Plan:
    from compat.repair.problem import Policy
    from compat.repair.verify import Checks

    policy = Policy(
        prefer=words.one("prefer") or "stay", prereleases=words.flag("pre"), any_age=words.flag("any-age"),
        allow_source=words.flag("allow-source"),
    )  # fmt: skip
    with planning(words, case, matrix, policy) as planner:
        checks = Checks(install=words.one("verify") == "install", python=None if case.file else case.interpreter)
        return planner.plan(explained=not words.flag("brief"), contrasted=words.flag("explain"), checks=checks)


def _nothing(words: Words, case: Case) -> int:
    from compat.repair.plan import Plan

    return _told(words, case, (), Plan(proven=True))


def _told(words: Words, case: Case, errors: tuple[Finding, ...], plan: Plan) -> int:
    from compat.write.edits import difference

    steps = _steps(case, plan)
    if words.one("format") == "json":
        from compat.report import Report
        from compat.show.json import dumped

        notes = (*case.notes, *([f"not written: {steps.refused}"] if steps.refused else []))
        report = Report(case.environment, errors, notes, code_of(errors, plan), case.file).to_json()
        made = plan.to_json()
        made["commands"] = [*steps.commands.install, *steps.commands.lock] if steps.commands else []
        emit(dumped({**report, "plan": made}))
    else:
        from compat.show.plan import shown_plan

        if code_of(errors, plan) == UNDECIDED:
            raise Undecided(_why_not(plan))
        emit(shown_plan(plan, errors, steps.commands, explained=not words.flag("brief")))
        emit("".join(difference(edit) for edit in steps.edits))
        if steps.refused and not words.flag("write"):
            emit(f"  not written: {steps.refused}\n")
    if words.flag("write") and plan.stands:
        if steps.refused is not None:
            raise steps.refused
        _write(case, steps.edits)
    return code_of(errors, plan)


@record(frozen=True)
class _Steps:
    """What would be written and run; ``refused`` says why the file cannot be edited: the commands are an installer's then."""

    edits: tuple[Edit, ...] = ()
    commands: Commands | None = None
    refused: InputError | None = None


def _steps(case: Case, plan: Plan) -> _Steps:
    from compat.write import commands_for, edits_for

    if not plan.stands:
        return _Steps()
    changes = [each for each in plan.changes if not (plan.partial and each.implied and each.before is None)]
    file, refused = case.file, None
    edits: tuple[Edit, ...] = ()
    try:
        edits = edits_for(case.file, changes) if case.file else ()
    except InputError as problem:
        file, refused = None, problem
    to_run = partial(commands_for, file, python=case.interpreter, architectures=_architectures(case))
    commands = to_run(changes)
    if not case.environment.distributions_complete:  # what is not listed may have been there
        moved = [each for each in changes if each.before is not None]
        commands = replace(commands, rollback=to_run(moved).rollback)
    return _Steps(edits, commands, refused)


def _architectures(case: Case) -> tuple[str, ...]:
    """The compute capabilities of the devices, for which a build is compiled."""
    found = (each.compute_capability for each in case.environment.accelerators or ())
    return tuple(sorted({each for each in found if each}))


def _write(case: Case, edits: tuple[Edit, ...]) -> None:
    from compat.write.edits import apply

    if case.file is None:
        raise InputError("--write changes files; run the command above to change an environment")
    apply(edits)
    print(f"written: {', '.join(_distinct(edit.path for edit in edits))}", file=sys.stderr)


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def code_of(errors: tuple[Finding, ...], plan: Plan) -> int:
    """The exit code of a plan for these errors: see :func:`run`."""
    if plan.stands and not plan.left:
        return 0
    if not errors and not plan.core:
        return 0
    return UNDECIDED if plan.unread or not plan.proven else 1


def _why_not(plan: Plan) -> str:
    """What hindered a decision, in a line."""
    if not plan.unread:
        return "no plan was found in time that mends all"
    (name, why), *others = plan.unread.items()
    return f"{name}: {why}" + (f" ({len(others)} more could not be read)" if others else "")
