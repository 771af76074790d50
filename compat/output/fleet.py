"""A fleet report on one screen: node groups, differences between nodes, and each finding once with its affected nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from compat.checks.fleet import STACK, Fleet, Judged
from compat.errors import printable
from compat.model import Environment, Finding
from compat.output.markdown import escaped, finding_blocks
from compat.output.terminal import finding_lines, seen_rows, sign_of, summary, wrap_text
from compat.records import record, replace

_HOSTS = 60
"""Characters of a list of hosts on a terminal."""
_GROUPS = 10
_REASONS = 3
_IN_FULL, _IN_BRIEF = 8, 12
"""Findings on a terminal: so many with everything about them, then so many with one line."""
_APART = 4
_BADGES = {"error": "❌", "warning": "⚠️"}

Ranged = Callable[[Sequence[str]], str]


@record(frozen=True)
class ShownFinding:
    """A finding and its affected nodes ("" if the finding names them itself). ``environment`` is one in which it was found."""

    finding: Finding
    where: str
    environment: Environment | None


@record(frozen=True)
class Row:
    """The nodes of one group and what is reported about them."""

    nodes: str
    texts: tuple[str, ...]


@record(frozen=True)
class Screen:
    """The content shared by all output formats, in display order.

    The largest group comes first, then what is odd: the smallest groups, the worst findings, those on the fewest nodes.
    """

    headline: str
    groups: tuple[Row, ...]
    others: str
    findings: tuple[ShownFinding, ...]
    remarks: tuple[tuple[str, str], ...]
    summary: str


def screen_of(fleet: Fleet, ranged: Ranged) -> Screen:
    """Return the screen for a fleet; ``ranged`` abbreviates a list of hosts."""
    count = len(fleet.groups)
    found = _across(fleet, ranged)
    shown = [ShownFinding(finding, "", None) for finding in fleet.differences]
    for finding, hosts, environment in sorted(found, key=lambda entry: len(entry[1])):
        if finding.verdict == "hit":
            shown.append(ShownFinding(finding, "all nodes" if len(hosts) == fleet.nodes else ranged(hosts), environment))
    shown.sort(key=lambda each: each.finding.order()[0])
    common, odd = fleet.groups[:1], sorted(fleet.groups[1:], key=lambda each: len(each.group.nodes))
    groups = [Row(hosts_of(each, ranged), rows_of(each)) for each in common]
    groups += [Row(hosts_of(each, ranged), rows_of(each, *common)) for each in odd[: _GROUPS - 1]]
    rest = [host for each in odd[_GROUPS - 1 :] for host in each.group.hosts]
    remarks = [("probes", text) for text in _probes(fleet)]
    if fleet.missing:
        remarks.append(("missing", f"{len(fleet.missing)} did not answer: {ranged(fleet.missing)}"))
    if fleet.undecided:
        remarks.append(("undecided", f"{len(fleet.undecided)} with incomplete probes: {ranged(fleet.undecided)}"))
    remarks += [("unusable", str(problem)) for problem in fleet.problems]
    remarks += [("note", note) for note in fleet.notes]
    possible = [finding for finding, _, _ in found if finding.verdict != "hit"]
    read = "" if not (fleet.missing or fleet.undecided or fleet.problems) else " in what could be read"
    alike = ", and the nodes are alike" if fleet.nodes > 1 else ""
    nothing = f"No known problems found{read}{alike}." if fleet.nodes else "No node could be read."
    return Screen(
        headline=f"{fleet.nodes} node{_s(fleet.nodes)} in {count} group{_s(count)} of the same environment",
        groups=tuple(groups),
        others=f"{count - _GROUPS} more groups of {len(rest)} nodes: {ranged(rest)}" if rest else "",
        findings=tuple(shown),
        remarks=tuple(remarks),
        summary=summary([each.finding for each in shown], possible) or nothing,
    )


def _probes(fleet: Fleet) -> list[str]:
    """Summarize the probe results in one line, and name the transports used between nodes."""
    probed = [node.probes for each in fleet.groups for node in each.group.nodes if node.probes is not None]
    if not probed:
        return []
    counts = Counter(each.status for probes in probed for each in probes)
    text = f"{len(probed)} node{_s(len(probed))}: {counts['passed']} passed, {counts['failed']} failed, "
    text += f"{counts['could-not-run']} could not run"
    met = {each.why for probes in probed for each in probes if each.probe == "nodes/collectives" and each.status == "passed"}
    return [text, *(f"collectives between the nodes passed: {why}" for why in sorted(met))]


def fleet_text(fleet: Fleet, ranged: Ranged) -> str:
    """Render the fleet for one screen of a terminal, whatever the number of nodes."""
    screen = screen_of(fleet, ranged)
    lines = [f"  {screen.headline}"]
    for number, row in enumerate(screen.groups, 1):
        lines += ["", *wrap_text(shortened(row.nodes), f"  group {number:<3} ", " " * 12)]
        for text in row.texts:
            lines += wrap_text(text, " " * 12, " " * 12)
    if screen.others:
        lines += ["", *wrap_text(shortened(screen.others), "  ", "  ")]
    for shown in screen.findings[:_IN_FULL]:
        finding = replace(shown.finding, here=shortened(shown.finding.here))
        lines += ["", *finding_lines(finding)]
        lines += wrap_text(shortened(shown.where), "    on        ", " " * 14) if shown.where else []
    brief = screen.findings[_IN_FULL : _IN_FULL + _IN_BRIEF]
    lines += [""] if brief else []
    for shown in brief:
        on = shown.where or shown.finding.here.partition("; ")[0]
        lines += wrap_text(f"{shown.finding.title} ({shown.finding.rule})", f"  {sign_of(shown.finding)} ", "    ")
        lines += wrap_text(shortened(on), "    on        ", " " * 14)
    more = len(screen.findings) - _IN_FULL - _IN_BRIEF
    lines += ["", f"  and {more} more findings (--format html or json has all of them)"] if more > 0 else []
    remarks = screen.remarks[:_IN_FULL]
    lines += [""] if remarks else []
    for name, text in remarks:
        lines += wrap_text(shortened(text), f"  {name:<9} ", " " * 12)
    more = len(screen.remarks) - len(remarks)
    lines += [f"  and {more} more notes (--format html or json has all of them)"] if more else []
    lines += ["", "  " + screen.summary]
    return "\n".join(map(printable, lines))


def fleet_markdown(fleet: Fleet, ranged: Ranged) -> str:
    """Render the fleet as Markdown for a comment or a job summary: a table of the groups, then every finding."""
    screen = screen_of(fleet, lambda hosts: shortened(ranged(hosts)))
    blocks = [f"**{escaped(screen.summary)}** {escaped(screen.headline)}."]
    rows = [f"| {escaped(row.nodes)} | {escaped('; '.join(row.texts))} |" for row in screen.groups]
    blocks.append("\n".join(("| nodes | environment |", "|---|---|", *rows)))
    blocks += [escaped(screen.others)] if screen.others else []
    for shown in screen.findings:
        finding = replace(shown.finding, here=shortened(shown.finding.here))
        blocks.append(finding_blocks(finding, f"{_BADGES.get(finding.severity, 'ℹ️')} {escaped(finding.title)}"))
        blocks += [f"**On:** {escaped(shown.where)}"] if shown.where else []
    if screen.remarks:
        blocks.append("\n".join(f"- {name}: {escaped(text)}" for name, text in screen.remarks))
    return "\n".join(map(printable, "\n\n".join(blocks).split("\n")))


def _across(fleet: Fleet, ranged: Ranged) -> list[tuple[Finding, tuple[str, ...], Environment]]:
    """Return the finding of each rule once, with all affected hosts and the first environment it was found in.

    Where it applies for several reasons, as with several drivers, it lists the rarest with their hosts.
    """
    found: dict[tuple[str, str], tuple[Finding, Environment]] = {}
    reasons: dict[tuple[str, str], dict[str, list[str]]] = {}
    for each in fleet.groups:
        for finding in each.report.findings:
            key = finding.rule, finding.verdict
            found.setdefault(key, (finding, each.report.environment))
            reasons.setdefault(key, {}).setdefault(finding.here, []).extend(each.group.hosts)
    entries = []
    for key, (finding, environment) in found.items():
        hosts = tuple(host for named in reasons[key].values() for host in named)
        if len(reasons[key]) > 1:
            rare = sorted(reasons[key].items(), key=lambda each: len(each[1]))
            shown = [f"{here} on {ranged(named)}" for here, named in rare[:_REASONS]]
            more = len(rare) - len(shown)
            finding = replace(finding, here="; ".join(shown) + (f"; and {more} more" if more else ""))
        entries.append((finding, hosts, environment))
    return entries


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
    return f"{len(hosts)} node{_s(len(hosts))}: {ranged(hosts)}"


def rows_of(each: Judged, common: Judged | None = None) -> tuple[str, ...]:
    """Return the known facts about a group's environment, without the operating system, or how it differs from another one."""
    if common is None:
        return tuple(text for name, text in seen_rows(each.report.environment) if name != "machine")
    apart = [*_apart(each.report.environment, common.report.environment)]
    more = len(apart) - _APART
    return (", ".join(apart[:_APART]) + (f" and {more} more differences" if more > 0 else ""),)


def _apart(here: Environment, common: Environment) -> Iterator[str]:
    """The differences of an environment from the most common one, what matters most first."""
    for name in ("python", "driver", "driver_state", "cuda_toolkit", "glibc", "machine", "os", "platform"):
        mine, theirs = getattr(here, name), getattr(common, name)
        if mine != theirs:
            yield f"{name.replace('_', ' ')} {mine or 'unknown'} instead of {theirs or 'unknown'}"
    if here.accelerators != common.accelerators:
        gpus, others = (dict(seen_rows(each)).get("gpus", "unknown") for each in (here, common))
        if gpus.partition(", driver")[0] != others.partition(", driver")[0]:
            yield f"GPUs: {gpus.partition(', driver')[0]}"
    installed, before = ({each.name: each.version for each in one.distributions or ()} for one in (here, common))
    first = {name: place for place, name in enumerate(("torch", *STACK))}
    names = sorted(installed.keys() | before.keys(), key=lambda name: (first.get(name, len(first)), name))
    for name in names:
        if installed.get(name) != before.get(name):
            had = f"instead of {before[name]}" if name in before else "in addition"
            yield f"{name} {installed[name]} {had}" if name in installed else f"no {name}"
    variables, set_there = here.variables or {}, common.variables or {}
    for name in sorted(variables.keys() | set_there.keys()):
        if variables.get(name) != set_there.get(name):
            yield f"{name} is not set" if variables.get(name) is None else f"{name}={variables[name]}"


def shortened(text: str) -> str:
    """The text with long lists of hosts cut, after a comma and within the brackets."""
    return " ".join(_cut(word) if len(word) > _HOSTS and "," in word else word for word in text.split(" "))


def _cut(word: str) -> str:
    head = word[:_HOSTS].rpartition(",")[0] or word[:_HOSTS]
    return head + (",…]" if head.count("[") > head.count("]") else ",…") + (";" if word.endswith(";") else "")


def _s(count: int) -> str:
    return "" if count == 1 else "s"
