"""Evaluate curated rules: whether a rule holds, may hold, and which unknown facts would decide it."""

from __future__ import annotations

from compat.model import Environment, Finding
from compat.records import record
from compat.rules.compiled import named_distributions
from compat.rules.facts import Facts
from compat.rules.likelihood import of_atoms
from compat.rules.logic import asked_twice, conjunction, disjunction, holds, paths
from compat.rules.wording import fixes_for, here, packages_of, rests_on

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.rules.compiled import Matrix
    from compat.rules.conditions import Atom
    from compat.rules.rule import Rule


@record(frozen=True)
class Verdict:
    """``hit``, ``clear`` or ``possible``; the latter with the paths of the facts that decide it and its likelihood (0 to 1)."""

    word: str
    unknown: tuple[str, ...] = ()
    likelihood: float | None = None


HIT, CLEAR = Verdict("hit"), Verdict("clear")


def judge(
    environment: Environment, matrix: Matrix, only: frozenset[str] | None = None, answers: Answers | None = None
) -> tuple[Finding, ...]:
    """Return the findings of every rule that holds or may hold.

    ``only`` limits them to the rules with these ids. ``answers`` caches results across environments that differ only in
    their distributions, interpreter and platform.
    """
    facts = Facts(environment)
    found = []
    for number in matrix.concerned(facts.keys()):
        rule = matrix.rule(number)
        if only is None or rule.id in only:
            found.append(_judged(rule, facts) if answers is None else answers.of(number, rule, facts))
    return tuple(finding for finding in found if finding is not None)


def _judged(rule: Rule, facts: Facts) -> Finding | None:
    verdict = verdict_of(rule, facts)
    return None if verdict.word == "clear" else finding_of(rule, verdict, facts)


class Answers:
    """A cache of rule results: a rule is evaluated again only if a distribution that it names or the place differs."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[str, ...]] = {}
        self._given: dict[tuple[object, ...], tuple[object, Finding | None]] = {}

    def of(self, number: int, rule: Rule, facts: Facts) -> Finding | None:
        """Return the finding of the rule with this number; ``None`` if it is clear."""
        if number not in self._names:
            self._names[number] = tuple(sorted(named_distributions(rule)))
        copies = [facts.package(name) for name in self._names[number]]
        here = facts.environment
        states = (tuple(map(id, each)) if isinstance(each, list) else each for each in copies)
        asked = (number, here.python, here.os, here.machine, not here.accelerators, *states)
        if asked not in self._given:
            self._given[asked] = copies, _judged(rule, facts)  # keep the copies alive, so that their ids are not reused
        return self._given[asked][1]


def verdict_of(rule: Rule, facts: Facts) -> Verdict:
    """Evaluate a rule: *hit* if it holds for all values of the unknown facts, *clear* if it holds for none.

    Unknown facts for which the rule declares a default (``presume``) take that default.
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
    unknown = tuple(dict.fromkeys(path for atom in unsettled for path in paths(atom, facts)))
    return Verdict("possible", unknown, of_atoms(_required(unsettled, rule), facts))


def _required(unsettled: list[Atom], rule: Rule) -> list[Atom]:
    """The undecided conditions that must hold; undecided exemptions do not lower the likelihood."""
    return [atom for atom in unsettled if atom in rule.packages or atom in rule.when]


def _kleene(rule: Rule, facts: Facts) -> bool | None:
    required = conjunction(holds(atom, facts) for atom in (*rule.packages, *rule.when))
    if required is False:
        return False
    exempt = disjunction(conjunction(_exempts(atom, facts) for atom in atoms) for atoms in rule.unless)
    return conjunction((required, None if exempt is None else not exempt))


def _exempts(atom: Atom, facts: Facts) -> bool | None:
    """Like :func:`holds`, but ``False`` for variables and distributions that are not mentioned: they do not exempt."""
    answer = holds(atom, facts)
    if answer is not None:
        return answer
    unmentioned = atom[0] == "variable" or (atom[0] in ("package", "source", "code") and facts.package(atom[1]) is None)
    return False if unmentioned and atom[2] not in ("unset", "absent") else None


def _undecided(rule: Rule, facts: Facts) -> list[Atom]:
    """The atoms on which the verdict still depends."""
    open_atoms = [atom for atom in (*rule.packages, *rule.when) if holds(atom, facts) is None]
    for atoms in rule.unless:
        states = [_exempts(atom, facts) for atom in atoms]
        if False not in states:
            open_atoms += [atom for atom, state in zip(atoms, states) if state is None]
    return open_atoms


def _tried_out(rule: Rule, facts: Facts, unsettled: list[Atom]) -> set[bool | None]:
    if not asked_twice(unsettled):
        return {None}
    from compat.rules.completions import answers

    found: set[bool | None] = set()
    for completed in answers(unsettled, facts):
        found.add(_kleene(rule, completed))
        if None in found or len(found) > 1:
            break
    return found


def finding_of(rule: Rule, verdict: Verdict, facts: Facts) -> Finding:
    """Return the finding for a rule and its verdict."""
    return Finding(
        rule=rule.id, origin="rule", verdict=verdict.word, severity=rule.severity, effect=rule.effect, title=rule.title,
        why=rule.why, confidence=rule.confidence, packages=packages_of(rule, facts), facts=rests_on(rule),
        missing=contract_names(verdict.unknown), unknown=verdict.unknown, fixes=fixes_for(rule, facts),
        evidence=rule.evidence, here=here(rule, facts.presuming(rule.presume)), likelihood=verdict.likelihood,
    )  # fmt: skip


def contract_names(unknown: tuple[str, ...]) -> tuple[str, ...]:
    """Convert fact paths to the vocabulary of the report: the keys of a described environment, and ``install``."""
    return tuple(dict.fromkeys("install" if path.endswith(".source") else path.partition(".")[0] for path in unknown))
