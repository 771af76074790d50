"""A fleet report on one screen: node groups, differences between nodes, and each finding once with its affected nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from compat.errors import printable
from compat.output.markdown import escaped, finding_blocks
from compat.output.terminal import finding_lines, seen_rows, summary, wrapped
from compat.records import record

if TYPE_CHECKING:
    from compat.checks.fleet import Fleet, Judged
    from compat.model import Environment, Finding

_HOSTS = 300
"""Characters of a list of hosts."""
_GROUPS = 12
_BADGES = {"error": "❌", "warning": "⚠️"}

Ranged = Callable[[Sequence[str]], str]


@record(frozen=True)
class Told:
    """A finding and its affected nodes ("" if the finding names them itself). ``environment`` is one in which it was found."""

    finding: Finding
    where: str
    environment: Environment | None


@record(frozen=True)
class Screen:
    """The content shared by all output formats, in display order: differences first, then the worst and rarest findings."""

    headline: str
    groups: tuple[Judged, ...]
    others: str
    findings: tuple[Told, ...]
    remarks: tuple[tuple[str, str], ...]
    summary: str


def screen_of(fleet: Fleet, ranged: Ranged) -> Screen:
    """Return the screen for a fleet; ``ranged`` abbreviates a list of hosts."""
    count = len(fleet.groups)
    told = [Told(finding, "", None) for finding in fleet.differences]
    found = _across(fleet)
    certain = [entry for entry in found if entry[0].verdict == "hit"]
    # findings on the fewest nodes first: among 2,000 nodes, the three outliers matter most
    for finding, hosts, environment in sorted(certain, key=lambda entry: (entry[0].order()[0], len(entry[1]))):
        told.append(Told(finding, "all nodes" if len(hosts) == fleet.nodes else shortened(ranged(hosts)), environment))
    rest = [host for each in fleet.groups[_GROUPS:] for host in each.group.hosts]
    remarks = [("probes", text) for text in _probes(fleet)]
    if fleet.missing:
        remarks.append(("missing", f"{len(fleet.missing)} did not answer: {shortened(ranged(fleet.missing))}"))
    if fleet.undecided:
        remarks.append(("undecided", f"{len(fleet.undecided)} not probed to the end: {shortened(ranged(fleet.undecided))}"))
    remarks += [("unusable", str(problem)) for problem in fleet.problems]
    remarks += [("note", note) for note in fleet.notes]
    possible = [finding for finding, _, _ in found if finding.verdict != "hit"]
    read = "" if not (fleet.missing or fleet.undecided or fleet.problems) else " in what was read"
    alike = ", and the nodes are alike" if fleet.nodes > 1 else ""
    nothing = f"Nothing known to be bad{read}{alike}." if fleet.nodes else "No node could be read."
    return Screen(
        headline=f"{fleet.nodes} node{_s(fleet.nodes)} in {count} group{_s(count)} of the same environment",
        groups=fleet.groups[:_GROUPS],
        others=f"{count - _GROUPS} more groups: {shortened(ranged(rest))}" if rest else "",
        findings=tuple(told),
        remarks=tuple(remarks),
        summary=summary([each.finding for each in told], possible) or nothing,
    )


def _probes(fleet: Fleet) -> list[str]:
    """Summarize the probe results in one line, and name the transports used between nodes."""
    probed = [node.probes for each in fleet.groups for node in each.group.nodes if node.probes is not None]
    if not probed:
        return []
    counts = Counter(each.status for probes in probed for each in probes)
    said = f"{len(probed)} node{_s(len(probed))}: {counts['passed']} passed, {counts['failed']} failed, "
    said += f"{counts['could-not-run']} could not run"
    met = {each.why for probes in probed for each in probes if each.probe == "nodes/collectives" and each.status == "passed"}
    return [said, *(f"collectives between the nodes passed: {why}" for why in sorted(met))]


def fleet_text(fleet: Fleet, ranged: Ranged) -> str:
    """Render the fleet for a terminal."""
    screen = screen_of(fleet, ranged)
    lines = [f"  {screen.headline}"]
    for number, each in enumerate(screen.groups, 1):
        lines += ["", *wrapped(hosts_of(each, ranged), f"  group {number:<3} ", " " * 12)]
        for text in rows_of(each):
            lines += wrapped(text, " " * 12, " " * 12)
    if screen.others:
        lines += ["", *wrapped(screen.others, "  ", "  ")]
    for told in screen.findings:
        lines += ["", *finding_lines(told.finding)]
        lines += wrapped(told.where, "    on        ", " " * 14) if told.where else []
    lines += [""] if screen.remarks else []
    for name, text in screen.remarks:
        lines += wrapped(text, f"  {name:<9} ", " " * 12)
    lines += ["", "  " + screen.summary]
    return "\n".join(map(printable, lines))


def fleet_markdown(fleet: Fleet, ranged: Ranged) -> str:
    """Render the fleet as Markdown for a comment or a job summary: a table of the groups, then every finding."""
    screen = screen_of(fleet, ranged)
    blocks = [f"**{escaped(screen.summary)}** {escaped(screen.headline)}."]
    rows = [f"| {escaped(hosts_of(each, ranged))} | {escaped('; '.join(rows_of(each)))} |" for each in screen.groups]
    blocks.append("\n".join(("| nodes | environment |", "|---|---|", *rows)))
    blocks += [escaped(screen.others)] if screen.others else []
    for told in screen.findings:
        finding = told.finding
        blocks.append(finding_blocks(finding, f"{_BADGES.get(finding.severity, 'ℹ️')} {escaped(finding.title)}"))
        blocks += [f"**On:** {escaped(told.where)}"] if told.where else []
    if screen.remarks:
        blocks.append("\n".join(f"- {name}: {escaped(text)}" for name, text in screen.remarks))
    return "\n".join(map(printable, "\n\n".join(blocks).split("\n")))


def _across(fleet: Fleet) -> list[tuple[Finding, tuple[str, ...], Environment]]:
    """Return each finding once, with all affected hosts and the first environment it was found in."""
    found: dict[str, tuple[Finding, list[str], Environment]] = {}
    for each in fleet.groups:
        for finding in each.report.findings:
            key = repr((finding.rule, finding.verdict, finding.title, finding.here))
            found.setdefault(key, (finding, [], each.report.environment))[1].extend(each.group.hosts)
    return [(finding, tuple(hosts), environment) for finding, hosts, environment in found.values()]


def fleet_json(fleet: Fleet, code: int) -> dict[str, object]:
    """Return the fleet as plain JSON values (schema ``compat/fleet/1``)."""
    return {
        "schema": "compat/fleet/1",
        "nodes": fleet.nodes,
        "differences": [finding.to_json() for finding in fleet.differences],
        "groups": [
            {
                "hosts": [printable(host) for host in each.group.hosts],
                "environment": each.report.environment.to_json(),
                "findings": [finding.to_json() for finding in each.report.findings],
                "notes": list(map(printable, each.report.notes)),
            }
            for each in fleet.groups
        ],
        "probes": _probes(fleet),
        "missing": list(map(printable, fleet.missing)),
        "undecided": list(map(printable, fleet.undecided)),
        "problems": list(map(str, fleet.problems)),
        "notes": list(map(printable, fleet.notes)),
        "exit": code,
    }


def hosts_of(each: Judged, ranged: Ranged) -> str:
    """``3 nodes: node[1-3]``."""
    hosts = each.group.hosts
    return f"{len(hosts)} node{_s(len(hosts))}: {shortened(ranged(hosts))}"


def rows_of(each: Judged) -> list[str]:
    """Return the known facts about a group's environment, without the operating system."""
    return [text for name, text in seen_rows(each.report.environment) if name != "machine"]


def shortened(text: str) -> str:
    return text if len(text) <= _HOSTS else text[:_HOSTS].rpartition(",")[0] + " …"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
