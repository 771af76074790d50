"""A fleet on one screen: the groups, what differs between nodes, and every finding once with the nodes it holds on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from compat.errors import printable
from compat.output.terminal import finding_lines, seen_rows, summary, wrapped

if TYPE_CHECKING:
    from compat.api.fleet import Fleet
    from compat.model import Finding

_HOSTS = 300
"""Characters of a list of hosts."""
_GROUPS = 12


def fleet_text(fleet: Fleet, ranged: Callable[[Sequence[str]], str]) -> str:
    """The fleet for a terminal; ``ranged`` writes hosts shortly."""
    count = len(fleet.groups)
    lines = [f"  {fleet.nodes} node{_s(fleet.nodes)} in {count} group{_s(count)} of the same environment"]
    for number, each in enumerate(fleet.groups[:_GROUPS], 1):
        hosts = each.group.hosts
        lines += ["", *wrapped(f"{len(hosts)} node{_s(len(hosts))}: {_cut(ranged(hosts))}", f"  group {number:<3} ", " " * 12)]
        for name, text in seen_rows(each.report.environment):
            if name != "machine":
                lines += wrapped(text, " " * 12, " " * 12)
    if count > _GROUPS:
        rest = [host for each in fleet.groups[_GROUPS:] for host in each.group.hosts]
        lines += ["", *wrapped(f"{count - _GROUPS} more groups: {_cut(ranged(rest))}", "  ", "  ")]
    for finding in fleet.differences:
        lines += ["", *finding_lines(finding)]
    found = _across(fleet)
    certain = [(finding, hosts) for finding, hosts in found if finding.verdict == "hit"]
    possible = [finding for finding, _ in found if finding.verdict != "hit"]
    # what holds on few nodes first: of 2,000 nodes the three that are odd are what is looked for
    for finding, hosts in sorted(certain, key=lambda entry: (entry[0].order()[0], len(entry[1]))):
        where = "all nodes" if len(hosts) == fleet.nodes else _cut(ranged(hosts))
        lines += ["", *finding_lines(finding), *wrapped(where, "    on        ", " " * 14)]
    if fleet.missing:
        lines += ["", *wrapped(f"{len(fleet.missing)} did not answer: {_cut(ranged(fleet.missing))}", "  missing   ", " " * 12)]
    for problem in fleet.problems:
        lines += wrapped(str(problem), "  unusable  ", " " * 12)
    for note in fleet.notes:
        lines += wrapped(note, "  note      ", " " * 12)
    told = summary([*fleet.differences, *(finding for finding, _ in certain)], possible)
    lines += ["", "  " + (told or "Nothing known to be bad, and the nodes are alike.")]
    return "\n".join(map(printable, lines))


def _across(fleet: Fleet) -> list[tuple[Finding, tuple[str, ...]]]:
    """Each finding once, with all hosts that it holds on."""
    found: dict[str, tuple[Finding, tuple[str, ...]]] = {}
    for each in fleet.groups:
        for finding in each.report.findings:
            key = repr((finding.rule, finding.verdict, finding.title, finding.here))
            known = found.get(key, (finding, ()))
            found[key] = known[0], (*known[1], *each.group.hosts)
    return list(found.values())


def fleet_json(fleet: Fleet, code: int) -> dict[str, Any]:
    """The fleet as plain JSON values (schema ``compat/fleet/1``)."""
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
        "missing": list(map(printable, fleet.missing)),
        "problems": list(map(str, fleet.problems)),
        "notes": list(map(printable, fleet.notes)),
        "exit": code,
    }


def _cut(text: str) -> str:
    return text if len(text) <= _HOSTS else text[:_HOSTS].rpartition(",")[0] + " …"


def _s(count: int) -> str:
    return "" if count == 1 else "s"
