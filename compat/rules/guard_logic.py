"""Evaluate conditions from published source against facts, in three-valued logic, and format them as text."""

from __future__ import annotations

from compat.interfaces.conditions import Both, Condition, Either, FactTest, Opposite, fact_tests
from compat.rules.facts import ABSENT, Facts, has_more
from compat.versions import is_version, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FACTS_OF = {
    "capability": "accelerators", "devices": "accelerators", "python": "python", "os": "os", "variable": "variables",
    "feature": "workload", "precision": "workload",
}  # fmt: skip
"""The fact that each kind of test needs, in the vocabulary of the report; all other tests concern packages."""
_SYSTEMS = {"win32": "windows", "nt": "windows", "linux": "linux", "linux2": "linux", "darwin": "darwin", "windows": "windows"}


def holds(condition: Condition, facts: Facts, *, presumed: bool = False) -> bool | None:
    """Whether a condition holds; ``None`` if the facts do not decide it.

    ``presumed``: assume that installed packages can be imported and that unknown variables are not set. After an error,
    neither can be assumed.
    """
    if isinstance(condition, Opposite):
        answer = holds(condition.part, facts, presumed=presumed)
        return None if answer is None else not answer
    if isinstance(condition, (Both, Either)):
        answers = [holds(part, facts, presumed=presumed) for part in condition.parts]
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
        return (
            None
            if system is None
            else _equal(system, FactTest("os", "", test.operator, _SYSTEMS.get(test.value.lower(), test.value)))
        )
    if test.fact == "python":
        version = facts.value("python")
        return None if version is None else _compared(_cut(version, test.value), test.operator, test.value)
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
    answers = {
        _compared(text.partition(".")[0] if test.name == "major" else text, test.operator, test.value)
        for text in found if text is not None
    }  # fmt: skip
    return answers.pop() if len(answers) == 1 else None


def _equal(value: str, test: FactTest) -> bool | None:
    same = value.lower() == test.value.lower()
    return same if test.operator == "==" else not same if test.operator == "!=" else None


def _cut(version: str, like: str) -> str:
    """Truncate a version to the precision of ``like``: ``sys.version_info == (3, 12)`` means the release series."""
    return ".".join(version.split(".")[: like.count(".") + 1])


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
    return tuple(dict.fromkeys(text for test in tests for text in _said(test, facts)))


def _said(test: FactTest, facts: Facts) -> Iterator[str]:
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
    return f"{subject} {test.operator} {test.value}"
