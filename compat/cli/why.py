"""``compat why NAME``: explain why a package has its version, and which changes a different version would need."""

from __future__ import annotations

from compat.api.commands import Options
from compat.api.planning import Why, planning, why
from compat.errors import InputError
from compat.model import normalized
from compat.output.graph import dot, picture, requirement_graph, requirement_text
from compat.output.html.page import Child, element, joined, page
from compat.output.stream import emit
from compat.records import replace
from compat.repair.problem import Policy
from compat.rules.compiled import open_matrix


def run(options: Options) -> int:
    """Print its dependents, and the other changes needed to move it to its newest release or to ``--to``."""
    if not options.operands:
        raise InputError("expected the name of a package: compat why vllm")
    name = normalized(options.operands[0])
    matrix = open_matrix(options.values.get("rules", ()))
    policy = Policy(prefer="stay", any_age=options.flag("any-age"))
    form = options.one("format") or "text"
    with planning(replace(options, operands=options.operands[1:]), matrix, policy) as (_, planner):
        answer = why(name, planner, options.one("to"), planned=form != "dot")
    if form == "dot":
        emit(dot(requirement_graph(answer.name, answer.versions, answer.requirements), answer.name))
    else:
        emit(_page(answer) if form == "html" else _text(answer))
    return 0


def _text(why: Why) -> str:
    lines = [f"{why.name} {why.version}"]
    versions = dict(why.versions)
    extras: dict[str, list[str]] = {}
    for each in why.asking:
        if each.extra:
            extras.setdefault(each.asking, []).append(f"{each.extra} ({each.asked}{each.specifier})")
        else:
            lines.append(f"  required by   {each.asking} {versions.get(each.asking, '')}: {each.asked}{each.specifier}")
    for asking, named in extras.items():
        lines.append(f"  only if the extra is requested: {asking} {versions.get(asking, '')}: {', '.join(named)}")
    if not why.asking:
        lines.append("  no other package requires it")
    moved = why.moved
    if moved is None:
        lines.append(f"  newest        {why.wanted}: it is the current version")
    elif moved.core:
        lines += [f"  cannot move to {why.wanted}:", *(f"    - {text}" for text in moved.core)]
    else:
        lines.append(f"  to move to {why.wanted}:")
        lines += [f"    {each.name}  {each.before or '—'} → {each.after or 'removed'}" for each in moved.changes]
        lines += [f"    leaves: {finding.title} ({finding.rule})" for finding in moved.left]
    return "\n".join(lines)


def _page(why: Why) -> str:
    """Render one HTML file with the graph, the requirements as text, and the change of version."""

    def listed(texts: list[str]) -> Child:
        return element("ul", *(element("li", text) for text in texts))

    parts: list[Child] = [
        element("h1", f"Why {why.name} {why.version}"),
        listed([requirement_text(each) for each in why.asking] or ["no other package requires it"]),
        picture(requirement_graph(why.name, why.versions, why.requirements), f"What requires {why.name}"),
    ]
    moved = why.moved
    if moved is None:
        parts.append(element("p", f"{why.wanted} is the current version."))
    elif moved.core:
        parts += [element("h2", f"Cannot move to {why.wanted}"), listed(list(moved.core))]
    else:
        rows = [f"{each.name} {each.before or '—'} → {each.after or 'removed'}" for each in moved.changes]
        rows += [f"leaves: {finding.title} ({finding.rule})" for finding in moved.left]
        parts += [element("h2", f"To move to {why.wanted}"), listed(rows)]
    return page(f"Why {why.name} {why.version}", joined(parts))
