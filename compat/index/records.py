"""What an index says about a file, and what the file says about itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class File(NamedTuple):
    """One wheel or source distribution on a page of an index; ``None`` is *not stated*.

    ``version`` is in its normal form, with its local label. ``yanked`` is the reason (it may be empty) or ``None``.
    ``uploaded`` is UTC, ``2025-11-02T10:00:00Z``. ``metadata_sha`` is the sha256 of the metadata that the index serves
    beside the file (PEP 658), ``True`` where it states none. ``index`` has no credentials, and is "" for the default index.
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
    index: str  # type: ignore[assignment]  # a tuple has a method of this name, which nobody needs here

    @property
    def tags(self) -> tuple[str, str, str]:
        """The interpreter, ABI and platform tags of a wheel, each as the file name has it (``py2.py3``)."""
        _, python, abi, platform = self.filename[: -len(".whl")].rsplit("-", 3)
        return python, abi, platform


class Requirement(NamedTuple):
    """One requirement: ``name`` and ``extras`` normalized, ``marker`` in packaging's spelling ("" for none)."""

    name: str
    specifier: str = ""
    extras: tuple[str, ...] = ()
    marker: str = ""
    url: str = ""


@dataclass(frozen=True)
class Metadata:
    """What a release requires. ``origin``: metadata (served beside the file), wheel or sdist."""

    requires: tuple[Requirement, ...]
    requires_python: str | None
    provides_extra: tuple[str, ...]
    origin: str


@dataclass(frozen=True)
class Page:
    """A page: its ``files`` (``None``: the index has no such page), what to revalidate it with, and when it was kept."""

    files: tuple[File, ...] | None
    etag: str = ""
    modified: str = ""
    read: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Reading:
    """What came of reading a file's metadata, and the sha256 computed of its bytes ("" where there were none)."""

    found: Metadata | Unusable
    digest: str


class Absent(Exception):
    """The index was reached and has no such page."""


class Unread(Exception):
    """Something could not be read, so what it says is unknown; the text says why, without credentials."""


class Unusable(Exception):
    """A file was read, and what it says makes it no candidate: that will not change."""
