"""Check a lock file or requirements file: check every installable selection and merge the findings.

Within one set of extras and groups, the interpreter and the platform are unknown facts: a finding that holds in every world
is a *hit*; one that holds in some is *possible* and names the facts that decide. Sets of extras and groups are not facts but
alternatives that can be installed: a finding holds if it holds in one of them, and lists those.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from compat.checks.choices import Asked
from compat.checks.fix_commands import in_project
from compat.checks.worlds import Place, Worlds
from compat.model import Distribution, Environment, Finding, Location
from compat.records import record, replace
from compat.rules.evaluate import Answers
from compat.rules.facts import comparable, seen_by_torch
from compat.rules.unknown import of_paths

if TYPE_CHECKING:
    from compat.formats.listing import Entry, Listing
    from compat.rules.compiled import Matrix


if TYPE_CHECKING:
    Key = tuple[str, tuple[tuple[str, str | None], ...]]
    """A rule and the versions it was found with."""


@record(frozen=True)
class _Selection:
    """The worlds in which the same relevant releases are installed, and their findings."""

    mask: int
    places: tuple[Place, ...]
    findings: tuple[Finding, ...]


def judged_listing(
    listing: Listing, known: Environment, matrix: Matrix, asked: Asked | None = None
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings for every installable selection of a listing, most severe first, and notes.

    ``known`` holds the facts about the target, from the file and from the user; its distributions are not used.
    """
    from compat.checks import distributions_checked, named_devices
    from compat.checks import interfaces as surface
    from compat.rules.facts import visible

    known, notes = named_devices(known)
    worlds = Worlds(listing, known, asked or Asked())
    known = visible(known)
    installed = worlds.installed()
    suspects = surface.suspects(
        ((entry.distribution.name, entry.distribution.version) for entry in listing.entries), known.workload
    )
    asked_about = {*matrix.names, *distributions_checked(), *suspects, "python"}
    relevant = [
        (replace(entry, distribution=_alone(entry.distribution)), mask) for entry, mask in zip(listing.entries, installed)
        if mask and entry.distribution.name in asked_about
    ]  # fmt: skip
    judged = partial(_judged, relevant=relevant, worlds=worlds, known=known, matrix=matrix, answers=Answers())
    selections = [
        selection for mask in _classes(worlds.all, relevant)
        for selection in _settled(judged(mask, suspects), judged, worlds)
    ]  # fmt: skip
    findings = _merged(selections, worlds)
    fixed = (in_project(finding, listing.kind) for finding in findings)
    return tuple(sorted(fixed, key=lambda finding: finding.order())), (*notes, *worlds.notes)


def _classes(everything: int, relevant: list[tuple[Entry, int]]) -> list[int]:
    """Partition the worlds so that the same relevant releases are installed throughout each part."""
    classes = [everything]
    for mask in {mask for _, mask in relevant}:
        parts = []
        for each in classes:
            inside, outside = each & mask, each & ~mask
            parts += [part for part in (inside, outside) if part]
        classes = parts
    return classes


def _judged(
    mask: int, suspects: frozenset[str] = frozenset(), settled: tuple[Finding, ...] | None = None,
    asking: frozenset[str] | None = None, *, relevant: list[tuple[Entry, int]], worlds: Worlds, known: Environment,
    matrix: Matrix, answers: Answers,
) -> _Selection:  # fmt: skip
    """Check one selection; if its other findings are already ``settled``, evaluate only the rules ``asking``."""
    from compat.checks import deduplicated, derived_findings
    from compat.rules import evaluate as rules

    entries = [entry for entry, installed in relevant if installed & mask]
    places = worlds.places_of(mask)
    listing = worlds.listing
    environment = replace(
        known, python=_python(places, entries, known), os=_common([place.os for place in places], known.os),
        machine=_common([place.machine for place in places], known.machine),
        distributions=tuple(entry.distribution for entry in entries), distributions_complete=listing.complete,
    )  # fmt: skip
    more = derived_findings(environment, suspects) if settled is None else ()
    found = deduplicated((*rules.judge(seen_by_torch(environment), matrix, asking, answers), *more))
    located = tuple(_located(finding, entries, listing) for finding in found)
    return _Selection(mask, tuple(places), (*located, *(settled or ())))


def _settled(selection: _Selection, judged: Callable[..., _Selection], worlds: Worlds) -> list[_Selection]:
    """The selection, split by place if a rule depends on the interpreter or the platform.

    Only those rules are evaluated again; the other findings are the same in every place.
    """
    asking = {finding.rule: _PLACE.intersection(finding.unknown) for finding in selection.findings if finding.origin == "rule"}
    facts = frozenset(name for names in asking.values() for name in names)
    if len(selection.places) < 2 or not facts:
        return [selection]
    again = frozenset(rule for rule, names in asking.items() if names)
    settled = tuple(finding for finding in selection.findings if finding.rule not in again)
    parts: dict[tuple[object, ...], int] = {}
    for number, place in enumerate(worlds.places):
        alike = tuple(getattr(place, name) for name in sorted(facts))
        parts[alike] = parts.get(alike, 0) | selection.mask & worlds.of_place(number)
    return [judged(part, settled=settled, asking=again) for part in parts.values() if part]


_PLACE = {"python", "os", "machine"}


def _alone(distribution: Distribution) -> Distribution:
    """The release without its marker, which has already been evaluated for the selection."""
    distribution = comparable(distribution)
    return replace(distribution, marker=None) if distribution.marker else distribution


def _python(places: list[Place], entries: list[Entry], known: Environment) -> str | None:
    """The Python version of a selection, as precisely as it is known."""
    if known.python is not None:
        return known.python
    for entry in entries:  # conda installs the interpreter as well
        if entry.distribution.name == "python" and comparable(entry.distribution).version:
            return entry.distribution.version
    minors = {place.python[:2] for place in places}
    return ".".join(map(str, minors.pop())) if len(minors) == 1 else None


def _common(values: list[str], known: str | None) -> str | None:
    return known if known is not None else (values[0] if len(set(values)) == 1 else None)


def _located(finding: Finding, entries: list[Entry], listing: Listing) -> Finding:
    """The finding with the location of the first of its distributions that is listed in the file."""
    if finding.location is not None:
        return finding
    by_name = {entry.distribution.name: entry for entry in reversed(entries)}
    for name in finding.packages:
        entry = by_name.get(name)
        if entry is not None:
            return replace(finding, location=Location(entry.file or listing.file, entry.line))
    return replace(finding, location=Location(listing.file))


def _merged(selections: list[_Selection], worlds: Worlds) -> list[Finding]:
    best: dict[Key, tuple[Finding, list[str]]] = {}
    for number, chosen in enumerate(worlds.sets):
        reach = worlds.of_set(number)
        here = [selection for selection in selections if selection.mask & reach]
        for key, finding in _of_one_set(here).items():
            before = best.get(key)
            if before is None or (before[0].verdict != "hit" and finding.verdict == "hit"):
                best[key] = (finding, [chosen.label])
            elif before[0].verdict == finding.verdict:
                before[1].append(chosen.label)
    return [
        replace(finding, selections=() if "" in labels or len(labels) == len(worlds.sets) else _said(labels))
        for finding, labels in best.values()
    ]


def _said(labels: list[str]) -> tuple[str, ...]:
    """The labels of the simplest selections with the finding: a single extra rather than every extra."""
    plain = [label for label in labels if not label.startswith("every")]
    return tuple(plain or labels[:1])


def _of_one_set(selections: list[_Selection]) -> dict[Key, Finding]:
    """The findings for one set of choices; a finding that does not hold in all of its worlds is possible.

    A question that arises only in some worlds is less likely, because the interpreter and platform must match as well.
    """
    holding: dict[tuple[str, str], list[_Selection]] = {}
    found: dict[Key, Finding] = {}
    for selection in selections:
        for rule, verdict in dict.fromkeys((finding.rule, finding.verdict) for finding in selection.findings):
            holding.setdefault((rule, verdict), []).append(selection)
        for finding in selection.findings:
            key = finding.rule, tuple(sorted(finding.packages.items()))
            if key not in found or finding.verdict == "hit":
                found[key] = finding
    for key, finding in found.items():
        where = holding[finding.rule, finding.verdict]
        if len(where) < len(selections):
            found[key] = _possible(finding, where, selections)
    return found


def _possible(finding: Finding, where: list[_Selection], selections: list[_Selection]) -> Finding:
    """The finding as *possible*, for one that holds only for some interpreters or platforms; those facts decide it."""
    inside = {place for selection in where for place in selection.places}
    everywhere = {place for selection in selections for place in selection.places}
    decisive = [name for name in ("python", "os", "machine") if _values(inside, name) != _values(everywhere, name)]
    unknown = tuple(decisive or ("python", "os", "machine"))
    likelihood = of_paths(unknown) * (1.0 if finding.likelihood is None else finding.likelihood)
    return replace(
        finding, verdict="possible", unknown=(*unknown, *finding.unknown), missing=(*unknown, *finding.missing),
        likelihood=likelihood,
    )  # fmt: skip


def _values(places: set[Place], name: str) -> set[object]:
    return {place.python[:2] if name == "python" else getattr(place, name) for place in places}


def described(listing: Listing) -> Environment:
    """Convert a listing to one environment: the facts in the file, and each release with its marker.

    Several releases of one name that only the dependency graph distinguishes get the markers on their incoming edges.
    """
    seen: set[str] = set()
    several: set[str] = set()
    for entry in listing.entries:
        (several if entry.distribution.name in seen else seen).add(entry.distribution.name)
    leading: dict[int, dict[str | None, None]] = {}
    for _, child, marker, _ in listing.edges or () if several else ():
        leading.setdefault(child, {})[marker] = None
    return replace(
        listing.context,
        distributions=tuple(
            replace(entry.distribution, marker=_leading(leading.get(number, {})))
            if entry.distribution.name in several and entry.distribution.marker is None else entry.distribution
            for number, entry in enumerate(listing.entries)
        ),
        distributions_complete=listing.complete,
    )  # fmt: skip


def _leading(markers: dict[str | None, None]) -> str | None:
    """Merge the markers on the edges that lead to an entry into one; ``None`` if an edge has no marker."""
    if not markers or None in markers:
        return None
    texts = [marker for marker in markers if marker is not None]
    return texts[0] if len(texts) == 1 else " or ".join(f"({text})" for text in texts)
