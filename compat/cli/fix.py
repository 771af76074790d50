"""``compat fix``: plan the smallest set of changes that fixes every error, check it, show the diff, and write on request."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from compat.api.case import Case
from compat.api.commands import Options
from compat.api.edited import lock_alone
from compat.api.environments import repairs_of, whole_plan
from compat.api.fixing import Repair
from compat.api.targets import unread_code
from compat.errors import InputError, Undecided, printable
from compat.formats.edit.files import Edit, apply, edits_difference, merged
from compat.formats.registry import Commands
from compat.model import Finding, Report
from compat.output.plan import shown_plan, shown_rest
from compat.output.stream import emit, emit_json
from compat.records import replace
from compat.repair.plan import Plan, reason_of
from compat.repair.whole_plans import environment_after, left_warnings, open_errors
from compat.rules.compiled import open_matrix

UNDECIDED = 3
"""The exit code where something could not be read, or time was up."""


def run(options: Options) -> int:
    """Plan and print the changes, and write them with ``--write``.

    Returns 0 if there is nothing to fix or the plan fixes everything, 1 if an error remains or no plan exists, 3 if undecided.
    """
    matrix = open_matrix(options.values.get("rules", ()))
    for problem in unread_code(options):
        raise problem
    locked = lock_alone(options.operands[0]) if options.operands else ""
    if locked:
        print(f"compat: {locked}", file=sys.stderr)
    found = repairs_of(options, matrix)
    codes = [_code_of(each) for _, each in found]
    code = next((each for each in (1, UNDECIDED) if each in codes), 0)
    edits: dict[str, Edit] = {}
    for _, each in found:
        edits = merged(edits, each.written.edits)
    if options.one("format") == "json":
        emit_json(_json(found, code))
    elif options.one("format") == "html":
        if len(found) > 1:
            raise InputError("--format html: expected a file with one environment", options.operands[0])
        emit(_page(found[0][1]))
    else:
        _print(found, codes, edits, options)
    if options.flag("write") and not locked and any(each.plan.stands for _, each in found):
        for _, each in found:
            if each.plan.stands and each.written.refused is not None:
                raise each.written.refused
        _write(found[0][1].case, tuple(edits.values()))
        for _, each in found:
            if each.plan.stands and (remaining := _unlocked(each)):
                print(f"compat: {printable(remaining)}", file=sys.stderr)
    return code


def _code_of(found: Repair) -> int:
    unread = found.case.listing.unread if found.case.listing is not None else ()
    return _code(found.errors, found.plan) or (UNDECIDED if unread else 0)


def _print(found: Sequence[tuple[str, Repair]], codes: Sequence[int], edits: dict[str, Edit], options: Options) -> None:
    """Print the plan of each environment, then the edits of all; :class:`Undecided` for a single one without a decision."""
    matrix = open_matrix(options.values.get("rules", ()))
    undecided: list[str] = []
    questions: list[Finding] = []
    warnings: list[Finding] = []
    for (name, each), code in zip(found, codes):
        plan, errors, case, steps = each.plan, each.errors, each.case, each.written
        open_ = code == UNDECIDED and not plan.stands and not (errors and plan.proven and plan.narrowed)
        unread = case.listing.unread if case.listing is not None else ()
        if open_:
            undecided.append(unread[0] if unread and not errors else _why_not(plan))
            if not errors and len(found) == 1:
                raise Undecided(undecided[0])
        if name:
            emit(f"{name}:")
        after = environment_after(case.environment, plan.chosen) if plan.stands and plan.chosen else case.environment
        asked = open_errors(after, matrix, case.ignored)
        warned = [each for each in left_warnings(after, matrix, case.ignored, case.known) if each not in plan.left]
        warned = [*(warning for warning in each.pythons if warning.rule not in case.ignored), *warned]
        emit(shown_plan(
            plan, errors, _to_run(each, options), target=case.told, notes=case.notes, explained=not options.flag("brief"),
            questions=asked, warnings=warned,
        ))  # fmt: skip
        questions += asked
        warnings += warned
        if steps.refused and not options.flag("write"):
            emit(f"  not written: {steps.refused}\n")
        if steps.unlocked and plan.stands and not options.flag("write"):
            emit(f"  not locked: {_unlocked(each)}\n")
    rest = shown_rest(questions, warnings, fixed=options.one("level") == "warning")
    emit("\n".join(filter(None, (*map(edits_difference, edits.values()), rest))))
    if undecided:
        raise Undecided(undecided[0])


def _to_run(found: Repair, options: Options) -> Commands | None:
    """Return the commands that remain to be run."""
    commands, written = found.written.commands, found.written.locked and options.flag("write")
    return commands if commands is None or not written else replace(commands, lock=())


def _unlocked(found: Repair) -> str:
    """Why the lock file is not that of the edited source, or what updates it; "" if there is none, or it was written."""
    commands, why = found.written.commands, found.written.unlocked
    edited = {edit.path for edit in found.written.edits}
    if not why and commands is not None and commands.lock and not found.written.locked and found.case.file not in edited:
        why = f"its tool makes it from the edited file: {'; '.join(commands.lock)}"
    return f"{found.case.file}: not updated: {why}" if why else ""


def _json(found: Sequence[tuple[str, Repair]], code: int) -> dict[str, object]:
    """Return the report with the plan; of several environments, ``plans`` has each one's, and ``plan`` all changes."""
    first = next((each for _, each in found if each.errors), found[0][1])
    errors = tuple(
        replace(error, selections=(name, *error.selections)) if name else error for name, each in found for error in each.errors
    )
    notes = tuple(dict.fromkeys(note for _, each in found for note in _notes(each)))
    parts = tuple((name, each.case.environment) for name, each in found if name)
    report = Report(first.case.environment, errors, notes, code, first.case.file, parts=parts)
    if len(found) == 1:
        return {**report.to_json(), "plan": _made(first)}
    whole = replace(first, plan=whole_plan(found))
    return {**report.to_json(), "plan": _made(whole), "plans": [{"name": name, **_made(each)} for name, each in found]}


def _made(found: Repair) -> dict[str, object]:
    commands = found.written.commands
    return {
        **found.plan.to_json(), "target": list(found.case.told),
        "commands": [*commands.install, *commands.lock] if commands else [],
    }  # fmt: skip


def _notes(found: Repair) -> tuple[str, ...]:
    refused = found.written.refused
    unlocked = [_unlocked(found)] if found.written.unlocked and found.plan.stands else []
    return (*found.case.notes, *([f"not written: {refused}"] if refused else []), *unlocked)


def _page(found: Repair) -> str:
    from compat.output.html.plan import plan_page

    case, plan, steps = found.case, found.plan, found.written
    return plan_page(
        plan, found.errors, environment_after(case.environment, plan.chosen), before=case.environment, commands=steps.commands,
        differences=[edits_difference(edit) for edit in steps.edits], target=case.told, notes=_notes(found),
        title=f"Repair plan: {case.file}" if case.file else "Repair plan",
    )  # fmt: skip


def _write(case: Case, edits: tuple[Edit, ...]) -> None:
    if case.file is None:
        raise InputError("--write only changes files; run the command above to change the environment")
    apply(edits)
    changed = dict.fromkeys(edit.path for edit in edits if edit.before != edit.after)
    if changed:
        print(f"written: {printable(', '.join(changed))}", file=sys.stderr)


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
    unread = {**plan.unread, **plan.narrowed}
    if not unread:
        return "no plan that fixes everything was found in time"
    # pages are read in parallel, in any order; a host that is given up says less than the failures before
    (name, why), *others = sorted(unread.items(), key=lambda each: (each[1].endswith("did not answer"), each[0]))
    return f"{name}: {reason_of(name, why)}" + (f" ({len(others)} more could not be read)" if others else "")
