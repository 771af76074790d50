"""A plan as HTML: changes and reasons, commands to run, the diff of the files, and the resulting requirements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compat.checks.requirements import requires_among
from compat.formats.edit.changes import Change
from compat.formats.registry import Commands
from compat.model import Environment, Finding
from compat.output.graph import Graph, Node, picture
from compat.output.html.page import Child, Html, element, joined, lines, page
from compat.output.html.report import described, finding_of
from compat.output.plan import checked_by, cost_text, move, proof_of
from compat.repair.plan import Plan, reason_of


def plan_page(
    plan: Plan,
    errors: Sequence[Finding],
    after: Environment,
    *,
    commands: Commands | None = None,
    differences: Sequence[str] = (),
    target: Sequence[str] = (),
    notes: Sequence[str] = (),
    before: Environment,
    title: str = "Repair plan",
) -> str:
    """Render the plan for an environment (``before``) with these errors, and the resulting environment (``after``).

    ``differences`` are unified diffs of the changed files; ``target`` describes the target.
    """
    if plan.stands:
        verdict = proof_of(plan, len(errors))
    elif not errors and not plan.core and not plan.refused:
        verdict = "Nothing to fix."
    else:
        verdict = f"There is no plan: {plan.why_not}" if plan.why_not else "No set of releases fixes everything."
    parts: list[Child] = [element("h1", title), element("p", verdict, class_="summary")]
    parts.append(described([("for", "; ".join(target)), ("notes", _list(notes))]))
    if plan.stands:
        parts += _changes(plan, after)
        steps = () if commands is None else (commands.lock, commands.install, commands.rollback)
        for heading, step in zip(("Update the lock file", "Apply", "Go back"), steps):
            if step:
                parts += [element("h2", heading), element("pre", element("code", lines("\n".join(step))))]
        parts += [element("pre", _coloured(each), class_="diff", tabindex="0") for each in differences if each]
    if plan.core:
        parts += [element("h2", "These conflict with each other"), _list(plan.core)]
    if plan.relief:
        parts.append(element("p", f"Dropping this would help most: {plan.relief}"))
    unread = [f"{name}: {reason_of(name, why)}" for name, why in {**plan.unread, **plan.narrowed}.items()]
    if unread:
        parts += [element("h2", "Could not be read"), _list(unread)]
    for heading, found, environment in (("What is fixed", errors, before), ("What is left", plan.left, after)):
        shown = [each for each in found if found is plan.left or each not in plan.left]
        if shown and (plan.stands or found is errors):
            name = heading if plan.stands else "What is wrong"
            parts += [element("h2", name), *(finding_of(each, environment) for each in shown)]
    return page(title, joined(parts))


def _changes(plan: Plan, after: Environment) -> Iterator[Html]:
    yield element("h2", "Changes")
    named = [each for each in plan.changes if each.name not in plan.along] or list(plan.changes)
    yield _table(named)
    along = [each for each in plan.changes if each not in named]
    if along:
        count = f"{len(along)} more {'changes' if len(along) == 1 else 'change'} with them"
        yield element("details", element("summary", count), _table(along))
    yield described(
        [
            ("cost", cost_text(plan.cost)),
            ("checked", checked_by(plan)),
            ("assumed", _list([f"{name}: {text}" for name, text in plan.assumed.items()])),
            ("next best", None if plan.next_best is None else plan.next_best.text),
            ("policy", _list(plan.policies)),
        ]
    )
    versions = {copy.name: copy.version for copy in after.distributions or ()}
    names = [each.name for each in named if each.after is not None]
    nodes = tuple(Node(name, versions.get(name), concerned=True) for name in names)
    graph = Graph(nodes, requires_among(after, frozenset(names)))
    if graph.requirements:
        yield picture(graph, "Requirements after the plan")


def _table(changes: Sequence[Change]) -> Html:
    head = element("tr", *(element("th", name, scope="col") for name in ("package", "change", "because")))
    rows = [
        element(
            "tr",
            element("th", element("code", each.name), scope="row"),
            element("td", element("code", move(each))),
            element("td", each.why),
        )
        for each in changes
    ]
    table = element("table", element("thead", head), element("tbody", *rows))
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label="Changes")


def _coloured(difference: str) -> Html:
    """Mark up added and removed lines of a unified diff; the ``+`` and ``-`` signs stay for readers without colour."""
    shown = []
    for line in difference.rstrip("\n").split("\n"):
        kind = {"+": "ins", "-": "del"}.get(line[:1]) if not line.startswith(("+++", "---")) else None
        shown.append(element(kind, line) if kind else lines(line))
    return Html("\n".join(shown))


def _list(texts: Sequence[str]) -> Html | None:
    return element("ul", *(element("li", text) for text in texts)) if texts else None
