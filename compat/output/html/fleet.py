"""A fleet report as one HTML page, with the content that ``compat fleet`` prints to a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.model import Environment
from compat.output.fleet import Ranged, hosts_of, rows_of, screen_of
from compat.output.html.page import element, joined, page
from compat.output.html.report import described, finding_of

if TYPE_CHECKING:
    from compat.api.fleet import Fleet


def fleet_page(fleet: Fleet, ranged: Ranged) -> str:
    """Render a self-contained page: the groups, the differences between nodes, and every finding with its nodes."""
    screen = screen_of(fleet, ranged)
    head = element("tr", element("th", "nodes", scope="col"), element("th", "environment", scope="col"))
    rows = [
        element("tr", element("td", hosts_of(each, ranged)), element("td", *(element("p", text) for text in rows_of(each))))
        for each in screen.groups
    ]
    parts = [
        element("h1", "Nodes"), element("p", screen.summary, class_="summary"), element("p", f"{screen.headline}."),
        element("div", element("table", head, *rows), class_="scroll"),
        *([element("p", screen.others)] if screen.others else []),
        *(finding_of(told.finding, told.environment or Environment(), where=told.where) for told in screen.findings),
        described(screen.remarks),
    ]  # fmt: skip
    return page("Nodes", joined(parts))
