"""Version clauses of PEP 440 and Poetry: what they admit, and how they are rewritten for another release."""

from __future__ import annotations

import re
from collections.abc import Callable

from compat.model import Distribution
from compat.redact import excerpt
from compat.versions import contains, key_of, overlap, ranges_of

_LONGEST = 1000
"""Characters of a constraint that is parsed; real ones have thirty."""
_DIGITS = 18
_OPERATORS = ("===", "==", "!=", ">=", "<=", "~=", "<>", "^", "~", ">", "<", "=")


def is_version(text: str) -> bool:
    """Whether a text is a version (PEP 440) of a reasonable length."""
    try:
        return len(text) <= _LONGEST and bool(key_of(text))
    except ValueError:
        return False


def alternatives(constraint: str) -> list[str]:
    """Return the specifier sets (PEP 440) of which one has to hold; ``""`` admits every version.

    Raises ``ValueError`` if ``constraint`` is invalid.
    """
    return [_specifier_set(part) for part in constraint.replace("||", "|").split("|")]


def python_marker(specifiers: str) -> str | None:
    """Return a specifier set for Python as a marker; ``None`` if it admits every Python."""
    clauses = []
    for clause in filter(None, map(str.strip, specifiers.split(","))):
        operator, version = _split(clause)
        clauses.append(f'python_full_version {operator} "{version}"')
    return " and ".join(clauses) or None


def matcher(constraint: str) -> Callable[[str], bool]:
    """Return a predicate that tests whether the constraint admits a version; an invalid constraint admits every version."""
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
        raise ValueError(f"{excerpt(operator, 40)!r} is not a version constraint")
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
        raise ValueError(f"{excerpt(word, 40)!r} is not a version constraint")
    if operator in ("^", "~"):  # Poetry also accepts a local label there: ^2.5.0+cu124
        return [f">={version.partition('+')[0]}", f"<{_upper(operator, version)}"]
    operator = {"": "==", "=": "==", "<>": "!="}.get(operator, operator)
    return [f"{operator}{version}.*" if wildcard and operator in ("==", "!=") else f"{operator}{version}"]


def _split(word: str) -> tuple[str, str]:
    operator = next((each for each in _OPERATORS if word.startswith(each)), "")
    return operator, word[len(operator) :].strip()


def _upper(operator: str, version: str) -> str:
    """Return the first release that ``^version`` (or ``~version``) excludes."""
    epoch, mark, rest = version.rpartition("!")
    release = []
    for part in rest.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if digits:
            release.append(int(digits[:_DIGITS]))
        if digits != part:
            break
    if operator == "~":
        kept = min(len(release), 2)
    else:  # the first non-zero number must not change
        kept = next((place for place, number in enumerate(release[:3], 1) if number), min(len(release), 3))
    return f"{epoch}{mark}{'.'.join(map(str, (*release[: kept - 1], release[kept - 1] + 1)))}"


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
    """``==2.6.0+cu124`` names one build; every other operator ignores the label."""
    operator, wanted = _split(clause)
    if operator not in ("==", "===", "!="):
        return _set_matcher(f"{operator}{wanted.partition('+')[0]}")(version)
    return (wanted.lower() == version.lower()) == (operator != "!=")


# --- Rewriting version clauses (PEP 440, Poetry) for another release, with minimal changes.


EXACT, RANGE, ADMIT = "exact", "range", "admit"
"""How to rewrite a requirement: pin the new release; move the range to it, away from the old one; or widen the range."""

_CLAUSE = re.compile(r"\s*(===|==|!=|>=|<=|~=|<|>)\s*([^\s,]+)\s*")


def changed(clauses: str, before: str | None, after: str, how: str) -> str:
    """Return the rewritten version clauses of a requirement (``">=2.4, <2.6"``); blanks around them are kept."""
    lead = clauses[: len(clauses) - len(clauses.lstrip())]
    tail = clauses[len(clauses.rstrip()) :] if clauses.strip() else ""
    core = clauses.strip()
    if core.startswith("(") and core.endswith(")"):
        return f"{lead}({changed(core[1:-1], before, after, how)}){tail}"
    if how == EXACT:
        return lead + _pinned(core, after) + tail
    if _good(core, before, after, how):
        return clauses
    return lead + _adapted(core, before, after, how) + tail


def is_pinned(clauses: str) -> bool:
    """Whether clauses name one release."""
    found = filter(None, map(_CLAUSE.fullmatch, clauses.split(",")))
    return any(each[1] in ("==", "===") and not each[2].endswith(".*") for each in found)


def limited(clauses: str, limit: str) -> str:
    """Return a range with other bounds (``<26``, ``>=0.18.0,<0.19``) in place of its own in their directions."""
    bounds = {bound[0]: bound for bound in limit.split(",")}
    signs, parts = frozenset(bounds), []
    for part in filter(None, clauses.strip().strip("()").split(",")):
        found = _CLAUSE.fullmatch(part)
        if found is None or found[1][0] not in signs:
            parts.append(part)
        elif (bound := bounds.pop(found[1][0], None)) is not None:
            parts.append(part[: found.start(1)] + bound)
    text = ",".join((*parts, *bounds.values()))
    return f"{clauses[: len(clauses) - len(clauses.lstrip())]}{f'({text})' if clauses.strip().startswith('(') else text}"


def raised(clauses: str, after: str) -> str:
    """Return the bounds with which a range takes a newer release, in its own form: ``>=4.40,<4.48`` becomes ``>=4.55.2,<4.56``.

    A range that admits the release gets it as its lower bound; next to ``<=`` the lower bound stays, else the release alone
    would be left. "" if it would be, or if it is not only an upper bound that excludes the release.
    """
    parts = [_CLAUSE.fullmatch(part) for part in clauses.strip().strip("()").split(",") if part]
    refusing = [part for part in parts if part is None or not admits(part[0], after)]
    floor = f">={public(after)}"
    if not refusing:
        last = any(part is not None and part[1] == "<=" and part[2] == public(after) for part in parts)
        return "" if last else floor
    if len(refusing) > 1 or (bound := refusing[0]) is None:
        return ""
    if bound[1] == "~=" or (bound[1] == "==" and bound[2].endswith(".*")):
        return same_length(bound[1], bound[2], public(after))
    if bound[1] not in ("<", "<="):
        return ""
    if bound[1] == "<=":
        return f"<={public(after)}"
    lead = f"{floor}," if any(part is not None and part[1] in (">", ">=") for part in parts) else ""
    release = re.match(r"[\d.]*\d", public(after))
    written = bound[2].split(".")
    while written[1:] and written[-1] == "0":
        written.pop()
    kept = ([] if release is None else release[0].split("."))[: len(written)]
    return f"{lead}<{'.'.join((*kept[:-1], str(int(kept[-1]) + 1)))}" if kept else ""


def same_length(operator: str, series: str, after: str) -> str:
    """Return the clause for the series of another release: ``==2.3.*`` becomes ``==2.8.*``, and ``~=4.47.1`` ``~=4.55.2``."""
    numbers, wanted = after.split("."), series.removesuffix(".*").count(".") + 1
    if not all(each.isdecimal() for each in numbers):
        return ""
    series = ".".join((*numbers, *["0"] * wanted)[:wanted])
    return f"{operator}{series}{'' if operator == '~=' else '.*'}"


def limited_poetry(constraint: str | None, limit: str, after: str) -> str | None:
    """Return a constraint of Poetry with another bound in place of its own.

    ``None`` for one release and for alternatives, and if it would not admit the release ``after``.
    """
    text = (constraint or "*").strip()
    if "|" in text or is_pinned(text) or is_version(text.lstrip("= ")):
        return None
    found = limited("" if text == "*" else text, limit)
    return found if matcher(found)(after) else None


def admits(clauses: str, version: str) -> bool:
    """Whether clauses admit a version; an invalid set admits none."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(clauses.strip().strip("()")).contains(version, prereleases=True)
    except InvalidSpecifier:
        return False


def _good(core: str, before: str | None, after: str, how: str) -> bool:
    if not admits(core, after):
        return False
    return how == ADMIT or before is None or not admits(core, before)


def _pinned(core: str, after: str) -> str:
    single = _CLAUSE.fullmatch(core)
    if single is not None and single[1] in ("==", "==="):
        return core[: single.start(2)] + after + core[single.end(2) :]
    return f"=={after}"


def _adapted(core: str, before: str | None, after: str, how: str) -> str:
    text = _moved_to(core, before, after, how)
    bounds = {clause.strip().replace(" ", "") for clause in text.split(",")}
    closed = {f">={public(after)}", f"<={public(after)}"} <= bounds
    return f"=={after}" if closed else text  # the range has no other version left


def _moved_to(core: str, before: str | None, after: str, how: str) -> str:
    """Move each clause that excludes the release, then exclude the old release."""
    parts = core.split(",") if core else []
    kept = [moved for part in parts if (moved := _moved(part, after)) is not None]
    text = ",".join(kept)
    if how == ADMIT or before is None or not admits(text, before):
        return text.strip()
    if key_of(before) == key_of(after):
        return f"=={after}"  # another build of the release: no range distinguishes them
    operator, other = (">=", ">") if key_of(before) < key_of(after) else ("<=", "<")
    bound = f"{operator}{public(after)}"
    for number, part in enumerate(kept):
        clause = _CLAUSE.fullmatch(part)
        if clause is not None and clause[1] in (operator, other):
            kept[number] = part[: clause.start(1)] + bound + part[clause.end(2) :]
            return ",".join(kept).strip()
    return ",".join((bound, *kept) if operator == ">=" else (*kept, bound)).strip()


def _moved(part: str, after: str) -> str | None:
    """Return a clause that admits the release; ``None`` to drop it."""
    clause = _CLAUSE.fullmatch(part)
    if clause is None or admits(part, after):
        return part
    operator = clause[1]
    if operator == "!=":
        return None
    new = {">": ">=", "<": "<="}.get(operator, operator)
    if operator == "~=" and not re.fullmatch(r"\d+(\.\d+)+", public(after)):
        new = "=="
    version = after if new in ("==", "===") else public(after)
    return part[: clause.start(1)] + new + part[clause.end(1) : clause.start(2)] + version + part[clause.end(2) :]


def public(version: str) -> str:
    """Return a version without its local label, which only ``==`` may name."""
    return version.partition("+")[0]


def changed_poetry(constraint: str, before: str | None, after: str, how: str) -> str:
    """Return the rewritten constraint in Poetry's notation (``^2.4``, ``>=2,<3``, ``2.5.1``)."""
    core = constraint.strip()
    operator = re.match(r"[\^~=<>!]*", core)
    sign = "" if operator is None else operator[0]
    single = not re.search(r"[,|\s*]", core)
    if how == EXACT:
        return core[: len(sign)] + after if single and sign in ("", "=", "==") else after
    found = alternatives(core)
    if any(_good(each, before, after, ADMIT) for each in found) and (
        how == ADMIT or before is None or not any(admits(each, before) for each in found)
    ):
        return constraint
    if single and sign in ("^", "~") and before is not None and key_of(after) > key_of(before):
        return f"{sign}{public(after)}"
    if single and sign in ("", "=", "=="):
        return f"{sign}{after}"
    if len(found) == 1 and sign not in ("^", "~") and re.fullmatch(r"[\s\d.,<>=!]+", core):
        return _adapted(core, before, after, how)
    return after


def disjoint(left: Distribution, right: Distribution) -> bool:
    """Whether no version satisfies both; ``False`` if they cannot be compared."""
    try:
        if left.specifier is not None and right.specifier is not None:
            return not overlap(ranges_of(left.specifier), ranges_of(right.specifier))
        if left.specifier is not None or right.specifier is not None:
            ranged, pinned = (left, right) if left.specifier is not None else (right, left)
            return not contains(ranges_of(ranged.specifier or ""), key_of(pinned.version or ""))
    except ValueError:
        return False
    versions = left.version or "", right.version or ""
    if not all(map(is_version, versions)):
        return False
    # 2.6.0 also matches 2.6.0+cu124, which only matches its own local label
    labels = [version.partition("+")[2].lower().replace("-", ".").replace("_", ".") for version in versions]
    return key_of(versions[0]) != key_of(versions[1]) or (all(labels) and labels[0] != labels[1])
