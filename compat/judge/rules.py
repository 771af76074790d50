"""Curated rules: does one hold here, could it, and what would settle it."""

from __future__ import annotations

from compat.judge.facts import Facts
from compat.judge.logic import asked_twice, conjunction, disjunction, holds, paths
from compat.judge.wording import fixes_for, here, packages_of, rests_on
from compat.records import record
from compat.report import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.environment import Environment
    from compat.matrix.compiled import Matrix
    from compat.matrix.conditions import Atom
    from compat.matrix.rule import Rule


@record(frozen=True)
class Verdict:
    """``hit``, ``clear`` or ``possible``, and for the last the facts (by path) that would decide it."""

    word: str
    unknown: tuple[str, ...] = ()


HIT, CLEAR = Verdict("hit"), Verdict("clear")


def judge(environment: Environment, matrix: Matrix, only: frozenset[str] | None = None) -> tuple[Finding, ...]:
    """Findings of every rule (of these, by their names) that holds, or that could for a distribution known to be in range."""
    facts = Facts(environment)
    found = []
    for number in matrix.concerned(facts.keys()):
        rule = matrix.rule(number)
        if only is not None and rule.id not in only:
            continue
        verdict = verdict_of(rule, facts)
        if verdict.word != "clear":
            found.append(finding_of(rule, verdict, facts))
    return tuple(found)


def verdict_of(rule: Rule, facts: Facts) -> Verdict:
    """Whether a rule holds: *hit* exactly if it holds however the unknown facts turn out, *clear* if it never does.

    Unknown facts for which the rule states a default (``presume``) count as having it.
    """
    facts = facts.presuming(rule.presume)
    answer = _kleene(rule, facts)
    if answer is not None:
        return HIT if answer else CLEAR
    unsettled = _undecided(rule, facts)
    answers = _tried_out(rule, facts, unsettled)
    if answers == {True}:
        return HIT
    if answers == {False}:
        return CLEAR
    return Verdict("possible", tuple(dict.fromkeys(path for atom in unsettled for path in paths(atom, facts))))


def _kleene(rule: Rule, facts: Facts) -> bool | None:
    required = conjunction(holds(atom, facts) for atom in (*rule.packages, *rule.when))
    if required is False:
        return False
    exempt = disjunction(conjunction(holds(atom, facts) for atom in atoms) for atoms in rule.unless)
    return conjunction((required, None if exempt is None else not exempt))


def _undecided(rule: Rule, facts: Facts) -> list[Atom]:
    """The atoms on which the answer still depends."""
    open_atoms = [atom for atom in (*rule.packages, *rule.when) if holds(atom, facts) is None]
    for atoms in rule.unless:
        states = [holds(atom, facts) for atom in atoms]
        if False not in states:
            open_atoms += [atom for atom, state in zip(atoms, states) if state is None]
    return open_atoms


def _tried_out(rule: Rule, facts: Facts, unsettled: list[Atom]) -> set[bool | None]:
    if not asked_twice(unsettled):
        return {None}
    from compat.judge.completions import answers

    found: set[bool | None] = set()
    for completed in answers(unsettled, facts):
        found.add(_kleene(rule, completed))
        if None in found or len(found) > 1:
            break
    return found


def finding_of(rule: Rule, verdict: Verdict, facts: Facts) -> Finding:
    """The finding that a rule's verdict makes."""
    return Finding(
        rule=rule.id, origin="rule", verdict=verdict.word, severity=rule.severity, effect=rule.effect, title=rule.title,
        why=rule.why, confidence=rule.confidence, packages=packages_of(rule, facts), facts=rests_on(rule),
        missing=contract_names(verdict.unknown), unknown=verdict.unknown, fixes=fixes_for(rule, facts),
        evidence=rule.evidence, here=here(rule, facts.presuming(rule.presume)),
    )  # fmt: skip


def contract_names(unknown: tuple[str, ...]) -> tuple[str, ...]:
    """Paths of facts in the vocabulary of the report: the keys of the described environment, and ``install``."""
    return tuple(dict.fromkeys("install" if path.endswith(".source") else path.partition(".")[0] for path in unknown))
