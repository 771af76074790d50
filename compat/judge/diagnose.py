"""A traceback × matrix → the rules whose errors it shows, held against the environment.

The same message belongs to several bugs, so an error counts by exception class, message and frames together. Where the
environment cannot produce what the frames show, that contradiction is the finding: another copy or another environment ran.
"""

from __future__ import annotations

import re

from compat.judge import derived
from compat.judge.facts import Facts, visible
from compat.judge.logic import holds
from compat.judge.rules import contract_names, finding_of, verdict_of
from compat.judge.symptoms import explained
from compat.judge.wording import here, said
from compat.matrix.rule import RELATIONS
from compat.records import record, replace
from compat.report import CONFIDENCES, Fix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat.environment import Environment
    from compat.judge.rules import Verdict
    from compat.matrix.compiled import Matrix
    from compat.matrix.conditions import Atom
    from compat.matrix.rule import Rule, Signature
    from compat.read.log.traceback_text import Frame, RaisedError
    from compat.report import Finding

_WHOLE, _MESSAGE = 2, 1
"""How much of a signature was seen: class, message and frames; or class and message only."""


@record(frozen=True)
class Sighting:
    """A rule's error seen in a text: how strong the likeness is and on which 1-based line the error stands."""

    rule: Rule
    strength: int
    line: int
    position: int


def diagnose(
    text: str, errors: Sequence[RaisedError], order: Sequence[int], environment: Environment, matrix: Matrix
) -> tuple[Finding, ...]:
    """Findings for every rule whose error the text shows, the likeliest first; what the error means where no rule knows it.

    ``order`` lists the errors from the most to the least decisive one.
    """
    seen = visible(environment)
    facts = Facts(seen)
    found, fits = _by_rules(text, errors, order, facts, matrix)
    if fits:
        return found
    return (*explained(text, errors, order, facts, derived.judge(seen)), *found)


def _by_rules(
    text: str, errors: Sequence[RaisedError], order: Sequence[int], facts: Facts, matrix: Matrix
) -> tuple[tuple[Finding, ...], bool]:
    """What the rules know, and whether one of them fits the environment."""
    ranked = []
    for rule in matrix.rules():
        sighting = _sighting(rule, text, errors, order)
        if sighting is None:
            continue
        verdict = verdict_of(rule, facts)
        finding = _judged(sighting, verdict, facts)
        if finding is not None:
            contradicted = verdict.word == "clear"
            order_of = (CONFIDENCES.index(rule.confidence), *finding.order())
            ranked.append(((contradicted, finding.verdict != "hit", -sighting.strength, sighting.position, order_of), finding))
    ranked.sort(key=lambda entry: entry[0])
    # a bug that fits the environment explains the error; one that cannot have happened here no longer matters
    fitting = [finding for rank, finding in ranked if not rank[0]]
    return tuple(fitting or [finding for _, finding in ranked]), bool(fitting)


def _sighting(rule: Rule, text: str, errors: Sequence[RaisedError], order: Sequence[int]) -> Sighting | None:
    best: Sighting | None = None
    for signature in rule.errors:
        if signature.exception is None:
            found = re.search(signature.message, text)
            seen = [(_WHOLE, text.count("\n", 0, found.start()) + 1, len(order))] if found else []
        else:
            seen = [(s, errors[i].line, p) for p, i in enumerate(order) if (s := _likeness(signature, i, errors))]
        for strength, line, position in seen:
            if best is None or (strength, -position) > (best.strength, -best.position):
                best = Sighting(rule=rule, strength=strength, line=line, position=position)
    return best


def _likeness(signature: Signature, number: int, errors: Sequence[RaisedError]) -> int:
    """0 where it is another error, else how much of the signature is there."""
    error = errors[number]
    if error.exception is None or error.exception.rpartition(".")[2] != signature.exception:
        return 0
    found = re.search(signature.message, error.message)
    if found is None:
        return 0
    if signature.relation and not RELATIONS[signature.relation](int(found["a"]), int(found["b"])):
        return 0
    # an error that was passed on (out of a replica, a worker) has its outer frames on the one that passed it on
    outer = [frame for other in errors if other.cause == number for frame in other.frames]
    frames = (*outer, *error.frames)
    if not signature.frames or not frames:
        return 0 if signature.frames and re.search(signature.message, "?") else _MESSAGE  # "." says nothing without its frames
    return _WHOLE if _in_order(signature.frames, frames) else 0


def _in_order(patterns: Sequence[str], frames: Sequence[Frame]) -> bool:
    places = iter([f"{frame.file.replace(chr(92), '/')}::{frame.function or ''}" for frame in frames])
    return all(any(re.search(pattern, place) for place in places) for pattern in patterns)


def _judged(sighting: Sighting, verdict: Verdict, facts: Facts) -> Finding | None:
    rule = sighting.rule
    finding = finding_of(rule, verdict, facts)
    seen = f"the error on line {sighting.line} of the text" + ("" if sighting.strength == _WHOLE else " (its last line only)")
    # what the rule only presumes is no fact of this failure
    finding = replace(finding, here=", ".join(filter(None, (seen, here(rule, facts)))))
    if verdict.word == "clear":
        against = contradictions(rule, facts)
        if sighting.strength < _WHOLE or not against:
            return None
        why = f"The traceback shows this bug, but the environment cannot produce it: {'; '.join(against)}. {_ELSEWHERE}"
        return replace(finding, verdict="possible", why=f"{why} {rule.why}", fixes=(_FIND_IT,))
    fits = bool(rule.packages) and all(holds(atom, facts) for atom in rule.packages)
    if verdict.word == "possible" and sighting.strength == _WHOLE and fits:
        # what happened proves what was not known about launch and workload, as long as the packages fit
        return replace(finding, verdict="hit", missing=(), unknown=())
    if sighting.strength == _WHOLE:
        # how it was launched and on what shows in the error; only the packages are open
        unknown = tuple(path for path in finding.unknown if path.startswith("distributions."))
        return replace(finding, unknown=unknown, missing=contract_names(unknown))
    return finding


_FIND_IT = Fix(
    kind="config", text="find the copy that ran: compare the paths in the traceback with the environment that was judged"
)
_ELSEWHERE = "Another copy of the package or another environment has run (compare with 'compat doctor --deep')."


def contradictions(rule: Rule, facts: Facts) -> list[str]:
    """The conditions of a rule that an environment contradicts, in words."""
    from compat.matrix.wording import condition

    false: list[Atom] = [atom for atom in (*rule.packages, *rule.when) if holds(atom, facts) is False]
    lines = [f"not so here: {condition(atom)}" for atom in false if atom[0] != "package"]
    outside = [f"{', '.join(said(atom, facts))} is outside {condition(atom)}" for atom in false if atom[0] == "package"]
    exempt = [atoms for atoms in rule.unless if all(holds(atom, facts) for atom in atoms)]
    return [*outside, *lines, *(", ".join(condition(atom) for atom in atoms) for atoms in exempt)]
