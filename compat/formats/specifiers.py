"""Version clauses (PEP 440, Poetry) that are changed to ask for another release, as little as that takes."""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from compat.versions import key_of

EXACT, RANGE, ADMIT = "exact", "range", "admit"
"""How far a change goes: to one release; to a range with the new release in it and the old one not; to let it in."""

_CLAUSE = re.compile(r"\s*(===|==|!=|>=|<=|~=|<|>)\s*([^\s,]+)\s*")


def changed(clauses: str, before: str | None, after: str, how: str) -> str:
    """The version clauses of a requirement (``">=2.4, <2.6"``), changed; blanks around them are kept."""
    lead = clauses[: len(clauses) - len(clauses.lstrip())]
    tail = clauses[len(clauses.rstrip()) :] if clauses.strip() else ""
    core = clauses.strip()
    if core.startswith("(") and core.endswith(")"):
        return f"{lead}({changed(core[1:-1], before, after, how)}){tail}"
    if how == EXACT:
        return lead + _exact(core, after) + tail
    if _good(core, before, after, how):
        return clauses
    return lead + _adapted(core, before, after, how) + tail


def admits(clauses: str, version: str) -> bool:
    """Whether clauses let a version in; what is no set of clauses lets nothing in."""
    try:
        return SpecifierSet(clauses.strip().strip("()")).contains(version, prereleases=True)
    except InvalidSpecifier:
        return False


def _good(core: str, before: str | None, after: str, how: str) -> bool:
    if not admits(core, after):
        return False
    return how == ADMIT or before is None or not admits(core, before)


def _exact(core: str, after: str) -> str:
    single = _CLAUSE.fullmatch(core)
    if single is not None and single[1] in ("==", "==="):
        return core[: single.start(2)] + after + core[single.end(2) :]
    return f"=={after}"


def _adapted(core: str, before: str | None, after: str, how: str) -> str:
    text = _moved_to(core, before, after, how)
    bounds = {clause.strip().replace(" ", "") for clause in text.split(",")}
    closed = {f">={public(after)}", f"<={public(after)}"} <= bounds
    return f"=={after}" if closed else text  # nothing else is left in the range


def _moved_to(core: str, before: str | None, after: str, how: str) -> str:
    """Each clause that keeps the release out is moved to it, then the old release is kept out."""
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
    """A clause that admits the release; ``None`` for one that is left out."""
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
    """A version without its local label, which only ``==`` may name."""
    return Version(version).public if "+" in version else version


def changed_poetry(constraint: str, before: str | None, after: str, how: str) -> str:
    """A constraint as Poetry writes it (``^2.4``, ``>=2,<3``, ``2.5.1``), changed."""
    from compat.formats.locks.constraints import alternatives

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
