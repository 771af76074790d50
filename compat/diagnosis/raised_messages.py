"""Find an error message among the templates of published releases: its package, its releases, and its condition."""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from compat.checks.fix_commands import downgrade_to, upgrade_to
from compat.checks.guards import FACTS_OF, condition_holds, known_in_words
from compat.diagnosis.frame_packages import package_of, version_of
from compat.diagnosis.missing_names import LIKELY
from compat.diagnosis.refused import releases_with_value
from compat.diagnosis.stated import (
    divisors_in,
    installs_in,
    release_asked_for,
    requirements_in,
    satisfies_specifier,
    sentences,
    settings_in,
)
from compat.interfaces.at_once import place_of
from compat.interfaces.changes import assertions
from compat.interfaces.guards import condition_of
from compat.interfaces.messages import Match, Messages, Place, Template, is_native, letters_in, open_messages, plain
from compat.interfaces.refusals import Condition, Opposite, fact_tests
from compat.model import Finding, Fix
from compat.records import record, replace
from compat.reports.log.native import passes_on
from compat.rules.facts import Facts
from compat.tables.declared import open_declared
from compat.versions import is_version, key_of

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError

MOST = 3
"""Maximum number of errors considered, most decisive first."""
_LETTERS, _WORDS = 24, 4
"""A match with fewer of the template's own letters or words requires the frame that raised it."""
_INTERPRETER = re.compile(
    r"unexpected keyword argument|required positional argument|positional arguments? but|has no attribute|cannot import name"
    r"|No module named|object is not (?:callable|iterable|subscriptable)|index out of range|values to unpack"
    r"|unsupported operand type|not supported between instances|object does not support|object cannot be interpreted"
    r"|can only concatenate|argument of type .{1,40} is not iterable|has no len\(\)|is not JSON serializable"
    r"|expected str, bytes or os\.PathLike|can't multiply sequence|invalid literal for|could not convert string"
    r"|is not valid as type argument|is invalid for input of size|cannot reshape tensor of"
)
"""Messages of Python, and of torch's shape checks, whose wording packages reuse."""
_LOOKING_UP = ("__getattr__", "__getattribute__", "__getitem__")
"""Functions that report a missing attribute or key in Python's own wording."""
_NO_FRAMES, _PACKAGE, _FILE, _FUNCTION = range(4)
"""How closely the frames match a place in the source."""


@record(frozen=True)
class _Sighting:
    """A template found in an error. ``places``: where the installed release can have raised it.

    ``releases`` contain the message, in this wording or in another one that matches as well.
    """

    match: Match
    places: tuple[Place, ...]
    releases: frozenset[str]
    agreement: int
    version: str | None
    without: tuple[str, ...] = ()
    """Of an assertion: the releases of its module that do not have it, in order."""


def explain_raised_message(
    errors: Sequence[RaisedError], order: Sequence[int], facts: Facts, *, alone: bool = True
) -> tuple[Finding, ...]:
    """Return the finding for the most decisive error that a known release raises; empty if the origin is ambiguous.

    ``alone``: nothing else explains the text, so that a release without the message is better than no advice.
    """
    if not order:
        return ()
    messages = open_messages()
    for number in order[:MOST]:
        if passes_on(errors[number].exception, errors[number].message):
            continue  # "… because of the following error": the re-raising package is not the cause
        asserted = _asserted(errors[number], facts)
        best = _best(iter(asserted) if asserted else _sightings(errors[number], facts, messages))
        if best is not None:
            return (_finding(best, errors[number], facts, messages, alone=alone),)
    return ()


def _sightings(error: RaisedError, facts: Facts, messages: Messages) -> Iterator[_Sighting]:
    in_frames = {part for frame in error.frames for part in _path(frame.file)}
    packages = [package for package in messages.packages if package in in_frames or package.replace("-", "_") in in_frames]
    name = (error.exception or "").rpartition(".")[2]
    for match in messages.find(error.message, packages):
        template = match.template
        if name and template.kind == "raise" and template.name not in ("", name) and match.start == 0:
            continue
        if name and template.kind == "warn" and template.name != name:
            continue
        version = version_of(template.package, facts)
        places = template.places
        if version is not None and place_of(template.known, version) is not None:
            places = tuple(place for place in places if place_of(place.versions, version) is not None)
        if _INTERPRETER.search(template.text):
            places = tuple(place for place in places if not place.function.endswith(_LOOKING_UP))
        agreements = [_agreement(place, template.package, error) for place in places]
        says_little = match.letters < _LETTERS or match.words < _WORDS
        least = _FUNCTION if _INTERPRETER.search(template.text) else _FILE if says_little else _NO_FRAMES
        if not places or max(agreements) < least:
            continue
        if max(agreements) == _NO_FRAMES and version is None and _is_of_another(places, error):
            continue
        nearest = tuple(place for place, agreement in zip(places, agreements) if agreement == max(agreements))
        yield _Sighting(match, nearest, frozenset(template.versions), max(agreements), version)


def _asserted(error: RaisedError, facts: Facts) -> list[_Sighting]:
    """Return the assertion without a message that failed, by its line, if it is in the module and the function of the frame."""
    frame = error.frame
    line = _line_of(error)
    # the reader of tracebacks puts the line in the place of the message
    if frame is None or error.exception != "AssertionError" or error.message.strip().partition("\n")[0] not in ("", line):
        return []
    rows = assertions().of(line)
    found = []
    for package in dict.fromkeys(each.package for each in rows):
        of_package = [each for each in rows if each.package == package]
        test = f"not ({line.removeprefix('assert').strip()})"
        places = tuple(Place(each.module, each.owner, (test,), each.has) for each in of_package)
        places = tuple(place for place in places if _agreement(place, package, replace(error, frames=(frame,))) == _FUNCTION)
        if places:
            known = of_package[0].known
            releases = frozenset(version for place in places for version in place.versions)
            having = tuple(version for version in known if version in releases)
            template = Template(package, "raise", "AssertionError", line, places, having, known)
            modules = {place.module for place in places}
            lacking = {version for each in of_package if each.module in modules for version in each.lacks} - {
                version for each in of_package for version in each.has
            }
            without = tuple(version for version in known if version in lacking)
            match = Match(template, 0, len(line), letters_in([line]), len(line.split()))
            found.append(_Sighting(match, places, releases, _FUNCTION, version_of(package, facts), without))
    return found


def _line_of(error: RaisedError) -> str:
    """Return the first line of the statement that failed."""
    return error.code.strip().partition("\n")[0].rstrip()


def _best(sightings: Iterator[_Sighting]) -> _Sighting | None:
    """Return the best match by length, then by frames and environment; ``None`` if several packages may be its origin."""
    found = list(sightings)
    if not found:
        return None
    most = max(each.match.letters for each in found)
    same = found = [each for each in found if each.match.letters >= 0.8 * most]
    rank = max((each.agreement, each.version is not None) for each in found)
    found = [each for each in found if (each.agreement, each.version is not None) == rank]
    origin = origin_of({each.match.template.package for each in found})
    if origin is None:
        return None
    found, same = ([each for each in some if each.match.template.package == origin] for some in (found, same))
    places = tuple(place for each in found for place in each.places)
    return replace(found[0], places=places, releases=frozenset().union(*(each.releases for each in same)))


def origin_of(packages: set[str]) -> str | None:
    """The package a message comes from: the one that most of the others require, since they copied its code.

    If none does, it is the only central one (:data:`LIKELY`).
    """
    if len(packages) == 1:
        return next(iter(packages))
    declared = open_declared()
    requiring = {name: (package.asks if (package := declared.package(name)) else ()) for name in packages}
    required = {name: sum(name in asks for other, asks in requiring.items() if other != name) for name in packages}
    first, second = sorted(required, key=lambda name: (-required[name], name))[:2]
    if required[first] > required[second] and 2 * required[first] >= len(packages) - 1:
        return first
    central = [name for name in packages if name.replace("-", "_") in LIKELY]
    return central[0] if len(central) == 1 else None


def _agreement(place: Place, package: str, error: RaisedError) -> int:
    """How closely the frames match; those of Python end at the call into compiled code, so its package is all they show."""
    module = [package.replace("-", "_")] if is_native(place.module) else place.module.split(".")
    best = _NO_FRAMES
    for frame in error.frames:
        path = _path(frame.file)
        if is_native(place.module):
            best = max(best, _PACKAGE if module[0] in path else _NO_FRAMES)
        elif path[-len(module) :] == module or path[-len(module) - 1 :] == [*module, "__init__"]:
            same = (frame.function or "").rpartition(".")[2] == place.function.rpartition(".")[2]
            best = max(best, _FUNCTION if same else _FILE)
        elif module[0] in path:
            best = max(best, _PACKAGE)
    return best


_PASSING_ON = ("ray", "multiprocess", "joblib", "torch")
"""Packages that raise the errors of others again, from other processes or compiled code."""


def _is_of_another(places: Sequence[Place], error: RaisedError) -> bool:
    """Whether the innermost frame is in another package, which a ``raise`` in Python's source would not be."""
    package = package_of(error.frames[-1]) if error.frames else None
    return package is not None and package not in _PASSING_ON and not any(is_native(place.module) for place in places)


def _path(file: str) -> list[str]:
    return file.replace("\\", "/").removesuffix(".py").split("/")


def _finding(seen: _Sighting, error: RaisedError, facts: Facts, messages: Messages, *, alone: bool) -> Finding:
    template, text = seen.match.template, plain(error.message) or _line_of(error)
    message = text[seen.match.start : seen.match.end]
    conditions = [condition_of(guard, messages.packages) for place in seen.places[:3] for guard in place.guards]
    conditions = list(dict.fromkeys(map(_positive, conditions)))
    tests = [test for condition in conditions for test in fact_tests(condition)]
    wanted = requirements_in(message, messages.packages)
    possible = any(_possible(place, facts, messages) for place in seen.places)
    sure = (seen.version is not None or seen.agreement >= _FILE) and possible
    about = (template.package, *(test.name for test in tests if test.fact in ("package", "installed")), *wanted)
    of_text = [fact for pattern, fact in _FACT_WORDS if re.search(pattern, message)]
    accepting = releases_with_value(error, template.package, facts)
    why = _why(seen, known_in_words(conditions, facts))
    fixes = tuple(_fixes(seen, message, wanted, facts, messages))
    if alone and not fixes and accepting is None and not seen.without:
        fixes = tuple(_by_moving(seen, wanted, facts, messages))
    if accepting is not None:
        why = f"{why} {accepting.title[0].upper()}{accepting.title[1:]}. {accepting.sentence()}"
        fixes = (*accepting.fixes(seen.version), *fixes)
    return Finding(
        rule=f"message-{template.package}-{zlib.crc32(template.text.encode()):08x}",
        origin="message",
        verdict="hit" if sure else "possible",
        severity="error" if template.kind == "raise" or template.name == "error" else "warning",
        effect="crash" if template.kind == "raise" else "wrong-result",
        title=f"{template.package}: {_shortened(message)}",
        why=why,
        packages={name: version_of(name, facts) for name in dict.fromkeys(about)},
        facts=tuple(dict.fromkeys((*(FACTS_OF[test.fact] for test in tests if test.fact in FACTS_OF), *of_text))),
        fixes=fixes,
        evidence=tuple(f"{template.package} {place.versions[-1]} {_file_of(place.module)}" for place in seen.places[:2]),
        here=f"the error on line {error.line} of the text",
    )


def _file_of(module: str) -> str:
    return module if is_native(module) else f"{module.replace('.', '/')}.py"


def _positive(condition: Condition) -> Condition:
    return condition.part if isinstance(condition, Opposite) else condition


_OF_GPUS = (
    r"[Cc]ompute [Cc]apabilit|\b[Ss][Mm]_?\d\d|Ampere|Hopper|Blackwell|multi[- ]?GPU|multiple GPUs|GPU arch"
    r"|(?:[Cc]urrent|[Tt]his) (?:GPU|device)|[Mm]in(?:imum)? capability"
)
_FACT_WORDS = (
    (_OF_GPUS, "accelerators"),
    (r"\bPython (?:\d|version)", "python"),
    (r"\b(?:Windows|Linux|MacOS|macOS)\b", "os"),
    (r"\b(?:CUDA|cuda) ?(?:toolkit|version|>=|\d)|\bnvcc\b|CUDA_HOME", "cuda_toolkit"),
    (r"\b[Dd]river\b", "driver"),
)
"""Patterns in a message that refer to a fact of the environment."""


_SAYS_LITTLE = 60
"""Characters of a first sentence such as "Please file a bug report!", which only the next one explains."""


def _shortened(message: str) -> str:
    """Return the first sentence of a message, with the next ones if it is short, cut after 160 characters."""
    first, *others = sentences(message)
    while others and len(first) < _SAYS_LITTLE:
        first = f"{first} {others.pop(0)}"
    return first if len(first) <= 160 else f"{first[:160].rpartition(' ')[0]} …"


def _why(seen: _Sighting, known: Sequence[str]) -> str:
    template = seen.match.template
    verb = {"raise": f"raises {template.name or 'it'}", "warn": f"warns of it ({template.name})"}.get(template.kind, "logs it")
    place = seen.places[0]
    where = f"{place.module}{f', {place.function}' if place.function else ''}"
    others = len({each.module for each in seen.places}) - 1
    more = f" and {others} other module{'s' * (others > 1)}" if others else ""
    sentences = [f"{template.package} {verb} in {where}{more}, {span_of(seen.releases, template.known)}"]
    if place.guards:
        sentences[0] += f", when `{place.guards[0]}`"
        if place.guards[1:]:
            sentences[0] += f" (and {' and '.join(f'`{guard}`' for guard in place.guards[1:])})"
    if known:
        sentences.append(f"Here: {', '.join(known)}")
    return ". ".join(sentences) + "."


def span_of(releases: Collection[str], known: Sequence[str]) -> str:
    """Describe the releases that have a message; releases older than the oldest analyzed one may have it, too."""
    having = [at for at, version in enumerate(known) if version in releases]
    first, last = having[0], having[-1]
    since = f"since {known[first]}" if first else f"in {known[0]} and possibly earlier"
    if last == len(known) - 1:
        return f"{since} up to the newest release that was analyzed ({known[-1]})"
    return f"{since}, until {known[last]}" if first else f"from {known[0]} or earlier until {known[last]}"


_UNSUPPORTED = re.compile(
    r"not (?:yet |currently )?(?:be )?(?:support|implement|available|compatible|recogni[sz]e|allowed)|unsupported|no longer"
    r"|does(?: not|n't) (?:yet |currently )?support|only (?:supports?|available|implemented)|incompatible|unknown|unrecognized"
    r"|deprecated|cannot (?:find|import)|could not find|requires?\b|is required",
    re.IGNORECASE,
)

_OWN_FAULT = re.compile(
    r"\bbug report|\breport (?:this|the|a) (?:bug|issue|error|problem)"
    r"|\b(?:file|open|raise|submit|create) an? (?:bug|issue|ticket)|\b(?:should|must) (?:never|not) happen",
    re.IGNORECASE,
)
"""Messages in which a package suspects a fault of its own."""


def _fixes(seen: _Sighting, message: str, wanted: dict[str, str], facts: Facts, messages: Messages) -> Iterator[Fix]:
    """Yield the releases the message requires, the settings it recommends, and the nearest releases that do not raise it."""
    for name, specifier in wanted.items():
        version = version_of(name, facts)
        if version is None or not satisfies_specifier(version, specifier):
            yield release_asked_for(name, specifier)
    yield from (fix for fix in installs_in(message) if fix.package not in wanted)
    advised = [*settings_in(message), *divisors_in(message)]
    yield from advised or _by_separating(message)
    if seen.without:
        yield from _by_leaving(seen)
    elif _UNSUPPORTED.search(message) or _OWN_FAULT.search(message):
        yield from _by_moving(seen, wanted, facts, messages)


_CONFLICT = re.compile(
    r"(?:not|in)[- ]?compatible with|mutually exclusive|not (?:supported|allowed) (?:together )?with"
    r"|(?:can(?:no|')t|(?:should|must) not) be (?:used|combined|set|passed)|cannot (?:use|combine|specify|set|pass) both",
    re.IGNORECASE,
)
_OPTION = re.compile(r"[`'\"](?P<option>-{0,2}[A-Za-z_][\w.-]{1,60}(?:=\w{1,20})?)[`'\"]")


def _by_separating(message: str) -> Iterator[Fix]:
    """Yield what to leave out, if a message says that options exclude each other."""
    options = dict.fromkeys(match["option"] for match in _OPTION.finditer(message)) if _CONFLICT.search(message) else {}
    if options:
        yield Fix("config", text=f"leave out {' or '.join(list(options)[:3])}")


def _by_leaving(seen: _Sighting) -> Iterator[Fix]:
    """Yield the nearest releases without an assertion, newer and older than the installed one or all that have it.

    The latter also if the installed one is stated as a release that does not have it: another one raised the error.
    """
    package, having = seen.match.template.package, [*map(key_of, seen.match.template.versions)]
    at = key_of(seen.version.partition("+")[0]) if seen.version is not None and is_version(seen.version) else None
    first, last = (at, at) if at in having else (min(having), max(having))
    newer = [each for each in seen.without if key_of(each) > last]
    older = [each for each in seen.without if key_of(each) < first]
    if newer:
        yield upgrade_to(package, newer[0], "no longer has the assertion")
    if older:
        yield downgrade_to(package, older[-1], "does not have the assertion yet")


def _by_moving(seen: _Sighting, wanted: Collection[str], facts: Facts, messages: Messages) -> Iterator[Fix]:
    """Yield the next release without the message, unless it can raise a similar one here.

    A downgrade is suggested only if the message requires other releases: an unsupported feature did not work before either.
    """
    template = seen.match.template
    known = template.known
    at = [number for number, version in enumerate(known) if version in seen.releases]
    near = (place for place in messages.near(template) if _possible(place, facts, messages))
    still = {version for place in near for version in place.versions}
    if at[-1] + 1 < len(known) and still.isdisjoint((known[at[-1] + 1], known[-1])):
        yield upgrade_to(template.package, known[at[-1] + 1], "no longer raises it")
    if wanted and at[0] and known[at[0] - 1] not in still:
        yield downgrade_to(template.package, known[at[0] - 1], "does not raise it yet")


def _possible(place: Place, facts: Facts, messages: Messages) -> bool:
    """Whether none of a place's guards is known to be false."""
    return not any(condition_holds(condition_of(guard, messages.packages), facts) is False for guard in place.guards)
