"""Names of code that a title mentions without any message: those in the errors of rules, and those that packages import.

"peft 0.14 wants EncoderDecoderCache" has no words of Python's, but few rules and rows are about the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.diagnosis.changed_names import class_of_member
from compat.diagnosis.inexact_names import with_module
from compat.diagnosis.loader import EXTENSIONS, packages_in
from compat.diagnosis.missing_names import module_of_name
from compat.diagnosis.python_messages import lack_in
from compat.interfaces.announced import is_telling
from compat.interfaces.table import tracked
from compat.reports.log.frames import RaisedError
from compat.reports.words import distribution_of
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
_NEAR = 60
"""Characters beside a name in which a text says that it is not there."""
_DENIED = re.compile(
    r"\b(?:no|not|can ?not|never|missing|without|lacks?|lacking|unknown|undefined|removed|renamed|gone|moved)\b|n['’]t\b",
    re.IGNORECASE,
)


def mentioned(text: str) -> list[str]:
    """Return the names in a text that are more than words, except those of trainers and of exceptions."""
    found = (match[0] for match in _NAME.finditer(text[:_LONGEST]))
    telling = (name for name in found if is_telling(name) or name.isupper())
    names = [name for name in telling if name not in TASKS and name not in CONFIGS and distribution_of(name) is None]
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
        if found is not None and lack is not None and _top(lack.owner) in words:
            yield found[0]


def denied_names(text: str, line: int) -> Iterator[RaisedError]:
    """Yield errors about the names that a text says are not there, with the module or class of a package that it mentions."""
    words = text.lower().replace("_", "-")
    for name in mentioned(text):
        if not _is_denied(name, text):
            continue
        module = module_of_name(name, ())
        if module is not None:
            if _top(module) in words:
                yield RaisedError("ImportError", f"cannot import name '{name}' from '{module}'", (), None, line)
            continue
        tops = [top for top in tracked() if top.replace("_", "-") in words]
        if (owner := class_of_member(name, tops)) is not None:
            yield RaisedError("AttributeError", f"'{owner}' object has no attribute '{name}'", (), None, line)


def _is_denied(name: str, text: str) -> bool:
    at = text.find(name)
    around = text[max(at - _NEAR, 0) : at] + " " + text[at + len(name) : at + len(name) + _NEAR]
    return _DENIED.search(around) is not None


def _top(module: str) -> str:
    return module.partition(".")[0].replace("_", "-")


def extension_with_symbol(text: str) -> str | None:
    """Return the extension of which a text says, without naming the symbol, that it has an undefined one."""
    at = text.find("ndefined symb")
    named = [name for name in packages_in(text[max(at - 300, 0) : at]) if name in EXTENSIONS.values()] if at >= 0 else []
    return named[-1] if named else None
