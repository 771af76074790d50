"""A rule of the matrix, as it is judged and shown."""

from __future__ import annotations

from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from compat.rules.conditions import Atom


RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "": lambda a, b: True,
    "b == a + 1": lambda a, b: b == a + 1,
    "b == n * a": lambda a, b: a > 0 and b > a and b % a == 0,
}


@record(frozen=True)
class Signature:
    """The error a rule's bug shows: exception class, message pattern and frames (regular expressions).

    ``exception`` is the class name without its module. ``frames`` must all be found in the traceback, in this order;
    each is searched in "path of the file::function". A short message without frames
    is weak: the same text may belong to other bugs, so it is a hit only where everything else that the rule asks for is known.
    ``relation`` is one of :data:`RELATIONS` between the numbers that the message's groups ``a`` and ``b`` hold.
    """

    exception: str | None
    message: str
    frames: tuple[str, ...] = ()
    relation: str = ""


@record(frozen=True)
class FixTemplate:
    """A fix as the rule states it; ``packages`` are (name, specifier) pairs moved together, the first one at fault.

    ``version`` is what the commit of a source install calls itself, where it may be a candidate of a repair. ``along`` are
    further (name, specifier) pairs, moved only where they are installed in another version.
    """

    kind: str
    packages: tuple[tuple[str, str], ...] = ()
    value: str = ""
    text: str = ""
    command: str = ""
    when: tuple[Atom, ...] = ()
    version: str = ""
    along: tuple[tuple[str, str], ...] = ()


@record(frozen=True)
class Example:
    """A smallest environment that must hit, or a neighbour that must stay clear (JSON of the described environment)."""

    verdict: str
    environment: dict[str, Any]


@record(frozen=True)
class Rule:
    """One known-bad combination. ``packages``, ``when`` and each of ``unless`` are conjunctions of atoms.

    It holds where all of ``packages`` and ``when`` hold and none of ``unless`` does. ``presume`` is what is taken as
    given where nothing is known: defaults of the libraries involved, never a guess about the machine.
    """

    id: str
    title: str
    severity: str
    effect: str
    confidence: str
    why: str
    evidence: tuple[str, ...]
    packages: tuple[Atom, ...] = ()
    when: tuple[Atom, ...] = ()
    unless: tuple[tuple[Atom, ...], ...] = ()
    presume: tuple[tuple[str, Any], ...] = ()
    errors: tuple[Signature, ...] = ()
    fixes: tuple[FixTemplate, ...] = ()
    examples: tuple[Example, ...] = ()
    detectors: tuple[tuple[str, str, str, str], ...] = ()
    file: str = ""
    line: int = 0
