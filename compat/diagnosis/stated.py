"""Releases that packages, installers, resolvers and reports state: which one is required, and which one works.

Messages also recommend variables and options (:func:`settings_in`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from compat.checks import derived_findings
from compat.checks.code import providers
from compat.checks.fix_commands import by_pip
from compat.diagnosis.frame_packages import inferred, version_of
from compat.model import Distribution, Environment, Finding, Fix, normalized
from compat.records import replace
from compat.reports.stated import Wanted, meets, nameless_in, wanted_in
from compat.reports.wordings import is_denied
from compat.reports.words import distribution_of
from compat.versions import contains, is_version, key_of, ranges_of

if TYPE_CHECKING:
    from compat.reports.log.traceback import RaisedError
    from compat.rules.facts import Facts


_NAME = r"[`'\"]?(?P<name>[A-Za-z][A-Za-z0-9_-]{1,40})"
_OTHER = _NAME.replace("name", "other")
_NUMBER = r"v?(?P<number>\d+(?:\.\w+){0,4})(?![\w*])"
_LEAST = r"(?:version )?(?:of )?(?:at least |minimum (?:required )?version )?"
_REQUIRED = (
    re.compile(rf"{_NAME}(?:\[[\w,-]*\])? ?(?P<operator>>=|==|~=|<=|<|>) ?{_NUMBER}"),
    re.compile(rf"(?:at least|minimum (?:required )?version(?: of)?) {_NAME}[`'\"]?(?: version)? ?{_NUMBER}"),
    re.compile(
        rf"{_NAME}[`'\"]?(?: package)? (?:with )?(?:a )?{_LEAST}{_NUMBER} ?(?:or|and|\+)"
        r"(?: ?(?:newer|higher|later|above|greater|up)|$)"
    ),
    re.compile(
        r"(?:[Uu]pgrade|[Uu]pdate|requires?|needs?|[Ii]nstall) (?:to )?"
        rf"{_NAME}[`'\"]? (?:to )?(?:version )?(?:at least )?{_NUMBER}"
    ),
    re.compile(rf"{_NAME} (?:with minimum required )?version {_NUMBER} is (?:not installed|required)"),
)
_NEWER = re.compile(
    rf"(?:[Uu]pgrad|[Uu]pdat)(?:e|ing) (?:to the latest (?:version of )?)?(?:your )?(?:the )?{_NAME}"
    rf"|pip install (?:-U|--upgrade) {_OTHER}"
)
_INSTALL = re.compile(
    r"pip install (?:-U |--upgrade )?[`'\"]?(?P<name>[A-Za-z][\w-]{1,40})(?P<extra>\[[\w,-]{1,40}\])?(?![\w@:/.-])"
)
_QUOTED_NAME = r"(?P<quote>[`'\"]?)(?P<name>[A-Za-z][\w-]{1,40})(?P=quote)"
_BEFORE = r"(?:\b(?:[Pp]lease|[Nn]eeds? to|[Hh]ave to|[Mm]ust|[Mm]ake sure to|[Ff]irst|[Yy]ou can)|,)"
_AFTER = r"(?= (?:to|before|first|in|for|with|and|or|from|package|library|via|using)\b|[.!,;:(]|\s*$)"
_IN_WORDS = (
    re.compile(rf"{_BEFORE} (?:first )?install (?:the )?{_QUOTED_NAME}{_AFTER}"),
    re.compile(rf"\b(?:requires?|needs?) (?:the )?{_QUOTED_NAME} (?:library|package|module|to be installed)\b"),
    re.compile(
        rf"(?<![\w.-]){_QUOTED_NAME} (?:library |package |module )?(?:is|was) "
        r"(?:required|needed|not (?:installed|available|found))\b"
    ),
    re.compile(rf"\bThe {_QUOTED_NAME} distribution was not found"),
)
"""How messages ask for a package without a command."""
_CALLED = {
    "pytorch": "torch", "flashattention": "flash-attn", "flash-attention": "flash-attn", "flashinfer": "flashinfer-python",
}  # fmt: skip


def requirements_in(text: str, distributions: Collection[str]) -> dict[str, str]:
    """Return the distributions that a message requires → a specifier; "" for any newer release."""
    found: dict[str, str] = {}
    for pattern in _REQUIRED:
        for match in _asserted(pattern, text):
            name, number = _distribution(match["name"], distributions), match["number"].rstrip(".")
            if name and is_version(number):
                found.setdefault(name, f"{match.groupdict().get('operator') or '>='}{number}")
    for match in _asserted(_NEWER, text):
        name = _distribution(match["name"] or match["other"], distributions)
        if name:
            found.setdefault(name, "")
    return found


def _asserted(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches that the words before them do not deny."""
    return (match for match in pattern.finditer(text) if not is_denied(text, match.start()))


def _distribution(name: str, distributions: Collection[str]) -> str | None:
    name = _CALLED.get(name.lower(), normalized(name))
    return name if name in distributions else None


def satisfies_specifier(version: str, specifier: str) -> bool:
    """Whether a version satisfies a specifier; false for an empty or invalid one. The local label is ignored."""
    try:
        return bool(specifier) and contains(ranges_of(specifier), key_of(version.partition("+")[0]))
    except ValueError:
        return False


def release_asked_for(name: str, specifier: str) -> Fix:
    if not specifier:
        return by_pip("upgrade", name, None, "the message asks for a newer release")
    kind = "upgrade" if specifier[0] in ">~" else "downgrade" if specifier[0] == "<" else "pin"
    return by_pip(kind, name, specifier, "what the message asks for")


def installs_in(text: str) -> Iterator[Fix]:
    """Yield a fix for each known distribution that a message says to install, by a command or in words, in any release."""
    named: set[str] = set()
    for match in _asserted(_INSTALL, text):
        name = normalized(match["name"])
        if distribution_of(name) is not None and name not in named:
            named.add(name)
            yield Fix("pin", name, None, "what the message says to install", f"pip install {name}{match['extra'] or ''}")
    for known in (distribution_of(match["name"]) for pattern in _IN_WORDS for match in _asserted(pattern, text)):
        if known is not None and known not in named:
            named.add(known)
            yield by_pip("pin", known, None, "what the message asks for")


_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z`'\"])")
_VARIABLE = re.compile(
    r"\b(?:[Ss]et(?:ting)?|[Ee]xport|[Uu]s(?:e|ing)|[Dd]efine|via|with)\b[^.;]{0,60}?\b(?P<name>[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b"
    r"(?:[`'\"]? ?(?:=|to) ?[`'\"]?(?P<value>[\w./+-]*\w))?"
)
_OPTION = re.compile(
    r"\b(?:[Uu]s(?:e|ing)|[Ss]et(?:ting)?|[Pp]ass(?:ing)?|[Aa]dd|[Ss]pecify|[Tt]ry|[Dd]isabl(?:e|ing)|[Ee]nabl(?:e|ing))\b"
    r"[^;]{0,80}?(?:--\w[\w-]+|`[\w.]+ ?= ?[^`]{1,40}`|\b\w+=(?:True|False|None|['\"\d]))"
)


def sentences(text: str) -> list[str]:
    return _SENTENCE.split(text)


def settings_in(text: str) -> Iterator[Fix]:
    """Yield a fix for each sentence of a message that recommends a variable or an option, quoting the sentence."""
    for sentence in sentences(text):
        found = _VARIABLE.search(sentence)
        if found is not None:
            command = f"export {found['name']}={found['value']}" if found["value"] else None
            yield Fix("env-var", None, None, f"the message says: {sentence}", command)
        elif _OPTION.search(sentence):
            yield Fix("config", None, None, f"the message says: {sentence}")


_DIVISIBLE = re.compile(
    r"\((?P<whole>\d{1,7})\) (?:must|should|has to|needs to) be (?:evenly )?divisible by "
    r"(?:the )?(?P<what>[A-Za-z][\w -]{2,60}?) \((?P<by>\d{1,5})\)"
)
_OF_PROCESSES = re.compile(r"parallel|world|process|rank|GPU|device", re.IGNORECASE)


def divisors_in(text: str) -> Iterator[Fix]:
    """Yield the values that a message leaves for a number that has to divide another one, the largest below it first."""
    for found in _DIVISIBLE.finditer(text):
        whole, by = int(found["whole"]), int(found["by"])
        fitting = [number for number in range(min(by, whole) - 1, 0, -1) if whole % number == 0]
        if whole % by and fitting:
            kind = "launch" if _OF_PROCESSES.search(found["what"]) else "config"
            values = " or ".join(map(str, fitting[:3]))
            yield Fix(kind, text=f"set the {found['what'].strip()} to {values}, which divide {whole}")


STATED = "symptom-stated-requirement"
"""The rule of findings about a release that a message requires."""
_QUOTED = 140
"""Maximum number of characters quoted from a report."""
_MOST = 4
"""Maximum number of requirements reported per text; pip lists dozens."""


def stated_requirements(text: str, line: int, facts: Facts, *, in_words: bool = True) -> list[Finding]:
    """Return a finding for each release that ``text`` requires and that is not installed; ``line`` is the text's first line.

    Unless ``in_words``, only for messages that are about nothing but a requirement.
    """
    found = []
    named = [each for each in wanted_in(text) if in_words or not each.in_words]
    copies = {copy.name: copy.version for copy in facts.environment.distributions or ()}
    for wanted in named or filter(None, [nameless_in(text, copies)]):
        there = wanted.found or (facts.environment.python if wanted.name == "python" else version_of(wanted.name, facts))
        if there is not None and wanted.specifier and meets(there, wanted.specifier):
            continue  # another release was running
        if there is None and (renamed := _under_new_name(wanted, line, facts)) is not None:
            found.append(renamed)
            continue
        found.append(_finding(replace(wanted, found=there, line=line + wanted.line - 1)))
    # compiled companions require an exact pin; a range is often only what was tested
    found.sort(key=lambda finding: not any((fix.spec or "").startswith("==") for fix in finding.fixes))
    return found[:_MOST]


def _under_new_name(wanted: Wanted, line: int, facts: Facts) -> Finding | None:
    """Return the finding for a distribution that is required by its former name, and installed under the present one."""
    present = next(iter(providers(wanted.name.replace("-", "_"))), wanted.name)
    version = version_of(present, facts)
    if present == wanted.name or version is None:
        return None
    text = f"a release of the package that asks, which knows {present}"
    fix = by_pip("upgrade", wanted.by, None, text) if wanted.by else Fix("upgrade", None, None, text)
    return inferred(
        rule="symptom-renamed-distribution",
        origin="metadata",
        title=f"{wanted.name}{wanted.specifier} is required, but it is called {present} now, of which {version} is installed",
        why=f"The module {wanted.name} is in the distribution {present}. Code that asks for the version of {wanted.name} finds "
        "no metadata of that name.",
        packages={present: version, wanted.name: None},
        facts=("install",),
        fixes=(fix, by_pip("pin", wanted.name, wanted.specifier or None, "or the last releases under the former name")),
        here=f"the error on line {line + wanted.line - 1} of the text",
    )


def met_requirements(error: RaisedError, facts: Facts) -> list[Finding]:
    """Return a finding for a release that an error asks for although the environment has one that fits."""
    for wanted in wanted_in(error.message) if error.exception is not None else ():
        there = None if wanted.found or wanted.name == "python" else version_of(wanted.name, facts)
        if there is not None and wanted.specifier and meets(there, wanted.specifier):
            return [_met(wanted, there, error.line)]
    return []


def _met(wanted: Wanted, there: str, line: int) -> Finding:
    name = wanted.name
    show = f"import importlib.metadata as m, sys; print(sys.executable, m.version('{name}'))"
    return inferred(
        rule="symptom-requirement-met",
        origin="metadata",
        title=f"{name}{wanted.specifier} is required, and {there} is installed, but the process that failed did not see it",
        why="Packages look up what is installed once, when they are imported: a release that was installed into a running "
        "notebook or server counts after a restart. Otherwise another Python or another environment was running.",
        packages={name: there},
        facts=("install",),
        fixes=(
            Fix("launch", text="restart the process, or the notebook's runtime"),
            Fix("config", text="show what the failing Python sees", command=f'python -c "{show}"'),
        ),
        here=f"the error on line {line} of the text",
    )


def _finding(wanted: Wanted) -> Finding:
    name, spec, there = wanted.name, wanted.specifier, wanted.found
    of_python = name == "python"
    by = " ".join(filter(None, (wanted.by, wanted.by_version)))
    asked = f"{by} requires {name}{spec}" if by else f"{name}{spec or ' in a newer release'} is required"
    if there is not None and spec == f">{there.partition('+')[0]}":
        return _too_old(wanted, there)
    return Finding(
        rule=STATED,
        origin="metadata",
        verdict="possible" if there is None or not spec else "hit",
        effect="install" if wanted.by_version or of_python else "crash",
        title=f"{asked}, but {there} is installed" if there else asked,
        why=(wanted.by or "A package")
        + (" declares this; resolvers reject other versions." if wanted.by_version else " checks this itself, at run time."),
        packages={
            **({} if of_python else {name: there}),
            **({wanted.by: wanted.by_version} if wanted.by and wanted.by != name else {}),
        },
        facts=("python",) if of_python else (),
        fixes=_fixes(wanted),
        here=f"the error on line {wanted.line} of the text",
    )


def _too_old(wanted: Wanted, there: str) -> Finding:
    """Return the finding for a release that a message calls too old without saying which one it wants."""
    name = wanted.name
    return inferred(
        rule=STATED,
        origin="metadata",
        title=f"A package calls {name} {there} too old",
        why="It compares releases itself. If this one is the newest, or newer than the package, the comparison expects a build "
        "that no longer exists, such as a nightly build.",
        packages={name: there},
        fixes=(*_fixes(wanted), Fix("upgrade", None, None, f"a release of that package which knows this {name}")),
        here=f"the error on line {wanted.line} of the text",
    )


def _fixes(wanted: Wanted) -> tuple[Fix, ...]:
    """Return the required release, or, if both releases are known, the fixes derived for this pair of distributions."""
    name, spec = wanted.name, wanted.specifier
    if name == "python":
        return (Fix("config", text=f"use Python {spec}", command="uv venv --python 3.11"),)
    command = f'pip install "{name}{spec}"' if spec else f"pip install -U {name}"
    asked = Fix("pin" if spec else "upgrade", name, spec or None, "what is required", command)
    if wanted.found is None or wanted.by is None or wanted.by_version is None:
        return (asked,)
    both = Environment(distributions=(Distribution(wanted.by, wanted.by_version), Distribution(name, wanted.found)))
    known = next((each for each in derived_findings(both) if each.rule == f"requires-{wanted.by}-{name}"), None)
    return (asked,) if known is None else known.fixes
