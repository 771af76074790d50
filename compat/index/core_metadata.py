"""METADATA and PKG-INFO: what is required, and whether it may be believed before a build."""

from __future__ import annotations

from packaging.metadata import RawMetadata, parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from compat.environment import normalized
from compat.index.records import File, Metadata, Unread, Unusable

LARGEST = 16 << 20
_BUILT = ("requires-dist", "requires-python", "provides-extra")


def parse_metadata(body: bytes, file: File, origin: str) -> Metadata:
    """What a file requires. :class:`Unread` where the text is another file's or none;

    :class:`Unusable` where a requirement cannot be read, or where a source distribution leaves it to its build.
    """
    raw, unparsed = parse_email(body)
    _same_release(raw, file)
    if file.kind == "sdist":
        _static(raw, file)
    requires = tuple(" ".join(text.split()) for text in raw.get("requires_dist", []))
    for text in requires:
        _readable(text, file)
    if "requires-dist" in unparsed:
        raise Unusable(f"{file.filename} requires something that is not UTF-8")
    extras = tuple(raw.get("provides_extra", []))
    return Metadata(requires, raw.get("requires_python") or None, extras, origin)


def _same_release(raw: RawMetadata, file: File) -> None:
    name, version = raw.get("name"), raw.get("version")
    if not name or not version:
        raise Unread(f"{file.filename}: its metadata has no name and version")
    try:
        same = normalized(name.strip()) == file.name and Version(version) == Version(file.version)
    except InvalidVersion:
        same = False
    if not same:
        raise Unread(f"{file.filename}: its metadata is that of {name.strip()} {version.strip()}")


def _static(raw: RawMetadata, file: File) -> None:
    """PEP 643: what a source distribution says holds for its wheels only from version 2.2 on, and only if not dynamic."""
    version = tuple(int(part) for part in raw.get("metadata_version", "0").split(".") if part.isdigit())
    if version < (2, 2) or {field.lower() for field in raw.get("dynamic", [])} & set(_BUILT):
        raise Unusable(f"{file.filename}: what it requires is only known after it was built")


def _readable(text: str, file: File) -> None:
    try:
        Requirement(text)
    except InvalidRequirement:
        raise Unusable(f"{file.filename} requires {text!r}, which is no requirement (PEP 508)") from None
