"""Match a traceback to the rules in the matrix whose errors it shows, and check those rules against the environment.

Several bugs can share one message, so an error is matched by exception class, message and frames together. What the text
shows is a fact: neither a rule's defaults nor the stated launch configuration overrides it. Only packages and the machine can
contradict it, and the contradiction is then the finding: another copy or another environment was running.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from compat.checks import derived_findings
from compat.diagnosis.experiences import experience_findings
from compat.diagnosis.explanations import between, explain_symptoms, of_description
from compat.diagnosis.frame_packages import location_text, version_of
from compat.diagnosis.installations import hidden_by_own_file
from compat.diagnosis.interface_errors import explain_interface_errors
from compat.diagnosis.interface_findings import ELSEWHERE, FIND_IT, INTERFACE
from compat.diagnosis.loader import of_torch
from compat.diagnosis.mentioned_names import denied_names, extension_with_symbol, imports_of, rules_with
from compat.diagnosis.missing_programs import missing_programs
from compat.diagnosis.raised_messages import explain_raised_message
from compat.diagnosis.similar import described
from compat.diagnosis.stated import STATED, satisfies_specifier
from compat.diagnosis.symptoms import general_rules
from compat.model import CONFIDENCES, Environment, Finding, Fix
from compat.records import cached, record, replace
from compat.reports.log.frames import exception_alone
from compat.reports.log.native import passes_on
from compat.rules.evaluate import Verdict, applying_facts, contract_names, finding_of, value_text, verdict_of
from compat.rules.facts import Facts, visible
from compat.rules.logic import holds
from compat.rules.rule import RELATIONS, AnyOf, Condition, HasFeature, HasPackage, InRange, IsOneOf, Rule, Signature, in_words

if TYPE_CHECKING:
    from compat.reports.log.traceback import Frame, RaisedError
    from compat.rules.compiled import Matrix


_WHOLE, _MESSAGE = 2, 1
"""How much of a signature matched: all of it, or only class and message without the frames to confirm it."""
_TELLING = 20
"""Minimum number of letters for a message to be considered specific to one bug."""
_LONGEST = 2000
"""Maximum characters per line, and maximum number of lines, searched for a message without its class."""
_MOST_GUESSES = 3
"""Maximum number of rules about packages that nothing names, if the message has an explanation without them."""
_AGREES, _STATED_OTHERWISE, _CONTRADICTED = range(3)
"""The environment matches a rule; only the stated launch configuration conflicts; packages or the machine conflict."""


@record(frozen=True)
class Sighting:
    """A rule's error found in a text: the strength of the match and the 1-based line of the error."""

    rule: Rule
    strength: int
    line: int
    position: int


def diagnose(
    text: str, errors: Sequence[RaisedError], order: Sequence[int], environment: Environment, matrix: Matrix
) -> tuple[Finding, ...]:
    """Return a finding for every rule whose error the text shows, most likely first; explain the error if no rule matches.

    ``order`` holds the indices of the errors, from the most to the least decisive.
    """
    seen = visible(environment)
    facts = Facts(seen)
    if found := hidden_by_own_file(errors, order, facts):
        return found
    sightings = list(_sightings(text, errors, order, matrix))
    if order and not any(sighting.strength == _WHOLE for sighting in sightings):
        decisive = errors[order[0]]
        if programs := missing_programs(decisive.message, decisive.line, facts):
            return tuple(programs)
    unshown = [sighting for sighting in sightings if sighting.strength < _WHOLE and not _shows(text, sighting.rule, facts)]
    shown = [sighting for sighting in sightings if sighting not in unshown]
    fitting = _ranked(shown, (_AGREES,), facts) or _ranked(shown, (_STATED_OTHERWISE,), facts)
    if fitting and fitting[0].verdict == "hit":
        return fitting
    if fitting and not _all_named(text, fitting[0], facts):
        # a rule says who states the requirement
        meant = [each for each in explain_symptoms(text, errors, order, facts, derived_findings(seen)) if each.rule != STATED]
        first = tuple(each for each in meant if each.packages and None not in each.packages.values())
        if any(sighting.strength == _WHOLE for sighting in shown):
            meant = [each for each in meant if each in first or each.rule in general_rules()]
        # what concerns packages that the text or the environment names comes before a rule about others
        guesses = fitting[:_MOST_GUESSES] if first else fitting
        found = (*first, *guesses, *(each for each in meant if each not in first))
    else:
        found = fitting or _unruled(text, errors, order, facts, seen, _ranked(shown, (_CONTRADICTED,), facts))
    # a rule with this message says more than a guess, even if nothing else shows its packages
    at = next((number for number, each in enumerate(found) if _is_guess(each)), len(found))
    found = (*found[:at], *_ranked(unshown, (_AGREES, _STATED_OTHERWISE), facts), *found[at:])
    if not any(error.frames for error in errors):
        found = found or _by_names(text, errors, facts, matrix)
        if all(each.rule == INTERFACE and _is_guess(each) for each in found):
            found = _by_words(text, errors, facts, matrix) or found
    named = {name for each in found for name in each.packages}
    return (*found, *(each for each in experience_findings(text, facts) if named.isdisjoint(each.packages)))


def _by_names(text: str, errors: Sequence[RaisedError], facts: Facts, matrix: Matrix) -> tuple[Finding, ...]:
    """Explain a text without any traceback by the names of code that it mentions."""
    line = errors[0].line if errors else 1
    raised = _raised(errors)
    rules = (each for each in rules_with(text, matrix) if _shows(text, each, facts) and _may_raise(each, raised))
    found = _ranked([Sighting(each, _MESSAGE, line, 0) for each in rules], (_AGREES, _STATED_OTHERWISE), facts)
    imports = () if found or raised - {"ImportError"} else imports_of(text, line, facts)
    denied = () if found or raised else denied_names(text, line)
    explained = (finding for error in chain(imports, denied) for finding in explain_interface_errors(error, facts))
    found = found or tuple(each for each in explained if each.rule != "symptom-another-copy")
    extension = None if found else extension_with_symbol(text)
    return found if extension is None else (of_torch(extension, f"the error on line {line} of the text", facts),)


def _by_words(text: str, errors: Sequence[RaisedError], facts: Facts, matrix: Matrix) -> tuple[Finding, ...]:
    """Explain a text without any traceback that tells of a known problem in other words.

    What a package wrote itself is no description: the messages of rules were compared with it.
    """
    alike = () if any(f"{name}: " in text for name in _raised(errors)) else described(text, matrix)
    rules = [each for each in alike if isinstance(each, Rule) and _may_raise(each, _raised(errors))]
    found = _ranked([Sighting(each, _MESSAGE, 1, 0) for each in rules], (_AGREES, _STATED_OTHERWISE), facts)
    meant = tuple(of_description(each, text, facts) for each in alike if not isinstance(each, Rule))
    return (*(replace(each, verdict="possible", here="the words of the text") for each in found), *meant)


def _raised(errors: Sequence[RaisedError]) -> frozenset[str]:
    """The classes of exceptions that a text names."""
    return frozenset(error.exception.rpartition(".")[2] for error in errors if error.exception)


def _may_raise(rule: Rule, raised: frozenset[str]) -> bool:
    """Whether one of a rule's errors is of a class that a text names, if it names any."""
    return not raised or not raised.isdisjoint(each.exception for each in rule.errors)


def _is_guess(finding: Finding) -> bool:
    """Whether a finding fits many causes: a symptom that is general, or two packages without a release that fits."""
    named = any(fix.spec or fix.kind not in ("pin", "config") for fix in finding.fixes)
    general = finding.rule in general_rules() or (finding.rule == INTERFACE and not named)
    return general and finding.confidence == "reported"


def _shows(text: str, rule: Rule, facts: Facts) -> bool:
    """Whether the text or the environment names one of the rule's packages; Python's own messages match many rules."""
    # a package that has to be missing is in the message of every other package that imports it, too
    names = {each.name for each in rule.packages if each.how != "absent"}
    words = text.lower().replace("_", "-")
    return not names or any(name in words or facts.package(name) for name in names)


def _all_named(text: str, finding: Finding, facts: Facts) -> bool:
    """Whether the text or the environment names every package of a finding; otherwise its message may have another cause."""
    words = text.lower().replace("_", "-")
    return all(name in words or facts.package(name) for name in finding.packages)


def _unruled(
    text: str,
    errors: Sequence[RaisedError],
    order: Sequence[int],
    facts: Facts,
    seen: Environment,
    contradicted: tuple[Finding, ...],
) -> tuple[Finding, ...]:
    """Explain an error that matches no rule: by its message, by the package that raises it, or by the name that is missing."""
    derived = derived_findings(seen)
    meant = explain_symptoms(text, errors, order, facts, derived)
    known = tuple(each for each in meant if each.confidence != "reported")
    mined = () if known else explain_raised_message(errors, order, facts, alone=not meant)
    perhaps = tuple(_owned(each, mined) for each in meant if each not in known)
    if not meant and not any(each.fixes for each in mined):
        # a message printed by another release is weaker evidence than the decisive error, such as a package missing in
        # a child process
        places = [each.here for each in mined]
        above = next(
            (at for at, number in enumerate(order) if any(location_text(errors[number]) in place for place in places)), None
        )
        perhaps = between(text, errors, order[:above], facts, derived)
    if perhaps and not any(each.fixes for each in mined):
        vague = tuple(each for each in perhaps if contradicted and each.rule in general_rules())
        perhaps = tuple(each for each in perhaps if each not in vague)
        return (*known, *perhaps, *mined, *contradicted, *vague)  # a fix is worth more than the origin of the message
    return (*known, *mined, *perhaps, *contradicted)


def _owned(finding: Finding, mined: Sequence[Finding]) -> Finding:
    """An explanation that names no package, with the one whose source has the message."""
    origin = next((each for each in mined if each.here == finding.here and each.verdict == "hit"), None)
    if finding.packages or origin is None:
        return finding
    name, version = next(iter(origin.packages.items()))
    fixes = (
        replace(fix, package=name, command=f"pip install -U {name}") if (fix.kind, fix.package) == ("upgrade", None) else fix
        for fix in finding.fixes
    )
    return replace(finding, packages={name: version}, fixes=tuple(fixes))


def _sightings(text: str, errors: Sequence[RaisedError], order: Sequence[int], matrix: Matrix) -> Iterator[Sighting]:
    loose = list(_without_class(text, errors))
    for rule in matrix.rules():
        best: Sighting | None = None
        for signature in rule.errors:
            for strength, line, position in _seen(signature, text, errors, order, loose):
                if best is None or (strength, -position) > (best.strength, -best.position):
                    best = Sighting(rule=rule, strength=strength, line=line, position=position)
        if best is not None:
            yield best


def _seen(
    signature: Signature, text: str, errors: Sequence[RaisedError], order: Sequence[int], loose: Sequence[tuple[int, str]]
) -> Iterator[tuple[int, int, int]]:
    """Yield the strength, line and position in ``order`` of each error that matches a signature."""
    if signature.exception is None:
        found = _said(signature, text)
        if found is not None:
            yield _WHOLE, text.count("\n", 0, found.start()) + 1, len(order)
        return
    for position, number in enumerate(order):
        if strength := _likeness(signature, number, errors):
            yield strength, errors[number].line, position
    begins = _beginning(signature.message)
    for line, message in loose:
        found = _said(signature, message.removeprefix(f"{signature.exception}: "))
        if found is not None and _telling(found[0]) and _related(signature, found):
            yield _MESSAGE if signature.frames else _WHOLE, line, len(order)
        elif begins and found is None and _ends_within(message, begins):
            yield _MESSAGE, line, len(order)


_WITHIN = re.compile(r"[:=(] ?(?=[\"'])[\"']|: ")
"""Where a message may begin inside a line: in a JSON document, a ``repr``, or after the name of a program."""
_MOST_PIECES = 4


def _without_class(text: str, errors: Sequence[RaisedError]) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of lines that may be a message without its class, or inside an error that re-raises it."""
    for error in errors:
        if error.exception is None or passes_on(error.exception, error.message):
            for number, line in enumerate(error.message.split("\n"), error.line):
                yield number, line[:_LONGEST]
    if not any(error.frames for error in errors):
        for number, line in enumerate(text.split("\n")[:_LONGEST], 1):
            if exception_alone(line := line.strip()[:_LONGEST]) is None:
                yield number, line
                yield from ((number, piece) for piece in _WITHIN.split(line, maxsplit=_MOST_PIECES)[1:])


def _likeness(signature: Signature, number: int, errors: Sequence[RaisedError]) -> int:
    """Return how much of the signature an error matches; 0 for a different error."""
    error = errors[number]
    if error.exception is None or error.exception.rpartition(".")[2] != signature.exception:
        return 0
    found = _said(signature, error.message)
    if found is None or not _related(signature, found):
        return 0
    # the outer frames of a re-raised error (from a replica or worker) belong to the error that re-raised it
    outer = [frame for other in errors if other.cause == number for frame in other.frames]
    frames = (*outer, *error.frames)
    if not signature.frames:
        return _WHOLE if _telling(found[0]) else _MESSAGE
    if _in_order(signature.frames, frames):
        return _WHOLE
    beginning_lost = not any(frame.file for frame in frames) or (
        _is_cut(frames) and any(_in_order(signature.frames[at:], frames) for at in range(1, len(signature.frames)))
    )
    # a message pattern that matches anything, such as ".", needs its frames
    return _MESSAGE if beginning_lost and not _compiled(signature.message).search("?") else 0


def _said(signature: Signature, message: str) -> re.Match[str] | None:
    """Search the message of a signature; people copy messages without their full stop."""
    found = _compiled(signature.message, re.MULTILINE if signature.exception is None else 0).search(message)
    if found is None and (pattern := signature.message.rstrip("$")).endswith(r"\."):
        found = _compiled(rf"{pattern[:-2]}\s*$", re.MULTILINE).search(message)
    return found


@cached
def _compiled(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Keep a compiled pattern: the rules have more of them than ``re`` keeps, and each error is compared with all."""
    return re.compile(pattern, flags)


_LITERAL = re.compile(r"(?:[^\\.^$*+?{}\[\]|()]|\\[^A-Za-z0-9])+")
_PYTHONS = re.compile(r"unexpected keyword|positional argument|has no attribute|import name|No module named|is not defined")
"""Words of Python's, which begin many messages: only the name after them tells one."""
_LEAST_COMMON = 30
"""The number of characters that the cut beginning of a message has in common with that of a rule's."""


@cached
def _beginning(pattern: str) -> str:
    """The literal text with which a message begins, by its pattern; "" if it is too short for a part of it to tell it."""
    found = _LITERAL.match(pattern.removeprefix("^"))
    literal = re.sub(r"\\(\W)", r"\1", found[0]) if found is not None else ""
    return literal if len(literal) > _LEAST_COMMON and not _PYTHONS.search(literal) else ""


def _ends_within(message: str, begins: str) -> bool:
    """Whether a message ends in the middle of the text with which another begins."""
    text = message.rstrip(" .…'\")}]")
    at = text.find(begins[:_LEAST_COMMON])
    return at >= 0 and begins.startswith(text[at:])


def _is_cut(frames: Sequence[Frame]) -> bool:
    """Whether frames are missing: no program starts inside an installed package, and Colab folds all but the outer two."""
    first = frames[0]
    return (first.function != "<module>" and "-packages" in first.file) or "ipython-input-" in first.file


def _related(signature: Signature, found: re.Match[str]) -> bool:
    return not signature.relation or RELATIONS[signature.relation](int(found["a"]), int(found["b"]))


def _telling(message: str) -> bool:
    return sum(map(str.isalpha, message)) >= _TELLING


def _in_order(patterns: Sequence[str], frames: Sequence[Frame]) -> bool:
    places = iter([f"{frame.file.replace(chr(92), '/')}::{frame.function or ''}" for frame in frames])
    return all(any(re.search(pattern, place) for place in places) for pattern in patterns)


def _ranked(sightings: Sequence[Sighting], wanted: tuple[int, ...], facts: Facts) -> tuple[Finding, ...]:
    """Return the findings of the rules whose agreement with the environment is in ``wanted``, most likely first."""
    ranked = []
    for sighting in sightings:
        if _agreement(sighting.rule, facts) not in wanted:
            continue
        finding = _judged(sighting, facts)
        if finding is not None:
            order_of = (CONFIDENCES.index(sighting.rule.confidence), *finding.order())
            ranked.append(((finding.verdict != "hit", -sighting.strength, sighting.position, order_of), finding))
    return tuple(finding for _, finding in sorted(ranked, key=lambda entry: entry[0]))


def _agreement(rule: Rule, facts: Facts) -> int:
    """Return how the environment agrees with a rule whose error was seen; the rule's assumptions are ignored."""
    if contradictions(rule, facts):
        return _CONTRADICTED
    return _STATED_OTHERWISE if _stated_otherwise(rule, facts) else _AGREES


def _judged(sighting: Sighting, facts: Facts) -> Finding | None:
    rule = sighting.rule
    verdict = verdict_of(rule, facts)
    finding = finding_of(rule, verdict if verdict.word != "clear" else Verdict("possible"), facts)
    seen = f"the error on line {sighting.line} of the text" + ("" if sighting.strength == _WHOLE else " (its last line only)")
    otherwise = [f"although {', '.join(value_text(each, facts))} is stated" for each in _stated_otherwise(rule, facts)]
    # an assumption of the rule is not a fact of this failure
    finding = replace(finding, here=", ".join(filter(None, (seen, applying_facts(rule, facts), *otherwise))))
    if finding.severity == "info":  # too unlikely to warn about before a run, but it happened in this one
        finding = replace(finding, severity="warning")
    against = contradictions(rule, facts)
    if against:
        if sighting.strength < _WHOLE:
            return None
        why = f"The text shows this bug, but this environment cannot produce it: {'; '.join(against)}. {ELSEWHERE}"
        return replace(finding, verdict="possible", why=f"{why} {rule.why}", fixes=(FIND_IT, *_elsewhere(finding, facts)))
    if sighting.strength == _WHOLE:
        fits = bool(rule.packages) and all(holds(each, facts) for each in rule.packages)
        if fits and not otherwise:
            # the error proves the unknown facts of the launch and the workload
            return replace(finding, verdict="hit", missing=(), unknown=())
        # the error settles the launch and the machine; only the packages remain unknown
        unknown = tuple(f"distributions.{each.name}" for each in rule.packages if holds(each, facts) is None)
        return replace(finding, unknown=unknown, missing=contract_names(unknown))
    return finding


def _elsewhere(finding: Finding, facts: Facts) -> Iterator[Fix]:
    """Yield the fixes for the environment that ran, without releases that the given one has."""
    for fix in finding.fixes:
        version = version_of(fix.package, facts) if fix.package else None
        if version is None or not satisfies_specifier(version, fix.spec or ""):
            yield fix


def _of_the_launch(condition: Condition) -> bool:
    """Whether a condition concerns the workload or launch, for which an error is better evidence than stated facts.

    The model is excluded: it decides which code runs.
    """
    if isinstance(condition, AnyOf):
        return all(map(_of_the_launch, condition.conditions))
    if isinstance(condition, (IsOneOf, InRange)):
        return condition.path.startswith("workload.") and condition.path != "workload.model"
    return isinstance(condition, HasFeature)


def _stated_otherwise(rule: Rule, facts: Facts) -> list[Condition]:
    return [each for each in rule.when if _of_the_launch(each) and holds(each, facts) is False]


def contradictions(rule: Rule, facts: Facts) -> list[str]:
    """Describe what in the environment contradicts a rule whose error was seen: packages, the machine, exemptions."""
    false = [each for each in (*rule.packages, *rule.when) if not _of_the_launch(each) and holds(each, facts) is False]
    lines = [f"does not hold here: {in_words(each)}" for each in false if not isinstance(each, HasPackage)]
    outside = [
        f"{', '.join(value_text(each, facts))} is outside {in_words(each)}" for each in false if isinstance(each, HasPackage)
    ]
    exempt = [
        group for group in rule.unless if all(holds(each, facts) for each in group) and not all(map(_of_the_launch, group))
    ]
    return [*outside, *lines, *(", ".join(map(in_words, group)) for group in exempt)]
