"""What holds what: packages and the requirements between them, for pictures (:mod:`compat.output.html.picture`) and DOT."""

from __future__ import annotations

from collections.abc import Iterable

from compat.checks.requirements import Requires, requires_among
from compat.errors import printable
from compat.model import Environment, Finding
from compat.records import record


@record(frozen=True)
class Node:
    """A package; ``version`` is ``None`` where it is unknown. ``concerned``: the picture is about it."""

    name: str
    version: str | None
    concerned: bool = False


@record(frozen=True)
class Graph:
    """Packages in a fixed order, and who asks for whom; every requirement is between two of the nodes."""

    nodes: tuple[Node, ...]
    requirements: tuple[Requires, ...] = ()


def graph_of(finding: Finding, environment: Environment) -> Graph | None:
    """The packages of a finding and what they require of each other; ``None`` where there are fewer than two."""
    if len(finding.packages) < 2:
        return None
    nodes = tuple(Node(name, version, concerned=True) for name, version in finding.packages.items())
    return Graph(nodes, requires_among(environment, frozenset(finding.packages)))


def holding(name: str, versions: Iterable[tuple[str, str]], requirements: Iterable[Requires]) -> Graph:
    """A package, everything that asks for it directly or through others, and what it asks for itself.

    What an extra asks for is left out: nothing records which extras were requested.
    """
    all_ = tuple(each for each in requirements if each.extra is None)
    above, new = {name}, {name}
    while new:
        new = {each.asking for each in all_ if each.asked in new} - above
        above |= new
    kept = tuple(each for each in all_ if (each.asking in above and each.asked in above) or each.asking == name)
    there = above | {each.asked for each in kept}
    nodes = (Node(each, version, concerned=each == name) for each, version in versions if each in there)
    return Graph(tuple(nodes), kept)


def said(requirement: Requires) -> str:
    """``trl 0.14.0 requires transformers>=4.46 (met)``, without the version that the graph has."""
    how = {True: "met", False: "violated", None: "not compared"}[requirement.met]
    extra = f"[{requirement.extra}]" if requirement.extra else ""
    return f"{requirement.asking}{extra} requires {requirement.asked}{requirement.specifier or ' in any version'} ({how})"


def dot(graph: Graph, name: str = "requirements") -> str:
    """The graph in the DOT language of Graphviz."""
    lines = [f"digraph {_quoted(name)} {{", "  rankdir=LR;", '  node [shape=box, fontname="monospace"];']
    for node in graph.nodes:
        label = f"{_escaped(node.name)}\\n{_escaped(node.version or 'version unknown')}"
        lines.append(f'  {_quoted(node.name)} [label="{label}"{", penwidth=2" if node.concerned else ""}];')
    for each in graph.requirements:
        colour = ', color="#b3141d", fontcolor="#b3141d", style=dashed' if each.met is False else ""
        lines.append(f"  {_quoted(each.asking)} -> {_quoted(each.asked)} [label={_quoted(each.specifier or 'any')}{colour}];")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    """Text for the inside of a quoted ID; in a label a backslash would begin an escape."""
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')
