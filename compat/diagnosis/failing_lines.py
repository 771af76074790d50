"""Errors of a package's own code: against itself or against Python, and in a line that other releases do not have.

A bug of a release is fixed in the lines that a traceback shows. A release without the line may have the fix, or the line may
only have been rewritten, so that the answer is a release to try. A variable that is read before it is set, or an argument that
Python's standard library does not take, is a fault of the release that has the line, and no other package takes part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from compat.checks.fix_commands import downgrade_to, upgrade_to
from compat.diagnosis.frame_packages import MODELS_OWN, distribution_of_module, inferred, location_text, package_of, version_of
from compat.diagnosis.stated import settings_in
from compat.interfaces.at_once import place_of
from compat.interfaces.lines import lines
from compat.model import Finding, Fix
from compat.records import record
from compat.tables.declared import open_declared
from compat.versions import is_final, is_version, key_of

if TYPE_CHECKING:
    from compat.reports.log.traceback import Frame, RaisedError
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
        return _fault(len(error.frames) - 1, what, error, facts)
    called = _CALL.match(error.message) if error.exception == "TypeError" and _OF_PYTHON.search(error.frames[-1].file) else None
    if called is None:
        return []
    outside = [at for at, frame in enumerate(error.frames) if not _OF_PYTHON.search(frame.file)]
    module = re.split(r"[/\\]", error.frames[-1].file.removesuffix(".py"))[-1]
    what = f"passes {called['name']} to" if called["name"] else "calls"
    return _fault(outside[-1], f"{what} Python's {module}, which does not take that", error, facts) if outside else []


def _fault(at: int, what: str, error: RaisedError, facts: Facts) -> list[Finding]:
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


MOST_PACKAGES = 2
"""Packages among the frames that are asked, the innermost first."""
_RECENT = 6
"""Releases since a line came in, up to which the one before is a fix to try."""
_NOT_OF_A_RELEASE = re.compile(
    r"(?:.*\.)?(?:OutOfMemoryError|KeyboardInterrupt|SystemExit|ChildFailedError|FileNotFoundError|PermissionError|TimeoutError"
    r"|\w*ConnectionError|\w*HTTPError|\w*HTTPStatusError|ModuleNotFoundError)$"
)
_IMPORT = re.compile(r"(?:from|import) \w")
_OF_THE_MACHINE = re.compile(
    r"CUDA out of memory|No space left on device|Connection (?:refused|reset)|CUDA error|NCCL error", re.I
)


def is_of_the_machine(error: RaisedError) -> bool:
    """Whether memory, a file, the network or a missing package is the cause by what an error says, and not a release's code."""
    return bool(_NOT_OF_A_RELEASE.match(error.exception or "") or _OF_THE_MACHINE.search(error.message))


def explain_failing_line(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for the innermost frame whose line a later release of its package no longer has."""
    if not error.message.strip() or is_of_the_machine(error):
        return []
    asked: list[str] = []
    for at in range(len(error.frames) - 1, -1, -1):
        module = package_of(error.frames[at])
        failed = at == len(error.frames) - 1 and error.exception == "ImportError"
        if module is None or (not failed and _IMPORT.match((error.frames[at].code or "").strip())):
            continue  # an import only leads to the error, and moves for other reasons
        package = distribution_of_module(module)
        if package not in asked:
            asked.append(package)
        if len(asked) > MOST_PACKAGES:
            break
        if found := _changed_line(error.frames[: at + 1], package, version_of(package, facts)):
            # a refusal that says what to set is meant: a release without it may have dropped what is asked for as well
            return [_finding(found, error, tuple(settings_in(error.message)) or found.fixes)]
    return []


def releases_without_line(frames: Sequence[Frame], package: str, version: str | None) -> tuple[Fix, ...]:
    """Return the nearest releases of a package without the line of the last frame; empty if its newest release has the line."""
    found = _changed_line(frames, package, version)
    return () if found is None else found.fixes


@record(frozen=True)
class _ChangedLine:
    """A line of ``function`` that the releases ``having`` have and later ones do not."""

    package: str
    version: str | None
    function: str
    line: str
    having: tuple[str, ...]
    fixes: tuple[Fix, ...]


def _changed_line(frames: Sequence[Frame], package: str, version: str | None) -> _ChangedLine | None:
    names = ((frame.function or "").rpartition(".")[2] for frame in reversed(frames))
    # a comprehension is written inside the function that calls it
    function = next((name for name in names if name == "<module>" or not name.startswith("<")), "")
    line = (frames[-1].code or "").partition("\n")[0].strip()
    having = lines().having(package, function, line)
    if not having or (version is not None and place_of(having, version) is None):
        return None
    fixes = tuple(_fixes(package, having, version))
    return _ChangedLine(package, version, function, line, having, fixes) if fixes else None


def _fixes(package: str, having: tuple[str, ...], version: str | None) -> Iterator[Fix]:
    """Yield the next final release without the line, and the last one before the line came in."""
    known = lines().known(package)
    at = None if version is None else place_of(known, version)
    first, last = known.index(having[0]), known.index(having[-1])
    present = {known.index(each) for each in having}
    after = next((each for each in range((last if at is None else at) + 1, len(known)) if each not in present), None)
    newer = [each for each in known[after or len(known) :] if is_version(each) and is_final(key_of(each))]
    older = [each for each in known[:first] if is_version(each) and is_final(key_of(each))]
    if newer:
        yield upgrade_to(package, newer[0], "no longer has the line")
    # what has been there for long worked for others: a release before it is no likely fix
    if older and (last if at is None else at) - first < _RECENT:
        yield downgrade_to(package, older[-1], "does not have the line yet")


def _finding(found: _ChangedLine, error: RaisedError, fixes: tuple[Fix, ...]) -> Finding:
    package, having = found.package, found.having
    name = f"{package} {found.version}" if found.version else package
    where = "a module" if found.function == "<module>" else found.function
    span = having[0] if len(having) == 1 else f"{having[0]} to {having[-1]}"
    message = error.message.strip().partition("\n")[0][:160]
    later = next((fix.spec.removeprefix(">=") for fix in found.fixes if fix.kind == "upgrade" and fix.spec), None)
    changed = f"that {later} no longer has" if later else f"that is new in {having[0]}"
    return inferred(
        rule="symptom-changed-line",
        title=f"{name} fails in a line {changed}: {message}",
        why=f"`{found.line}` in {where} is in {package} {span}, according to its published source. A release "
        "without it may have the fix, or may only have rewritten the line.",
        packages={package: found.version},
        fixes=fixes,
        here=location_text(error),
    )
