"""What messages say in their own words: which release of what is wanted by whom, and what was found instead.

Packages, installers and resolvers each have their own wording for it. A grammar is a literal that every such message has,
and a pattern that is tried only around that literal, so that reading a text is linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compat import versions
from compat.model import Accelerator, Distribution, Environment, normalized
from compat.records import record, replace
from compat.reports.words import distribution_of


@record(frozen=True)
class Wanted:
    """A release of ``name`` (``"python"`` for the interpreter) that a text says is needed, as a specifier; empty: any,
    or a newer one.

    ``found`` is the release that is there, ``by`` and ``by_version`` who wants the other one, ``line`` where it stands, from 1.
    """

    name: str
    specifier: str
    found: str | None
    by: str | None
    by_version: str | None
    line: int


_N = r"[`'\"]?(?P<name>[A-Za-z][\w-]{0,60})(?:\[[\w,-]{0,60}\])?[`'\"]?"
_V = r"v?\d{1,6}(?:\.\w{1,20}){0,6}(?:\+\w[\w.]{0,40})?"
_S = rf"(?:[<>=!~]=|[<>]) ?{_V}(?:\.\*)?"
_SPEC = rf"(?P<spec>{_S}(?: ?, ?{_S}){{0,6}})"
_BY = rf"(?P<by>[A-Za-z][\w-]{{0,60}})(?:\[[\w,-]{{0,60}}\])?(?: |==)(?P<by_version>{_V})"
_FOUND = rf"(?P<found>{_V})"
_START = r"(?<![\w.-])"


def _g(hint: str, pattern: str) -> tuple[str, re.Pattern[str]]:
    return hint, re.compile(pattern)


_GRAMMARS = (
    # pip, after an installation; uv pip check
    _g(", but you have ", rf"{_START}{_BY} requires {_N}{_SPEC}(?:; [^,\n]{{0,80}})?, but you have [\w.-]{{1,60}} {_FOUND}"),
    _g(", which is not installed", rf"{_START}{_BY} requires {_N}{_SPEC}(?:; [^,\n]{{0,80}})?, which is not installed"),
    # resolvers: pip, uv and poetry
    _g(" depends on ", rf"{_START}{_BY} depends on {_N}{_SPEC}(?![\w.])"),
    _g(" depends on ",
        rf"{_START}(?P<by>[A-Za-z][\w-]{{0,60}}) \((?P<by_version>{_V})\) depends on {_N} \((?:{_SPEC}|(?P<exact>{_V}))\)"),
    _g("a different Python",
        rf"Package '(?P<by>[\w.-]{{1,60}})' requires a different (?P<name>Python): {_FOUND} not in '{_SPEC}'"),
    _g("the current Python version", rf"the current (?P<name>Python) version \({_FOUND}\) does not satisfy Python{_SPEC}"),
    # checks that packages make themselves
    _g("for a normal functioning of",
        rf"{_START}{_N}{_SPEC} is required for a normal functioning of this module, but found [\w-]{{1,60}}=={_FOUND}"),
    _g("you are using is not compatible",
        rf"[Tt]he version of {_N} you are using is not compatible, .{{0,80}}?(?P<least>{_V})(?=[\s.]*$|\s)"),
    _g("requires `", rf"requires `{_N}{_SPEC}`"),
    _g("`pip install ", rf"\brequires\b.{{0,160}}?`pip install [`'\"]?{_N}{_SPEC}[`'\"]?`"),
    _g("with minimum required version", rf"{_START}{_N} with minimum required version (?P<least>{_V}) is not installed"),
    _g("requires the latest version of", rf"requires the latest version of {_N}"),
    _g(" or newer, found ", rf"{_START}(?P<by>[A-Za-z][\w-]{{0,60}}) requires {_N} (?P<least>{_V}) or newer, found {_FOUND}"),
    _g("Your version is", rf"requires {_N} ?{_SPEC} to be installed\. Your version is {_FOUND}"),
    _g("or newer of '",
        rf"{_START}(?P<by>[A-Za-z][\w-]{{0,60}}) requires version '(?P<least>{_V})' or newer of {_N}(?: \(version "
        rf"'{_FOUND}')?"),
    _g(" or less. Got ",
        rf"{_START}(?P<by>[A-Za-z][\w-]{{0,60}}) needs {_N} (?P<most>{_V}) or less\. Got [\w-]{{1,60}} {_FOUND}"),
    _g("Found an incompatible version of",
        rf"Found an incompatible version of {_N}\. Found version {_FOUND}, but only versions? above (?P<least>{_V})"),
    _g("lease upgrade",
        rf"[Pp]lease upgrade(?: your)? (?:to )?{_N}(?: version| to| to version)? ?(?:(?:>=|at least )? ?(?P<least>{_V})|"
        rf"{_SPEC})(?:[^\n]{{0,40}}?found (?:version )?{_FOUND})?"),
    _g(" to at least ", rf"\bupgrade {_N} to at least (?P<least>{_V})"),
    _g("distribution was not found and is required by",
        rf"The '{_N}{_SPEC}' distribution was not found and is required by (?P<by>[A-Za-z][\w-]{{0,60}})"),
    _g("lease update",
        rf"[Pp]lease update(?: your)? (?:to )?{_N}(?: version| to| to version)? ?(?:>=|at least )? ?(?P<least>{_V})"),
    _g("lease install", rf"[Pp]lease install [`'\"]?{_N}{_SPEC}"),
    _g(" at least ", rf"\b(?:[Rr]equires?|[Nn]eeds?|[Rr]equired) at least (?:version )?{_N}(?: version)? (?P<least>{_V})"),
    _g("requires at least version",
        rf"{_START}(?P<by>[A-Za-z][\w-]{{0,60}}) requires at least version (?P<least>{_V}) of {_N}"),
    _g(" is required",
        rf"{_START}{_N}(?: version)? ?{_SPEC} is required(?: (?:to|for|by)\b[^\n,;(]{{0,80}})?(?:[,;(]? ?\(?(?:but )?"
        rf"(?:found|got|you have|current version:?|your version is|installed:?) (?:version )?(?:[\w-]{{1,60}}(?:==| "
        rf"))?{_FOUND})?"),
    _g("currently installed", rf"requires {_N} ?{_SPEC}[^\n]{{0,40}}?(?P<found>{_V})(?: is|\)? ?are)? currently installed"),
    _g("but found", rf"\brequires {_N}(?: version)? ?{_SPEC},? but found (?:[\w-]{{1,60}}(?:==| ))?{_FOUND}"),
    _g("but got", rf"\brequires {_N}(?: version)? ?{_SPEC},? but got (?:[\w-]{{1,60}}(?:==| ))?{_FOUND}"),
    _g("but you have", rf"\brequires {_N}(?: version)? ?{_SPEC},? but you have (?:[\w-]{{1,60}}(?:==| ))?{_FOUND}"),
    _g("compiled using NumPy 1.x",
        rf"compiled using (?P<name>NumPy) (?P<series>1)\.x cannot be run in\s{{1,20}}NumPy {_FOUND}"),
    _g("Disabling PyTorch because", rf"Disabling PyTorch because (?P<name>PyTorch) ?{_SPEC} is required but found {_FOUND}"),
)  # fmt: skip
_AROUND = 400
"""Characters before and after a literal in which its message is looked for."""
_MOST = 40
"""Places of one literal that are looked at."""


def wanted_in(text: str) -> tuple[Wanted, ...]:
    """Everything that a text says is wanted, each once, in the order of the grammars."""
    found: dict[tuple[str, str, str | None], Wanted] = {}
    for hint, pattern in _GRAMMARS:
        for match in _places(text, hint, pattern):
            wanted = _wanted(match[0], match[1])
            if wanted is None:
                continue
            same = [key for key in found if key[:2] == (wanted.name, wanted.specifier) and wanted.by in (None, key[2])]
            for key in same:
                found[key] = replace(found[key], found=found[key].found or wanted.found)
            if not same:
                found[wanted.name, wanted.specifier, wanted.by] = wanted
    return tuple(found.values())


def _places(text: str, hint: str, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], int]]:
    """The matches of a pattern around its literal, each with its line."""
    at, taken = text.find(hint), 0
    for _ in range(_MOST):
        if at < 0:
            return
        start = max(at - _AROUND, taken)
        match = pattern.search(text, start, at + _AROUND)
        if match is not None:
            taken = match.end()
            yield match, text.count("\n", 0, match.start()) + 1
        at = text.find(hint, max(at + len(hint), taken - len(hint)))


def _wanted(match: re.Match[str], line: int) -> Wanted | None:
    groups = {key: value.rstrip(".,") for key, value in match.groupdict().items() if value}
    name = distribution_of(groups["name"]) or normalized(groups["name"])
    specifier = groups.get("spec", "").replace(" ", "")
    if "least" in groups:
        specifier = f">={groups['least'].removeprefix('v')}"
    elif "exact" in groups:
        specifier = f"=={groups['exact']}"
    elif "most" in groups:
        specifier = _up_to(groups["most"])
    elif "series" in groups:
        specifier = f"<{int(groups['series']) + 1}"
    if "least" in groups and "by" not in groups and "found" not in groups and distribution_of(groups["name"]) is None:
        return None  # "please update your driver to 550"
    found = groups.get("found", "").removeprefix("v") or None
    if specifier and not _is_specifier(specifier):
        return None
    if found is not None and not versions.is_version(found):
        found = None
    if found is not None and specifier and meets(found, specifier):
        return None
    by = groups.get("by")
    return Wanted(name, specifier, found, by and (distribution_of(by) or normalized(by)), groups.get("by_version"), line)


def _up_to(release: str) -> str:
    """``2.2 or less`` means every 2.2.x."""
    *before, last = release.split(".")
    return f"<{'.'.join([*before, str(int(last) + 1)])}" if last.isdecimal() else f"<={release}"


def _is_specifier(text: str) -> bool:
    try:
        versions.ranges_of(text)
    except ValueError:
        return False
    return True


def meets(version: str, specifier: str) -> bool:
    """Whether a release lies within a specifier; a local label does not count."""
    if not versions.is_version(version):
        return False
    return versions.contains(versions.ranges_of(specifier), versions.key_of(version.partition("+")[0]))


# --- Facts about the machine that a message names on its way.


_GPU = r"(?P<gpu>[A-Z][\w .()/-]{2,60}?)"
_FACTS = (
    _g("CUDA capability sm_", rf"(?:^|\n){_GPU} with CUDA capability sm_(?P<code>\d{{2,3}})a? is not compatible"),
    _g("GPU has compute capability", rf"[Yy]our {_GPU} GPU has compute capability (?P<capability>\d{{1,2}}\.\d)"),
    _g("which is of cuda capability", rf"Found GPU\d{{1,3}} {_GPU} which is of cuda capability (?P<capability>\d{{1,2}}\.\d)"),
    _g("Current capability: ", r"Current capability: (?P<code>\d{2,3})\b"),
    _g("detected CUDA version", r"detected CUDA version \((?P<cuda_toolkit>\d{1,2}\.\d{1,2})\)"),
)


def told_in(text: str) -> Environment:
    """The environment as far as error messages tell it: releases found, the Python, a GPU, the CUDA toolkit."""
    releases: dict[str, set[str]] = {}
    for wanted in wanted_in(text):
        for name, version in ((wanted.name, wanted.found), (wanted.by, wanted.by_version if wanted.found else None)):
            if name is not None and version is not None:
                releases.setdefault(name, set()).add(version)
    pythons = releases.pop("python", set())
    facts: dict[str, str] = {}
    for hint, pattern in _FACTS:
        for match, _ in _places(text, hint, pattern):
            facts.update({key: value for key, value in match.groupdict().items() if value})
    code = facts.get("code")
    capability = facts.get("capability") or (f"{code[:-1]}.{code[-1]}" if code else None)
    name = facts.get("gpu")
    return Environment(
        python=pythons.pop() if len(pythons) == 1 else None,
        distributions=tuple(Distribution(name, found.pop()) for name, found in sorted(releases.items()) if len(found) == 1)
        or None,
        accelerators=(Accelerator("nvidia", name, capability, extra={"more": True}),) if name or capability else None,
        cuda_toolkit=facts.get("cuda_toolkit"),
    )
