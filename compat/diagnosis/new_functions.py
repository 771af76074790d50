"""A function that a package has only since some release, and that gets a container of another kind than it expects.

What it gets was written for an older release: the list of a model's own class where transformers 5 expects a dictionary.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from compat.checks.fix_commands import downgrade_to
from compat.diagnosis.changed_names import COMMON
from compat.diagnosis.frame_packages import distribution_of_module, package_of, version_of, where
from compat.interfaces import changes as table
from compat.interfaces.changes import changes
from compat.model import Finding, Fix
from compat.versions import is_version, key_of

if TYPE_CHECKING:
    from compat.interfaces.changes import Change
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts


_C = r"(?:list|tuple|dict|set)"
_ANOTHER_KIND = re.compile(
    rf"'{_C}' object has no attribute '\w{{1,60}}'|unsupported operand type\(s\) for \S{{1,9}}: '{_C}' and '{_C}'"
    rf"|(?:list|tuple) indices must be integers or slices, not (?:str|tuple)|unhashable type: '{_C}'"
)
"""Python's messages about one container where another one is expected; ``None`` and strings come from data as well."""


def of_new_function(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for an error about a container in a function that its package has only since some release."""
    frame = error.frames[-1] if error.frames else None
    module = None if frame is None else package_of(frame)
    function = "" if frame is None else (frame.function or "").rpartition(".")[2]
    if frame is None or module is None or _ANOTHER_KIND.search(error.message) is None or COMMON.fullmatch(function):
        return []
    package = distribution_of_module(module)
    found = _since(function, package, frame.file)
    here = version_of(package, facts)
    if found is None or (here is not None and is_version(here) and key_of(here) < key_of(found[1])):
        return []
    last, since = found
    return [
        Finding(
            rule="symptom-new-function",
            origin="surface",
            verdict="possible",
            severity="error",
            effect="crash",
            title=f"{function} of {package}, new in {since}, gets a container of another kind",
            why=f"By published source, {last} does not have this function. What it gets, such as an attribute of a model's own "
            f"class, was written for an older {package}.",
            confidence="reported",
            packages={package: here},
            fixes=(
                downgrade_to(package, last, "the last release without it"),
                Fix("config", text="a newer version of the code whose value it gets (for a model with its own code: its latest "
                    "revision)"),
            ),
            here=where(error),
        )
    ]  # fmt: skip


def _since(function: str, package: str, file: str) -> tuple[str, str] | None:
    """Return the last release without a function and the first one with it, if all of its modules agree, or the frame's."""
    kinds = (table.MEMBER, table.NAME, table.NEW)
    found = [each for each in changes().of(function) if each.package == package and each.kind in kinds and each.has]
    path = file.replace("\\", "/").removesuffix(".py")
    found = [each for each in found if path.endswith(each.module.replace(".", "/"))] or found
    steps = {_step(each) for each in found}
    return steps.pop() if len(steps) == 1 else None


def _step(change: Change) -> tuple[str, str] | None:
    """The releases between which it came, if it did not go again; the second one is a final release."""
    known = [each for each in change.known if each in change.has or each in change.lacks]
    first = known.index(change.has[0])
    if not first or change.has[-1] != change.known[-1] or any(each in change.lacks for each in known[first:]):
        return None
    final = next((each for each in change.has if not re.search(r"[a-z]", each.partition(".post")[0])), None)
    return None if final is None else (known[first - 1], final)
