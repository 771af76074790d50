"""What a file says about distributions, and which of it has to change for a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat.environment import Distribution
from compat.errors import InputError
from compat.records import record
from compat.versions import key_of
from compat.write.changes import Change
from compat.write.specifiers import ADMIT, EXACT, RANGE, admits

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
    versions than the one before: which of them is meant cannot be told.
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
            f"{change.name} is named on lines {lines} with versions that are not {before}: which is meant cannot be told",
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
