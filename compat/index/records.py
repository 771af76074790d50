"""Records of index data: files as listed on a page, and the metadata of files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


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
        _, python, abi, platform = self.filename[: -len(".whl")].rsplit("-", 3)
        return python, abi, platform


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
