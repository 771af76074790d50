"""``compat fix``: plan the smallest set of changes that fixes every error, check it, show the diff, and write on request."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from compat.errors import InputError, Undecided, printable
from compat.model import Finding
from compat.output.stream import emit, emit_json
from compat.rules.compiled import open_matrix

if TYPE_CHECKING:
    from compat.api.case import Case
    from compat.api.commands import Options
    from compat.api.fixing import Written
    from compat.formats.edit.files import Edit
    from compat.repair.plan import Plan


UNDECIDED = 3
"""The exit code where something could not be read, or time was up."""


def run(options: Options) -> int:
    """Plan and print the changes, and write them with ``--write``.

    Returns 0 if there is nothing to fix or the plan fixes everything, 1 if an error remains or no plan exists, 3 if undecided.
    """
    from compat.api.fixing import lock_alone, repair_of

    matrix = open_matrix(options.values.get("rules", ()))
    locked = lock_alone(options.operands[0]) if options.operands else ""
    if locked:
        print(f"compat: {locked}", file=sys.stderr)
    found = repair_of(options, matrix)
    case, errors, plan, steps = found.case, found.errors, found.plan, found.written
    unread = case.listing.unread if case.listing is not None else ()
    code = _code(errors, plan) or (UNDECIDED if unread else 0)
    if options.one("format") == "json":
        from compat.model import Report

        notes = (*case.notes, *([f"not written: {steps.refused}"] if steps.refused else []))
        made = {**plan.to_json(), "target": list(case.told)}
        made["commands"] = [*steps.commands.install, *steps.commands.lock] if steps.commands else []
        emit_json({**Report(case.environment, errors, notes, code, case.file).to_json(), "plan": made})
    elif options.one("format") == "html":
        emit(_page(case, plan, errors, steps))
    else:
        from compat.formats.edit.files import edits_difference
        from compat.output.plan import shown_plan

        undecided = code == UNDECIDED and not plan.stands and not (errors and plan.proven and plan.narrowed)
        if undecided and not errors:
            raise Undecided(unread[0] if unread else _why_not(plan))
        emit(shown_plan(plan, errors, steps.commands, told=case.told, notes=case.notes, explained=not options.flag("brief")))
        emit("".join(edits_difference(edit) for edit in steps.edits))
        if steps.refused and not options.flag("write"):
            emit(f"  not written: {steps.refused}\n")
        if undecided:
            raise Undecided(_why_not(plan))
    if options.flag("write") and plan.stands and not locked:
        if steps.refused is not None:
            raise steps.refused
        _write(case, steps.edits)
    return code


def _page(case: Case, plan: Plan, errors: tuple[Finding, ...], steps: Written) -> str:
    from compat.formats.edit.files import edits_difference
    from compat.output.html.plan import plan_page
    from compat.repair.whole_plans import planned

    notes = (*case.notes, *([f"not written: {steps.refused}"] if steps.refused else []))
    return plan_page(
        plan, errors, planned(case.environment, plan.chosen), before=case.environment, commands=steps.commands,
        differences=[edits_difference(edit) for edit in steps.edits], told=case.told, notes=notes,
        title=f"Repair plan: {case.file}" if case.file else "Repair plan",
    )  # fmt: skip


def _write(case: Case, edits: tuple[Edit, ...]) -> None:
    from compat.formats.edit.files import apply

    if case.file is None:
        raise InputError("--write only changes files; run the command above to change the environment")
    apply(edits)
    print(f"written: {printable(', '.join(dict.fromkeys(edit.path for edit in edits)))}", file=sys.stderr)


def _code(errors: tuple[Finding, ...], plan: Plan) -> int:
    """Return the exit code of a plan for these errors: see :func:`run`."""
    if plan.stands:
        return 1 if plan.left else 0
    if not errors and not plan.core and not plan.refused:
        return 0
    open_ = not plan.proven or (plan.narrowed and not plan.refused)
    return UNDECIDED if open_ else 1


def _why_not(plan: Plan) -> str:
    """Return the reason why there is no decision, on one line."""
    from compat.repair.plan import reason_of

    unread = {**plan.unread, **plan.narrowed}
    if not unread:
        return "no plan that fixes everything was found in time"
    # pages are read in parallel, in any order; a host that is given up says less than the failures before
    (name, why), *others = sorted(unread.items(), key=lambda each: (each[1].endswith("did not answer"), each[0]))
    return f"{name}: {reason_of(name, why)}" + (f" ({len(others)} more could not be read)" if others else "")
