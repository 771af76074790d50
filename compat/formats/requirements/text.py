"""One requirement as text (PEP 508, or an address as pip takes it), changed to ask for another release."""

from __future__ import annotations

import re

from compat.errors import InputError
from compat.formats.edit.changes import Change
from compat.formats.requirements.direct_url import is_path, is_url
from compat.formats.specifiers import EXACT, changed
from compat.model import Source, normalized
from compat.records import record
from compat.redact import without_credentials

_NAME = re.compile(r"\s*[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_EXTRAS = re.compile(r"\s*\[[^\]]*\]")
_REVISION = re.compile(r"([^#]*?://[^/#]*/[^#]*?)(@[^#@/]*(?:/[^#@]*)?)?(#.*)?")


@record(frozen=True)
class _Parts:
    """``head`` is the name with its extras, ``clauses`` the versions, ``address`` what stands behind ``@``; ``tail`` is the
    blank and the marker behind."""

    head: str
    clauses: str = ""
    address: str | None = None
    tail: str = ""


def rewritten(text: str, change: Change, how: str) -> str:
    """The requirement with the change made; name, extras, marker and blanks stay as they are written.

    :class:`InputError` (without a place) where it names a folder of the project.
    """
    parts = _parts(text, change.name)
    if change.is_direct_url:
        return _from_address(parts, change)
    assert change.after is not None
    if parts.address is None:
        clauses = changed(parts.clauses, change.before, change.after, how)
        return parts.head + clauses + parts.tail
    if not is_url(parts.address):
        raise InputError(f"{change.name} is installed from {parts.address.strip()[:60]}, which is not replaced")
    return f"{parts.head.rstrip()}=={change.after}{parts.tail}"


def moved_editable(operand: str, change: Change) -> str:
    """The operand of ``-e`` at another commit; its name is kept."""
    new = rewritten(operand, change, EXACT)
    new = new.partition(" @ ")[2] or new
    egg = re.search(r"[#&](egg=[^&;\s]+)", operand)
    if egg is None or "egg=" in new:
        return new
    url, blank, marker = new.partition(" ")
    return f"{url}{'&' if '#' in url else '#'}{egg[1]}{blank}{marker}"


def without_version(text: str, name: str) -> str:
    """The requirement without version clauses or address: any release, with its extras and marker."""
    parts = _parts(text, name)
    return parts.head.rstrip() + parts.tail


def requirement_for(change: Change) -> str:
    """A new requirement that asks for exactly what the change brings."""
    return f"{change.name} @ {address(change.source)}" if change.is_direct_url else f"{change.name}=={change.after}"


def address(source: Source | None) -> str:
    """The address of a direct requirement, with its revision and folder."""
    assert source is not None
    details = source.details
    url = str(details["url"])
    if source.kind == "vcs":
        url = url if url.startswith("git+") else f"git+{url}"
        revision = details.get("commit") or details.get("requested_revision")
        url = f"{url}@{revision}" if revision else url
    folder = details.get("subdirectory")
    return f"{url}#subdirectory={folder}" if folder else url


def _parts(text: str, name: str) -> _Parts:
    if is_url(text.strip()) or is_path(text):
        return _bare(text, name)
    found = _NAME.match(text)
    if found is None or normalized(found[0].strip()) != name:
        raise InputError(f"expected a requirement of {name}, not {text[:60]!r}")
    extras = _EXTRAS.match(text, found.end())
    end = found.end() if extras is None else extras.end()
    head, rest = text[:end], text[end:]
    if rest.lstrip()[:1] == "@":
        url, tail = _cut_marker(rest.lstrip()[1:].lstrip())
        return _Parts(head, address=url, tail=tail)
    clauses, semicolon, marker = rest.partition(";")
    kept = clauses.rstrip()
    return _Parts(head, kept, tail=clauses[len(kept) :] + semicolon + marker)


def _bare(text: str, name: str) -> _Parts:
    url, tail = _cut_marker(text.strip())
    lead = text[: len(text) - len(text.lstrip())]
    egg = re.search(r"[#&]egg=([A-Za-z0-9._-]+)(\[[^\]]*\])?", url)
    written = egg[1] if egg is not None and normalized(egg[1]) == name else name
    extras = egg[2] if egg is not None and egg[2] else ""
    return _Parts(f"{lead}{written}{extras}", address=url, tail=tail)


def _cut_marker(text: str) -> tuple[str, str]:
    """An address, and the marker behind it with the blank in front."""
    found = re.search(r"(?<!\s)\s+(?:;|$)|;\s", text)
    return (text, "") if found is None else (text[: found.start()], text[found.start() :])


def _from_address(parts: _Parts, change: Change) -> str:
    new = address(change.source)
    if parts.address is not None and change.source is not None and change.source.kind == "vcs":
        new = moved_revision(parts.address, change.source) or new
    tail = f" {parts.tail.lstrip()}" if parts.tail.strip() else parts.tail
    return f"{parts.head.rstrip()} @ {new}{tail}"


def moved_revision(url: str, source: Source) -> str | None:
    """The address with another revision, where it names the same repository; ``None`` where it names another."""
    found = _REVISION.fullmatch(url)
    revision = source.details.get("commit") or source.details.get("requested_revision")
    if found is None or revision is None or repository(found[1]) != repository(str(source.details["url"])):
        return None
    return f"{found[1]}@{revision}{found[3] or ''}"


def repository(url: str) -> str:
    """An address of a repository in the form in which two are compared."""
    url = without_credentials(url.removeprefix("git+")).rstrip("/").removesuffix(".git")
    return url.lower()
