"""Check a lock file or requirements file: check every installable selection and merge the findings.

Within one set of extras and groups, the interpreter and the platform are unknown facts: a finding that holds in every context
is a *hit*; one that holds in some is *possible* and names the facts that decide. Sets of extras and groups are not facts but
alternatives that can be installed: a finding holds if it holds in one of them, and lists those. Where several lines of a file
are about one distribution and agree, one stands for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from compat.checks.choices import Requested, is_union
from compat.checks.contexts import Contexts, Platform
from compat.checks.fix_commands import in_project
from compat.errors import InputError
from compat.formats.listing import Entry, Listing
from compat.formats.specifiers import disjoint
from compat.model import Distribution, Environment, Finding, Location
from compat.records import record, replace
from compat.rules.compiled import Matrix
from compat.rules.evaluate import Answers
from compat.rules.facts import comparable, seen_by_torch
from compat.rules.unknown import frequency
from compat.versions import ranges_of

Key = tuple[str, tuple[tuple[str, str | None], ...]]
"""A rule and the versions it was found with."""

OF_PLATFORM = ("python", "os", "machine")
"""The facts that differ between the contexts of one set of choices."""


@record(frozen=True)
class _Selection:
    """The contexts in which the same relevant releases are installed, and their findings."""

    mask: int
    platforms: tuple[Platform, ...]
    findings: tuple[Finding, ...]


def judged_listing(
    listing: Listing, known: Environment, matrix: Matrix, asked: Requested | None = None
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings for every installable selection of a listing, most severe first, and notes.

    ``known`` holds the facts about the target, from the file and from the user; its distributions are not used.
    """
    from compat.checks import distributions_checked, named_devices
    from compat.checks import interfaces as surface
    from compat.checks.unused import OF_LIGHTNING
    from compat.rules.facts import visible

    known, notes = named_devices(known)
    contexts = Contexts(listing, known, asked or Requested())
    known = visible(known)
    installed = contexts.installed()
    suspects = surface.suspects(
        ((entry.distribution.name, entry.distribution.version) for entry in listing.entries), known.workload
    )
    checked = {*matrix.names, *distributions_checked(), *suspects, *OF_LIGHTNING, "python"}
    relevant = [
        (replace(entry, distribution=_without_marker(entry.distribution)), mask)
        for entry, mask in zip(listing.entries, installed)
        if mask and entry.distribution.name in checked
    ]  # fmt: skip
    classes = [contexts.all]  # the same relevant releases are installed throughout each
    for mask in {mask for _, mask in relevant}:
        classes = [part for each in classes for part in (each & mask, each & ~mask) if part]
    _refuse_too_many(listing, relevant, classes)
    checker = _Checker(relevant, contexts, known, matrix)
    selections = [part for mask in classes for part in checker.split(checker.check(mask, suspects))]
    findings = _merged(selections, contexts, known)
    if listing.starts_empty and not listing.complete:
        findings += checker.new_installation(selections, findings)
    if listing.overridden:
        from compat.checks.requirements import as_override_remark

        findings = [as_override_remark(finding, listing.overridden) for finding in findings]
    findings = [_as_installers_see(_in_file(finding, listing, known), listing) for finding in findings]
    sources = ((entry.distribution.name, entry.distribution.source) for entry in listing.entries)
    of_conda = {
        name: str(each.details.get("name") or name) for name, each in sources if each is not None and each.kind == "conda"
    }
    fixed = (in_project(finding, listing.kind, of_conda) for finding in findings)
    return tuple(sorted(fixed, key=lambda finding: finding.order())), (*notes, *contexts.notes)


def _in_file(finding: Finding, listing: Listing, known: Environment) -> Finding:
    """Packages that overwrite each other are taken out of the file, or installed in another order."""
    if not finding.rule.startswith("overwritten-") or listing.kind.endswith(" list"):
        return finding
    from compat.checks.overlap_fixes import in_file

    return in_file(finding, listing, known)


def _as_installers_see(finding: Finding, listing: Listing) -> Finding:
    """A pin that an installer of the file refuses is an error, not a requirement that may have been overridden."""
    without_file = finding.rule.startswith("wheels-") and not names_other_index(listing)
    if finding.severity != "warning" or not (finding.origin == "metadata" or without_file) or not is_refused(finding, listing):
        return finding
    from compat.checks.requirements import refused_by_installers

    return refused_by_installers(finding)


def names_other_index(listing: Listing) -> bool:
    """Whether a file names an index or a folder of wheels other than PyTorch's."""
    from compat.checks.torch_build import INDEX

    return any(not url.startswith(INDEX) for url in listing.indexes)


_OF_ONE_PROJECT = ("pyproject", "setup.py", "setup.cfg", "Pipfile", "script")
"""Kinds of files whose requirements, and those of each of their extras, an installer resolves as a whole."""


def is_refused(finding: Finding, listing: Listing) -> bool:
    """Whether an installer of the file refuses the pins of which one violates a requirement of the other."""
    if listing.kind in _OF_ONE_PROJECT:  # extras that exclude each other are never installed together
        return not finding.selections or not all(map(is_union, finding.selections))
    if listing.kind == "requirements" and not listing.complete:
        return True
    if listing.kind == "pixi.toml":  # packages of an index are resolved last, with those of conda as they are
        name = next(iter(finding.packages), None)
        copies = (each.distribution for each in listing.entries if each.distribution.name == name)
        return any(copy.source is None or copy.source.kind != "conda" for copy in copies)
    if listing.kind == "workflow" and finding.rule.startswith("python-"):  # the Python that its action installs
        return finding.packages.items() <= listing.stated
    return listing.has_one_command(finding.packages)


_MOST_CHECKED = 150_000
"""Releases to check, summed over all selections; the largest known workspace has some 20,000."""


def _refuse_too_many(listing: Listing, relevant: list[tuple[Entry, int]], classes: list[int]) -> None:
    """Raise :class:`InputError` for a file whose extras and groups have too many combinations."""
    count = 0
    for mask in classes:
        count += sum(1 for _, installed in relevant if installed & mask)
        if count > _MOST_CHECKED:
            raise InputError(
                "has too many extras and groups to check all of them: select some (--extra, --group)", listing.file
            )


def _without_marker(distribution: Distribution) -> Distribution:
    """The release without its marker, which has already been evaluated for the selection."""
    distribution = comparable(distribution)
    return replace(distribution, marker=None) if distribution.marker else distribution


_kept: list[tuple[Matrix, Answers]] = []


class _Checker:
    """Checks the selections of one listing; ``relevant`` are the entries that findings can concern, with their contexts."""

    def __init__(self, relevant: list[tuple[Entry, int]], contexts: Contexts, known: Environment, matrix: Matrix) -> None:
        # the jobs of a workflow and the extras of a project often have the same packages
        if not _kept or _kept[0][0] is not matrix or _kept[0][1].is_full:
            _kept[:] = [(matrix, Answers())]
        self._answers = _kept[0][1]
        self._relevant = [
            (replace(entry, distribution=self._answers.same(entry.distribution)), mask) for entry, mask in relevant
        ]
        self._contexts = contexts
        self._known = known
        self._matrix = matrix
        self._places: dict[tuple[int, str, int | None], tuple[Finding, Finding]] = {}

    def check(
        self, mask: int, suspects: frozenset[str] = frozenset(), settled: tuple[Finding, ...] | None = None,
        only: frozenset[str] | None = None,
    ) -> _Selection:  # fmt: skip
        """Check one selection; if its other findings are already ``settled``, evaluate ``only`` these rules."""
        from compat.checks import deduplicated, derived_findings
        from compat.rules import evaluate as rules

        platforms, known = self._contexts.platforms_of(mask), self._known
        environment, entries = self._environment(mask, platforms)
        more = derived_findings(environment, suspects) if settled is None else ()
        found = deduplicated((*rules.judge(seen_by_torch(environment), self._matrix, only, self._answers), *more))
        if known.workload is not None and any(each.severity == "error" for each in found):
            from compat.checks.unused import softened

            found = softened(environment, found)
        return _Selection(mask, tuple(platforms), (*self._located(found, entries), *(settled or ())))

    def new_installation(self, selections: list[_Selection], found: list[Finding]) -> Iterator[Finding]:
        """Yield the questions about a new installation, without extras and on the most common platform (:mod:`.implied`)."""
        from compat.checks.implied import of_new_installation

        plain = next((number for number, chosen in enumerate(self._contexts.sets) if chosen.label == ""), 0)
        here = [each for each in selections if plain in self._contexts.sets_of(each.mask)]
        mask, platform = max(
            ((each.mask, platform) for each in here for platform in each.platforms), key=lambda each: _frequency(each[1:])
        )
        environment, entries = self._environment(mask, [platform])
        alone = {entry.distribution.name for entry in entries if entry.alone} | {*self._contexts.listing.overridden}
        new = of_new_installation(environment, found, self._matrix, self._answers, alone)
        yield from self._located(new, entries)

    def _environment(self, mask: int, platforms: list[Platform]) -> tuple[Environment, list[Entry]]:
        """The environment of one selection on some of its platforms, and the entries that are installed in it."""
        entries = as_one([entry for entry, installed in self._relevant if installed & mask])
        known = self._known
        environment = replace(
            known, python=known.python or _python(platforms, entries),
            os=known.os or _common(platform.os for platform in platforms),
            machine=known.machine or _common(platform.machine for platform in platforms),
            distributions=tuple(entry.distribution for entry in entries),
            distributions_complete=self._contexts.listing.complete,
        )  # fmt: skip
        return environment, entries

    def _located(self, found: Iterable[Finding], entries: list[Entry]) -> Iterator[Finding]:
        by_name = {entry.distribution.name: entry for entry in reversed(entries)}
        return (self._in_file(finding, by_name) for finding in found)

    def _in_file(self, finding: Finding, by_name: Mapping[str, Entry]) -> Finding:
        """The finding with the location of the first of its distributions that is listed in the file."""
        if finding.location is not None:
            return finding
        entry = next((by_name[name] for name in finding.packages if name in by_name), None)
        file = (entry.file if entry else None) or self._contexts.listing.file
        line = entry.line if entry else None
        place = id(finding), file, line
        if place not in self._places:  # selections share findings; keep the finding alive, so that its id is not reused
            self._places[place] = finding, replace(finding, location=Location(file, line))
        return self._places[place][1]

    def split(self, selection: _Selection) -> list[_Selection]:
        """The selection, split if a rule depends on the interpreter or the platform.

        Only those rules are evaluated again; the other findings are the same on every platform.
        """
        open_facts = {
            finding.rule: frozenset(OF_PLATFORM).intersection(finding.unknown)
            for finding in selection.findings if finding.origin == "rule"
        }  # fmt: skip
        facts = sorted(frozenset(name for names in open_facts.values() for name in names))
        if len(selection.platforms) < 2 or not facts:
            return [selection]
        again = frozenset(rule for rule, names in open_facts.items() if names)
        settled = tuple(finding for finding in selection.findings if finding.rule not in again)
        parts: dict[tuple[object, ...], int] = {}
        for number, platform in enumerate(self._contexts.platforms):
            alike = tuple(getattr(platform, name) for name in facts)
            parts[alike] = parts.get(alike, 0) | selection.mask & self._contexts.on_platform(number)
        return [self.check(part, settled=settled, only=again) for part in parts.values() if part]


def _python(platforms: list[Platform], entries: list[Entry]) -> str | None:
    """The Python version of a selection, as precisely as it is known."""
    for entry in entries:  # conda installs the interpreter as well
        if entry.distribution.name == "python" and comparable(entry.distribution).version:
            return entry.distribution.version
    return _common(".".join(map(str, platform.python[:2])) for platform in platforms)


def _common(values: Iterable[str]) -> str | None:
    """The value, if all are the same."""
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _merged(selections: list[_Selection], contexts: Contexts, known: Environment) -> list[Finding]:
    best: dict[Key, tuple[Finding, list[str]]] = {}
    by_set: list[list[_Selection]] = [[] for _ in contexts.sets]
    for selection in selections:
        for number in contexts.sets_of(selection.mask):
            by_set[number].append(selection)
    for chosen, here in zip(contexts.sets, by_set):
        for key, finding in _of_one_set(here).items():
            before = best.get(key)
            if before is None or (before[0].verdict != "hit" and finding.verdict == "hit"):
                best[key] = (finding, [chosen.label])
            elif before[0].verdict == finding.verdict:
                before[1].append(chosen.label)
    found = list(best.values())
    if contexts.listing.conflicts:
        found = _without_alternatives(found, known, contexts)
    return [replace(finding, selections=shown_labels(labels, contexts)) for finding, labels in found]


def _without_alternatives(
    found: list[tuple[Finding, list[str]]], known: Environment, contexts: Contexts
) -> list[tuple[Finding, list[str]]]:
    """The findings, with those about a build of torch left open where a conflicting extra or group has one that fits."""
    from compat.checks import choices

    hit = {label for finding, labels in found if choices.is_about_build(finding) for label in labels}
    if not hit:
        return found
    sets, listing = contexts.sets, contexts.listing
    reach = [contexts.with_set(number) for number in range(len(sets))]
    copies = [(entry.distribution, mask) for entry, mask in zip(listing.entries, contexts.installed())]
    torch = [(copy.version or "", mask) for copy, mask in copies if copy.name == "torch"]
    builds = [[version.partition("+") for version, mask in torch if mask & here] for here in reach]
    releases = [frozenset(release for release, _, _ in each) for each in builds]
    bad = {number for number, chosen in enumerate(sets) if chosen.label in hit}
    if known.accelerators:
        bad |= {number for number, each in enumerate(builds) if any(label == "cpu" for _, _, label in each)}
    result = []
    for finding, labels in found:
        if choices.is_about_build(finding):
            at = [number for number, chosen in enumerate(sets) if chosen.label in labels]
            instead = choices.fitting(at, bad, releases, sets, listing)
            if instead:
                finding = choices.left_open(finding, [sets[number] for number in instead], listing)
        result.append((finding, labels))
    return result


def shown_labels(labels: list[str], contexts: Contexts) -> tuple[str, ...]:
    """The labels of the simplest sets among these: a single extra rather than every extra; none if it is all sets."""
    if "" in labels or len(labels) == len(contexts.sets):
        return ()
    plain = [label for label in labels if not label.startswith("every")]
    return tuple(plain or labels[:1])


def _of_one_set(selections: list[_Selection]) -> dict[Key, Finding]:
    """The findings for one set of choices; a finding that does not hold in all of its contexts is possible.

    A question that arises only in some contexts is less likely, because the interpreter and platform must match as well.
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


_UNNOTICED = 0.5
"""How much less likely a question is that depends on the interpreter: a file is usually made with one that works."""


def _possible(finding: Finding, where: list[_Selection], selections: list[_Selection]) -> Finding:
    """The finding as *possible*, for one that holds only for some interpreters or platforms; those facts decide it."""
    inside = {platform for selection in where for platform in selection.platforms}
    everywhere = {platform for selection in selections for platform in selection.platforms}
    unknown = decisive_facts(inside, everywhere)
    likelihood = _frequency(inside) / _frequency(everywhere) * (1.0 if finding.likelihood is None else finding.likelihood)
    if "python" in unknown:
        likelihood *= _UNNOTICED
    return replace(
        finding, verdict="possible", unknown=(*unknown, *finding.unknown), missing=(*unknown, *finding.missing),
        likelihood=likelihood,
    )  # fmt: skip


def _frequency(platforms: Iterable[Platform]) -> float:
    return sum(frequency(each.python, each.os, each.machine) for each in platforms)


def decisive_facts(inside: Iterable[Platform], everywhere: Iterable[Platform]) -> tuple[str, ...]:
    """The facts whose values tell the contexts inside from the others."""

    def values(platforms: Iterable[Platform], name: str) -> set[object]:
        return {platform.python[:2] if name == "python" else getattr(platform, name) for platform in platforms}

    return tuple(name for name in OF_PLATFORM if values(inside, name) != values(everywhere, name)) or OF_PLATFORM


def to_environment(listing: Listing) -> Environment:
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


def as_one(entries: list[Entry]) -> list[Entry]:
    """Merge the entries of one distribution that no installer tells apart: a line given twice, a range next to a pin.

    Rules cannot judge several copies of a distribution, so that a repeated line would hide its findings. Entries that
    contradict each other, or come from different places, stay.
    """
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.distribution.name, []).append(entry)
    if len(found) == len(entries):
        return entries
    return [entry for several in found.values() for entry in (several if len(several) == 1 else _merged_lines(several))]


def _merged_lines(several: list[Entry]) -> list[Entry]:
    """One entry for lines about one distribution that agree: the pin, else all ranges together."""
    first = several[0].distribution
    if any(each.distribution.source != first.source for each in several):
        # pip replaces packages installed by conda, and keeps a URL only if its version matches the pin
        pinned = [each for each in several if each.distribution.version and _is_indexed(each.distribution)]
        others = [each.distribution for each in several if each not in pinned]
        if pinned and others and not any(map(_is_indexed, others)):
            return _merged_lines(pinned)
        # pip installs into what conda has installed
        return several[-1:] if {each.distribution.version for each in several} == {first.version or ""} else several
    extras = sorted({extra for each in several for extra in each.distribution.extra.get("extras", ())})
    if extras and any(each.distribution.extra.get("extras") != extras for each in several):
        several = [replace(each, distribution=replace(each.distribution, extra={**each.distribution.extra, "extras": extras}))
                   for each in several]  # fmt: skip
    indexed = _is_indexed(first)
    lines = {each.distribution.version or each.distribution.specifier: each for each in reversed(several)}
    if len(lines) == 1 or not indexed:
        return several[:1] if len(lines) == 1 else several
    pinned = [each for each in lines.values() if each.distribution.version]
    # 2.6.0 also matches 2.6.0+cu124
    pin = next((each for each in pinned if "+" in (each.distribution.version or "")), pinned[-1]) if pinned else None
    if pin is not None:
        telling = (each.distribution for each in lines.values() if each.distribution.version or each.distribution.specifier)
        return several if any(disjoint(pin.distribution, each) for each in telling) else [pin]
    together = ",".join(sorted(filter(None, lines)))
    try:
        possible = not together or ranges_of(together)
    except ValueError:
        return several
    last = next(each for each in lines.values() if each.distribution.specifier or not together)
    return [replace(last, distribution=replace(last.distribution, specifier=together or None))] if possible else several


def _is_indexed(distribution: Distribution) -> bool:
    return distribution.source is None or distribution.source.kind == "index"
