"""A plan for people: what changes and why, what it rests on, what to run."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compat.environment import Environment
    from compat.repair.plan import Plan
    from compat.report import Finding
    from compat.write.changes import Change
    from compat.write.commands import Commands

_WIDTH = 100


def shown_plan(plan: Plan, errors: tuple[Finding, ...], commands: Commands | None, *, explained: bool) -> str:
    """The text of a plan for an environment with these errors."""
    return "\n".join(_lines(plan, errors, commands, explained)) + "\n"


def _lines(plan: Plan, errors: tuple[Finding, ...], commands: Commands | None, explained: bool) -> Iterator[str]:
    if not errors and not plan.changes and not plan.core:
        yield "Nothing to mend: no error is known to hold here."
        return
    for finding in errors:
        yield f"  ✗ {finding.title}  ({finding.rule})"
    if plan.core:
        yield from _impossible(plan)
    if plan.changes and plan.stands:
        yield from _changes(plan, len(errors), explained)
        yield from _commands(commands)
    elif plan.changes:
        yield f"No plan is proposed: {plan.verified.why if plan.verified else ''}"
    for finding in plan.left:
        ways = [fix.command or fix.text for fix in finding.fixes if fix.kind in ("launch", "config", "env-var", "driver")]
        yield f"  left      {finding.title}"
        yield from (f"            {way}" for way in ways[:3])
    for name, why in list(plan.unread.items())[:5]:
        yield f"  unread    {name}: {why}"


def shown_pins(plan: Plan, environment: Environment) -> str:
    """A plan from nothing as a requirements file."""
    if plan.core or not plan.stands:
        lines = ["nothing that is asked for can be had together:", *(f"- {text}" for text in plan.core)]
        lines += [f"- {plan.verified.why}"] if plan.verified and plan.verified.why else []
        return "\n".join(f"# {line}" for line in lines)
    proof = "nothing newer goes together" if plan.proven else "the time was up: something newer may go together"
    lines = [
        f"# for Python {environment.python} on {environment.os} {environment.machine}; {proof}",
        f"# checked {_checked(plan)}",
    ]
    lines += [f"# left: {finding.title} ({finding.rule})" for finding in plan.left]
    return "\n".join([*lines, *(f"{each.name}=={each.after}" for each in plan.changes)])


def _changes(plan: Plan, errors: int, explained: bool) -> Iterator[str]:
    count, mended = sum(each.direct or not each.implied for each in plan.changes), errors - len(plan.left)
    why = "Not all could be read" if plan.unread else "The time was up"
    proof = "Nothing cheaper exists." if plan.proven else f"{why}: something cheaper may exist."
    yield ""
    yield f"{_count(count, 'change')} {'mends' if count == 1 else 'mend'} {_count(mended, 'error')}. {proof}"
    named = [each for each in plan.changes if each.direct or not each.implied] or plan.changes
    width = max(len(each.name) for each in named)
    versions = max(len(_move(each)) for each in named)
    for each in named:
        moved = _move(each)
        yield f"  {each.name:{width}}  {moved:{versions}}".rstrip()
        if explained and each.why:
            yield from wrap(each.why, _WIDTH, initial_indent="      because ", subsequent_indent="              ")
    along = [f"{each.name} {each.after}" for each in plan.changes if each not in named]
    yield from wrap(", ".join(along), _WIDTH, initial_indent="  along     ", subsequent_indent="            ") if along else ()
    yield f"  cost      {', '.join(f'{amount} {level}' for level, amount in plan.cost.items() if amount) or 'nothing'}"
    yield f"  checked   {_checked(plan)}"
    yield from (f"  assumed   {name}: {text}" for name, text in plan.assumed.items())
    if plan.next_best is not None:
        yield from wrap(plan.next_best.text, _WIDTH, initial_indent="  next best ", subsequent_indent="            ")
    if explained:
        yield from (f"  policy    {text}" for text in plan.policies)


def _checked(plan: Plan) -> str:
    verified = plan.verified
    if verified is None or verified.uv is None:
        return f"by our own evaluator; {verified.why if verified and verified.why else 'uv was not asked'}"
    text = "by our own evaluator on the planned environment, and by uv pip compile"
    text += " and uv pip install --dry-run" if verified.installs else f"; {verified.why}" if verified.why else ""
    return f"{text} (all but {', '.join(verified.unasked)})" if verified.unasked else text


def _move(change: Change) -> str:
    """``0.14.0 → 0.16.0``, and where the release comes from, where that is not the ordinary index."""
    text = f"{change.before or '—'} → {change.after or 'removed'}"
    if change.source is None:
        return text
    commit = str(change.source.details.get("commit") or "")
    return f"{text} at commit {commit[:12]}" if commit else f"{text} built from source" if change.is_built else text


def _impossible(plan: Plan) -> Iterator[str]:
    yield ""
    yield "No choice of releases mends all of it. These cannot hold together:"
    yield from (f"  - {text}" for text in plan.core)
    if plan.relief:
        yield f"What would help most is to give up: {plan.relief}"


def _commands(commands: Commands | None) -> Iterator[str]:
    if commands is None:
        return
    for label, lines in (("lock", commands.lock), ("apply", commands.install), ("back", commands.rollback)):
        for line in lines:
            yield f"  {label:9} {line}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
