"""One installed distribution's own files (``*.dist-info``, ``*.egg-info``), read as bytes; nothing is imported."""

from __future__ import annotations

import os

from compat.environment import Distribution, Source, normalized
from compat.versions import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_FIRST = 1 << 11
"""Name and version stand in the first lines of METADATA; what is not needed is not read."""
_LIMIT = 1 << 22
"""A METADATA header is a few kB; beyond this it is not one."""


def read_distribution(folder: str, name: str, notes: list[str]) -> Distribution | None:
    """The distribution whose metadata is ``folder/name``; ``None`` (and a note) where not even a version can be told.

    ``name`` ends in ``.dist-info`` or ``.egg-info``. A METADATA file that is missing or cut short is said in ``notes``
    and the folder's name is used instead.
    """
    path = f"{folder}/{name}"
    for read in (_beginning, _searched):
        header, whole = _header(path, name, read)
        project = _field(header, b"\nName:") if header else None
        version = _field(header, b"\nVersion:") if header else None
        if whole and project and version:
            break
    if not whole or not project or not version:
        state = "is missing" if header is None else "is cut short"
        project, version = _completed(name, project if whole else None, version if whole else None)
        if version is None:
            notes.append(f"{path}: neither METADATA nor the folder's name tells a version; it is left out")
            return None
        notes.append(f"{path}: its METADATA {state}; name and version are taken from the name of the folder")
    try:
        key_of(version)
    except ValueError:
        notes.append(f"{path}: {version!r} is not a version (PEP 440); it counts as unknown")
        version = None
    source = _source(path, notes)
    if source is INDEX and version is not None and ".dev" in version:
        source = _NIGHTLY  # no index has told where a development version comes from
    return Distribution(name=normalized(project), version=version, source=source)


def _completed(name: str, project: str | None, version: str | None) -> tuple[str, str | None]:
    """What METADATA does not tell, from the folder: ``torch-2.6.0+cu124.dist-info``; eggs carry the Python behind."""
    parts = name.rpartition(".")[0].split("-")
    return project or parts[0], version or (parts[1] if len(parts) > 1 else None)


def _header(path: str, name: str, read: Callable[[int], tuple[bytes, bool]]) -> tuple[bytes | None, bool]:
    """What ``read`` makes of a METADATA file: a part of it, and whether the file is whole; ``None`` where there is none.

    A file that was cut short ends inside a line before the blank line that ends the header.
    """
    for file in _METADATA if name.endswith(".dist-info") else _PKG_INFO:
        try:
            descriptor = os.open(path + file, os.O_RDONLY)
        except OSError:
            continue
        try:
            return read(descriptor)
        except OSError:
            continue
        finally:
            os.close(descriptor)
    return None, False


_METADATA = ("/METADATA",)
_PKG_INFO = ("/PKG-INFO", "")


def _beginning(descriptor: int) -> tuple[bytes, bool]:
    """The first lines, and whether the file ends in a newline."""
    content = last = os.read(descriptor, _FIRST)
    if len(content) == _FIRST:
        os.lseek(descriptor, -1, os.SEEK_END)
        last = os.read(descriptor, 1)
    return content, last.endswith(b"\n")


def _searched(descriptor: int) -> tuple[bytes, bool]:
    """The whole header, for a file that does not end in a newline or begins in an unusual way."""
    content = b"\n"
    while len(content) < _LIMIT and (chunk := os.read(descriptor, _FIRST * 32)):
        content += chunk
    for blank in (b"\n\n", b"\r\n\r\n"):
        end = content.find(blank)
        if end > 0:
            return content[: end + 1], True
    return content, content.endswith(b"\n")


def _field(header: bytes, mark: bytes) -> str | None:
    start = header.find(mark)
    if start < 0:
        return None
    end = header.find(b"\n", start + 1)
    return header[start + len(mark) : end if end >= 0 else None].decode("utf-8", "replace").strip() or None


INDEX, _NIGHTLY = Source("index"), Source("nightly")


def _source(path: str, notes: list[str]) -> Source | None:
    """Where it came from (PEP 610); a distribution without ``direct_url.json`` came from an index."""
    if not os.access(f"{path}/direct_url.json", os.F_OK):  # much cheaper than an open that fails
        return INDEX
    try:
        descriptor = os.open(f"{path}/direct_url.json", os.O_RDONLY)
    except OSError as problem:
        notes.append(f"{path}/direct_url.json: cannot be read ({problem.strerror}); the source counts as unknown")
        return None
    try:
        content = os.read(descriptor, _FIRST * 32)
    finally:
        os.close(descriptor)
    from compat.errors import InputError
    from compat.read.json_text import parse_json

    try:
        return source_of(parse_json(content.decode("utf-8", "replace"), f"{path}/direct_url.json"))
    except (InputError, AttributeError, KeyError, TypeError):
        notes.append(f"{path}/direct_url.json: is not what PEP 610 says; the source counts as a URL that is not known")
        return Source("url")


def source_of(record: dict[str, Any]) -> Source:
    """A PEP 610 record as a source."""
    details: dict[str, Any] = {"url": without_credentials(str(record["url"]))}
    if "vcs_info" in record:
        details["commit"] = str(record["vcs_info"]["commit_id"]).lower()
        revision = record["vcs_info"].get("requested_revision")
        if revision:
            details["revision"] = str(revision)
        return Source("vcs", details)
    if "dir_info" in record:
        if record["dir_info"].get("editable"):
            details["editable"] = True
        return Source("directory", details)
    return Source("url", details)


def without_credentials(url: str) -> str:
    """A URL without the user and password it may carry: a report is made to be shown."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}" if mark else url


def installer_of(path: str) -> str | None:
    """The content of INSTALLER ("pip", "uv", "conda"), ``None`` where there is none."""
    try:
        descriptor = os.open(f"{path}/INSTALLER", os.O_RDONLY)
    except OSError:
        return None
    try:
        return os.read(descriptor, 64).decode("utf-8", "replace").strip().lower() or None
    finally:
        os.close(descriptor)
