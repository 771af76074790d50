"""The conditions of a rule: one record for each form, which ``compat.rules.logic`` evaluates on the facts of an environment."""

from __future__ import annotations

from compat.records import quick, record, values_of
from compat.versions import written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from compat.versions import Ranges


@record(frozen=True)
class IsOneOf:
    """The fact at ``path`` is one of the words, which are in lower case."""

    path: str
    words: tuple[str, ...]


@record(frozen=True)
class InRange:
    """The fact at ``path``, a version or a number, lies in the ranges."""

    path: str
    ranges: Ranges


@record(frozen=True)
class HasFeature:
    """The workload has a feature."""

    name: str


@record(frozen=True)
class HasVariable:
    """An environment variable is ``set`` or ``unset``, is ``in`` the values, or ``contains`` one of them."""

    name: str
    how: str
    values: tuple[str, ...] = ()


@record(frozen=True)
class HasDevices:
    """The number of visible devices lies in ``count``, of those that match every other field that is not ``None``."""

    count: Ranges
    vendors: tuple[str, ...] | None = None
    capability: Ranges | None = None
    names: tuple[str, ...] | None = None
    gfx: tuple[str, ...] | None = None
    memory_mib: Ranges | None = None


@record(frozen=True)
class HasPackage:
    """A distribution is installed in a version ``in`` the ranges, is ``present`` in any, or ``absent``."""

    name: str
    how: str
    ranges: Ranges = ()


@record(frozen=True)
class InstalledFrom:
    """A distribution was installed from one of these kinds of source."""

    name: str
    kinds: tuple[str, ...]


@record(frozen=True)
class HasCode:
    """The installed code of a distribution is one of these commits of a repository, or the detector found its text in it."""

    name: str
    detector: str
    commits: tuple[str, ...]
    repository: str


@record(frozen=True)
class AnyOf:
    """At least one of the conditions holds."""

    conditions: tuple[Condition, ...]


OfPackage: TypeAlias = "HasPackage | InstalledFrom | HasCode"
Condition: TypeAlias = "IsOneOf | InRange | HasFeature | HasVariable | HasDevices | OfPackage | AnyOf"
OF_PACKAGES = (HasPackage, InstalledFrom, HasCode)
"""The forms that are about one distribution, named ``name``."""
_KINDS = (IsOneOf, InRange, HasFeature, HasVariable, HasDevices, HasPackage, InstalledFrom, HasCode)


def plain(condition: Condition) -> tuple[Any, ...]:
    """A condition as plain values, for :func:`from_plain`."""
    if isinstance(condition, AnyOf):
        return (-1, *map(plain, condition.conditions))
    return (_KINDS.index(type(condition)), *values_of(condition))


def from_plain(values: tuple[Any, ...]) -> Condition:
    number, *rest = values
    if number < 0:
        return AnyOf(tuple(map(from_plain, rest)))
    kind: type[Any] = _KINDS[number]
    return quick(kind, dict(zip(kind.__annotations__, rest)))  # type: ignore[no-any-return]


def in_words(condition: Condition) -> str:
    """A condition as text."""
    if isinstance(condition, HasPackage):
        return f"{condition.name} {written(condition.ranges) if condition.how == 'in' else condition.how}"
    if isinstance(condition, IsOneOf):
        return f"{_fact(condition.path)} is {' or '.join(condition.words)}"
    if isinstance(condition, InRange):
        return f"{_fact(condition.path)} {written(condition.ranges)}"
    if isinstance(condition, HasFeature):
        return condition.name
    if isinstance(condition, HasVariable):
        return f"{condition.name} {condition.how} {', '.join(condition.values)}".rstrip()
    if isinstance(condition, InstalledFrom):
        return f"{condition.name} installed from {' or '.join(condition.kinds)}"
    if isinstance(condition, HasCode):
        commits = f"at one of {len(condition.commits)} commits of {condition.repository}"
        return f"{condition.name} {commits}, or its files say so ({condition.detector})"
    if isinstance(condition, AnyOf):
        return " or ".join(map(in_words, condition.conditions))
    return _devices_in_words(condition)


def _devices_in_words(condition: HasDevices) -> str:
    of = [
        condition.vendors and " or ".join(condition.vendors),
        condition.names and f"named {' or '.join(condition.names)}",
        condition.gfx and " or ".join(condition.gfx),
        condition.capability and f"of compute capability {written(condition.capability)}",
        condition.memory_mib and f"with {written(condition.memory_mib)} MiB",
    ]
    return " ".join(["accelerators", written(condition.count), *(part for part in of if part)])


def _fact(path: str) -> str:
    return path.removeprefix("workload.").replace("_", " ")
