"""A report as HTML: fragments for notebooks and the site, and a standalone page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compat.checks.fleet import Fleet
from compat.model import Environment, Finding, Fix, Outcome, Report
from compat.output.fleet import Ranged, screen_of
from compat.output.graph import graph_of, picture
from compat.output.html.page import REPORT, Child, Html, element, joined, link, page, raw
from compat.output.terminal import flags_for, nothing_found, places_of, seen_rows, summary

_PICTURES = 12
"""Findings of one report that get a picture."""


def fragment(report: Report, nothing: str | None = None) -> Html:
    """Render the report for a notebook, with its style but without a page."""
    return element("div", element("style", raw(REPORT)), element("section", *_body(report, nothing)), class_="compat")


def body(report: Report, nothing: str | None = None) -> Html:
    """Render the report for a page that already has the style; ``nothing`` is the text shown without findings."""
    return joined(_body(report, nothing))


def outcomes_page(outcomes: Sequence[Outcome], nothing: str | None = None) -> str:
    """Render one page for all outcomes, in their order."""
    shown = [outcome for outcome in outcomes if outcome.report is not None or outcome.error is not None]
    several = len(shown) > 1
    parts: list[Child] = []
    for outcome in shown:
        if several or (outcome.report is not None and outcome.report.file):
            parts.append(element("h2", outcome.name))
        if outcome.report is None:
            parts.append(element("p", element("span", "unreadable", class_="badge error"), " ", str(outcome.error)))
        else:
            parts += _body(outcome.report, nothing)
    names = ", ".join(outcome.name for outcome in shown)
    return page(
        "Compatibility report" + (f": {names}" if names else ""), joined((element("h1", "Compatibility report"), *parts))
    )


def _body(report: Report, nothing: str | None) -> Iterator[Html]:
    certain = [finding for finding in report.findings if finding.verdict == "hit"]
    possible = [finding for finding in report.findings if finding.verdict != "hit"]
    yield element("p", summary(certain, possible) or nothing or nothing_found(report), class_="summary")
    for name, environment in report.parts or (("", report.environment),):
        if name:
            yield element("h3", name)
        yield described(seen_rows(environment))
    for number, finding in enumerate((*certain, *possible)):
        yield finding_of(finding, report.environment, report.file, pictured=number < _PICTURES)
    if report.notes:
        yield element("h2", "Notes")
        yield element("ul", *(element("li", note) for note in report.notes))


def finding_of(
    finding: Finding, environment: Environment, read_from: str | None = None, *, pictured: bool = True, where: str = ""
) -> Html:
    """Render a finding: symptom, cause, why it applies, fixes and dependency graph. ``where`` names the nodes."""
    level = finding.severity if finding.verdict == "hit" else "possible"
    heading = element("h3", element("span", level, class_="badge"), " ", finding.title)
    rows: list[tuple[str, Child]] = list(places_of(finding, read_from))
    if finding.here:
        rows.append(("applies because", finding.here))
    if where:
        rows.append(("on", where))
    if finding.verdict != "hit" and finding.unknown:
        rows.append(("settle", flags_for(finding.unknown)))
    rows += [("or" if number else "fix", fix_of(fix)) for number, fix in enumerate(finding.fixes)]
    if finding.evidence:
        rows.append(("see", element("ul", *(element("li", link(each)) for each in finding.evidence), class_="see")))
    rows.append(("rule", joined((element("code", finding.rule), f" ({finding.confidence}, {finding.effect})"))))
    graph = graph_of(finding, environment) if pictured else None
    drawn = picture(graph, "Requirements") if graph is not None and graph.requirements else None
    return element("article", heading, element("p", finding.why), described(rows), drawn, class_=level)


def fix_of(fix: Fix) -> Html:
    """Render a fix: its command, then its description."""
    if fix.command is None:
        return element("span", fix.text)
    return joined(
        (element("pre", element("code", fix.command)), element("span", fix.text, class_="soft") if fix.text else None)
    )


def described(rows: Iterable[tuple[str, Child]]) -> Html:
    """Render a description list without its empty rows; empty if all rows are."""
    listed = [element("dt", name) + element("dd", value) for name, value in rows if value]
    return element("dl", *map(Html, listed)) if listed else Html()


# --- A fleet report, with the content that compat fleet prints to a terminal.


def fleet_page(fleet: Fleet, ranged: Ranged) -> str:
    """Render a self-contained page: the groups, the differences between nodes, and every finding with its nodes."""
    screen = screen_of(fleet, ranged)
    head = element("tr", element("th", "nodes", scope="col"), element("th", "environment", scope="col"))
    rows = [
        element("tr", element("td", row.nodes), element("td", *(element("p", text) for text in row.texts)))
        for row in screen.groups
    ]
    parts = [
        element("h1", "Nodes"), element("p", screen.summary, class_="summary"), element("p", f"{screen.headline}."),
        element("div", element("table", head, *rows), class_="scroll"),
        *([element("p", screen.others)] if screen.others else []),
        *(finding_of(shown.finding, shown.environment or Environment(), where=shown.where) for shown in screen.findings),
        described(screen.remarks),
    ]  # fmt: skip
    return page("Nodes", joined(parts))
