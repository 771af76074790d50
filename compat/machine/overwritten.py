"""Whose files are on disk where installed distributions overwrite each other: RECORD of each, compared with the files.

Nothing is read unless two distributions of the table are installed or a module that one should have is missing.
"""

from __future__ import annotations

import os

from compat.model import Distribution, normalized
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    Record = Mapping[str, tuple[str, str]]
    """Path → hash and size, as RECORD has them."""

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
