"""The bounds of a rule as released versions: the first and the last release inside each range, and their neighbours outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.version import InvalidVersion, Version

from compat.rules.rule import Rule
from compat.versions import contains, key_of, written

if TYPE_CHECKING:
    from compat.versions import Interval, Key, Ranges


@dataclass(frozen=True)
class Bound:
    """One end of a rule's range. ``outside`` is ``""`` if no release exists beyond it."""

    rule: str
    package: str
    bound: str
    inside: str
    outside: str


def bounds_of(rule: Rule, versions: Callable[[str], Sequence[str]]) -> Iterator[Bound]:
    """Return every bound of a rule's packages with a release inside; ``versions`` returns a package's published versions."""
    for package, ranges in rule.ranges.items():
        released = ordered(versions(package), ranges)
        for interval in ranges:
            inside = [at for at, (_, key) in enumerate(released) if contains((interval,), key)]
            if inside and interval[0] is not None:
                yield _bound(rule, package, interval, released, inside[0], -1)
            if inside and interval[2] is not None:
                yield _bound(rule, package, interval, released, inside[-1], 1)


def _bound(rule: Rule, package: str, interval: Interval, released: list[tuple[str, Key]], at: int, step: int) -> Bound:
    outside = released[at + step][0] if 0 <= at + step < len(released) else ""
    return Bound(rule.id, package, written((interval,)).split(",")[0 if step < 0 else -1], released[at][0], outside)


def ordered(versions: Sequence[str], ranges: Ranges) -> list[tuple[str, Key]]:
    """Return final releases, and the pre-releases of each release for which a bound names a pre-release."""
    found: dict[Version, str] = {}
    for text in versions:
        try:
            version = Version(text)
        except InvalidVersion:
            continue
        if not version.is_prerelease or any(Version(version.base_version) in _named(interval) for interval in ranges):
            found.setdefault(version, text)
    return [(text, key_of(text)) for _, text in sorted(found.items())]


def _named(interval: Interval) -> set[Version]:
    """Return the releases whose pre-releases appear in an interval's ends."""
    words = written((interval,)).replace(",", " ").replace("<", " ").replace(">", " ").replace("=", " ").split()
    found = set()
    for word in words:
        try:
            version = Version(word)
        except InvalidVersion:
            continue
        if version.is_prerelease and not version.is_devrelease:
            found.add(Version(version.base_version))
    return found
