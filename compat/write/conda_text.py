"""One match specification of conda as text, changed to ask for another release."""

from __future__ import annotations

import re

from compat.errors import InputError
from compat.write.changes import Change
from compat.write.specifiers import EXACT, changed, public

_SPEC = re.compile(
    r"(?P<head>(?:[^\s\[\]=<>!~]+::)?[A-Za-z0-9._-]+)(?P<gap>[ \t]*)(?P<version>[^\s\[\]]*(?:[ \t]*[,|<>=!~][^\s\[\]]*)*)"
    r"(?P<build>[ \t]+[^\s\[\]]+)?(?P<keys>\[.*\])?"
)


def rewritten_spec(text: str, change: Change, how: str) -> str:
    """The specification with the change made; the build, which belongs to one release, is left out.

    :class:`InputError` (without a place) for a source that conda does not know, and a version within brackets.
    """
    if change.source is not None and change.source.kind not in ("index", "nightly"):
        raise InputError(f"{change.name} comes from conda here, and its new release does not: change it by hand")
    found = _SPEC.fullmatch(text.strip())
    assert change.after is not None
    if found is None or "version" in (found["keys"] or "") or "|" in found["version"]:
        raise InputError(f"expected a package of conda such as 'numpy=1.26', not {text[:60]!r}")
    head, gap, version, keys = found["head"], found["gap"], found["version"], found["keys"] or ""
    after = public(change.after)  # local labels are of wheels
    sign = re.match(r"={0,2}", version)
    mark = "" if sign is None else sign[0]
    single = not re.search(r"[,<>!~*]", version)
    if how != EXACT:
        return f"{head}{gap}{changed(_pep440(version), change.before, after, how)}{keys}"
    if single and (mark or gap):
        return f"{head}{gap}{mark}{after}{keys}"
    return f"{head}=={after}{keys}"


def _pep440(version: str) -> str:
    return re.sub(r"^=(?!=)", "==", version)
