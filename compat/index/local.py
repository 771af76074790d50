"""Indexes and files on this machine: where a package's page lies, and whether it is still what was read."""

from __future__ import annotations

from pathlib import Path

from compat.index.records import Absent, Unread


def find_page(folder: Path, name: str | None) -> Path:
    """A package's page or folder below an index; the folder or page itself for a flat one (``name`` is ``None``).

    :class:`Absent` where there is none; an index that is not there at all is :class:`Unread`.
    """
    if not folder.exists():
        raise Absent if name is None else Unread(f"{folder} does not exist")
    if name is None:
        return folder
    place = folder / name
    page = place / "index.html"
    if page.is_file():
        return page
    if place.is_dir():
        return place
    raise Absent


def changed(place: Path) -> float:
    """When a file, or what lies in a folder, was last changed; 0 where it is not there any more."""
    try:
        return place.stat().st_mtime
    except OSError:
        return 0.0
