"""Version numbers and specifier sets in the form a check compares them: plain tuples, no regular expression.

``packaging`` defines what is meant and is used for everything unusual; importing it (and :mod:`re`) on every run would
cost a third of the time a check may take. ``tests/property/test_versions.py`` holds both to the same answers.

One thing differs on purpose: local version labels are ignored (``2.6.0+cu124`` compares as ``2.6.0``), and NVIDIA's
container builds count as the release they were cut for (``2.4.0a0+f70bd71a48.nv24.06`` compares as ``2.4.0``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from packaging.specifiers import Specifier
    from packaging.version import Version

Key: TypeAlias = tuple[Any, ...]
"""(epoch, release without trailing zeros, phase, phase number, post, dev); see :func:`_key`."""
Interval: TypeAlias = tuple[Key | None, bool, Key | None, bool]
"""(lower, lower included, upper, upper included); ``None`` is unbounded."""
Ranges: TypeAlias = tuple[Interval, ...]

_LONGEST = 1000
"""Characters; reading a longer one would take more than linear time."""
_DEV_ONLY, _FINAL = -1, 3
_PHASES = {"a": 0, "b": 1, "rc": 2}
_NO_POST, _NO_DEV = -1, 1 << 62
EVERY: Ranges = ((None, False, None, False),)


_known: dict[str, Key] = {}
"""Keys that were asked for: the same few hundred texts are compared thousands of times in one run."""


def key_of(text: str) -> Key:
    """The comparison key of a version; ``ValueError`` where ``text`` is no version (PEP 440)."""
    found = _known.get(text)
    if found is None:
        found = _known[text] = _read(text)
    return found


def _read(text: str) -> Key:
    parts = text.split(".")
    if len(parts) < 9 and all(map(_plain_number, parts)):
        return _key(0, tuple(map(int, parts)))
    if len(text) > _LONGEST:
        raise ValueError(f"{text[:40]!r}… is too long for a version")
    return _full_key(text)


def is_version(text: str) -> bool:
    """Whether ``text`` is a version as PEP 440 defines it."""
    try:
        key_of(text)
    except ValueError:
        return False
    return True


def _plain_number(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) < 19


def _full_key(text: str) -> Key:
    """The key of anything that is not just numbers; the usual forms by hand, the rest by ``packaging``."""
    public, plus, local = text.partition("+")
    if plus and not all(part.isascii() and part.isalnum() for part in local.split(".")):
        return _packaging_key(text)
    release: list[int] = []
    rest = public.split(".")
    while rest and _plain_number(rest[0]):
        release.append(int(rest.pop(0)))
    phase, number, post, dev = _FINAL, 0, _NO_POST, _NO_DEV
    if rest and (found := _phase(rest[0])):
        last, phase, number = found
        release.append(last)
        rest.pop(0)
    if not release:
        return _packaging_key(text)
    for part in rest:
        if part.startswith("post") and _plain_number(part[4:]) and post == _NO_POST and dev == _NO_DEV:
            post = int(part[4:])
        elif part.startswith("dev") and _plain_number(part[3:]) and dev == _NO_DEV:
            dev = int(part[3:])
        else:
            return _packaging_key(text)
    return _key(0, tuple(release), phase, number, post, dev, local)


def _phase(part: str) -> tuple[int, int, int] | None:
    """``"0rc1"`` → (0, 2, 1): the last release number, the phase and its number."""
    for mark, phase in _PHASES.items():
        head, found, tail = part.partition(mark)
        if found and _plain_number(head) and _plain_number(tail):
            return int(head), phase, int(tail)
    return None


def _packaging_key(text: str) -> Key:
    from packaging.version import InvalidVersion, Version

    try:
        version = Version(text)
    except InvalidVersion as problem:
        raise ValueError(f"{text!r} is not a version (PEP 440)") from problem
    return _key_of_version(version)


def _key_of_version(version: Version) -> Key:
    phase, number = (_PHASES[version.pre[0]], version.pre[1]) if version.pre else (_FINAL, 0)
    post = _NO_POST if version.post is None else version.post
    dev = _NO_DEV if version.dev is None else version.dev
    return _key(version.epoch, version.release, phase, number, post, dev, version.local or "")


def _key(
    epoch: int,
    release: tuple[int, ...],
    phase: int = _FINAL,
    number: int = 0,
    post: int = _NO_POST,
    dev: int = _NO_DEV,
    local: str = "",
) -> Key:
    while len(release) > 1 and release[-1] == 0:
        release = release[:-1]
    if phase == 0 and _is_container_build(local):
        phase, number = _FINAL, 0
    if phase == _FINAL and dev != _NO_DEV and post == _NO_POST:
        phase = _DEV_ONLY  # 1.0.dev1 comes before 1.0a1
    return epoch, release, phase, number, post, dev


def _is_container_build(local: str) -> bool:
    """NVIDIA's NGC images install torch as ``2.4.0a0+<commit>.nv24.05``."""
    return any(part.startswith("nv") and part[2:].isdecimal() for part in local.lower().split("."))


def contains(ranges: Ranges, key: Key) -> bool:
    """Whether a version lies in one of the intervals."""
    for lower, with_lower, upper, with_upper in ranges:
        if lower is not None and (key < lower or (key == lower and not with_lower)):
            continue
        if upper is not None and (key > upper or (key == upper and not with_upper)):
            continue
        return True
    return False


def ranges_of(specifier: str) -> Ranges:
    """A specifier set (``">=4.51.0,!=4.52.1,<4.57"``) as disjoint intervals, in order; empty where nothing fits.

    Pre-releases are admitted wherever their order puts them, with PEP 440's exceptions (``<1.0`` leaves out ``1.0.dev0``).
    Raises ``ValueError`` for what is no specifier set, and for ``===`` and local labels, which no range can hold.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        parsed = SpecifierSet(specifier)
    except InvalidSpecifier as problem:
        raise ValueError(f"{specifier!r} is not a set of version specifiers (PEP 440)") from problem
    ranges = EVERY
    for single in parsed:
        ranges = intersect(ranges, _ranges_of_one(single))
    return ranges


def _ranges_of_one(specifier: Specifier) -> Ranges:
    from packaging.version import Version

    operator, text = specifier.operator, specifier.version
    if operator == "===" or "+" in text:
        raise ValueError(f"{str(specifier)!r}: '===' and local version labels cannot be part of a range")
    if text.endswith(".*"):
        family = _family(text[:-2])
        return family if operator == "==" else complement(family)
    version = Version(text)
    key = _key_of_version(version)
    if operator == "==":
        return ((key, True, key, True),)
    if operator == "!=":
        return complement(((key, True, key, True),))
    if operator == ">=":
        return ((key, True, None, False),)
    if operator == "<=":
        return ((None, False, key, True),)
    if operator == "~=":
        prefix = ".".join(str(n) for n in version.release[:-1])
        return intersect(((key, True, None, False),), _family(f"{version.epoch}!{prefix}"))
    if operator == "<":
        return ((None, False, key if version.is_prerelease else _before_its_own_dev(version), False),)
    return _above(version, key)


def _family(prefix: str) -> Ranges:
    """Everything that starts with ``prefix``: ``4.51`` holds 4.51.dev0 up to, not including, 4.52.dev0."""
    from packaging.version import Version

    version = Version(prefix)
    following = (*version.release[:-1], version.release[-1] + 1)
    return ((_key(version.epoch, version.release, dev=0), True, _key(version.epoch, following, dev=0), False),)


def _before_its_own_dev(version: Version) -> Key:
    """``<1.0`` leaves out 1.0's own pre-releases."""
    return _key(version.epoch, version.release, post=_NO_POST if version.post is None else version.post, dev=0)


def _above(version: Version, key: Key) -> Ranges:
    """``>1.0`` leaves out 1.0's own post-releases."""
    if version.post is None and version.dev is None:
        epoch, release, phase, number, _, _ = key
        return (((epoch, release, phase, number, _NO_DEV, _NO_DEV), False, None, False),)
    return ((key, False, None, False),)


def intersect(left: Ranges, right: Ranges) -> Ranges:
    """The versions in both, as disjoint intervals in order."""
    found = []
    for a in left:
        for b in right:
            lower, with_lower = max((a[0], a[1]), (b[0], b[1]), key=_lower_order)
            upper, with_upper = min((a[2], a[3]), (b[2], b[3]), key=_upper_order)
            interval: Interval = (lower, with_lower, upper, with_upper)
            if not _empty(interval):
                found.append(interval)
    return tuple(sorted(found, key=lambda i: _lower_order((i[0], i[1]))))


def complement(ranges: Ranges) -> Ranges:
    """Every version that is in none of the intervals."""
    result = EVERY
    for lower, with_lower, upper, with_upper in ranges:
        outside: list[Interval] = []
        if lower is not None:
            outside.append((None, False, lower, not with_lower))
        if upper is not None:
            outside.append((upper, not with_upper, None, False))
        result = intersect(result, tuple(outside))
    return result


def overlap(left: Ranges, right: Ranges) -> bool:
    """Whether some version may lie in both."""
    return bool(intersect(left, right))


def _lower_order(bound: tuple[Key | None, bool]) -> tuple[int, Iterable[object], bool]:
    key, included = bound
    return (0, (), False) if key is None else (1, key, not included)


def _upper_order(bound: tuple[Key | None, bool]) -> tuple[int, Iterable[object], bool]:
    key, included = bound
    return (1, (), False) if key is None else (0, key, included)


def _empty(interval: Interval) -> bool:
    lower, with_lower, upper, with_upper = interval
    if lower is None or upper is None:
        return False
    return lower > upper or (lower == upper and not (with_lower and with_upper))


def written(ranges: Ranges) -> str:
    """Intervals as a person writes them: ``>=4.46.2,<=4.46.3 or >=4.50.0,<=4.50.3``."""
    return " or ".join(_interval_written(interval) for interval in ranges) or "no version"


def _interval_written(interval: Interval) -> str:
    lower, with_lower, upper, with_upper = interval
    if lower is not None and lower == upper:
        return f"=={_key_written(lower)}"
    parts = [] if lower is None else [f">{'=' if with_lower else ''}{_key_written(lower)}"]
    if upper is not None:
        parts.append(f"<{'=' if with_upper else ''}{_key_written(upper)}")
    return ",".join(parts) or "in any version"


def _key_written(key: Key) -> str:
    epoch, release, phase, number, post, dev = key
    text = (f"{epoch}!" if epoch else "") + ".".join(map(str, release))
    text += next((f"{mark}{number}" for mark, at in _PHASES.items() if at == phase), "")
    text += f".post{post}" if 0 <= post < _NO_DEV else ""
    return text + (f".dev{dev}" if dev != _NO_DEV else "")
