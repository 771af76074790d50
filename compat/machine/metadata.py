"""Read the metadata of installed distributions (``*.dist-info``, ``*.egg-info``) as bytes; nothing is imported."""

from __future__ import annotations

import os

from compat.model import Distribution, Source, normalized
from compat.records import replace
from compat.redact import excerpt, without_credentials
from compat.versions import key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

    Detectors = Mapping[str, Sequence[tuple[str, str, str]]]
    Record = Mapping[str, tuple[str, str]]
    """Path → hash and size, as RECORD has them."""

_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
"""Do not block on a pipe in place of a file; it is read as empty."""
_FIRST = 1 << 11
"""Name and version are in the first lines of METADATA."""
_HEADER = 1 << 16
"""Most headers end within it; the description after them is not read."""
_LARGEST_MODULE = 1 << 23
_MOST_REQUIRED = 10_000
"""Requirements of a distribution; real ones have hundreds."""
_LIMIT = 1 << 22
"""Maximum size of a METADATA header in bytes; real ones have a few kB."""


def read_distribution(folder: str, name: str, notes: list[str]) -> Distribution | None:
    """Read the distribution whose metadata is ``folder/name``; ``None`` (and a note) if its version is unknown.

    ``name`` ends in ``.dist-info`` or ``.egg-info``. A missing or truncated METADATA file is reported in
    ``notes``, and the folder's name is used instead.
    """
    path = f"{folder}/{name}"
    for read in (_beginning, _searched):
        header, whole = _header(path, name, read)
        project = _field(header, b"\nName:") if header else None
        version = _field(header, b"\nVersion:") if header else None
        if whole and project and version:
            break
    if not whole or not project or not version:
        state = "is missing" if header is None else "is truncated"
        project, version = _completed(name, project if whole else None, version if whole else None)
        if version is None:
            notes.append(f"{path}: no version in METADATA or in the directory name; skipped")
            return None
        notes.append(f"{path}: its METADATA {state}; using the name and version in the directory name")
    try:
        key_of(version)
    except ValueError:
        notes.append(f"{path}: {excerpt(version, 60)!r} is not a version (PEP 440); treated as unknown")
        version = None
    source = _source(path, notes)
    if source is INDEX and version is not None and ".dev" in version:
        source = _NIGHTLY  # development versions without a recorded origin are nightly builds
    return Distribution(name=normalized(project), version=version, source=source, requires=_requires(header, path, notes))


def _requires(header: bytes | None, path: str, notes: list[str]) -> tuple[str, ...] | None:
    """Return the Requires-Dist lines of a METADATA header, except those of extras: requested extras are not recorded.

    ``None`` if they are stored elsewhere, as for eggs.
    """
    if header is None or not path.endswith(".dist-info"):
        return None
    parts = header.split(b"\nRequires-Dist:")
    if len(parts) == 1:
        return ()
    lines = b"\n".join([part.partition(b"\n")[0] for part in parts[1:]]).decode("utf-8", "replace").split("\n")
    if len(lines) > _MOST_REQUIRED:
        lines = list(dict.fromkeys(lines))[:_MOST_REQUIRED]
        notes.append(f"{path}: only its first {_MOST_REQUIRED} requirements are considered")
    return tuple([line.strip() for line in lines if "extra" not in line or "extra" not in line.partition(";")[2]])


def _completed(name: str, project: str | None, version: str | None) -> tuple[str, str | None]:
    """Fill in name and version from the directory name: ``torch-2.6.0+cu124.dist-info``; eggs end in the Python version."""
    parts = name.rpartition(".")[0].split("-")
    return project or parts[0], version or (parts[1] if len(parts) > 1 else None)


def _header(path: str, name: str, read: Callable[[int], tuple[bytes, bool]]) -> tuple[bytes | None, bool]:
    """Return the part of a METADATA file that ``read`` yields, and whether the file is complete; ``None`` if unreadable.

    A truncated file ends inside a line before the blank line that ends the header.
    """
    for file in _METADATA if name.endswith(".dist-info") else _PKG_INFO:
        try:
            descriptor = os.open(path + file, _READ)
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
    """Read the start of the file up to the blank line, and whether the file ends in a newline."""
    content = last = os.read(descriptor, _HEADER)
    if len(content) == _HEADER:
        os.lseek(descriptor, -1, os.SEEK_END)
        last = os.read(descriptor, 1)
    end = content.find(b"\n\n")
    if end < 0 and len(content) == _HEADER:
        return content, False
    return content if end < 0 else content[: end + 1], last.endswith(b"\n")


def _searched(descriptor: int) -> tuple[bytes, bool]:
    """Read the whole header of a file that does not end in a newline or has an unusual start."""
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
    """Return the origin of a distribution (PEP 610); without ``direct_url.json`` it came from an index."""
    if not os.access(f"{path}/direct_url.json", os.F_OK):  # much cheaper than an open that fails
        return INDEX
    try:
        descriptor = os.open(f"{path}/direct_url.json", _READ)
    except OSError as problem:
        notes.append(f"{path}/direct_url.json: cannot be read ({problem.strerror}); the source is treated as unknown")
        return None
    try:
        content = os.read(descriptor, _FIRST * 32)
    finally:
        os.close(descriptor)
    from compat.errors import InputError
    from compat.syntax.json import parse_json

    try:
        return source_of(parse_json(content.decode("utf-8", "replace"), f"{path}/direct_url.json"))
    except (InputError, AttributeError, KeyError, TypeError):
        notes.append(f"{path}/direct_url.json: does not follow PEP 610; the source is treated as an unknown URL")
        return Source("url")


def source_of(record: dict[str, Any]) -> Source:
    """Convert a PEP 610 record to a source."""
    details: dict[str, object] = {"url": without_credentials(str(record["url"]))}
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


def installer_of(path: str) -> str | None:
    """Return the content of INSTALLER ("pip", "uv", "conda"), or ``None``."""
    try:
        descriptor = os.open(f"{path}/INSTALLER", _READ)
    except OSError:
        return None
    try:
        return os.read(descriptor, 64).decode("utf-8", "replace").strip().lower() or None
    finally:
        os.close(descriptor)


# --- Searching an installed file for a rule's text, to distinguish a bad ``0.16.0.dev0`` from a good one


OF_SOURCE = ("vcs", "directory", "url", "nightly")
"""Kinds of source whose modules may differ from those of any release."""


def apply_detectors(copy: Distribution, folders: Sequence[str], detectors: Detectors) -> Distribution:
    """Add the result of every detector for a distribution to its source.

    Releases from an index or conda are skipped: the version determines their contents. Unreadable files give no result.
    """
    wanted = detectors.get(copy.name)
    if not wanted or copy.source is None or copy.source.kind in ("index", "conda"):
        return copy
    roots = (*_source_roots(copy.source), *folders)
    answers = {detector: answer for detector, file, text in wanted if (answer := _holds(roots, file, text)) is not None}
    if not answers:
        return copy
    return replace(copy, source=Source(copy.source.kind, {**copy.source.details, "contains": answers}))


def with_module_folder(copy: Distribution, folders: Sequence[str], tops: Mapping[str, str]) -> Distribution:
    """Add the folder of its modules if a distribution was installed from source; ``tops``: module → distribution."""
    if copy.source is None or copy.source.kind not in OF_SOURCE:
        return copy
    names = [top for top, package in tops.items() if package == copy.name]
    for root in (*_source_roots(copy.source), *folders):
        if any(os.path.isfile(f"{root}/{name}/__init__.py") for name in names):
            return replace(copy, source=Source(copy.source.kind, {**copy.source.details, "tree": root}))
    return copy


def _source_roots(source: Source) -> tuple[str, ...]:
    """Return the folders in which an editable install may keep its modules."""
    url = source.details.get("url")
    if not source.details.get("editable") or not isinstance(url, str) or not url.startswith("file://"):
        return ()
    from urllib.parse import unquote

    folder = unquote(url[7:])
    return folder, f"{folder}/src"


def _holds(roots: Sequence[str], file: str, text: str) -> bool | None:
    for root in roots:
        try:
            with open(f"{root}/{file}", "rb") as opened:
                return text.encode() in opened.read(_LARGEST_MODULE)
        except OSError:
            continue
    return None


# --- Whose files are on disk where installed distributions overwrite each other: RECORD of each, compared with the files.
#
# Nothing is read unless two distributions of the table are installed or a module that one should have is missing.


OWN, REPLACED, MIXED, MISSING = "own", "replaced", "mixed", "missing"
"""The files on disk are those of the distribution, those of another one, of both, or removed with another one."""
_LARGEST_RECORD = 1 << 24
_LARGEST_HASHED = 1 << 20
_MOST_HASHED = 40


def with_files(
    copies: tuple[Distribution, ...], folders: Sequence[str], owners: Mapping[str, Collection[str]]
) -> tuple[Distribution, ...]:
    """The distributions with the state of the files that others install too, as ``files`` in ``extra``.

    ``owners`` maps each such file to the names of those that install it.
    """
    suspects: dict[str, set[str]] = {}
    for file, names in owners.items():
        gone = not any(os.access(f"{folder}/{file}", os.F_OK) for folder in folders)
        if gone or len(names) > 1:
            for name in names:
                suspects.setdefault(name, set()).update(names if len(names) > 1 else ())
                suspects[name] |= {f"{file}/"} if gone else set()
    if not suspects:
        return copies
    records = dict(_records({copy.name: copy.version or "" for copy in copies if copy.name in suspects}, folders))
    states = {name: _state(name, suspects[name], records, folders) for name in suspects if name in records}
    return tuple(
        replace(copy, extra={**copy.extra, "files": state}) if (state := states.get(copy.name)) is not None else copy
        for copy in copies
    )


def _state(name: str, suspects: set[str], records: Mapping[str, tuple[str, Record]], folders: Sequence[str]) -> str | None:
    folder, mine = records[name]
    if any(each.endswith("/") and each[:-1] in mine for each in suspects):
        return MISSING
    own = others = hashed = 0
    rivals = [records[each][1] for each in suspects if each != name and each in records and records[each][0] == folder]
    for path in sorted(set(mine) & {path for rival in rivals for path in rival}):
        claims = {mine[path], *(rival[path] for rival in rivals if path in rival)}
        if len(claims) < 2 or ".dist-info/" in path or path.startswith(".."):
            continue
        try:
            size = os.stat(f"{folder}/{path}").st_size
        except OSError:
            continue
        fitting = {claim for claim in claims if claim[1] == str(size)}
        if len(fitting) > 1 and size <= _LARGEST_HASHED and hashed < _MOST_HASHED:
            hashed += 1
            found = _hash_of(f"{folder}/{path}")
            fitting = {claim for claim in fitting if claim[0] == found}
        if len(fitting) == 1:
            own += mine[path] in fitting
            others += mine[path] not in fitting
    if not own and not others:
        return None
    return OWN if not others else REPLACED if not own else MIXED


def _records(versions: Mapping[str, str], folders: Sequence[str]) -> Iterable[tuple[str, tuple[str, Record]]]:
    """Yield each distribution's name with its folder and RECORD."""
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for entry in names:
            project, _, version = entry.removesuffix(".dist-info").rpartition("-")
            name = normalized(project)
            if entry.endswith(".dist-info") and versions.get(name) == version:
                found = _record(f"{folder}/{entry}/RECORD")
                if found is not None:
                    yield name, (folder, found)


def _record(path: str) -> Record | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            if not os.path.isfile(path):
                return None
            lines = file.read(_LARGEST_RECORD).splitlines()
    except OSError:
        return None
    found = {}
    for line in lines:
        rest, _, size = line.rpartition(",")
        name, _, digest = rest.rpartition(",")
        if digest and size.isdecimal():
            found[name.strip('"')] = digest, size
    return found


def _hash_of(path: str) -> str:
    """The hash of a file as RECORD writes it."""
    from base64 import urlsafe_b64encode
    from hashlib import sha256

    try:
        with open(path, "rb") as file:
            return "sha256=" + urlsafe_b64encode(sha256(file.read()).digest()).decode().rstrip("=")
    except OSError:
        return ""
