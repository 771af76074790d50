"""Guards in package source: conditions under which an installed release raises an error or warns.

The conditions are extracted from published source (:mod:`compat.interfaces.refusals`). A guard that runs at import applies if
the package is installed; a guard in feature code applies only if the workload uses that feature. If it is unknown whether the
workload reaches the code, the finding is a low-likelihood question, and only if installed releases alone trigger the guard.
A condition that the facts do not decide is not reported.
"""

from __future__ import annotations

from compat.interfaces.refusals import IMPORT
from compat.model import Finding, Fix, of_no_index
from compat.records import replace
from compat.rules.facts import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.interfaces.conditions import Condition, FactTest
    from compat.interfaces.refusals import Refusal, Refusals
    from compat.model import Distribution
    from compat.rules.facts import Facts

    _Polarized = tuple[FactTest, bool]

_UNREACHED = frozenset(("import", "install", "build"))
"""Tasks that do not run feature code."""
_SERVED = ("serve", "inference")
_ENGINES = frozenset(("vllm", "sglang"))
"""Inference engines: serving does not reach guards in other packages, and training alone does not reach guards in these."""
_FOLDED = 0.2
"""The likelihood of a guard that may not be reached; too low to be asked as a question."""
_opened: list[Refusals] = []


def judge(facts: Facts) -> Iterator[Finding]:
    """Yield a finding for every guard that applies, one for each package and subject."""
    copies = {copy.name: copy for copy in facts.environment.distributions or () if copy.version and not of_no_index(copy)}
    if not copies:
        return
    refusals = open_once()
    seen: set[str] = set()
    for name in sorted(refusals.packages & copies.keys()):
        for row in refusals.of(name, copies[name].version or ""):
            finding = _finding(row, copies[name], facts)
            if finding is not None and finding.rule not in seen:
                seen.add(finding.rule)
                yield finding


def open_once() -> Refusals:
    """The shipped table of guards, read once."""
    if not _opened:
        from compat.interfaces.refusals import Refusals

        _opened.append(Refusals())
    return _opened[0]


def told_otherwise(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings without guards for packages that another finding already reports as an error."""
    loud = [each for each in findings if each.origin != "guard" and each.verdict == "hit" and each.severity == "error"]
    return tuple(
        each for each in findings
        if each.origin != "guard" or not any(each.packages.keys() <= other.packages.keys() for other in loud)
    )  # fmt: skip


def reached(row: Refusal, facts: Facts) -> bool | None:
    """Whether the workload reaches the code of a guard; ``None`` if unknown."""
    if IMPORT in row.reach:
        return True
    task = facts.value("workload.task")
    if task in _UNREACHED:
        return False
    engine = row.package in _ENGINES
    if task == "serve" and not engine:
        return False
    if engine and task not in (None, *_SERVED) and not facts.feature("vllm"):
        return False
    answers = [_shown(each, facts) for each in row.reach]
    if engine and task is None and not facts.feature("vllm"):
        answers = [None if each else each for each in answers]
    if task == "inference" and not engine and any(isinstance(facts.package(each), list) for each in _ENGINES):
        answers = [None if each else each for each in answers]
    return True if True in answers else None if None in answers else False


def _shown(alternative: str, facts: Facts) -> bool | None:
    fact, _, word = alternative.partition("=")
    if fact == "feature":
        return facts.feature(word)
    value = facts.value(f"workload.{fact}")
    return None if value is None else bool(value == word)


def _finding(row: Refusal, copy: Distribution, facts: Facts) -> Finding | None:
    from compat.interfaces.conditions import fact_tests
    from compat.rules.guard_logic import FACTS_OF, holds, in_words, known_in_words

    if holds(row.condition, facts, presumed=True) is not True:
        return None
    come = reached(row, facts)
    if come is False or (come is None and not _of_releases(row.condition)):
        return None
    tests = list(fact_tests(row.condition))
    names = dict.fromkeys((copy.name, *(test.name for test in tests if test.fact in ("package", "installed"))))
    about = next((name for name in names if name != copy.name), None) or next((test.fact for test in tests), "")
    told = row.kind == "raise"
    does = f"raises {row.error}" if told and row.error else "refuses" if told else "warns"
    words = in_words(row.condition)
    message = row.message.replace("¤", "…").strip()
    said = message if len(message) <= _LONGEST else f"{message[:_LONGEST].rpartition(' ')[0]} …"
    place = f"{row.module}, {row.function}" if row.function else row.module
    shown = [each for each in row.reach if IMPORT not in row.reach and _shown(each, facts)] or row.reach[:3]
    by = "on import" if IMPORT in row.reach else f"with {' or '.join(shown).replace('=', ' ')}"
    unknown = () if come else tuple(dict.fromkeys(f"workload.{each.partition('=')[0]}" for each in row.reach))
    return Finding(
        rule=f"guard-{copy.name}-{about}", origin="guard", verdict="hit" if come else "possible",
        severity="error" if told else "warning", effect="crash", confidence="confirmed",
        title=f"{copy.name} {copy.version} {does}: {said}",
        why=f"{place}: {'raised' if told else 'logged'} {by} if {words}.",
        packages={name: _version(name, facts) for name in names},
        facts=tuple(dict.fromkeys(FACTS_OF[test.fact] for test in tests if test.fact in FACTS_OF)),
        missing=("workload",) if unknown else (), unknown=unknown, likelihood=None if come else _FOLDED,
        fixes=tuple(_fixes(row.condition, facts)),
        here="; ".join((f"{copy.name} {copy.version}", *known_in_words((row.condition,), facts))),
    )  # fmt: skip


def _of_releases(condition: Condition) -> bool:
    """Whether releases alone trigger the guard: a missing optional package is not reported unless the feature is used."""
    from compat.interfaces.conditions import polarized

    leading = {test.fact for test, wanted in polarized(condition) if test.fact != "installed" or not wanted}
    return leading == {"package"}


_LONGEST = 180


def _version(name: str, facts: Facts) -> str | None:
    copies = facts.package(name)
    return copies[0].version if isinstance(copies, list) else None


def _fixes(condition: Condition, facts: Facts) -> Iterator[Fix]:
    """Yield the fixes for the innermost part of a condition that triggers the guard."""
    from compat.interfaces.conditions import Both, FactTest, polarized
    from compat.rules.guard_logic import holds

    parts = condition.parts if isinstance(condition, Both) else (condition,)
    plain = tuple(part for part in parts if isinstance(part, FactTest) and part.fact != "installed")
    for part in (*reversed([each for each in parts if each not in plain]), Both(plain)):
        tests = list(polarized(part))
        leading = [(test, wanted) for test, wanted in tests if holds(test, facts, presumed=True) is wanted]
        found = list(_of_part(leading, tests, facts))
        if found:
            yield from found
            return


def _of_part(leading: list[_Polarized], tests: list[_Polarized], facts: Facts) -> Iterator[Fix]:
    """Yield the fixes for one part; ``leading`` are its tests whose result here is the one that triggers the guard."""
    named = set()
    for test, wanted in leading:
        if test.fact == "package" and test.name not in named:
            named.add(test.name)
            accepted = [other for other, answer in tests if not answer and (other.fact, other.name) == ("package", test.name)]
            accepted = [replace(test, operator=_NEGATED[test.operator])] if wanted else accepted
            operator = _NEGATED[test.operator] if wanted else test.operator
            kind = "pin" if operator in ("==", "!=") else "upgrade" if operator[0] == ">" else "downgrade"
            spec = ",".join(dict.fromkeys(f"{each.operator}{each.value}" for each in accepted))
            yield Fix(kind, test.name, spec, "a version it accepts", f'pip install "{test.name}{spec}"')
        elif test.fact == "installed" and not wanted and facts.package(test.name) == ABSENT:
            yield Fix("pin", test.name, None, "what it requires", f"pip install {test.name}")
        elif test.fact == "precision" and wanted:
            yield Fix("config", text=f"use a precision other than {test.value}")
        elif test.fact == "capability":
            yield Fix("config", text="use what this GPU supports instead")


_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
