"""Version numbers and specifier sets as plain comparable tuples, parsed without regular expressions.

``packaging`` is the reference and parses every unusual form; importing it (and :mod:`re`) on every run would cost a third
of the time budget of a check. ``tests/property/test_versions.py`` compares the results of both.

One difference is deliberate: local version labels are ignored (``2.6.0+cu124`` compares as ``2.6.0``), and NVIDIA's
container builds count as the release they were cut for (``2.4.0a0+f70bd71a48.nv24.06`` compares as ``2.4.0``).
"""

from __future__ import annotations

from compat.redact import excerpt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable
    from typing import Any, TypeAlias

    from packaging.version import Version

Key: TypeAlias = "tuple[Any, ...]"
"""(epoch, release without trailing zeros, phase, phase number, post, dev); see :func:`_key`."""
Interval: TypeAlias = "tuple[Key | None, bool, Key | None, bool]"
"""(lower, lower included, upper, upper included); ``None`` is unbounded."""
Ranges: TypeAlias = "tuple[Interval, ...]"

_LONGEST = 1000
"""Characters; parsing a longer version would take more than linear time."""
_LONGEST_NUMBER = 19
"""Digits; a longer number is not accepted as part of a release."""
_DEV_ONLY, _FINAL = -1, 3
_PHASES = {"a": 0, "b": 1, "rc": 2}
_NO_POST, _NO_DEV = -1, 1 << 62
EVERY: Ranges = ((None, False, None, False),)


_known: dict[str, Key] = {}
"""Cache of parsed keys: the same few hundred versions are compared thousands of times in one run."""


def key_of(text: str) -> Key:
    """The comparison key of a version; ``ValueError`` if ``text`` is not a version (PEP 440)."""
    found = _known.get(text)
    if found is None:
        found = _known[text] = _read(text)
    return found


def _read(text: str) -> Key:
    if len(text) > _LONGEST:
        raise ValueError(f"{excerpt(text, 40)!r}… is too long for a version")
    return _usual_key(text) or _packaging_key(text)


def is_version(text: str) -> bool:
    """Whether ``text`` is a version as PEP 440 defines it."""
    try:
        key_of(text)
    except ValueError:
        return False
    return True


def is_final(key: Key) -> bool:
    """Whether a version is neither a pre-release nor a development release."""
    return bool(key[2] == _FINAL and key[5] == _NO_DEV)


def recorded(version: str, releases: Container[str]) -> str:
    """A version without its local label, as it is written among releases: ``torch==2.2`` installs the release 2.2.0."""
    public = version.partition("+")[0]
    if public in releases:  # as nearly all are
        return public
    for text in (public, _shortest(public)):
        for spelling in (text, f"{text}.0", f"{text}.0.0", text.removesuffix(".0")):
            if spelling in releases:
                return spelling
    return public


def _shortest(public: str) -> str:
    """``v4.51.3``, ``0!4.51.3``, ``4.051.3`` and ``4.51.3.0.0`` are all 4.51.3 (PEP 440)."""
    numbers = _numbers(public.lstrip("vV").removeprefix("0!"))
    return public if numbers is None else ".".join(map(str, _without_zeros(numbers)))


def _without_zeros(numbers: tuple[int, ...]) -> tuple[int, ...]:
    last = max((place for place, number in enumerate(numbers) if number), default=0)
    return numbers[: last + 1]


def _numbers(text: str) -> tuple[int, ...] | None:
    """The release numbers of a version that consists of nothing else; ``None`` for any other text."""
    parts = text.split(".")
    if len(text) < _LONGEST_NUMBER:  # fast path: nearly all of the hundreds of versions parsed in a run
        if not text.isascii() or not text.replace(".", "").isdecimal() or "" in parts:
            return None
    elif not all(map(_plain_number, parts)):
        return None
    return tuple(map(int, parts))


def _plain_number(part: str) -> bool:
    return part.isascii() and part.isdecimal() and len(part) < _LONGEST_NUMBER


def _usual_key(text: str) -> Key | None:
    """The key of a version in one of the common forms; ``None`` for any other, which ``packaging`` has to parse."""
    numbers = _numbers(text)
    if numbers is not None:
        return _key(0, numbers)
    public, plus, local = text.partition("+")
    if plus and not all(part.isascii() and part.isalnum() for part in local.split(".")):
        return None
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
        return None
    for part in rest:
        if part.startswith("post") and _plain_number(part[4:]) and post == _NO_POST and dev == _NO_DEV:
            post = int(part[4:])
        elif part.startswith("dev") and _plain_number(part[3:]) and dev == _NO_DEV:
            dev = int(part[3:])
        else:
            return None
    return _key(0, tuple(release), phase, number, post, dev, local)


def _phase(part: str) -> tuple[int, int, int] | None:
    """Split ``"0rc1"`` into (0, 2, 1): the last release number, the phase and its number."""
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


_MOST_INTERVALS = 10_000
_kept = [0]
"""The number of intervals that are kept."""
_ranges: dict[str, Ranges] = {}
"""The ranges of specifiers: dozens of rules ask for those of the same requirement."""


def ranges_of(specifier: str) -> Ranges:
    """A specifier set (``">=4.51.0,!=4.52.1,<4.57"``) as disjoint intervals, in order; empty if no version matches.

    Pre-releases are included according to their order, with PEP 440's exceptions (``<1.0`` excludes ``1.0.dev0``).
    Raises ``ValueError`` if it is not a specifier set, and for ``===`` and local labels, which a range cannot express.
    """
    found = _ranges.get(specifier)
    if found is None:
        found = _parsed(specifier)
        _kept[0] += len(found) + 1
        if _kept[0] > _MOST_INTERVALS:
            _ranges.clear()
            _kept[0] = 0
        _ranges[specifier] = found
    return found


def _parsed(specifier: str) -> Ranges:
    parts = [_ranges_of_clause(operator, text) for operator, text in _clauses(specifier)]
    while len(parts) > 1:  # pairwise: merging one by one would walk all previous clauses for each clause
        pairs = [intersect(left, right) for left, right in zip(parts[::2], parts[1::2])]
        parts = pairs if len(parts) % 2 == 0 else [*pairs, parts[-1]]
    return parts[0] if parts else EVERY


def _clauses(specifier: str) -> list[tuple[str, str]]:
    """(operator, version) of each clause; parsed by ``packaging`` if one of them has an unusual form."""
    found = []
    for clause in specifier.split(","):
        clause = clause.strip()
        text = clause.lstrip("=!<>~")
        operator, text = clause[: len(clause) - len(text)], text.lstrip()
        if _usual_clause(operator, text):
            found.append((operator, text))
        elif clause:
            break
    else:
        return found
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return [(each.operator, each.version) for each in SpecifierSet(specifier)]
    except InvalidSpecifier as problem:
        raise ValueError(f"{specifier!r} is not a set of version specifiers (PEP 440)") from problem


def _usual_clause(operator: str, text: str) -> bool:
    if operator in ("==", "!=") and text.endswith(".*"):
        return _numbers(text[:-2]) is not None
    if operator == "~=":
        return "." in text and _numbers(text) is not None
    if operator not in ("==", "!=", ">=", "<=", "<", ">") or "+" in text:
        return False
    if text not in _known:
        key = _usual_key(text)
        if key is None:
            return False
        _known[text] = key
    return True


def _ranges_of_clause(operator: str, text: str) -> Ranges:
    if operator == "===" or "+" in text:
        raise ValueError(f"{operator + text!r}: '===' and local version labels cannot be part of a range")
    if text.endswith(".*"):
        family = _family(*_release(text[:-2]))
        return family if operator == "==" else complement(family)
    key = key_of(text)
    if operator == "==":
        return ((key, True, key, True),)
    if operator == "!=":
        return complement(((key, True, key, True),))
    if operator == ">=":
        return ((key, True, None, False),)
    if operator == "<=":
        return ((None, False, key, True),)
    if operator == "~=":
        epoch, release = _release(text)
        return intersect(((key, True, None, False),), _family(epoch, release[:-1]))
    epoch, trimmed, phase, number, post, dev = key
    if operator == "<":
        # <1.0 excludes 1.0's own pre-releases
        final = phase == _FINAL and dev == _NO_DEV
        return ((None, False, _key(epoch, trimmed, post=post, dev=0) if final else key, False),)
    if post == _NO_POST and dev == _NO_DEV:  # >1.0 excludes 1.0's own post-releases
        return (((epoch, trimmed, phase, number, _NO_DEV, _NO_DEV), False, None, False),)
    return ((key, False, None, False),)


def _release(text: str) -> tuple[int, tuple[int, ...]]:
    """Epoch and release of a version, including trailing zeros."""
    numbers = _numbers(text)
    if numbers is not None:
        return 0, numbers
    from packaging.version import Version

    version = Version(text)
    return version.epoch, version.release


def _family(epoch: int, release: tuple[int, ...]) -> Ranges:
    """Every version that starts with a release: ``4.51`` contains 4.51.dev0 up to, but not including, 4.52.dev0."""
    following = (*release[:-1], release[-1] + 1)
    return ((_key(epoch, release, dev=0), True, _key(epoch, following, dev=0), False),)


def intersect(left: Ranges, right: Ranges) -> Ranges:
    """The versions in both, as disjoint intervals in order; linear in the number of intervals."""
    found = []
    at = other = 0
    while at < len(left) and other < len(right):
        a, b = left[at], right[other]
        lower, with_lower = max((a[0], a[1]), (b[0], b[1]), key=_lower_order)
        upper, with_upper = min((a[2], a[3]), (b[2], b[3]), key=_upper_order)
        interval: Interval = (lower, with_lower, upper, with_upper)
        if not _empty(interval):
            found.append(interval)
        if (upper, with_upper) == (a[2], a[3]):  # no later interval of the other one overlaps it
            at += 1
        else:
            other += 1
    return tuple(found)


def complement(ranges: Ranges) -> Ranges:
    """All versions outside the intervals."""
    result: list[Interval] = []
    start: tuple[Key | None, bool] = (None, False)
    for lower, with_lower, upper, with_upper in ranges:
        if lower is not None:
            result.append((*start, lower, not with_lower))
        if upper is None:
            break
        start = (upper, not with_upper)
    else:
        result.append((*start, None, False))
    return tuple(interval for interval in result if not _empty(interval))


def overlap(left: Ranges, right: Ranges) -> bool:
    """Whether the ranges have a version in common."""
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
    """Intervals as specifiers: ``>=4.46.2,<=4.46.3 or >=4.50.0,<=4.50.3``."""
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
