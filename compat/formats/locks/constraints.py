"""Version constraints of lock files, Poetry's own among them (``^1.2``, ``~3.9``, ``>=1 <2 || 3.*``), in terms of PEP 440."""

from __future__ import annotations

from collections.abc import Callable

from compat.versions import contains, key_of, ranges_of

_LONGEST = 1000
"""Characters of a constraint that is looked into; real ones have thirty."""
_DIGITS = 18
_OPERATORS = ("===", "==", "!=", ">=", "<=", "~=", "<>", "^", "~", ">", "<", "=")


def is_version(text: str) -> bool:
    """Whether a text is a version (PEP 440) of a length that somebody would write."""
    try:
        return len(text) <= _LONGEST and bool(key_of(text))
    except ValueError:
        return False


def alternatives(constraint: str) -> list[str]:
    """The specifier sets (PEP 440) of which one has to hold; ``""`` admits every version.

    Raises ``ValueError`` if ``constraint`` is invalid.
    """
    return [_specifier_set(part) for part in constraint.replace("||", "|").split("|")]


def python_marker(specifiers: str) -> str | None:
    """A specifier set for Python as a marker; ``None`` where every Python will do."""
    clauses = []
    for clause in filter(None, map(str.strip, specifiers.split(","))):
        operator, version = _split(clause)
        clauses.append(f'python_full_version {operator} "{version}"')
    return " and ".join(clauses) or None


def matcher(constraint: str) -> Callable[[str], bool]:
    """A test whether the constraint admits a version; an invalid constraint admits every version."""
    if len(constraint) > _LONGEST:
        return lambda version: True
    try:
        sets = [_set_matcher(specifiers) for specifiers in alternatives(constraint)]
    except ValueError:
        return lambda version: True
    return lambda version: any(fits(version) for fits in sets)


def _specifier_set(text: str) -> str:
    clauses: list[str] = []
    operator = ""
    for word in text.replace(",", " ").split():
        if word in _OPERATORS:  # ">= 3.9"
            operator += word
        else:
            clauses.extend(_clauses(operator + word))
            operator = ""
    if operator:
        raise ValueError(f"{operator[:40]!r} is not a version constraint")
    return ",".join(clauses)


def _clauses(word: str) -> list[str]:
    operator, version = _split(word)
    version = version[1:] if version[:1] in ("v", "V") else version
    if version in ("*", "x", "X"):
        return []
    wildcard = version.endswith((".*", ".x", ".X"))
    while version.endswith((".*", ".x", ".X")):
        version = version[:-2]
    if not is_version(version):
        raise ValueError(f"{word[:40]!r} is not a version constraint")
    if operator in ("^", "~"):
        return [f">={version}", f"<{_upper(operator, version)}"]
    operator = {"": "==", "=": "==", "<>": "!="}.get(operator, operator)
    return [f"{operator}{version}.*" if wildcard and operator in ("==", "!=") else f"{operator}{version}"]


def _split(word: str) -> tuple[str, str]:
    operator = next((each for each in _OPERATORS if word.startswith(each)), "")
    return operator, word[len(operator) :].strip()


def _upper(operator: str, version: str) -> str:
    """The first release that ``^version`` (or ``~version``) leaves out."""
    epoch, mark, rest = version.rpartition("!")
    release = []
    for part in rest.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if digits:
            release.append(int(digits[:_DIGITS]))
        if digits != part:
            break
    return f"{epoch}{mark}{'.'.join(map(str, _next(operator, release)))}"


def _next(operator: str, release: list[int]) -> list[int]:
    if operator == "~":
        kept = min(len(release), 2)
    else:  # the first number that is not zero must not change
        kept = next((place for place, number in enumerate(release[:3], 1) if number), min(len(release), 3))
    return [*release[: kept - 1], release[kept - 1] + 1]


def _set_matcher(specifiers: str) -> Callable[[str], bool]:
    builds = [clause for clause in specifiers.split(",") if "+" in clause or clause.startswith("===")]
    ranges = ranges_of(",".join(clause for clause in specifiers.split(",") if clause not in builds))

    def fits(version: str) -> bool:
        try:
            if not contains(ranges, key_of(version)):
                return False
        except ValueError:
            pass
        return all(_fits_build(clause, version) for clause in builds)

    return fits


def _fits_build(clause: str, version: str) -> bool:
    """``==2.6.0+cu124`` names one build; with any other operator the label does not count."""
    operator, wanted = _split(clause)
    if operator not in ("==", "===", "!="):
        return _set_matcher(f"{operator}{wanted.partition('+')[0]}")(version)
    return (wanted.lower() == version.lower()) == (operator != "!=")
