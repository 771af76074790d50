"""What a plan changes, in the form in which it is written to files and handed to installers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from compat.errors import InputError, printable
from compat.formats.specifiers import ADMIT, EXACT, RANGE, admits
from compat.model import Distribution, Source, normalized
from compat.records import record, replace
from compat.redact import without_credentials
from compat.versions import is_version, key_of

_HASH = re.compile(r"[a-z0-9_]+:[0-9a-f]+")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"`$\\<>{}|^]+|git@[\w.-]+:[\w./-]+")
_REVISION = re.compile(r"[\w./+-]+")
_LONGEST = 200
"""Characters of a reason in a comment."""


@record(frozen=True)
class Change:
    """One distribution of a plan.

    ``name`` is normalised; ``before`` is the version now (``None``: it is not there), ``after`` the one to come (``None``:
    it is removed). ``source`` says where to install from, ``before_source`` where what is there came from; ``None`` is
    the ordinary index. ``hashes`` are those of every file of the release. ``direct``: the user's own requirement.
    ``override``: what others require is violated on purpose. ``implied``: the other changes bring it about by
    themselves, so that a file written by hand need not name it.
    """

    name: str
    before: str | None
    after: str | None
    source: Source | None = None
    hashes: tuple[str, ...] = ()
    direct: bool = False
    why: str = ""
    override: bool = False
    implied: bool = False
    before_source: Source | None = None

    @property
    def is_direct_url(self) -> bool:
        """Whether it is to be installed from a repository or an archive and not from an index."""
        return self.source is not None and self.source.kind in ("vcs", "url")

    @property
    def is_built(self) -> bool:
        """Whether it is compiled where it is installed: from a repository, or from the source distribution of a release."""
        return self.source is not None and (self.source.kind == "vcs" or self.no_binary)

    @property
    def no_binary(self) -> bool:
        """Whether a release of an index is to be built although it has wheels."""
        return self.source is not None and bool(self.source.details.get("build"))

    @property
    def index_url(self) -> str | None:
        """The address of the vendor's index it comes from; ``None`` for the ordinary one."""
        if self.source is None or self.source.kind not in ("index", "nightly"):
            return None
        return self.source.details.get("url")

    @property
    def reason(self) -> str:
        """``why`` as one line that fits behind a comment sign."""
        text = printable(" ".join(self.why.split())).rstrip("\\ ")  # a backslash would continue the line
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def inverse(change: Change) -> Change:
    """The change that takes a change back; the hashes of the release before are not known."""
    return replace(
        change, before=change.after, after=change.before, source=change.before_source, before_source=change.source, hashes=()
    )


def checked(changes: Sequence[Change]) -> tuple[Change, ...]:
    """The changes that change something, fit to be written; addresses lose their credentials.

    Names, versions and hashes come from an index: :class:`InputError` for one that is none, and for two changes of one name.
    """
    found: dict[str, Change] = {}
    for change in changes:
        if change.before == change.after and change.source == change.before_source:
            continue
        if change.name in found:
            raise InputError(f"expected one change of {change.name}, not two")
        found[change.name] = _checked(change)
    return tuple(found.values())


def _checked(change: Change) -> Change:
    if change.name != normalized(change.name) or not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", change.name):
        raise InputError(f"{change.name[:60]!r} is not the normalised name of a distribution")
    for version in (change.before, change.after):
        if version is not None and not is_version(version):
            raise InputError(f"{change.name}: {version[:60]!r} is not a version (PEP 440)")
    for each in change.hashes:
        if not _HASH.fullmatch(each):
            raise InputError(f"{change.name}: {each[:60]!r} is not a hash such as 'sha256:…'")
    return change if change.source is None else replace(change, source=_checked_source(change.name, change.source))


def _checked_source(name: str, source: Source) -> Source:
    if source.kind not in ("index", "nightly", "vcs", "url"):
        raise InputError(f"{name}: expected to install it from an index, a repository or an address, not {source.kind[:30]!r}")
    url = source.details.get("url")
    if url is None:
        if source.kind in ("vcs", "url"):
            raise InputError(f"{name}: expected the address it is to be installed from")
        return source
    url = without_credentials(str(url))
    revision = source.details.get("commit") or source.details.get("requested_revision") or "HEAD"
    if not _ADDRESS.fullmatch(url) or not _REVISION.fullmatch(str(revision)):
        raise InputError(f"{name}: {url[:100]!r} is not an address to install from")
    return Source(source.kind, {**source.details, "url": url})


# --- What a file says about distributions, and which of it has to change for a plan.


REMOVE = "remove"


@record(frozen=True)
class Statement:
    """One requirement or constraint: what it asks for, where it stands, and in ``place`` what its kind of file needs."""

    found: Distribution
    file: str
    line: int | None
    constraint: bool = False
    place: Any = None


def decided(statements: Sequence[Statement], change: Change, *, exact: bool) -> list[tuple[Statement, str]]:
    """The statements that have to change, each with how: ``exact``, ``range``, ``admit`` or ``remove``.

    A pin (or an address) of the version before is what changes; ranges beside it only let the new release in. Where nothing
    is pinned, the ranges that hold are pinned (``exact``) or moved. :class:`InputError` where several pins name other
    versions than the one before: it is then unclear which one is meant.
    """
    own = [each for each in statements if each.found.name == change.name]
    pins = [each for each in own if _is_pin(each.found)]
    ranges = [each for each in own if not _is_pin(each.found)]
    if change.after is None:
        wanted = [each for each in own if not each.constraint]
        gone = _matching([each for each in wanted if _is_pin(each.found)], change)
        return [(each, REMOVE) for each in wanted if each in gone or not _is_pin(each.found)]
    if pins:
        here = [(each, EXACT) for each in _matching(pins, change)]
        return [*here, *((each, ADMIT) for each in _admitting(ranges, change))]
    asked = _holding([each for each in ranges if not each.constraint], change)
    limits = [each for each in ranges if each.constraint]
    how = EXACT if exact else RANGE
    if asked:
        return [*((each, how) for each in asked), *((each, ADMIT) for each in _admitting(limits, change))]
    return [(each, how) for each in limits]


def _is_pin(found: Distribution) -> bool:
    direct = found.source is not None and found.source.kind in ("vcs", "url", "directory")
    return direct or found.version is not None


def _matching(pins: list[Statement], change: Change) -> list[Statement]:
    """The pins of the version before: of that very build if there are, else of that release."""
    before = change.before
    if before is not None:
        for fits in (_same_text, _same_release, _unknown):
            found = [each for each in pins if fits(each.found.version, before)]
            if found:
                return found
    different = {(each.found.version, str(each.found.source)) for each in pins}
    if len(different) > 1:
        lines = ", ".join(str(each.line) for each in pins)
        raise InputError(
            f"{change.name} is named on lines {lines} with other versions than {before}; cannot tell which one to change",
            pins[0].file, pins[0].line,
        )  # fmt: skip
    return pins


def _same_text(version: str | None, before: str) -> bool:
    return version == before


def _same_release(version: str | None, before: str) -> bool:
    return version is not None and key_of(version) == key_of(before)


def _unknown(version: str | None, before: str) -> bool:
    return version is None


def _holding(ranges: list[Statement], change: Change) -> list[Statement]:
    """The ranges that the version before lies in; all of them where it lies in none."""
    return _admitting(ranges, change) or ranges


def _admitting(ranges: list[Statement], change: Change) -> list[Statement]:
    """The ranges that the version before lies in: the others are for another marker or extra."""
    before = change.before
    return [each for each in ranges if before is None or each.found.specifier is None or admits(each.found.specifier, before)]
