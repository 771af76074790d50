"""Names of code that a title mentions without any message: those in the errors of rules, and those that packages import.

"peft 0.14 wants EncoderDecoderCache" has no words of Python's, but few rules and rows are about the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.diagnosis.inexact_names import with_module
from compat.diagnosis.loader import EXTENSIONS, packages_in
from compat.diagnosis.python_messages import lack_in
from compat.interfaces.announced import is_telling
from compat.reports.log.frames import RaisedError
from compat.workload.trainers import CONFIGS, TASKS

if TYPE_CHECKING:
    from compat.rules.compiled import Matrix
    from compat.rules.facts import Facts
    from compat.rules.rule import Rule

_NAME = re.compile(r"(?<![\w/-])[A-Za-z_]\w{6,80}(?![\w/-])")
_ESCAPED = re.compile(r"\\[A-Za-z]|\\(?=\W)")
_CUT = re.compile(r"[`'\"](?P<name>[A-Za-z_]\w{6,80})(?:…|\.{3})?\s*$")
"""A quoted name in whose middle the text may end."""
_MOST_NAMES = 8
_MOST_RULES = 3
"""The number of rules whose errors may have a name, for it to tell which one is meant."""
_LONGEST = 4000


def mentioned(text: str) -> list[str]:
    """Return the names in a text that are more than words, except those of trainers and of exceptions."""
    found = (match[0] for match in _NAME.finditer(text[:_LONGEST]))
    telling = (name for name in found if is_telling(name) or name.isupper())
    names = [name for name in telling if name not in TASKS and name not in CONFIGS]
    return [name for name in dict.fromkeys(names) if not name.endswith(("Error", "Exception", "Warning"))][:_MOST_NAMES]


def rules_with(text: str, matrix: Matrix) -> Iterator[Rule]:
    """Yield the rules of whose errors the text mentions a name that few others have."""
    names = mentioned(text)
    cut = _CUT.search(text)
    having: dict[str, list[Rule]] = {name: [] for name in names}
    for rule in matrix.rules() if names else ():
        said = " ".join(_ESCAPED.sub(" ", each.message) for each in rule.errors)
        for name in names:
            ends = "" if cut is not None and cut["name"] == name else r"(?!\w)"
            if name in said and re.search(rf"(?<!\w){re.escape(name)}{ends}", said):
                having[name].append(rule)
    for name in names:
        if len(having[name]) <= _MOST_RULES:
            yield from having[name]


def imports_of(text: str, line: int, facts: Facts) -> Iterator[RaisedError]:
    """Yield the failed imports of the names that a text mentions with the package that packages import them from."""
    words = text.lower().replace("_", "-")
    for name in mentioned(text):
        found = with_module(RaisedError("ImportError", name, (), None, line), facts)
        lack = None if found is None else lack_in(found[0].message)
        if found is not None and lack is not None and lack.owner.partition(".")[0].replace("_", "-") in words:
            yield found[0]


def extension_with_symbol(text: str) -> str | None:
    """Return the extension of which a text says, without naming the symbol, that it has an undefined one."""
    at = text.find("ndefined symb")
    named = [name for name in packages_in(text[max(at - 300, 0) : at]) if name in EXTENSIONS.values()] if at >= 0 else []
    return named[-1] if named else None
