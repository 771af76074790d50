"""Dependency graphs as text, as Graphviz DOT and as inline SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from compat.checks.requirements import Requires, requires_among
from compat.errors import printable
from compat.model import Environment, Finding
from compat.output.html.page import Html, element, joined
from compat.records import record


@record(frozen=True)
class Node:
    """A package; ``version`` is ``None`` if unknown. ``concerned`` marks the packages that the graph is about."""

    name: str
    version: str | None
    concerned: bool = False


@record(frozen=True)
class Graph:
    """Packages in a fixed order, and the requirements between them."""

    nodes: tuple[Node, ...]
    requirements: tuple[Requires, ...] = ()


def graph_of(finding: Finding, environment: Environment) -> Graph | None:
    """Return the packages of a finding and the requirements between them; ``None`` for fewer than two packages."""
    if len(finding.packages) < 2:
        return None
    nodes = tuple(Node(name, version, concerned=True) for name, version in finding.packages.items())
    return Graph(nodes, requires_among(environment, frozenset(finding.packages)))


def requirement_graph(name: str, versions: Iterable[tuple[str, str]], requirements: Iterable[Requires]) -> Graph:
    """Return a package with its direct and transitive dependents and its own requirements.

    Requirements of extras are left out, since requested extras are not recorded.
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


def requirement_text(requirement: Requires) -> str:
    """Describe a requirement, as in ``trl requires transformers>=4.46 (met)``."""
    how = {True: "met", False: "violated", None: "not compared"}[requirement.met]
    extra = f"[{requirement.extra}]" if requirement.extra else ""
    return f"{requirement.asking}{extra} requires {requirement.asked}{requirement.specifier or ' in any version'} ({how})"


def dot(graph: Graph, name: str = "requirements") -> str:
    """Render the graph in Graphviz's DOT language."""
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
    """Escape text for a quoted ID or a label."""
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')


# --- Inline SVG: dependents on the left, dependencies on the right


_LETTER = 7.4
"""Width of a letter of the picture's font, in the units of the picture (pixels at full size)."""
_LONGEST = 26
_MOST = 30
"""Packages that are drawn; a larger graph is a list only."""
_HEIGHT, _ROW, _EDGE, _MARGIN = 42, 70, 18, 8


@record(frozen=True)
class _Box:
    """The position of a package; ``x`` and ``y`` are the upper left corner."""

    x: float
    y: float
    width: float

    @property
    def middle(self) -> float:
        return self.y + _HEIGHT / 2


def picture(graph: Graph, caption: str) -> Html:
    """Render the graph with its caption, and a text alternative listing every package and requirement."""
    texts = [requirement_text(each) for each in graph.requirements] or ["no requirement between them is declared"]
    words = element("ul", *(element("li", text) for text in texts))
    names = ", ".join(f"{node.name} {node.version or '(version unknown)'}" for node in graph.nodes)
    drawn = _drawn(graph, f"{caption}: {names}", "; ".join(texts)) if len(graph.nodes) <= _MOST and graph.requirements else None
    legend = element("p", f"{caption}: {names}.", class_="soft")
    return element("figure", drawn, element("figcaption", legend, words))


def _drawn(graph: Graph, title: str, description: str) -> Html:
    columns = _columns(graph)
    boxes = _placed(columns, graph.requirements)
    width = max(box.x + box.width for box in boxes.values()) + _MARGIN
    height = max(box.y for box in boxes.values()) + _HEIGHT + _MARGIN
    edges = [_edge(each, boxes, y) for each, y in _label_heights(graph.requirements, boxes)]
    return element(
        "div",
        element(
            "svg",
            element("title", title),
            element("desc", description),
            *edges,
            *(_node(node, boxes[node.name]) for node in graph.nodes),
            class_="holds",
            role="img",
            aria_label=f"{title}. {description}",
            viewBox=f"0 0 {width:.0f} {height:.0f}",
            width=f"{width:.0f}",
            height=f"{height:.0f}",
        ),
        class_="scroll",
    )


def _columns(graph: Graph) -> list[list[Node]]:
    """Group nodes by their longest path from a node without dependents; cycles are broken where they are entered."""
    asking: dict[str, list[str]] = {}
    for each in graph.requirements:
        asking.setdefault(each.asked, []).append(each.asking)
    depths: dict[str, int] = {}

    def depth(name: str, way: frozenset[str]) -> int:
        if name not in depths:
            above = [depth(each, way | {name}) for each in asking.get(name, ()) if each not in way and each != name]
            depths[name] = max(above, default=-1) + 1
        return depths[name]

    columns: dict[int, list[Node]] = {}
    for node in graph.nodes:
        columns.setdefault(depth(node.name, frozenset()), []).append(node)
    return [columns[place] for place in sorted(columns)]


def _placed(columns: Sequence[Sequence[Node]], requirements: Sequence[Requires]) -> dict[str, _Box]:
    """Place a box for each node: columns fit their longest name, with room between them for edge labels."""
    tallest = max(map(len, columns))
    longest = max((len(_short(each.specifier or "any")) for each in requirements), default=0)
    gap = longest * _LETTER + 60
    boxes: dict[str, _Box] = {}
    x = float(_MARGIN)
    for column in columns:
        width = max(max(len(_short(node.name)), len(_short(node.version or "unknown"))) for node in column) * _LETTER + 24
        top = (tallest - len(column)) * _ROW / 2

        def pull(node: Node) -> tuple[float, str]:
            """Return the mean height of the node's dependents, at which its edges would be straight."""
            heights = [boxes[each.asking].y for each in requirements if each.asked == node.name and each.asking in boxes]
            return (sum(heights) / len(heights) if heights else 0.0, node.name)

        ordered = sorted(column, key=pull)
        for row, node in enumerate(ordered):
            boxes[node.name] = _Box(x, _MARGIN + top + row * _ROW, width)
        x += width + gap
    return boxes


def _label_heights(requirements: Sequence[Requires], boxes: Mapping[str, _Box]) -> list[tuple[Requires, float]]:
    """Return the height of each edge label, so that labels of edges from the same column do not overlap."""
    by_column: dict[float, list[Requires]] = {}
    for each in requirements:
        by_column.setdefault(boxes[each.asking].x, []).append(each)
    placed = []
    for column in by_column.values():
        wanted = [(boxes[each.asking].middle * 0.6 + boxes[each.asked].middle * 0.4, each) for each in column]
        wanted.sort(key=lambda pair: (pair[0], pair[1].asking, pair[1].asked, pair[1].specifier))
        heights = [height for height, _ in wanted]
        for before, after in pairwise(range(len(heights))):
            heights[after] = max(heights[after], heights[before] + _EDGE)
        placed += [(each, height) for (_, each), height in zip(wanted, heights)]
    return placed


def _edge(each: Requires, boxes: Mapping[str, _Box], height: float) -> Html:
    """Draw the line between two boxes, its arrow head and its specifier."""
    start, end = boxes[each.asking], boxes[each.asked]
    x1, x2 = start.x + start.width, end.x - 8
    broken = " broken" if each.met is False else ""
    text = _short(each.specifier or "any")
    width = len(text) * _LETTER + 6
    middle = x1 + 20 + width / 2
    if x2 < x1:  # a circle: back below both
        x1, x2 = start.x + start.width / 2, end.x + end.width / 2
        low = start.y + _HEIGHT, end.y + _HEIGHT
        line = f"M{x1:.1f} {low[0]:.1f} C{x1:.1f} {low[0] + 30:.1f} {x2:.1f} {low[1] + 30:.1f} {x2:.1f} {low[1]:.1f}"
        return element("path", d=line, class_=f"edge{broken}")
    line = (
        f"M{x1:.1f} {start.middle:.1f} C{x1 + 14:.1f} {start.middle:.1f} {x1 + 6:.1f} {height:.1f} {x1 + 20:.1f} {height:.1f}"
        f" L{x1 + 20 + width:.1f} {height:.1f} C{(x1 + width + x2) / 2 + 20:.1f} {height:.1f}"
        f" {(x1 + width + x2) / 2:.1f} {end.middle:.1f} {x2:.1f} {end.middle:.1f}"
    )
    head = f"M{x2 + 8:.1f} {end.middle:.1f} l-9 -5 v10 z"
    return joined(
        (
            element("path", d=line, class_=f"edge{broken}"),
            element("path", d=head, class_=f"head{broken}"),
            element("rect", x=f"{x1 + 20:.1f}", y=f"{height - 9:.1f}", width=f"{width:.1f}", height="18", class_="behind"),
            element("text", text, x=f"{middle:.1f}", y=f"{height + 4:.1f}", text_anchor="middle", class_=f"said{broken}"),
        )
    )


def _node(node: Node, box: _Box) -> Html:
    middle = f"{box.x + box.width / 2:.1f}"
    return element(
        "g",
        element("title", f"{node.name} {node.version or '(version unknown)'}"),
        element(
            "rect",
            x=f"{box.x:.1f}",
            y=f"{box.y:.1f}",
            width=f"{box.width:.1f}",
            height=str(_HEIGHT),
            rx="6",
            class_="node concerned" if node.concerned else "node",
        ),
        element("text", _short(node.name), x=middle, y=f"{box.y + 18:.1f}", text_anchor="middle"),
        element(
            "text", _short(node.version or "unknown"), x=middle, y=f"{box.y + 34:.1f}", text_anchor="middle", class_="version"
        ),
    )


def _short(text: str) -> str:
    """Truncate a long text. Redaction comes first, since it would miss a truncated credential."""
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
