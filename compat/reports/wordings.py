"""The wordings in which packages, installers and resolvers state the release that they require, and tags of wheels in them.

A form is a literal that every message of one wording contains, and a pattern that is tried only around that literal, so that
reading is linear in the text's length. The group ``part`` marks patterns that only count for known distributions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compat.records import record

_N = r"[`'\"]?(?P<name>[A-Za-z][\w-]{0,60})(?:\[[\w,-]{0,60}\])?[`'\"]?"
_NN = r"[`'\"]?(?P<name>[A-Za-z][\w-]{0,60}(?: [A-Z][a-z]{2,20})?)[`'\"]?"
"""A name that may have two words ("Flash Attention"); only for forms that ask for known distributions."""
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


_DENIED = re.compile(
    r"(?:n['’]t|\b(?:not|never|no longer|cannot|had to|tried to))"
    r"(?: (?:need|needed|have|want|try|required?|to|you|first|just|also|run)){0,6}[ `'\"]*$"
)
"""What stands before a requirement that a text denies, or tells of the past ("do not upgrade", "I had to upgrade")."""


def is_denied(text: str, at: int) -> bool:
    """Whether the words before ``at`` deny what follows there."""
    return _DENIED.search(text, max(at - 60, 0), at) is not None


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
    Form(" depends on ", rf"{_START}(?P<by>[A-Za-z][\w-]{{0,60}})[<>]=?{_V} depends on {_N}{_SPEC}(?![\w.])"),
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
    Form(", got ", rf"{_START}(?P<by>[A-Za-z][\w-]{{0,60}}) requires {_N} ?{_SPEC}, got {_FOUND}"),
    Form("requires the latest version of", rf"requires the latest version of {_N}"),
    Form(" or newer, found ",
        rf"{_START}(?P<by>[A-Za-z][\w-]{{0,60}}) requires {_N} (?P<least>{_V}) or newer, found {_FOUND}"),
    Form("Your version is", rf"requires {_N} ?{_SPEC} to be installed\. Your version is {_FOUND}"),
    Form("or newer of '",
        rf"{_START}(?P<by>[A-Za-z][\w-]{{0,60}}) requires version '(?P<least>{_V})' or newer of {_N}(?: \(version "
        rf"'{_FOUND}')?"),
    Form(" or less",
        rf"{_START}(?P<by>[A-Za-z][\w-]{{0,60}}) needs {_N} (?P<most>{_V}) or less"
        rf"(?:\. Got [\w-]{{1,60}} {_FOUND}|\.?\s*(?:\n|$))"),
    Form("Found an incompatible version of",
        rf"Found an incompatible version of {_N}\. Found version {_FOUND}, but only versions? above (?P<least>{_V})"),
    Form("lease upgrade",
        rf"[Pp]lease upgrade(?: your)? (?:to )?{_N}(?: version| to| to version)? ?(?:(?:>=|at least )? ?(?P<least>{_V})|"
        rf"{_SPEC})(?:[^\n]{{0,40}}?found (?:version )?{_FOUND})?"),
    Form(" to at least ", rf"\bupgrade {_N} to at least (?P<least>{_V})"),
    Form("distribution was not found and is required by",
        rf"The '{_N}{_SPEC}' distribution was not found and is required by (?P<by>[A-Za-z][\w-]{{0,60}})"),
    # setuptools, when a program starts
    Form("Requirement.parse(",
        rf"\((?P<name>[A-Za-z][\w.-]{{0,60}}) {_FOUND} \([^()\n]{{0,300}}\), Requirement\.parse\(['\"][\w.-]{{1,60}}"
        rf"(?:\[[\w,-]{{0,60}}\])?{_SPEC}[^'\"\n]{{0,100}}['\"]\)(?:, \{{['\"](?P<by>[A-Za-z][\w-]{{0,60}})['\"])?"),
    *(
        Form(asking,
            rf"(?P<part>[Pp]lease (?:update|upgrade)) (?:your |the )?{_N}(?: package| library)?"
            r"(?= (?:and|via|using|by) | to (?:the latest|a newer|a later)|[.!]?\s*$|[.!] )")
        for asking in ("lease update", "lease upgrade")
    ),
    Form("pgrade ", rf"\b[Uu]pgrade {_N} to (?:version )?(?P<least>{_V}) or (?:higher|newer|later|above)"),
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
    Form("not supported",
        rf"{_START}{_N} version:? (?P<refused>{_V}) (?:is )?not supported"
        r"(?:[.,:;]? (?:[Cc]urrently )?(?:[Ss]upported|[Oo]nly) versions? (?:are|is):? "
        rf"(?P<listed>{_V}(?:,? (?:and |or )?{_V}){{0,20}}))?"),
    Form(" not new enough", rf"{_START}{_N}(?: (?P<old>{_V}))? (?P<part>is not new enough)"),
    Form(" too old", rf"{_START}{_N}(?:'s)?(?: version)? (?P<old>{_V}) (?:is|was) too old\b"),
    Form("nsupported", rf"\b[Uu]nsupported {_N} version:? (?P<refused>{_V})(?![\w.]*\w)"),
    Form("compiled using NumPy 1.x",
        rf"compiled using (?P<name>NumPy) (?P<series>1)\.x cannot be run in\s{{1,20}}NumPy {_FOUND}"),
    Form("Disabling PyTorch because", rf"Disabling PyTorch because (?P<name>PyTorch) ?{_SPEC} is required but found {_FOUND}"),
    # the same in words; only of distributions that the tables know, since GPUs and drivers are required like this as well
    Form("equire",
        rf"(?<!you )\b(?P<part>[Rr]equires?) (?:a |an |the |both )?{_N}(?: package)?(?: version)? ?{_SPEC}(?!\.?\w)"
        rf"{_THERE}"),
    *(
        Form(asks, rf"\b(?P<part>{asks.strip()})(?: for)? (?:a |an |the )?{_N}(?: version)? ?{_SPEC}(?!\.?\w){_THERE}")
        for asks in (" checks ", " wants ", " asks ", " demands ", " expects ")
    ),
    Form("eed",
        rf"\b(?P<part>[Nn]eeds?)(?: to have)? (?:a |an |the )?{_N}(?: version)? ?{_SPEC}(?!\.?\w){_THERE}"),
    *(
        Form(or_newer,
            rf"\b(?P<part>[Rr]equire[sd]?|[Nn]eeds?|wants|demands|[Pp]lease (?:use|install)) (?:a |an |the )?{_NN}"
            rf"(?: version)? (?P<least>{_V})(?: version)?{re.escape(or_newer)}(?!\w){_THERE}")
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
    *(
        Form("upported ",
            rf"\b[Ss]upported {of_name} (?:are|is):? {_SPEC}"
            rf"(?:[.,;]? (?:[Ff]ound|[Gg]ot|[Ii]nstalled:?) (?:[\w-]{{1,60}} )?{_FOUND})?")
        for of_name in (rf"{_N} versions?", rf"versions? of {_N}")
    ),
    Form(" onwards", rf"(?P<part>supported|available) from {_N} (?P<least>{_V}) onwards"),
    Form(" is installed", rf"(?P<part>ensure|make sure)[^\n]{{0,30}}? {_N} ?{_SPEC}[`'\"]? is installed"),
)  # fmt: skip


_NAME = r"(?P<name>[A-Za-z][\w.-]{0,60}?)"
_VERSION = r"(?P<version>\d[\w.+!-]{0,40})"
_MARKER = r"(?:\[[\w,-]{1,60}\])?(?:\{[^{}\n]{0,200}\})?"
_TAG = re.compile(r"`(?P<tag>[a-z]\w{1,40})`")
_UNFIT = re.compile(
    rf"(?:^|[\s`(]){_NAME}{_MARKER}(?:==|>=){_VERSION}[^\n]{{0,40}}? ha(?:s|ve) no (?:usable )?wheels"
    r"(?:\s(?:are available )?with a matching [\w ]{3,30}? tags?(?: \(e\.g\.,\s`(?P<tag>\w{2,40})`\))?)?"
    rf"|Distribution `{_NAME.replace('name', 'name_2')}=={_VERSION.replace('version', 'version_2')} @ [^`\n]{{1,200}}` can't be"
    r"\sinstalled because it doesn't have a source distribution or\swheel for the current platform",
)
_HERE = re.compile(
    r"You're (?:using|on) [\w. ]{2,30}?\(`(?P<tag>\w{2,40})`\)|You require [\w. ]{2,30}?\(`(?P<tag_2>\w{2,40})`\)"
)
_OFFER = r"(?:only has wheels (?:for|with)|only found wheels for `{0}`|Wheels are available for `{0}`)[^:\n]{{0,120}}:"
_LISTED = re.compile(r"[^\n]{0,600}")
_OF_SYSTEM = {"win": "windows", "macosx": "darwin", "manylinux": "linux", "musllinux": "linux", "linux": "linux"}
_SPELLED = {"amd64": "x86_64"}
_WRAPPED = re.compile(r"\n[ \t│]{4,}(?!hint:|help:|And )")
_PLATFORM = re.compile(
    r"(?P<system>manylinux|musllinux|macosx|linux|win)(?P<release>_\d{1,2}_\d{1,3}|\d{4}|1)?_?(?P<machine>\w+)?$"
)


@record(frozen=True)
class Tag:
    """What one tag says: a Python (``3.13``), or a system, its processor and the version of its C library."""

    python: str | None = None
    system: str | None = None
    machine: str | None = None
    glibc: str | None = None


@record(frozen=True)
class Unfit:
    """A release without a wheel that fits: the tag of this machine that none has, and the tags that its wheels have.

    ``of_python``: the message says that it is the Python, with or without naming it.
    """

    name: str
    version: str
    here: Tag
    offered: tuple[Tag, ...]
    of_python: bool = False


def tag_of(text: str) -> Tag:
    """Read ``cp313``, ``manylinux_2_31_x86_64``, ``macosx_14_0_arm64`` or ``win_amd64``; empty for any other."""
    found = re.fullmatch(r"cp(\d)(\d{1,2})t?", text)
    if found is not None:
        return Tag(python=f"{found[1]}.{found[2]}")
    match = _PLATFORM.match(text)
    if match is None:
        return Tag()
    release = (match["release"] or "").strip("_").replace("_", ".")
    return Tag(
        system=_OF_SYSTEM[match["system"]],
        machine=_SPELLED.get(match["machine"], match["machine"]),
        glibc=release if match["system"] == "manylinux" and "." in release else None,
    )


_OF_UV = ("conclude", "hint:", "can't be", "has no wheels", "have no wheels")


def is_of_uv(text: str) -> bool:
    """Whether a text may have messages of uv's resolver; a log of megabytes is not searched for nothing."""
    return any(part in text for part in _OF_UV)


def unwrapped(text: str) -> str:
    """Join the lines of uv's messages, which go on with indentation."""
    return _WRAPPED.sub(" ", text)


def unfit_in(text: str) -> Iterator[Unfit]:
    """Yield the releases of which uv says that no wheel fits, with the tags that it names."""
    text = unwrapped(text) if is_of_uv(text) else ""
    for match in _UNFIT.finditer(text):
        name, version = match["name"] or match["name_2"], match["version"] or match["version_2"]
        after = text[match.end() : match.end() + 4000]
        own = _HERE.search(after)
        tag = match["tag"] or (own and (own["tag"] or own["tag_2"])) or ""
        offer = re.search(_OFFER.format(re.escape(name)), after)
        listed = _LISTED.match(after, offer.end()) if offer is not None else None
        offered = tuple(tag_of(each["tag"]) for each in _TAG.finditer(listed[0])) if listed is not None else ()
        yield Unfit(name, version.rstrip(".,"), tag_of(tag), offered, "matching Python" in match[0])
