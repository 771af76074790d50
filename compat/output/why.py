"""Why a package is at its version: as text, as a page with a picture, and as DOT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.output.graph import dot, holding, said

if TYPE_CHECKING:
    from compat.api.why import Why
    from compat.checks.requirements import Requires


def why_text(why: Why) -> str:
    """The answer for a terminal."""
    lines = [f"{why.name} {why.version} is there."]
    lines += [f"  asked for by  {_asked(each, why)}" for each in why.asking] or ["  no other package asks for it"]
    moved = why.moved
    if moved is None:
        return "\n".join([*lines, f"  newest        {why.wanted}: it is the one that is there"])
    if moved.core:
        lines.append(f"  {why.wanted} cannot be had:")
        return "\n".join([*lines, *(f"    - {text}" for text in moved.core)])
    lines.append(f"  to move to {why.wanted}:")
    lines += [f"    {each.name}  {each.before or '—'} → {each.after or 'removed'}" for each in moved.changes]
    lines += [f"    and then: {finding.title} ({finding.rule})" for finding in moved.left]
    return "\n".join(lines)


def _asked(each: Requires, why: Why) -> str:
    version = dict(why.versions).get(each.asking, "")
    return f"{each.asking} {version}: {each.asked}{each.specifier}" + (f" (for its extra {each.extra})" if each.extra else "")


def why_dot(why: Why) -> str:
    """Everything that asks for the package, directly or through others, and what it asks for, for Graphviz."""
    return dot(holding(why.name, why.versions, why.requirements), why.name)


def why_page(why: Why) -> str:
    """One file with the same picture, the requirements in words, and the move."""
    from compat.output.html.markup import Child, element, joined
    from compat.output.html.picture import picture
    from compat.output.html.report import page

    graph = holding(why.name, why.versions, why.requirements)
    asking = [said(each) for each in why.asking] or ["no other package asks for it"]
    parts: list[Child] = [
        element("h1", f"Why {why.name} {why.version}"),
        element("ul", *(element("li", text) for text in asking)),
        picture(graph, f"What holds {why.name}"),
    ]
    moved = why.moved
    if moved is None:
        parts.append(element("p", f"{why.wanted} is the release that is there."))
    elif moved.core:
        parts += [element("h2", f"{why.wanted} cannot be had"), element("ul", *(element("li", text) for text in moved.core))]
    else:
        rows = [f"{each.name} {each.before or '—'} → {each.after or 'removed'}" for each in moved.changes]
        rows += [f"and then: {finding.title} ({finding.rule})" for finding in moved.left]
        parts += [element("h2", f"To move to {why.wanted}"), element("ul", *(element("li", text) for text in rows))]
    return page(f"Why {why.name} {why.version}", joined(parts))
