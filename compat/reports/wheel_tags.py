"""Tags of wheels in the messages of installers: what they say about the machine, and what a release offers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compat.records import record

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
    """A release without a wheel that fits: the tag of this machine that none has, and the tags that its wheels have."""

    name: str
    version: str
    here: Tag
    offered: tuple[Tag, ...]


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
        yield Unfit(name, version.rstrip(".,"), tag_of(tag), offered)
