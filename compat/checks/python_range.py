"""Pythons that a project admits and its requirements do not: uv, Poetry and PDM resolve for every one of them, and fail."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from compat.checks.choices import Requested
from compat.checks.contexts import Contexts
from compat.formats.listing import Entry, Listing
from compat.formats.registry import read_content
from compat.model import Distribution, Environment, Finding, Fix, Location, of_no_index
from compat.records import record
from compat.tables.declared import Declared, Package, Published, open_declared
from compat.versions import contains, is_version, key_of, ranges_of

RULE = "requires-python-too-wide"
_EVIDENCE = "https://docs.astral.sh/uv/concepts/resolution/#universal-resolution"
_STATED = re.compile(rb"^[ \t]*(requires-python|python)[ \t]*=[ \t]*(.*)$", re.MULTILINE)
KINDS = ("pyproject",)


@record(frozen=True)
class _Unserved:
    """A requirement without a release for the oldest Python, and the oldest Python that has one (``None``: none is known)."""

    text: str
    entry: Entry
    declares: str
    served: tuple[int, ...] | None


def judge(listing: Listing, asked: Requested, pythons: Mapping[tuple[str, str], str] | None = None) -> tuple[Finding, ...]:
    """Return a finding if the oldest Python that a project admits has no release of something that it requires there.

    Requirements whose marker excludes that Python do not count. Whatever target the project is checked for: tools that lock
    resolve for all Pythons. ``pythons`` is the Requires-Python of pins, by name and version, where an index was asked.
    """
    if listing.requires_python is None or listing.kind not in KINDS:
        return ()
    contexts = Contexts(listing, Environment(), asked)
    oldest = min((place.python[:2] for place in contexts.platforms), default=None)
    if oldest is None:
        return ()
    minors = sorted({place.python[:2] for place in contexts.platforms})
    here = 0
    for at, place in enumerate(contexts.platforms):
        here |= contexts.on_platform(at) if place.python[:2] == oldest else 0
    declared = open_declared()
    installed = contexts.installed()
    found = [
        unserved for entry, mask in zip(listing.entries, installed) if mask & here
        for unserved in _unserved(entry, oldest, minors, declared, pythons or {})
    ]  # fmt: skip
    return (_finding(listing, oldest, found),) if found else ()


def _unserved(
    entry: Entry, oldest: tuple[int, ...], minors: list[tuple[int, ...]], declared: Declared,
    pythons: Mapping[tuple[str, str], str],
) -> Iterator[_Unserved]:  # fmt: skip
    copy = entry.distribution
    if of_no_index(copy):
        return
    if copy.version is not None and (copy.name, copy.version) in pythons:
        admitted = [pythons[copy.name, copy.version]]
    else:
        package = declared.package(copy.name) if copy.name in declared else None
        admitted = [] if package is None else [each.requires_python for each in _releases(copy, package)]
    if not admitted or any(_supports(each, oldest) for each in admitted):
        return
    served = next((minor for minor in minors if any(_supports(each, minor) for each in admitted)), None)
    declares = admitted[-1]
    stated = f"=={copy.version}" if copy.version is not None else copy.specifier or ""
    yield _Unserved(f"{copy.name}{stated}", entry, declares, served)


def _releases(copy: Distribution, package: Package) -> list[Published]:
    """The releases that a requirement admits; none if it admits releases that are not recorded."""
    if copy.version is not None:
        release = package.published(copy.version) if is_version(copy.version) else None
        return [] if release is None else [release]
    try:
        admitted = ranges_of(copy.specifier or "")
    except ValueError:
        return []
    known = package.releases
    # releases before the first recorded one may be for older Pythons
    if not known or contains(admitted, key_of("0")) or contains(admitted, key_of(f"{known[0].version}.dev0")):
        return []
    return [each for each in known if each.yanked is None and contains(admitted, key_of(each.version))]


def _supports(requires_python: str, minor: tuple[int, ...]) -> bool:
    try:
        return not requires_python or contains(ranges_of(requires_python), key_of(f"{minor[0]}.{minor[1]}.99"))
    except ValueError:
        return True  # installers ignore what is not a specifier set


def _finding(listing: Listing, oldest: tuple[int, ...], found: list[_Unserved]) -> Finding:
    content = read_content(listing.file)
    match = _STATED.search(content)
    key, line = ("requires-python", None) if match is None else (match[1].decode(), content.count(b"\n", 0, match.start()) + 1)
    old = ".".join(map(str, oldest))
    first = found[0]
    others = f" ({len(found) - 1} more requirements have none, either)" if len(found) > 1 else ""
    floors = [each.served for each in found]
    needed = max((each for each in floors if each is not None), default=None)
    fixes = []
    if needed is not None and None not in floors:
        floor = ".".join(map(str, needed))
        value = f"^{floor}" if key == "python" else f">={floor}"
        fixes.append(Fix("config", text=f'set {key} = "{value}", the oldest Python that these requirements have releases for'))
    told = ", ".join(f"{each.text} (Python {each.declares})" for each in found[:4])
    more = f" and {len(found) - 4} more" if len(found) > 4 else ""
    return Finding(
        rule=RULE, origin="metadata", severity="warning", effect="install",
        title=f"{key} admits Python {old}, for which there is no {first.text}{others}",
        why=f"{listing.requires_python} includes Python {old}. uv, Poetry and PDM resolve a project for every Python that it "
        f"admits, so that locking it fails: {told}{more}.",
        packages={each.entry.distribution.name: each.entry.distribution.version for each in found},
        facts=("python",), fixes=tuple(fixes), evidence=(_EVIDENCE,), here=f"{key} {listing.requires_python}",
        location=Location(listing.file, line),
    )  # fmt: skip
