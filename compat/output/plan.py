"""A plan as text: changes and reasons, how it was checked, and commands to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from compat.formats.edit.changes import Change
from compat.formats.registry import Commands
from compat.model import Finding, Fix
from compat.output.terminal import flags_for, wrap_text
from compat.repair.plan import Plan, actions, reason_of
from compat.repair.problem import family
from compat.repair.rules import MOVES
from compat.tables.stacks import Stack

_ALONG = 12
"""How many packages that the installer moves implicitly are shown by name."""
_WARNINGS = 3
"""How many warnings that are not fixed are shown."""


def shown_plan(
    plan: Plan, errors: tuple[Finding, ...], commands: Commands | None, *, target: Sequence[str] = (),
    notes: Sequence[str] = (), explained: bool = True, questions: Sequence[Finding] = (), warnings: Sequence[Finding] = (),
) -> str:  # fmt: skip
    """Render a plan for an environment with these errors; ``target`` is what for.

    ``questions`` are possible errors, ``warnings`` those that the plan does not fix.
    """
    lines = [*_lines(plan, errors, commands, target, notes, explained)]
    for each in warnings[:_WARNINGS]:
        lines += wrap_text(f"{each.title} ({each.rule})", "  warning   ", " " * 12)
        lines += (f"            {way}" for way in _ways(actions(each))[:1])
    if len(warnings) > _WARNINGS:
        lines.append(f"            and {_count(len(warnings) - _WARNINGS, 'more warning')} (compat check shows them)")
    for each in questions:
        lines += wrap_text(f"{each.title} ({each.rule})", "  possible  ", " " * 12)
        lines.append(f"            settle with {flags_for(each.unknown)}")
    return "\n".join(lines) + "\n"


def shown_rest(questions: Sequence[Finding], warnings: Sequence[Finding], *, fixed: bool) -> str:
    """What is left after a plan, as its last lines; "" if nothing is. ``fixed``: a plan for the warnings was asked for."""
    lines = []
    if warnings:
        left = "1 warning is left" if len(warnings) == 1 else f"{len(warnings)} warnings are left"
        movable = not fixed and any(fix.kind in MOVES for each in warnings for fix in each.fixes)
        lines.append(f"{left}: --level warning also fixes what releases can fix." if movable else f"{left}.")
    if questions:
        unknown = tuple(dict.fromkeys(path for each in questions for path in each.unknown))
        left = "1 question is left" if len(questions) == 1 else f"{len(questions)} questions are left"
        lines += wrap_text(f"{left}, as {'it depends' if len(questions) == 1 else 'they depend'} on what is not known. "
                           f"Settle with {flags_for(unknown)}.", "", "")  # fmt: skip
    return "\n".join(lines)


def _lines(
    plan: Plan, errors: tuple[Finding, ...], commands: Commands | None, target: Sequence[str], notes: Sequence[str],
    explained: bool,
) -> Iterator[str]:  # fmt: skip
    if target:
        yield from wrap_text("; ".join(target), "  target    ", "            ")
    yield from (f"  note      {note}" for note in notes)
    if not errors and not plan.changes and not plan.core and not plan.refused:
        yield "Nothing to fix: no known error applies here."
        return
    for finding in errors:
        yield f"  ✗ {finding.title}  ({finding.rule})"
        if finding not in plan.left:
            yield from (f"      or, without changing packages: {way}" for way in _ways(actions(finding)))
    if len(plan.core) > 1 or plan.relief:
        yield from _impossible(plan)
    if plan.changes and plan.stands:
        yield from _changes(plan, len(errors), explained)
        yield from _commands(commands)
    elif errors and not plan.changes and not plan.refused and plan.unread and not plan.proven:
        yield "No plan was found, but one may exist: not everything could be read."
    elif plan.changes or plan.refused or (errors and len(plan.core) < 2):
        releases = "set of the releases that could be read" if plan.narrowed else "set of releases"
        if not plan.changes and not plan.refused and plan.left and all(actions(each, left=True) for each in plan.left):
            yield f"No {releases} fixes {'it' if len(plan.left) == 1 else 'them'}. Instead:"
        else:
            yield f"No plan is proposed: {plan.why_not or f'no {releases} fixes an error'}"
    for finding in plan.left:
        yield f"  left      {finding.title}"
        yield from (f"            {way}" for way in _ways(actions(finding, left=True)))
    yield from (f"  unread    {name}: {reason_of(name, why)}" for name, why in sorted(plan.unread.items())[:5])
    yield from (f"  no builds from {name}: {reason_of(name, why)}" for name, why in plan.narrowed.items())


def _ways(fixes: Sequence[Fix]) -> list[str]:
    return [
        f"{fix.command}  # {fix.text}" if fix.command and fix.kind == "source-install" else fix.command or fix.text
        for fix in fixes
    ][:3]


def shown_pins(plan: Plan, target: Sequence[str]) -> str:
    """Render a plan made from scratch as a requirements file that can be installed unchanged."""
    head = [f"# for {'; '.join(target)}"]
    rest = [f"# no builds from {name}: {reason_of(name, why)}" for name, why in plan.narrowed.items()]
    if plan.core or not plan.stands:
        head += ["# no releases of these requirements are compatible:", *(f"# - {text}" for text in plan.core)]
        return "\n".join([*head, *([f"# - {plan.why_not}"] if plan.why_not else []), *rest])
    proof = "no newer releases are compatible" if plan.proven else "time limit reached: newer releases may be compatible"
    head += [f"# {proof}; checked {checked_by(plan)}"]
    head += [f"# left: {finding.title} ({finding.rule})" for finding in plan.left]
    head += [f"# assumed: {name}: {text}" for name, text in plan.assumed.items()]
    if any(each.startswith("ROCm") for each in target):
        head.append("# install torch first, the build for your ROCm from torch's own index; then the rest")
    indexes = list(dict.fromkeys(each.index_url for each in plan.changes if each.index_url))
    if indexes:
        head.append("# with uv: uv pip install --index-strategy unsafe-best-match -r FILE")
    pins = (f"{each.name}=={each.after}" for each in plan.changes)
    return "\n".join([*head, *rest, *(f"--extra-index-url {url}" for url in indexes), *pins])


def shown_stacks(stacks: Sequence[Stack]) -> str:
    """Render recorded combinations as a table, with the command that prints all pins of one."""
    if not stacks:
        return "No tested combination matches; run compat suggest --task TASK --gpu GPU.\n"
    rows = [(each.task, each.stack, f"{each.gpu}{f' (driver {each.driver})' if each.driver else ''}") for each in stacks]
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    names = ("  ".join(f"{text:{width}}" for text, width in zip(row, widths)) for row in rows)
    lines = (f"{name}  {_pins_text(each)}  (Python {each.python}, {each.checked})" for name, each in zip(names, stacks))
    return "\n".join([*lines, "For the full pins of one: compat suggest --task TASK --gpu GPU --with STACK"]) + "\n"


def _pins_text(stack: Stack) -> str:
    return ", ".join(pin.replace("==", " ") for pin in stack.pins.split())


def _changes(plan: Plan, errors: int, explained: bool) -> Iterator[str]:
    yield ""
    yield proof_of(plan, errors)
    named = [each for each in plan.changes if each.name not in plan.along] or plan.changes
    width = max(len(each.name) for each in named)
    versions = max(len(move(each)) for each in named)
    for each in named:
        moved = move(each)
        yield f"  {each.name:{width}}  {moved:{versions}}".rstrip()
        if explained and each.why:
            yield from wrap_text(each.why, "      because ", "              ")
    yield from (f"  rebuild   {each.name} {each.after}: {each.why}" for each in plan.rebuilt)
    for each in named:
        if each.name in plan.downloaded:
            yield f"  build     {each.name} {each.after}: its setup.py downloads the wheel for the installed torch"
        elif each.name in plan.compiled:
            yield f"  build     {each.name} {each.after}: it has no wheel, and is compiled against the installed torch"
    yield from _along([each for each in plan.changes if each not in named])
    yield f"  cost      {cost_text(plan.cost)}"
    yield f"  checked   {checked_by(plan)}"
    yield from (f"  assumed   {name}: {text}" for name, text in plan.assumed.items())
    if plan.next_best is not None:
        yield from wrap_text(plan.next_best.text, "  next best ", "            ")
    if explained:
        yield from (f"  policy    {text}" for text in plan.policies)


def _along(changes: Sequence[Change]) -> Iterator[str]:
    """List the transitive changes: upgrades and downgrades, then additions, then removals; the rest is counted."""
    ordered = sorted(changes, key=lambda each: (each.after is None, each.before is None, family(each.name) != each.name))
    words = [f"{each.name} {each.after or 'removed'}" for each in ordered[:_ALONG]]
    if len(ordered) > _ALONG:
        words.append(f"and {len(ordered) - _ALONG} more (--format json lists them)")
    yield from wrap_text(", ".join(words), "  also      ", "            ") if words else ()


def proof_of(plan: Plan, errors: int) -> str:
    """Return a summary such as ``1 change fixes 2 errors. No smaller change fixes them.``"""
    count, fixed = sum(each.name not in plan.along for each in plan.changes), errors - len(plan.left)
    why = "Not all packages could be read" if plan.unread else "The time limit was reached"
    proof = "No smaller change fixes them." if plan.proven else f"{why}: a smaller one may exist."
    return f"{_count(count, 'change')} {'fixes' if count == 1 else 'fix'} {_count(fixed, 'error')}. {proof}"


_COST = {
    "errors": ("error", "left"), "image": ("image", "changed"), "changed": ("package", "changed"),
    "downgraded": ("direct requirement", "downgraded"),
    "major": ("major version", "moved"), "added": ("package", "added"), "removed": ("package", "removed"),
    "source": ("package", "built from source"),
}  # fmt: skip


def cost_text(cost: Mapping[str, int]) -> str:
    """``1 package changed, 1 direct requirement downgraded``."""
    parts = [f"{_count(cost[name], noun)} {rest}" for name, (noun, rest) in _COST.items() if cost.get(name)]
    return ", ".join(parts) or "nothing"


def checked_by(plan: Plan) -> str:
    verified = plan.verified
    if verified is None or verified.uv is None:
        return f"against the rules; {verified.why if verified and verified.why else 'not checked with uv'}"
    text = "against the rules, "
    text += "in uv's lock" if verified.locked else "and with uv pip compile"
    text += " and uv pip install --dry-run" if verified.installs else f"; {verified.why}" if verified.why else ""
    return f"{text} (all but {', '.join(verified.unasked)})" if verified.unasked else text


def move(change: Change) -> str:
    """Return ``0.14.0 → 0.16.0``, with the source of the release unless it is the default index."""
    if change.held:
        return f"{change.after} (kept by {change.limit})" if change.limit else f"{change.after} (pinned)"
    text = f"{change.before or '—'} → {change.after or 'removed'}"
    if change.source is None:
        return text
    commit = str(change.source.details.get("commit") or "")
    return f"{text} at commit {commit[:12]}" if commit else f"{text} built from source" if change.is_built else text


def _impossible(plan: Plan) -> Iterator[str]:
    yield ""
    releases = "the releases that could be read" if plan.narrowed else "releases"
    yield f"No set of {releases} fixes everything. These conflict with each other:"
    yield from (f"  - {text}" for text in plan.core)
    if plan.relief:
        yield f"Dropping this would help most: {plan.relief}"


def _commands(commands: Commands | None) -> Iterator[str]:
    if commands is None:
        return
    for label, lines in (("lock", commands.lock), ("apply", commands.install), ("undo", commands.rollback)):
        for line in lines:
            yield f"  {label:9} {line}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
