"""The data model of a rule in the matrix, and its conditions: one record for each form.

:mod:`compat.rules.logic` evaluates the conditions on the facts of an environment.
"""

from __future__ import annotations

from compat.records import of_values, record, values_of
from compat.versions import written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
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
    """The workload has a feature, or has it not (``on`` is false)."""

    name: str
    on: bool = True


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


def to_plain(condition: Condition) -> tuple[Any, ...]:
    """A condition as plain values, for :func:`from_plain`."""
    if isinstance(condition, AnyOf):
        return (-1, *map(to_plain, condition.conditions))
    return (_KINDS.index(type(condition)), *values_of(condition))


def from_plain(values: tuple[Any, ...]) -> Condition:
    number, *rest = values
    if number < 0:
        return AnyOf(tuple(map(from_plain, rest)))
    kind: type[Any] = _KINDS[number]
    return of_values(kind, rest)  # type: ignore[no-any-return]


def in_words(condition: Condition) -> str:
    if isinstance(condition, HasPackage):
        return f"{condition.name} {written(condition.ranges) if condition.how == 'in' else condition.how}"
    if isinstance(condition, IsOneOf):
        return f"{_fact(condition.path)} is {' or '.join(condition.words)}"
    if isinstance(condition, InRange):
        return f"{_fact(condition.path)} {written(condition.ranges)}"
    if isinstance(condition, HasFeature):
        return condition.name if condition.on else f"no {condition.name}"
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
    packed_examples: bytes = b""
    detectors: tuple[tuple[str, str, str, str], ...] = ()
    file: str = ""
    line: int = 0

    @property
    def examples(self) -> tuple[Example, ...]:
        """The examples. They are as large as all the rest, and a check opens a hundred rules, none of them for its examples."""
        import json
        import zlib

        packed = self.packed_examples
        return tuple(Example(*each) for each in json.loads(zlib.decompress(packed))) if packed else ()

    @property
    def ranges(self) -> dict[str, Ranges]:
        """The bad releases of each package that must be in a range."""
        return {each.name: each.ranges for each in self.packages if each.how == "in"}


# --- The kinds of tasks: words by which a condition holds for every task of a kind.
#
# New trainers appear with every release of trl, and a reader names the task of one it does not know after its class. A rule
# that lists tasks one by one is wrong about those that it does not list.


PREFERENCE = ("dpo", "orpo", "kto", "cpo", "bco", "simpo", "tpo")
_GENERAL = ("train", "pretrain")
_OFFLINE = (*_GENERAL, "sft", "lora", "qlora", "reward", "prm", *PREFERENCE)
OTHER_TASKS = ("inference", "serve", "import", "install", "build")
"""The tasks that train nothing."""

TRAINING, OFFLINE_TRAINING, ONLINE_TRAINING = "training", "offline-training", "online-training"
LLM_TRAINING, PREFERENCE_TRAINING = "llm-training", "preference-training"
KINDS = {
    TRAINING: "every task but inference, serve, import, install and build",
    OFFLINE_TRAINING: "training on given samples, which generates none",
    ONLINE_TRAINING: "training that generates samples",
    LLM_TRAINING: "training by a trainer for language models: not train and pretrain",
    PREFERENCE_TRAINING: "offline training on pairs or ratings of answers, with a loss of its own",
}
"""The kinds that conditions can name."""

_ONLINE = frozenset((TRAINING, ONLINE_TRAINING, LLM_TRAINING))
"""The kinds of every task that is not listed: a trainer that nobody has classified may generate."""


def _kinds_of_tasks() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = dict.fromkeys(OTHER_TASKS, frozenset())
    for task in _OFFLINE:
        special = () if task in _GENERAL else (LLM_TRAINING, *((PREFERENCE_TRAINING,) if task in PREFERENCE else ()))
        found[task] = frozenset((TRAINING, OFFLINE_TRAINING, *special))
    found[TRAINING] = frozenset((TRAINING,))
    found[OFFLINE_TRAINING] = found["train"]
    found[LLM_TRAINING] = frozenset((TRAINING, LLM_TRAINING))
    found[PREFERENCE_TRAINING] = found["dpo"]
    return found


_KINDS_OF = _kinds_of_tasks()


def kinds_of(task: str) -> frozenset[str]:
    """The kinds of a task; of a kind, the kinds that its tasks have in common."""
    return frozenset() if task.startswith("(") else _KINDS_OF.get(task, _ONLINE)
