"""Guards in package source: conditions under which an installed release raises an error or warns.

The conditions are extracted from published source (:mod:`compat.interfaces.refusals`). A guard that runs at import applies if
the package is installed; a guard in feature code applies only if the workload uses that feature. If it is unknown whether the
workload reaches the code, the finding is a low-likelihood question, and only if installed releases alone trigger the guard.
A condition that the facts do not decide is not reported.
"""

from __future__ import annotations

from compat.checks.fix_commands import by_pip, downgrade_to, upgrade_to
from compat.interfaces.refusals import IMPORT, Both, Either, FactTest, Opposite, Refusals, fact_tests, polarized
from compat.model import Finding, Fix, is_release
from compat.records import cached, replace
from compat.rules.facts import ABSENT, Facts, has_more
from compat.tables.declared import open_declared
from compat.versions import is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from compat.interfaces.refusals import Condition, Refusal
    from compat.model import Distribution
    from compat.rules.facts import Facts

    _Polarized = tuple[FactTest, bool]
    from collections.abc import Iterable


_UNREACHED = frozenset(("import", "install", "build"))
"""Tasks that do not run feature code."""
_SERVED = ("serve", "inference")
ENGINES = ("vllm", "sglang")
"""Inference engines: serving does not reach guards in other packages, and training alone does not reach guards in these."""
_FOLDED = 0.2
"""The likelihood of a guard that may not be reached; too low to be asked as a question."""
_UNDECLARED = "ModuleNotFoundError"
"""The error of rows about a package that a release imports and does not require."""


def judge(facts: Facts) -> Iterator[Finding]:
    """Yield a finding for every guard that applies, one for each package and subject."""
    seen: set[str] = set()
    for row, copy in _rows_about(None, facts):
        finding = _finding(row, copy, facts)
        if finding is not None and finding.rule not in seen:
            seen.add(finding.rule)
            yield finding


def errors_about(about: frozenset[str], facts: Facts) -> list[frozenset[str]]:
    """Return the packages of each error that is certainly raised, by guards of these packages or that test one of them."""
    raised = (
        (row, copy) for row, copy in _rows_about(about, facts)
        if row.kind == "raise" and _applies(row, copy, facts) and reached(row, facts)
    )  # fmt: skip
    return list({_rule(row, copy): frozenset(_names(row, copy)) for row, copy in raised}.values())


def _rows_about(about: frozenset[str] | None, facts: Facts) -> Iterator[tuple[Refusal, Distribution]]:
    """Yield the guards of the installed releases, all or those of some packages and those that test one of them."""
    there = facts.environment.distributions
    if not there:
        return
    refusals = open_once()
    copies = {each.name: each for each in there if each.name in refusals.packages and each.version and is_release(each)}
    for name, copy in sorted(copies.items()):
        version = copy.version or ""
        if about is None or name in about:
            yield from ((row, copy) for row in refusals.of(name, version))
        elif not about.isdisjoint(refusals.tested(name, version)):
            rows = refusals.of(name, version)
            yield from ((row, copy) for row in rows if not about.isdisjoint(test.name for test in fact_tests(row.condition)))


@cached
def open_once() -> Refusals:
    """The shipped table of guards, read once."""
    return Refusals()


def importing_undeclared(name: str, facts: Facts) -> Iterator[str]:
    """Yield the installed packages whose release imports a distribution that it does not require."""
    for copy in facts.environment.distributions or ():
        rows = open_once().of(copy.name, copy.version) if copy.version and copy.name in open_once().packages else ()
        if any(row.error == _UNDECLARED and next(fact_tests(row.condition)).name == name for row in rows):
            yield copy.name


def reached(row: Refusal, facts: Facts) -> bool | None:
    """Whether the workload reaches the code of a guard; ``None`` if unknown."""
    if IMPORT in row.reach:
        return True
    task = facts.value("workload.task")
    if task in _UNREACHED:
        return False
    engine = row.package in ENGINES
    used = row.package == "vllm" and bool(facts.feature("vllm"))
    if task == "serve" and not engine:
        return False
    if engine and task not in (None, *_SERVED) and not used:
        return False
    if not row.function and any(_is_imported(each, facts) for each in row.reach):
        return True  # the module runs even if the trainer is never constructed
    answers = [_holds_alternative(each, facts) for each in row.reach]
    others = any(isinstance(facts.package(each), list) for each in ENGINES if each != row.package)
    if engine and not used and (task is None or others):
        answers = [None if each else each for each in answers]
    if task == "inference" and not engine and any(isinstance(facts.package(each), list) for each in ENGINES):
        answers = [None if each else each for each in answers]
    return True if True in answers else None if None in answers else False


def _holds_alternative(alternative: str, facts: Facts) -> bool | None:
    fact, _, word = alternative.partition("=")
    if fact == "feature":
        return facts.feature(word)
    value = facts.value(f"workload.{fact}")
    return None if value is None else bool(value == word)


def _is_imported(alternative: str, facts: Facts) -> bool:
    """Whether the code imports the trainer of an alternative."""
    fact, _, word = alternative.partition("=")
    if fact != "trainer" or not facts.workload.code:
        return False
    from compat.checks.code import code_needs

    imports = (each for each in code_needs(facts.workload.code).all if each.need.kind == "import" and each.sure)
    return any((each.need.name or "").lower() == word for each in imports)


def _finding(row: Refusal, copy: Distribution, facts: Facts) -> Finding | None:
    if not _applies(row, copy, facts):
        return None
    runs = reached(row, facts)
    if runs is False:
        return None
    if runs is None:
        # releases alone must trigger it: a missing optional package is not reported unless the feature is used
        polar = polarized(row.condition)
        if {test.fact for test, wanted in polar if test.fact != "installed" or not wanted} != {"package"}:
            return None
    tests = list(fact_tests(row.condition))
    raised = row.kind == "raise"
    does = f"raises {row.error}" if raised and row.error else "refuses" if raised else "warns"
    message = row.message.replace("¤", "…").strip()
    message = message if len(message) <= _LONGEST else f"{message[:_LONGEST].rpartition(' ')[0]} …"
    place = f"{row.module}, {row.function}" if row.function else row.module
    shown = [each for each in row.reach if IMPORT not in row.reach and _holds_alternative(each, facts)] or row.reach[:3]
    by = "on import" if IMPORT in row.reach else f"with {' or '.join(shown).replace('=', ' ')}"
    unknown = () if runs else tuple(dict.fromkeys(f"workload.{each.partition('=')[0]}" for each in row.reach))
    return Finding(
        rule=_rule(row, copy), origin="guard", verdict="hit" if runs else "possible",
        severity="error" if raised else "warning",
        title=f"{copy.name} {copy.version} {does}: {message}",
        why=_why(row, copy, place, by),
        packages={name: copies[0].version if isinstance(copies := facts.package(name), list) else None
                  for name in _names(row, copy)},
        facts=tuple(dict.fromkeys(FACTS_OF[test.fact] for test in tests if test.fact in FACTS_OF)),
        missing=("workload",) if unknown else (), unknown=unknown, likelihood=None if runs else _FOLDED,
        fixes=(*_tolerant(row, copy, facts), *_fixes(row.condition, facts)),
        here="; ".join((f"{copy.name} {copy.version}", *known_in_words((row.condition,), facts))),
    )  # fmt: skip


def _applies(row: Refusal, copy: Distribution, facts: Facts) -> bool:
    holds = condition_holds(row.condition, facts, presumed=True) is True
    return holds and not (row.error == _UNDECLARED and _is_excerpt(copy, facts))


def _names(row: Refusal, copy: Distribution) -> dict[str, None]:
    """The packages that a guard is about, its own first."""
    tested = (test.name for test in fact_tests(row.condition) if test.fact in ("package", "installed"))
    return dict.fromkeys((copy.name, *tested))


def _rule(row: Refusal, copy: Distribution) -> str:
    other = next((name for name in _names(row, copy) if name != copy.name), None)
    return f"guard-{copy.name}-{other or next((test.fact for test in fact_tests(row.condition)), '')}"


def _is_excerpt(copy: Distribution, facts: Facts) -> bool:
    """Whether the known distributions cannot be all that are installed: a release is without its own requirements."""
    if copy.name not in open_declared():
        return len(facts.environment.distributions or ()) < _MANY
    return any(facts.package(name) == ABSENT for name in open_declared().always(copy))


_MANY = 20
"""So many distributions are a whole environment, if the requirements of a release are not recorded."""


def _why(row: Refusal, copy: Distribution, place: str, by: str) -> str:
    if row.error == _UNDECLARED:
        name = next(fact_tests(row.condition)).name
        return f"{place} imports {name} {by}, but {copy.name} does not require it, and it is not installed."
    return f"{place}: {'raised' if row.kind == 'raise' else 'logged'} {by} if {in_words(row.condition)}."


_LONGEST = 180


def _tolerant(row: Refusal, copy: Distribution, facts: Facts) -> Iterator[Fix]:
    return releases_accepting_gpu(row.package, row.reach, copy.version or "", facts) if _is_of_gpus(row) else iter(())


def releases_accepting_gpu(package: str, reach: tuple[str, ...], installed: str, facts: Facts) -> Iterator[Fix]:
    """Yield the nearest releases whose guards for the same use test the GPU and accept the one here; ``installed`` may be "".

    A release without such a guard is no fix: it may lack the feature.
    """
    use = f"supports {' or '.join(each.partition('=')[2] for each in reach)} on this GPU"
    known = open_declared().package(package)
    releases = [] if known is None else [each.version for each in known.releases if each.yanked is None]
    accepting = [version for version in releases if _accepts(package, reach, version, facts)]
    if not is_version(installed):
        refusing = [key_of(version) for version in releases if _of_gpus(package, reach, version) and version not in accepting]
        last = max(refusing, default=None)
        first = next((each for each in accepting if last is None or key_of(each) > last), None)
        if first is not None:
            yield upgrade_to(package, first, use)
        return
    at = key_of(installed.partition("+")[0])
    newer = next((each for each in accepting if key_of(each) > at), None)
    if newer is not None:
        yield upgrade_to(package, newer, use)
    elif older := [each for each in accepting if key_of(each) < at]:
        yield downgrade_to(package, older[-1], use)


def _accepts(package: str, reach: tuple[str, ...], version: str, facts: Facts) -> bool:
    tested = _of_gpus(package, reach, version)
    return bool(tested) and all(condition_holds(row.condition, facts) is False for row in tested)


def _of_gpus(package: str, reach: tuple[str, ...], version: str) -> list[Refusal]:
    return [row for row in open_once().of(package, version) if row.reach == reach and _is_of_gpus(row)]


def _is_of_gpus(row: Refusal) -> bool:
    """Whether a guard depends on the compute capability alone."""
    return {test.fact for test in fact_tests(row.condition)} == {"capability"}


def _fixes(condition: Condition, facts: Facts) -> Iterator[Fix]:
    """Yield the fixes for the innermost part of a condition that triggers the guard."""
    parts = condition.parts if isinstance(condition, Both) else (condition,)
    plain = tuple(part for part in parts if isinstance(part, FactTest) and part.fact != "installed")
    for part in (*reversed([each for each in parts if each not in plain]), Both(plain)):
        tests = list(polarized(part))
        leading = [(test, wanted) for test, wanted in tests if condition_holds(test, facts, presumed=True) is wanted]
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
            yield by_pip(kind, test.name, spec, "a version it accepts")
        elif test.fact == "installed" and not wanted and facts.package(test.name) == ABSENT:
            yield by_pip("pin", test.name, None, "what it requires")
        elif test.fact == "precision" and wanted:
            yield Fix("config", text=f"use a precision other than {test.value}")
        elif test.fact == "capability":
            yield Fix("config", text="use what this GPU supports instead")


_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


# --- Conditions from published source, evaluated against facts in three-valued logic, and as text.


FACTS_OF = {
    "capability": "accelerators", "devices": "accelerators", "python": "python", "os": "os", "variable": "variables",
    "feature": "workload", "precision": "workload",
}  # fmt: skip
"""The fact that each kind of test needs, in the vocabulary of the report; all other tests concern packages."""
_SYSTEMS = {"win32": "windows", "nt": "windows", "linux": "linux", "linux2": "linux", "darwin": "darwin", "windows": "windows"}


def condition_holds(condition: Condition, facts: Facts, *, presumed: bool = False) -> bool | None:
    """Whether a condition holds; ``None`` if the facts do not decide it.

    ``presumed``: assume that installed packages can be imported and that unknown variables are not set. After an error,
    neither can be assumed.
    """
    if isinstance(condition, Opposite):
        answer = condition_holds(condition.part, facts, presumed=presumed)
        return None if answer is None else not answer
    if isinstance(condition, (Both, Either)):
        answers = [condition_holds(part, facts, presumed=presumed) for part in condition.parts]
        decisive = isinstance(condition, Either)
        return decisive if decisive in answers else None if None in answers else not decisive
    return _test(condition, facts, presumed=presumed)


def _test(test: FactTest, facts: Facts, *, presumed: bool) -> bool | None:
    if test.fact == "installed" and presumed and isinstance(facts.package(test.name), list):
        return True
    if test.fact in ("package", "installed"):
        return _package(test, facts)
    if test.fact == "variable":
        known, value = facts.variable(test.name)
        if not known and not presumed:
            return None
        if test.operator in ("set", "unset"):
            return (value is not None) == (test.operator == "set")
        if value is None:
            return test.operator == "!=" if presumed else None
        return _equal(value, test)
    if test.fact == "feature":
        return facts.feature(test.name)
    if test.fact == "precision":
        precision = facts.value("workload.precision")
        return None if precision is None else _equal(precision, test)
    if test.fact == "os":
        system = facts.value("os")
        return None if system is None else _equal(system, replace(test, value=_SYSTEMS.get(test.value.lower(), test.value)))
    if test.fact == "python":
        version = facts.value("python")
        # cut to the precision of the test: "sys.version_info == (3, 12)" means the release series
        return None if version is None else _compared(
            ".".join(version.split(".")[: test.value.count(".") + 1]), test.operator, test.value
        )  # fmt: skip
    return _devices(test, facts) if test.fact in ("capability", "devices") else None


def _package(test: FactTest, facts: Facts) -> bool | None:
    """Test a package: an absent one has no version, and an installed one cannot necessarily be imported."""
    copies = facts.package(test.name)
    if copies == ABSENT:
        return False if test.fact == "installed" else None
    if test.fact == "installed" or not isinstance(copies, list) or len(copies) != 1:
        return None
    version = copies[0].version
    return None if version is None else _compared(version.partition("+")[0], test.operator, test.value)


def _devices(test: FactTest, facts: Facts) -> bool | None:
    """Test the devices: all of them must give the same result, and their number may be unknown."""
    devices = facts.accelerators()
    if devices is None or any(device.vendor not in (None, "nvidia") for device in devices):
        return None
    if test.fact == "devices":
        return None if any(map(has_more, devices)) else _compared(str(len(devices)), test.operator, test.value)
    found = {device.compute_capability for device in devices}
    if not found or None in found:
        return None
    part = {"major": 0, "minor": 2}.get(test.name)
    answers = {
        _compared(text if part is None else text.partition(".")[part], test.operator, test.value)
        for text in found if text is not None
    }  # fmt: skip
    return answers.pop() if len(answers) == 1 else None


def _equal(value: str, test: FactTest) -> bool | None:
    same = value.lower() == test.value.lower()
    return same if test.operator == "==" else not same if test.operator == "!=" else None


def _compared(version: str, operator: str, value: str) -> bool | None:
    if not is_version(version) or not is_version(value):
        return None
    one, other = key_of(version), key_of(value)
    answers = {
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
        "==": one == other,
        "!=": one != other,
    }
    return answers[operator]


def known_in_words(conditions: Iterable[Condition], facts: Facts) -> tuple[str, ...]:
    """The known facts that conditions depend on, as text: ``torch 2.3.0``, ``compute capability 7.0``."""
    tests = [test for condition in conditions for test in fact_tests(condition)]
    return tuple(dict.fromkeys(text for test in tests for text in _known_in_words(test, facts)))


def _known_in_words(test: FactTest, facts: Facts) -> Iterator[str]:
    if test.fact in ("package", "installed"):
        copies = facts.package(test.name)
        if copies == ABSENT:
            yield f"{test.name} is not installed"
        elif isinstance(copies, list):
            yield " and ".join(f"{copy.name} {copy.version or '(release unknown)'}" for copy in copies)
    elif test.fact == "variable":
        known, value = facts.variable(test.name)
        if known:
            yield f"{test.name} is not set" if value is None else f"{test.name}={value}"
    elif test.fact == "feature" and facts.feature(test.name) is not None:
        yield f"{test.name} is {'on' if facts.feature(test.name) else 'off'}"
    elif test.fact == "python" and facts.value("python"):
        yield f"Python {facts.value('python')}"
    elif test.fact == "os" and facts.value("os"):
        yield str(facts.value("os"))
    elif test.fact == "devices" and facts.accelerators() is not None:
        yield f"{len(facts.accelerators() or ())} GPU(s)"
    elif test.fact == "capability":
        yield from (
            f"compute capability {each.compute_capability}" for each in facts.accelerators() or () if each.compute_capability
        )


def in_words(condition: Condition) -> str:
    """A condition as text: ``torch < 2.4.0 and xformers > 0.0.27``."""
    if isinstance(condition, FactTest):
        return _test_in_words(condition)
    if isinstance(condition, Opposite):
        part = condition.part
        if isinstance(part, FactTest) and part.fact == "installed":
            return f"{part.name} is not installed"
        if isinstance(part, Opposite):
            return in_words(part.part)
        text = in_words(part)
        return f"not ({text})" if text else ""
    parts = [
        text if isinstance(part, (FactTest, Opposite)) or type(part) is type(condition) else f"({text})"
        for part in condition.parts if (text := in_words(part))
    ]  # fmt: skip
    return (" and " if isinstance(condition, Both) else " or ").join(dict.fromkeys(parts))


def _test_in_words(test: FactTest) -> str:
    if test.fact == "installed":
        return f"{test.name} is installed"
    if test.fact == "feature":
        return f"{test.name} is on"
    if test.fact == "variable" and test.operator in ("set", "unset"):
        return f"{test.name} is {'not ' if test.operator == 'unset' else ''}set"
    subject = {"capability": "compute capability", "devices": "GPUs", "python": "Python"}.get(test.fact, test.name or test.fact)
    if test.name == "minor":
        subject = "minor number of the compute capability"
    return f"{subject} {test.operator} {test.value}"
