"""Errors of a package's code against itself or against Python: no release of another package changes them.

A variable that is read before it is set, or an argument that Python's standard library does not take, is a fault of the
release that has the line. The releases around it are the ones to try.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.checks.fix_commands import downgrade_to, upgrade_to
from compat.diagnosis.failing_lines import releases_without_line
from compat.diagnosis.frame_packages import MODELS_OWN, distribution_of_module, inferred, location_text, package_of, version_of
from compat.model import Finding, Fix
from compat.tables.declared import open_declared
from compat.versions import is_final, is_version, key_of

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts


_UNSET = re.compile(
    r"cannot access local variable '(?P<name>\w{1,80})' where it is not associated with a value"
    r"|local variable '(?P<older>\w{1,80})' referenced before assignment"
)
_CALL = re.compile(
    r"(?P<function>[\w.]{1,80})\(\) (?:got an unexpected keyword argument '(?P<name>\w{1,80})'"
    r"|missing \d{1,3} required \S{1,20} arguments?|takes \S{1,40}(?: to \d{1,3})? positional arguments?)"
)
_OF_PYTHON = re.compile(
    r"[/\\]lib[/\\]python3\.\d{1,2}[/\\](?!(?:site|dist)-packages[/\\])|[/\\]Lib[/\\](?!site-packages[/\\])\w+\.py$"
)
"""A file of the standard library."""


def own_fault(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for an error whose two sides are the code of one release, or that code and Python's own."""
    if not error.frames:
        return []
    if (error.exception or "") == "UnboundLocalError" and (unset := _UNSET.search(error.message)) is not None:
        what = f"reads the variable {unset['name'] or unset['older']} before it sets it"
        return _finding(len(error.frames) - 1, what, error, facts)
    called = _CALL.match(error.message) if error.exception == "TypeError" and _OF_PYTHON.search(error.frames[-1].file) else None
    if called is None:
        return []
    outside = [at for at, frame in enumerate(error.frames) if not _OF_PYTHON.search(frame.file)]
    module = re.split(r"[/\\]", error.frames[-1].file.removesuffix(".py"))[-1]
    what = f"passes {called['name']} to" if called["name"] else "calls"
    return _finding(outside[-1], f"{what} Python's {module}, which does not take that", error, facts) if outside else []


def _finding(at: int, what: str, error: RaisedError, facts: Facts) -> list[Finding]:
    """Return the finding about the line of the frame at an index, in an installed package."""
    frame = error.frames[at]
    module = package_of(frame)
    if module is None or module == MODELS_OWN:
        return []
    package = distribution_of_module(module)
    version = version_of(package, facts)
    place = f"{frame.file.replace(chr(92), '/').rpartition('-packages/')[2]}, line {frame.line}" if frame.line else frame.file
    return [
        inferred(
            rule="symptom-own-fault",
            title=f"{package}{f' {version}' if version else ''} {what}: a fault of the release",
            why=f"The line is {place}{f', in {frame.function}' if frame.function else ''}; no other package takes part. An"
            " option or an input that few use may lead there: avoid it, or try another release.",
            packages={package: version},
            fixes=releases_without_line(error.frames[: at + 1], package, version)
            or tuple(_neighbours(package, version))
            or (Fix("pin", package, None, f"another release of {package}"),),
            here=location_text(error),
        )
    ]  # fmt: skip


def _neighbours(package: str, version: str | None) -> Iterator[Fix]:
    """Yield the next final release and the one before."""
    declared = open_declared().package(package)
    if declared is None or version is None or not is_version(version):
        return
    here = key_of(version.partition("+")[0])
    finals = [each.version for each in declared.releases if each.yanked is None and is_final(key_of(each.version))]
    after = [each for each in finals if key_of(each) > here]
    before = [each for each in finals if key_of(each) < here]
    if after:
        yield upgrade_to(package, after[0], "the next release; search its notes for the error")
    if before:
        yield downgrade_to(package, before[-1], "the release before")
