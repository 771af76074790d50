"""Data of an index as records: files as listed on a page, and the metadata of files, parsed from METADATA and PKG-INFO."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from compat.model import normalized
from compat.redact import excerpt

if TYPE_CHECKING:
    from packaging.metadata import RawMetadata


class File(NamedTuple):
    """One wheel or source distribution on a page of an index; ``None`` means *not stated*.

    ``version`` is normalized, including its local label. ``yanked`` is the reason (may be empty) or ``None``.
    ``uploaded`` is UTC, ``2025-11-02T10:00:00Z``. ``metadata_sha`` is the sha256 of the metadata that the index serves
    next to the file (PEP 658), ``True`` if it states none. ``index`` has no credentials, and is "" for the default index.
    """

    name: str
    url: str
    filename: str
    version: str
    sha256: str | None
    size: int | None
    requires_python: str | None
    yanked: str | None
    uploaded: str | None
    kind: str
    metadata_sha: str | bool | None
    index: str  # type: ignore[assignment]  # hides tuple.index, which is not used

    @property
    def tags(self) -> tuple[str, str, str]:
        """The interpreter, ABI and platform tags of a wheel, as in its file name (``py2.py3``)."""
        _, python, abi, platform = self.filename.rsplit("-", 3)
        return python, abi, platform[: -len(".whl")]


class Requirement(NamedTuple):
    """One requirement: ``name`` and ``extras`` are normalized, ``marker`` is as formatted by packaging ("" for none)."""

    name: str
    specifier: str = ""
    extras: tuple[str, ...] = ()
    marker: str = ""
    url: str = ""


@dataclass(frozen=True)
class Metadata:
    """The requirements of a release. ``origin``: metadata (served next to the file), wheel or sdist."""

    requires: tuple[Requirement, ...]
    requires_python: str | None
    provides_extra: tuple[str, ...]
    origin: str


@dataclass(frozen=True)
class Page:
    """A page: its ``files`` (``None``: the index has no such page), its validators, and when it was ``read`` (Unix time)."""

    files: tuple[File, ...] | None
    etag: str = ""
    modified: str = ""
    read: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Reading:
    """The result of reading a file's metadata, and the sha256 of its bytes ("" if there were none)."""

    found: Metadata | Unusable
    digest: str


class Absent(Exception):
    """The index was reached and has no such page."""


class Unread(Exception):
    """Something could not be read, so its content is unknown; the message is the reason, without credentials."""


class Unusable(Exception):
    """A file was read and cannot be a candidate because of its content; this is permanent."""


LARGEST = 8 << 20
MOST_REQUIREMENTS = 5_000
LONGEST = 4_000
"""Maximum characters of a requirement, below the number of digits that :class:`int` refuses to parse."""
DEEPEST = 50
"""Maximum parentheses in a requirement: parsing and evaluating markers is recursive."""
_BUILT = {"requires-dist", "requires-python", "provides-extra"}


def parse_metadata(body: bytes, file: File, origin: str) -> Metadata:
    """Parse the metadata of a file.

    :class:`Unread` if it is not metadata or belongs to another release; :class:`Unusable` if a requirement is invalid, or
    if the requirements of a source distribution are only known after a build.
    """
    from packaging.metadata import parse_email  # cached metadata is not parsed again

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
    """Parse and normalize a requirement; ``ValueError`` with the text and the reason if it is invalid."""
    from packaging.requirements import Requirement as ParsedRequirement  # cached requirements are not parsed again

    text = " ".join(text.split())
    shown = repr(text if len(text) < 200 else f"{excerpt(text, 200)}…")
    if len(text) > LONGEST or text.count("(") > DEEPEST:
        raise ValueError(f"{shown}, which is too long or nested too deeply")
    try:
        parsed = ParsedRequirement(text)
        if parsed.marker is not None:
            # well-formed markers can still fail when evaluated (os_name ~= 'posix'): better here than in a plan
            parsed.marker.evaluate({"extra": "", "platform_release": "", "platform_version": ""})
    except (ValueError, RecursionError):
        raise ValueError(f"{shown}, which is not a valid requirement (PEP 508)") from None
    return Requirement(
        normalized(parsed.name), str(parsed.specifier), tuple(sorted(map(normalized, parsed.extras))), str(parsed.marker or ""),
        parsed.url or "",
    )  # fmt: skip


def _same_release(raw: RawMetadata, file: File) -> None:
    from packaging.version import Version

    name, version = raw.get("name"), raw.get("version")
    if not name or not version:
        raise Unread(f"{file.filename}: its metadata has no name and version")
    try:
        same = normalized(name.strip()) == file.name and Version(version) == Version(file.version)
    except ValueError:
        same = False
    if not same:
        raise Unread(f"{file.filename}: its metadata belongs to {excerpt(name.strip(), 100)} {excerpt(version.strip(), 100)}")


def _static(raw: RawMetadata, file: File) -> None:
    """Reject dynamic metadata: by PEP 643 it is only reliable from version 2.2 on, for fields not marked as dynamic."""
    try:
        version = tuple(int(part) for part in raw.get("metadata_version", "0").split("."))
    except ValueError:
        version = ()
    if version < (2, 2) or {field.lower() for field in raw.get("dynamic", [])} & _BUILT:
        raise Unusable(f"{file.filename}: its requirements are only known after it is built")
