"""One requirement as pip takes it (PEP 508, an address or a path) → the distribution it asks for.

The usual forms are read by hand; everything unusual goes through ``packaging``, which is slow to import.
``tests/property/test_requirements.py`` holds both to the same answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from compat.formats.requirements.direct_url import INDEX, Unnamed, direct_url, is_archive, is_path, is_url, read_url
from compat.model import EMPTY, Distribution, Source, normalized
from compat.records import replace
from compat.versions import key_of

if TYPE_CHECKING:
    from packaging.requirements import Requirement


__all__ = ["INDEX", "Unnamed", "canonical_marker", "editable", "name_at_start", "parse_requirement"]

_BLANK = " \t\r\n\f\v"
_NAME = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
_NIGHTLY = Source("nightly")
_LIMIT = 1 << 16
"""Characters; no requirement that anybody wrote is longer."""


def parse_requirement(text: str) -> Distribution:
    """What a requirement asks for: one ``version`` where it is pinned, else a ``specifier``, or neither.

    Raises ``ValueError`` with a short reason for what pip would not take, and its subclass :class:`Unnamed` where an
    address or a path does not say which distribution it contains (``.``, ``./project``, a wheel that breaks PEP 427).
    """
    text = text.strip(_BLANK)
    if len(text) > _LIMIT:
        raise ValueError("it is too long for a requirement")
    found = _by_hand(text)
    if found is not None:
        return found
    if is_url(text) or is_path(text):
        return _bare(text)
    return _by_packaging(text)


def editable(text: str) -> Distribution:
    """The same for the operand of ``-e``, a repository or a folder; errors as in :func:`parse_requirement`."""
    try:
        found = parse_requirement(text)
        source = found.source
    except Unnamed as problem:
        found, source = None, problem.source
    except ValueError:
        if is_url(text) or len(text) > _LIMIT:
            raise
        found, source = None, Source("directory", {"path": text.strip(_BLANK)})
    if found is not None and found.source is INDEX and found.version is None and found.specifier is None:
        # a bare word is the name of a folder here
        found, source = None, Source("directory", {"path": text.strip(_BLANK)})
    if source is None or source.kind not in ("vcs", "directory"):
        raise ValueError(f"'{_clipped(text)}' is neither a directory nor a repository")
    source = Source(source.kind, {**source.details, "editable": True})
    if found is None:
        raise Unnamed(f"{_clipped(text)} does not say which distribution it contains", source)
    return replace(found, source=source)


def name_at_start(text: str) -> str | None:
    """The normalised name a text starts with, as of ``torch==${TORCH}``, or ``None``."""
    name = text[: len(text) - len(text.lstrip(_NAME))]
    return normalized(name) if name and name[0].isalnum() and name[-1].isalnum() else None


def _by_hand(text: str) -> Distribution | None:
    """A requirement in one of the usual forms; ``None`` for every other text."""
    rest = text.lstrip(_NAME)
    name = text[: len(text) - len(rest)]
    if not name or not name[0].isalnum() or not name[-1].isalnum() or is_archive(name):
        return None
    rest = rest.lstrip(_BLANK)
    extra: Mapping[str, Any] = EMPTY
    if rest[:1] == "[":
        inside, closed, rest = rest[1:].partition("]")
        extras = _extras(inside)
        if not closed or extras is None:
            return None
        extra, rest = {"extras": extras} if extras else EMPTY, rest.lstrip(_BLANK)
    if rest[:1] == "@":
        url, marker = _url_and_marker(rest[1:].strip(_BLANK))
        return direct_url(url, normalized(name), marker, extra)
    clauses, given, condition = rest.partition(";")
    asked = _clauses(clauses.strip(_BLANK))
    if asked is None:
        return None
    marker = canonical_marker(condition) if given else None
    version, specifier = asked
    return _distribution(name, version, specifier, marker, extra)


def _distribution(
    name: str, version: str | None, specifier: str | None, marker: str | None, extra: Mapping[str, Any]
) -> Distribution:
    # an index would have said where a development version comes from
    source = _NIGHTLY if version is not None and ".dev" in version else INDEX
    return Distribution(normalized(name), version, source, marker, specifier, extra)


def _extras(inside: str) -> list[str] | None:
    """``"all, Dev"`` → ``["all", "dev"]``; ``None`` where something is no name."""
    if not inside.strip(_BLANK):
        return []
    found = set()
    for each in inside.split(","):
        extra = each.strip(_BLANK)
        if not extra or extra.strip(_NAME) or not (extra[0].isalnum() and extra[-1].isalnum()):
            return None
        found.add(normalized(extra))
    return sorted(found)


def _clauses(text: str) -> tuple[str | None, str | None] | None:
    """(version, specifier) of version clauses without parentheses; ``None`` where ``packaging`` has to look at them."""
    if not text:
        return None, None
    found = []
    for each in text.split(","):
        clause = each.strip(_BLANK)
        operator = clause[:2] if clause[1:2] == "=" else clause[:1]
        version = clause[len(operator) :].lstrip(_BLANK)
        if not _usual(operator, version):
            return None
        found.append(operator + version)
    if len(found) == 1 and found[0].startswith("==") and not found[0].endswith("*"):
        return found[0][2:], None
    return None, ",".join(found)


def _usual(operator: str, version: str) -> bool:
    """Whether a clause is certainly what PEP 440 allows."""
    if operator not in ("==", "!=", ">=", "<=", "~=", "<", ">"):
        return False
    exact = operator in ("==", "!=")
    if exact and version.endswith(".*"):
        return all(part.isascii() and part.isdigit() for part in version[:-2].split("."))
    if operator == "~=" and not version.rpartition(".")[0].replace(".", "").isdecimal():
        return False
    if not version.isascii() or not version.replace(".", "").replace("+", "" if exact else "+").isalnum():
        return False
    try:
        key_of(version)
    except ValueError:
        return False
    return operator != "~=" or version.rpartition(".")[2].isdecimal()


def _url_and_marker(text: str) -> tuple[str, str | None]:
    """An address and the marker behind it; pip takes ``url; marker`` although PEP 508 asks for a blank before ``;``."""
    for mark in (" ;", "\t;", "; "):
        url, found, condition = text.partition(mark)
        if found:
            return _one_word(url.strip(_BLANK)), canonical_marker(condition)
    return _one_word(text), None


def _one_word(url: str) -> str:
    if not url or len(url.split(None, 1)) > 1:
        raise ValueError("expected a URL, followed only by a marker (after ' ; ')")
    return url


def _bare(text: str) -> Distribution:
    """An address or a path that stands alone; extras may follow a path."""
    if is_url(text):
        url, marker = _url_and_marker(text)
        return read_url(url, marker)
    path, given, condition = text.partition(";")
    path, marker = path.strip(_BLANK), canonical_marker(condition) if given else None
    extra: Mapping[str, Any] = EMPTY
    if path.endswith("]") and "[" in path:
        path, _, inside = path[:-1].rpartition("[")
        extras = _extras(inside)
        if extras is None:
            raise ValueError(f"'{_clipped(inside)}' is not a list of extras")
        extra = {"extras": extras} if extras else EMPTY
    return read_url(path, marker, extra)


_MARKERS: dict[str, str] = {}


def canonical_marker(text: str) -> str:
    """A marker (PEP 508) as ``packaging`` writes it; ``ValueError`` if it is invalid."""
    found = _MARKERS.get(text)
    if found is None:
        if len(text) > _LIMIT:
            raise ValueError("it is too long for a marker")
        from packaging.markers import InvalidMarker, Marker

        try:
            found = str(Marker(text))
        except (InvalidMarker, RecursionError, ValueError):
            raise ValueError(f"'{_clipped(text.strip(_BLANK))}' is not a marker (PEP 508)") from None
        if len(_MARKERS) < 4096 and len(text) < 1024:
            _MARKERS[text] = found
    return found


def _by_packaging(text: str) -> Distribution:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        found = Requirement(text)
        marker = None if found.marker is None else str(found.marker)
    except (InvalidRequirement, RecursionError, ValueError):
        raise ValueError(f"'{_clipped(text)}' is not a requirement (PEP 508)") from None
    extras = sorted({normalized(each) for each in found.extras})
    extra = {"extras": extras} if extras else EMPTY
    if found.url is not None:
        return direct_url(found.url, normalized(found.name), marker, extra)
    version, specifier = _asked(found)
    return _distribution(found.name, version, specifier, marker, extra)


def _asked(requirement: Requirement) -> tuple[str | None, str | None]:
    specifiers = list(requirement.specifier)
    if len(specifiers) == 1 and specifiers[0].operator in ("==", "===") and not specifiers[0].version.endswith(".*"):
        version = specifiers[0].version
        key_of(version)
        return version, None
    return None, str(requirement.specifier) or None


def _clipped(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"
