"""The data model of a rule in the matrix."""

from __future__ import annotations

from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from compat.rules.conditions import Condition, HasPackage
    from compat.versions import Ranges


RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "": lambda a, b: True,
    "b == a + 1": lambda a, b: b == a + 1,
    "b == n * a": lambda a, b: a > 0 and b > a and b % a == 0,
}


@record(frozen=True)
class Signature:
    """The error caused by a rule's bug: exception class, message pattern and frames (regular expressions).

    ``exception`` is the class name without its module. ``frames`` must all be found in the traceback, in this order;
    each is searched in "path of the file::function". A short message without frames is weak, because other bugs may cause the
    same text: it is a hit only if everything else that the rule requires is known. ``relation`` is one of :data:`RELATIONS`,
    between the numbers in the message's groups ``a`` and ``b``.
    """

    exception: str | None
    message: str
    frames: tuple[str, ...] = ()
    relation: str = ""


@record(frozen=True)
class FixTemplate:
    """A fix in a rule; ``packages`` are (name, specifier) pairs changed together, the one with the bug first.

    ``version`` is the version that the commit of a source install declares, if a repair may select it. ``along`` are further
    (name, specifier) pairs, changed only if they are installed in another version.
    """

    kind: str
    packages: tuple[tuple[str, str], ...] = ()
    value: str = ""
    text: str = ""
    command: str = ""
    when: tuple[Condition, ...] = ()
    version: str = ""
    along: tuple[tuple[str, str], ...] = ()


@record(frozen=True)
class Example:
    """A minimal environment that must hit, or a similar one that must stay clear (JSON of the described environment)."""

    verdict: str
    environment: dict[str, Any]


@record(frozen=True)
class Rule:
    """One known-bad combination. ``packages``, ``when`` and each of ``unless`` are conjunctions.

    It holds if all of ``packages`` and ``when`` hold and none of ``unless`` does. ``presume`` gives values for unknown facts:
    defaults of the libraries involved, never guesses about the machine. ``presumed_severity``, if given, is the severity as
    long as a presumed task, trainer or feature is in use.
    """

    id: str
    title: str
    severity: str
    effect: str
    confidence: str
    why: str
    evidence: tuple[str, ...]
    packages: tuple[HasPackage, ...] = ()
    when: tuple[Condition, ...] = ()
    unless: tuple[tuple[Condition, ...], ...] = ()
    presume: tuple[tuple[str, Any], ...] = ()
    presumed_severity: str = ""
    errors: tuple[Signature, ...] = ()
    fixes: tuple[FixTemplate, ...] = ()
    examples: tuple[Example, ...] = ()
    detectors: tuple[tuple[str, str, str, str], ...] = ()
    file: str = ""
    line: int = 0

    @property
    def ranges(self) -> dict[str, Ranges]:
        """The bad releases of each package that must be in a range."""
        return {each.name: each.ranges for each in self.packages if each.how == "in"}
