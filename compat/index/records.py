"""What an index says about a file, and what the file says about itself."""

from __future__ import annotations

from compat.records import record


@record(frozen=True)
class File:
    """One wheel or source distribution on a page of an index; ``None`` is *not said*.

    ``version`` is in its normal form, with its local label. ``yanked`` is the reason (it may be empty) or ``None``.
    ``uploaded`` is UTC, ``2025-11-02T10:00:00Z``. ``metadata_sha`` is the hash of the metadata that the index serves
    beside the file, ``True`` where it serves some and tells no hash. ``index`` carries no credentials.
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
    index: str

    @property
    def tags(self) -> tuple[str, str, str]:
        """The interpreter, ABI and platform tags of a wheel, each as the file name has it (``py2.py3``)."""
        _, python, abi, platform = self.filename[: -len(".whl")].rsplit("-", 3)
        return python, abi, platform


@record(frozen=True)
class Metadata:
    """What a release requires. ``origin``: metadata (served beside the file), wheel, sdist or installed."""

    requires_dist: tuple[str, ...]
    requires_python: str | None
    provides_extra: tuple[str, ...]
    origin: str


class Absent(Exception):
    """The index was reached and has no such page or file."""


class Unread(Exception):
    """Something could not be read, so what it says is unknown; the text says why, without credentials."""


class Unusable(Exception):
    """A file was read, and what it says makes it no candidate: that will not change."""
