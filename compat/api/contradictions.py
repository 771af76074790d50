"""Requirements files with lines that contradict each other: which of them to keep.

One of the lines is kept, that with which uv resolves the file and the fewest errors remain. What then remains is planned as for
any other file.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from compat.api.case import Case, read_again
from compat.api.planning import planner_of
from compat.api.resolution import completed, unresolved
from compat.checks.choices import Requested
from compat.checks.conflicting_pins import Contradiction, contradictions
from compat.formats.edit.changes import Change
from compat.formats.edit.files import Edit, as_if_written
from compat.formats.listing import Entry, Listing
from compat.formats.registry import format_of, read_content
from compat.formats.requirements.edit import edit_to_one
from compat.model import Finding
from compat.records import record, replace
from compat.repair.plan import Planner
from compat.versions import key_of

_MOST = 8
"""Maximum number of choices that are resolved."""


@record(frozen=True)
class _Choice:
    """A line to keep, and those that contradict it."""

    finding: Finding
    kept: Entry
    others: tuple[Entry, ...]


@record(frozen=True)
class Settled:
    """A file without the lines that contradict others: the findings about them, and the edits, which are not written.

    ``changes`` are the releases that give way to others, ``case`` is that of the edited file. ``refused`` is the reason why no
    line can be chosen.
    """

    findings: tuple[Finding, ...]
    changes: tuple[Change, ...]
    edits: tuple[Edit, ...]
    case: Case
    planner: Planner
    refused: str = ""


@record(frozen=True)
class _Tried:
    """The case of the file in which some choices are made, and its planner."""

    choices: tuple[_Choice, ...]
    edits: tuple[Edit, ...]
    case: Case
    planner: Planner

    @property
    def resolves(self) -> bool:
        return self.case.resolves is True and not self.case.is_refused


def settled(case: Case, planner: Planner) -> Settled | None:
    """The requirements file of a case without the lines that contradict those to keep; ``None`` if none do.

    Those of a project are refused: which of them is meant cannot be told, and other tools read them, too.
    """
    found = contradicting(case)
    if not found or case.listing is None:
        return None
    chosen = case.listing.kind == "requirements"
    ways = [tuple(_choices(each, case.listing)) if chosen else () for each in found]
    if not all(ways):
        texts = (fix.text for each, choices in zip(found, ways) if not choices for fix in each.finding.fixes)
        return Settled(tuple(each.finding for each in found), (), (), case, planner, "; ".join(texts))
    tried = [_tried(choices, case, planner) for choices in islice(product(*ways), _MOST)]
    best = min(tried, key=lambda each: (not each.resolves, len(each.planner.errors)))
    changes = tuple(_change(each, best, tried) for each in best.choices)
    return Settled(tuple(each.finding for each in best.choices), changes, best.edits, best.case, best.planner)


def contradicting(case: Case) -> tuple[Contradiction, ...]:
    """The lines of a case's file that contradict each other, whatever is selected."""
    if case.listing is None or case.file is None:
        return ()
    known = replace(case.environment, distributions=None, distributions_complete=False)
    found = contradictions(case.listing, known, case.asked_choices or Requested())
    return tuple(each for each in found if each.finding.verdict == "hit" and not each.finding.selections)


def _choices(found: Contradiction, listing: Listing) -> Iterator[_Choice]:
    """The pins that may be kept, the newest first; none if a range is among the lines, as it may be either that is meant."""
    entries = listing.entries
    numbers = {number for pair in found.pairs for number in pair}
    if any(entries[number].distribution.version is None for number in numbers):
        return
    seen = set()
    for number in sorted(numbers, key=lambda at: key_of(entries[at].distribution.version or "0"), reverse=True):
        if entries[number].distribution.version not in seen:
            seen.add(entries[number].distribution.version)
            others = {other for pair in found.pairs for other in pair if number in pair} - {number}
            yield _Choice(found.finding, entries[number], tuple(entries[other] for other in sorted(others)))


def _tried(choices: tuple[_Choice, ...], case: Case, planner: Planner) -> _Tried:
    assert case.file is not None
    edits: dict[str, Edit] = {}
    for each in choices:
        with as_if_written(edits.values()):
            for edit in edit_to_one(case.file, read_content(case.file), each.kept, each.others):
                edits[edit.path] = replace(edit, before=edits[edit.path].before) if edit.path in edits else edit
    with as_if_written(edits.values()):
        content = read_content(case.file)
        (listing,) = format_of(case.file, content).listings(case.file, content)
        after = completed(read_again(unresolved(case), listing, planner.means), planner.means)
        problem = planner.problem
        return _Tried(
            choices, tuple(edits.values()), after,
            planner_of(after, problem.policy, planner.means, [need.text for need in problem.keep]),
        )  # fmt: skip


def _change(choice: _Choice, best: _Tried, tried: list[_Tried]) -> Change:
    """The lines that give way, as a change, and why it is these."""
    name, kept = choice.kept.distribution.name, choice.kept.distribution.version
    before = choice.others[0].distribution.version
    others = [each for each in tried if choice not in each.choices]
    resolved = [each for each in others if each.resolves]
    why = f"{name} is required as {choice.finding.packages[name]}"
    if best.resolves and others and not resolved:
        why += f"; uv resolves the file only with {kept}"
    elif best.resolves and others:
        fewer = all(len(each.planner.errors) > len(best.planner.errors) for each in resolved)
        why += f"; {kept} has fewer errors" if fewer else "; uv resolves the file with either, so the newer one is kept"
    return Change(name, before, kept, direct=True, why=why)
