"""METADATA and PKG-INFO: what is required, and whether it may be believed before a build."""

from __future__ import annotations

from functools import lru_cache

from packaging.markers import Marker
from packaging.metadata import RawMetadata, parse_email
from packaging.requirements import Requirement as ParsedRequirement
from packaging.version import InvalidVersion, Version

from compat.index.records import File, Metadata, Requirement, Unread, Unusable
from compat.model import normalized
from compat.redact import excerpt

LARGEST = 8 << 20
MOST_REQUIREMENTS = 5_000
LONGEST = 4_000
"""Characters of a requirement, below the digits that :class:`int` refuses to parse."""
DEEPEST = 50
"""Parentheses of a requirement: the parser and the evaluation of markers recurse."""
_BUILT = {"requires-dist", "requires-python", "provides-extra"}


def parse_metadata(body: bytes, file: File, origin: str) -> Metadata:
    """What a file requires. :class:`Unread` where the text belongs to another release or is no metadata;

    :class:`Unusable` where a requirement is invalid, or where a source distribution leaves it to its build.
    """
    raw, unparsed = parse_email(body)
    _same_release(raw, file)
    if file.kind == "sdist":
        _static(raw, file)
    texts = raw.get("requires_dist", [])
    if "requires-dist" in unparsed:
        raise Unusable(f"{file.filename} has a requirement that is not UTF-8")
    if len(texts) > MOST_REQUIREMENTS:
        raise Unusable(f"{file.filename} has more than {MOST_REQUIREMENTS} requirements")
    try:
        requires = tuple(map(parse_requirement, texts))
    except ValueError as problem:
        raise Unusable(f"{file.filename} requires {problem}") from None
    python = raw.get("requires_python") or None
    if python is not None and len(python) > LONGEST:
        raise Unusable(f"{file.filename} has a Requires-Python of {len(python)} characters")
    return Metadata(requires, python, tuple(raw.get("provides_extra", [])), origin)


@lru_cache(maxsize=1 << 16)
def parse_requirement(text: str) -> Requirement:
    """A requirement in normal form; ``ValueError`` with the text and what is wrong with it."""
    text = " ".join(text.split())
    shown = repr(text if len(text) < 200 else f"{excerpt(text, 200)}…")
    if len(text) > LONGEST or text.count("(") > DEEPEST:
        raise ValueError(f"{shown}, which is too long or nested too deeply")
    try:
        parsed = ParsedRequirement(text)
        if parsed.marker is not None:
            _evaluated(parsed.marker)
    except (ValueError, RecursionError):
        raise ValueError(f"{shown}, which is not a valid requirement (PEP 508)") from None
    return Requirement(
        normalized(parsed.name), str(parsed.specifier), tuple(sorted(map(normalized, parsed.extras))), str(parsed.marker or ""),
        parsed.url or "",
    )  # fmt: skip


def _evaluated(marker: Marker) -> None:
    """Markers can be well-formed and still fail when evaluated (``os_name ~= 'posix'``): better here than in a plan."""
    marker.evaluate({"extra": "", "platform_release": "", "platform_version": ""})


def _same_release(raw: RawMetadata, file: File) -> None:
    name, version = raw.get("name"), raw.get("version")
    if not name or not version:
        raise Unread(f"{file.filename}: its metadata has no name and version")
    try:
        same = normalized(name.strip()) == file.name and Version(version) == Version(file.version)
    except (InvalidVersion, ValueError):
        same = False
    if not same:
        raise Unread(f"{file.filename}: its metadata belongs to {excerpt(name.strip(), 100)} {excerpt(version.strip(), 100)}")


def _static(raw: RawMetadata, file: File) -> None:
    """PEP 643: what a source distribution says holds for its wheels only from version 2.2 on, and only if not dynamic."""
    try:
        version = tuple(int(part) for part in raw.get("metadata_version", "0").split("."))
    except ValueError:
        version = ()
    if version < (2, 2) or {field.lower() for field in raw.get("dynamic", [])} & _BUILT:
        raise Unusable(f"{file.filename}: its requirements are only known after it is built")
