"""Requirements, as a graph: which nodes and edges it has, and as DOT."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from compat.checks.requirements import Requires, requires_among
from compat.model import Distribution, Environment
from compat.output.graph import Graph, Node, dot, picture, requirement_graph


def environment_of(*copies: Distribution) -> Environment:
    return Environment(python="3.11.9", os="linux", machine="x86_64", distributions=copies)


def test_requirements_among_followed_releases_come_from_the_tables() -> None:
    there = environment_of(Distribution("torchvision", "0.20.1"), Distribution("torch", "2.6.0"), Distribution("vllm", "0.7.1"))
    found = requires_among(there, frozenset(("torchvision", "torch")))
    assert found == (Requires("torchvision", "torch", "==2.5.1", met=False),)


def test_requirements_of_what_is_installed_come_from_its_metadata() -> None:
    there = environment_of(
        Distribution("mine", "1", requires=("other>=2", "other<1; sys_platform == 'win32'", "extra-one; extra == 'x'", "third")),
        Distribution("other", "3"), Distribution("third", None), Distribution("extra-one", "1"),
    )  # fmt: skip
    found = requires_among(there, frozenset(("mine", "other", "third", "extra-one")))
    assert found == (Requires("mine", "other", ">=2", met=True), Requires("mine", "third", "", met=True))


def test_an_extra_counts_where_it_is_requested() -> None:
    plain, asked = Distribution("trl", "0.20.0"), Distribution("trl", "0.20.0", extra={"extras": ["vllm"]})
    vllm = Distribution("vllm", "0.7.1")
    assert requires_among(environment_of(plain, vllm), frozenset(("trl", "vllm"))) == ()
    (found,) = requires_among(environment_of(asked, vllm), frozenset(("trl", "vllm")))
    assert (found.asking, found.extra, found.met) == ("trl", "vllm", False)


def test_what_holds_a_package_directly_and_through_others() -> None:
    requirements = (
        Requires("a", "b", ">=1", met=True), Requires("b", "c", "==2", met=True), Requires("c", "d", "", met=True),
        Requires("e", "d", "", met=True), Requires("c", "a", "", met=True), Requires("x", "c", ">3", met=False, extra="dev"),
    )  # fmt: skip
    graph = requirement_graph("c", [(name, "1") for name in "abcdex"], requirements)
    assert [node.name for node in graph.nodes] == ["a", "b", "c", "d"]
    assert [(each.asking, each.asked) for each in graph.requirements] == [("a", "b"), ("b", "c"), ("c", "d"), ("c", "a")]
    assert [node.name for node in graph.nodes if node.concerned] == ["c"]


def test_dot_quotes_what_it_is_given() -> None:
    graph = Graph((Node('a"b\\', None), Node("c", "1")), (Requires('a"b\\', "c", '"]; evil', met=False),))
    text = dot(graph)
    assert '"a\\"b\\\\" -> "c" [label="\\"]; evil", color=' in text
    assert len(re.findall(r'(?<!\\)(?:\\\\)*"', text)) % 2 == 0


NAMES = st.lists(st.text(max_size=40), min_size=1, max_size=6, unique=True)


@given(NAMES, st.data())
def test_every_graph_can_be_drawn(names: list[str], data: st.DataObject) -> None:
    """Circles, packages that ask for themselves, long and empty names: all are in the picture, and inside its frame."""
    one = st.sampled_from(names)
    edges = st.builds(Requires, one, one, st.text(max_size=50), st.sampled_from((True, False, None)))
    requirements = tuple(data.draw(st.lists(edges, min_size=1, max_size=8)))
    drawn = picture(Graph(tuple(Node(name, None) for name in names), requirements), "caption")
    svg = ElementTree.fromstring(drawn[drawn.index("<svg") : drawn.index("</svg>") + 6])
    width, height = (float(svg.attrib[name]) for name in ("width", "height"))
    boxes = [each for each in svg.iter("rect") if each.attrib["class"].startswith("node")]
    assert len(boxes) == len(names)
    for box in boxes:
        assert 0 <= float(box.attrib["x"]) <= width - float(box.attrib["width"])
        assert 0 <= float(box.attrib["y"]) <= height - float(box.attrib["height"])
