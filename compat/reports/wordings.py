"""The wordings in which packages, installers and resolvers state the release that they require.

A form is a literal that every message of one wording contains, and a pattern that is tried only around that literal, so that
reading is linear in the text's length. The group ``part`` marks patterns that only count for known distributions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_N = r"[`'\"]?(?P<name>[A-Za-z][\w-]{0,60})(?:\[[\w,-]{0,60}\])?[`'\"]?"
_V = r"v?\d{1,6}(?:\.\w{1,20}){0,6}(?:\+\w[\w.]{0,40})?"
_S = rf"(?:[<>=!~]=|[<>]) ?{_V}(?:\.\*)?"
_SPEC = rf"(?P<spec>{_S}(?: ?, ?{_S}){{0,6}})"
_BY = rf"(?P<by>[A-Za-z][\w-]{{0,60}})(?:\[[\w,-]{{0,60}}\])?(?: |==)(?P<by_version>{_V})"
_FOUND = rf"(?P<found>{_V})"
_START = r"(?<![\w.-])"
_THERE = (
    r"(?:[^\n]{0,40}?\b(?:[Ff]ound|[Gg]ot|[Dd]etected|[Cc]urrent(?: version)?(?: is)?|[Yy]ou have|[Yy]our version is|installed)"
    rf"(?: version)?:? \(?{_FOUND})?"
)
"""The installed release, if the message goes on with it."""


_AROUND = 400
"""Number of characters searched for the message before and after a literal."""
_MOST = 40
"""Maximum number of occurrences read per literal."""


class Form:
    """One wording: a literal, and the pattern of the message around it."""

    def __init__(self, literal: str, pattern: str) -> None:
        self.literal = literal
        self.pattern = re.compile(pattern)

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        at, taken = text.find(self.literal), 0
        for _ in range(_MOST):
            if at < 0:
                return
            match = self.pattern.search(text, max(at - _AROUND, taken), at + _AROUND)
            if match is not None:
                taken = match.end()
                yield match
            at = text.find(self.literal, max(at + len(self.literal), taken - len(self.literal)))


FORMS = (
    # pip, after an installation; uv pip check
    Form(", but you have ", rf"{_START}{_BY} requires {_N}{_SPEC}(?:; [^,\n]{{0,80}})?, but you have [\w.-]{{1,60}} {_FOUND}"),
    # pip check, and pip before 20.3
    Form(" has requirement ", rf"{_START}{_BY} has requirement {_N}{_SPEC}(?:; [^,\n]{{0,80}})?, but you(?:'ll)? have "
        rf"[\w.-]{{1,60}} {_FOUND}"),
    Form(", which is not installed", rf"{_START}{_BY} requires {_N}(?:{_SPEC})?(?:; [^,\n]{{0,80}})?, which is not installed"),
    # resolvers: pip, uv and poetry
    Form(" depends on ", rf"{_START}{_BY} depends on {_N}{_SPEC}(?![\w.])"),
    Form(" depends on ",
        rf"{_START}(?P<by>[A-Za-z][\w-]{{0,60}}) \((?P<by_version>{_V})\) depends on {_N} \((?:{_SPEC}|(?P<exact>{_V}))\)"),
    Form("a different Python",
        rf"Package '(?P<by>[\w.-]{{1,60}})' requires a different (?P<name>Python): {_FOUND} not in '{_SPEC}'"),
    Form("the current Python version", rf"the current (?P<name>Python) version \({_FOUND}\) does not satisfy Python{_SPEC}"),
    # checks that packages make themselves
    Form("for a normal functioning of",
        rf"{_START}{_N}{_SPEC} is required for a normal functioning of this module, but found [\w-]{{1,60}}=={_FOUND}"),
    Form("you are using is not compatible",
        rf"[Tt]he version of {_N} you are using is not compatible, .{{0,80}}?(?P<least>{_V})(?=[\s.]*$|\s)"),
    Form("requires `", rf"requires `{_N}{_SPEC}`"),
    Form("`pip install ", rf"\brequires\b.{{0,160}}?`pip install [`'\"]?{_N}{_SPEC}[`'\"]?`"),
    Form("is less than the minimum required version",
        rf"{_START}{_N} is installed with version {_FOUND}, which is less than the minimum required version (?P<least>{_V})"),
    Form("with minimum required version", rf"{_START}{_N} with minimum required version (?P<least>{_V}) is not installed"),
    Form("requires the latest version of", rf"requires the latest version of {_N}"),
    Form(" or newer, found ",
        rf"{_START}(?P<by>[A-Za-z][\w-]{{0,60}}) requires {_N} (?P<least>{_V}) or newer, found {_FOUND}"),
    Form("Your version is", rf"requires {_N} ?{_SPEC} to be installed\. Your version is {_FOUND}"),
    Form("or newer of '",
        rf"{_START}(?P<by>[A-Za-z][\w-]{{0,60}}) requires version '(?P<least>{_V})' or newer of {_N}(?: \(version "
        rf"'{_FOUND}')?"),
    Form(" or less. Got ",
        rf"{_START}(?P<by>[A-Za-z][\w-]{{0,60}}) needs {_N} (?P<most>{_V}) or less\. Got [\w-]{{1,60}} {_FOUND}"),
    Form("Found an incompatible version of",
        rf"Found an incompatible version of {_N}\. Found version {_FOUND}, but only versions? above (?P<least>{_V})"),
    Form("lease upgrade",
        rf"[Pp]lease upgrade(?: your)? (?:to )?{_N}(?: version| to| to version)? ?(?:(?:>=|at least )? ?(?P<least>{_V})|"
        rf"{_SPEC})(?:[^\n]{{0,40}}?found (?:version )?{_FOUND})?"),
    Form(" to at least ", rf"\bupgrade {_N} to at least (?P<least>{_V})"),
    Form("distribution was not found and is required by",
        rf"The '{_N}{_SPEC}' distribution was not found and is required by (?P<by>[A-Za-z][\w-]{{0,60}})"),
    Form("lease update",
        rf"[Pp]lease update(?: your)? (?:to )?{_N}(?: version| to| to version)? ?(?:>=|at least )? ?(?P<least>{_V})"),
    Form("lease install", rf"[Pp]lease install [`'\"]?{_N}{_SPEC}"),
    Form(" at least ", rf"\b(?:[Rr]equires?|[Nn]eeds?|[Rr]equired) at least (?:version )?{_N}(?: version)? (?P<least>{_V})"),
    Form("requires at least version",
        rf"{_START}(?P<by>[A-Za-z][\w-]{{0,60}}) requires at least version (?P<least>{_V}) of {_N}"),
    Form(" is required",
        rf"{_START}{_N}(?: version)? ?{_SPEC} is required(?: (?:to|for|by)\b[^\n,;(]{{0,80}})?(?:[,;(]? ?\(?(?:but )?"
        rf"(?:found|got|you have|current version:?|your version is|installed:?) (?:version )?(?:[\w-]{{1,60}}(?:==| "
        rf"))?{_FOUND})?"),
    Form("currently installed", rf"requires {_N} ?{_SPEC}[^\n]{{0,40}}?(?P<found>{_V})(?: is|\)? ?are)? currently installed"),
    Form("but found", rf"\brequires {_N}(?: version)? ?{_SPEC},? but found (?:[\w-]{{1,60}}(?:==| ))?{_FOUND}"),
    Form("but got", rf"\brequires {_N}(?: version)? ?{_SPEC},? but got (?:[\w-]{{1,60}}(?:==| ))?{_FOUND}"),
    Form("but you have", rf"\brequires {_N}(?: version)? ?{_SPEC},? but you have (?:[\w-]{{1,60}}(?:==| ))?{_FOUND}"),
    Form("not supported", rf"{_START}{_N} version:? (?P<refused>{_V}) (?:is )?not supported"),
    Form("nsupported", rf"\b[Uu]nsupported {_N} version:? (?P<refused>{_V})(?![\w.]*\w)"),
    Form("compiled using NumPy 1.x",
        rf"compiled using (?P<name>NumPy) (?P<series>1)\.x cannot be run in\s{{1,20}}NumPy {_FOUND}"),
    Form("Disabling PyTorch because", rf"Disabling PyTorch because (?P<name>PyTorch) ?{_SPEC} is required but found {_FOUND}"),
    # the same in words; only of distributions that the tables know, since GPUs and drivers are required like this as well
    Form("equire",
        rf"(?<!you )\b(?P<part>[Rr]equires?) (?:a |an |the |both )?{_N}(?: package)?(?: version)? ?{_SPEC}(?!\.?\w)"
        rf"{_THERE}"),
    Form("eed",
        rf"\b(?P<part>[Nn]eeds?)(?: to have)? (?:a |an |the )?{_N}(?: version)? ?{_SPEC}(?!\.?\w){_THERE}"),
    *(
        Form(or_newer,
            rf"\b(?P<part>[Rr]equires?|[Nn]eeds?|[Pp]lease (?:use|install)) (?:a |an |the )?{_N}(?: version)? (?P<least>{_V})"
            rf"(?: version)?{re.escape(or_newer)}(?!\w){_THERE}")
        for or_newer in (" or newer", " or later", " or higher", " or above", " or greater", " and above", " and newer", "+",
                         " minimum")
    ),
    *(
        Form(is_needed, rf"{_START}{_N}(?: version)? (?P<least>{_V}){is_needed}(?!\w)")
        for is_needed in (" or newer is required", " or later is required", " or higher is required", " or newer is needed")
    ),
    Form(" be ",
        rf"{_START}{_N}(?: version)? (?P<part>must|should|has to|needs to) be (?:{_SPEC}|(?:at least"
        rf"|greater than(?: or equal to)?|higher than|newer than) (?P<least>{_V}))(?!\.?\w){_THERE}"),
    Form("upported ",
        rf"(?P<part>not (?:yet )?supported) (?:in|on|with|by|for) {_N}(?: versions?)? ?< ?(?P<least>{_V})(?!\.?\w)"),
    Form("ncompatible with ",
        rf"(?P<part>incompatible) with {_N}(?: versions?)? ?< ?(?P<least>{_V})(?!\.?\w)"),
    Form("only ",
        rf"\bonly (?:be )?(?P<part>supported|available|possible|works?) (?:in|on|with|for|by|from) {_N}(?: versions?)? ?{_SPEC}"
        rf"(?!\.?\w){_THERE}"),
    Form(" onwards", rf"(?P<part>supported|available) from {_N} (?P<least>{_V}) onwards"),
    Form(" is installed", rf"(?P<part>ensure|make sure)[^\n]{{0,30}}? {_N} ?{_SPEC}[`'\"]? is installed"),
)  # fmt: skip
