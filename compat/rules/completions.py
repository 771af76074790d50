"""Enumerate the possible values of unknown facts where Kleene's logic alone is not exact.

Kleene's logic is imprecise only if a rule uses one unknown fact in several conditions ("trl below 0.16 … unless trl is
0.15.2"). For each such fact a few representative values are enough: one for each position relative to the bounds and words
that the rule mentions. The rule holds if and only if it holds for all of them, and is clear if and only if it holds for none.
"""

from __future__ import annotations

import itertools

from compat.model import Accelerator, Distribution, Source
from compat.rules.facts import ABSENT, SHARDING, Facts, family_of, has_more
from compat.rules.logic import by_root
from compat.versions import Ranges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from compat.rules.conditions import Atom


LIMIT = 20_000
"""The maximum number of combinations; beyond it the verdict stays "possible", which is never wrong, only less precise."""

OTHER = "(another)"
_NUMBERS = ("workload.processes", "workload.batch_size")


def answers(atoms: Sequence[Atom], facts: Facts) -> Iterator[Facts]:
    """Yield the facts completed in every possible way, for each unknown fact that ``atoms`` use more than once.

    ``atoms`` are the undecided atoms of a rule. Yields nothing if no fact is used twice, or if there are more than
    :data:`LIMIT` combinations.
    """
    asked = by_root(atoms)
    choices = {root: _stand_ins(root, about, facts) for root, about in asked.items() if len(about) > 1}
    total = 1
    for stand_ins in choices.values():
        total *= len(stand_ins)
    if not choices or total > LIMIT:
        return
    for combination in itertools.product(*choices.values()):
        yield facts.completed(dict(zip(choices, combination)))


def _stand_ins(root: str, atoms: list[Atom], facts: Facts) -> list[Any]:
    if root.startswith("distributions."):
        return _distributions(root[14:], atoms, facts)
    if root == "workload.features":
        return _features(sorted({atom[1] for atom in atoms}), facts)
    if root.startswith("variables."):
        return [None, OTHER, *dict.fromkeys(value for atom in atoms for value in atom[3])]
    if root == "accelerators":
        return _accelerators(atoms, facts)
    if atoms[0][0] == "word":
        return [OTHER, *dict.fromkeys(value for atom in atoms for value in atom[2] if _may_be(root, value, facts))]
    return _numbers(atoms) if root in _NUMBERS else _cells(atom[2] for atom in atoms)


def _may_be(root: str, value: str, facts: Facts) -> bool:
    """Whether a fact can have this value; a model name without a recognized family rules out all recognizable families."""
    return root != "workload.model" or facts.value(root) is None or family_of(value) is not None


def _numbers(atoms: list[Atom]) -> list[int]:
    bounds = {int(key[1][0]) for atom in atoms for interval in atom[2] for key in (interval[0], interval[2]) if key}
    return sorted({1, *(max(1, bound + step) for bound in bounds for step in (-1, 0, 1))})


def _cells(ranges: Iterable[Ranges]) -> list[Any]:
    """A version key for every position relative to the bounds: below all of them, at each one, and just above each one."""
    bounds = sorted({key for each in ranges for interval in each for key in (interval[0], interval[2]) if key})
    return [(-1,), *(cell for bound in bounds for cell in (bound, (*bound, 0)))]


def _distributions(name: str, atoms: list[Atom], facts: Facts) -> list[Any]:
    known = facts.package(name)
    if isinstance(known, list) and len(known) > 1:
        return [[copy] for each in known for copy in _copies(name, [each.version], [each.source], atoms)]
    if isinstance(known, list):
        versions = [known[0].version] if known[0].version is not None else _cells(a[3] for a in atoms if a[0] == "package")
        return [[copy] for copy in _copies(name, versions, [known[0].source], atoms)]
    versions = _cells(atom[3] for atom in atoms if atom[0] == "package")
    return [ABSENT, *([copy] for copy in _copies(name, versions, [None], atoms))]


def _copies(name: str, versions: Sequence[Any], sources: Sequence[Source | None], atoms: list[Atom]) -> Iterator[Distribution]:
    kinds = [OTHER, *dict.fromkeys(kind for atom in atoms if atom[0] == "source" for kind in atom[2])]
    detectors = [atom[2] for atom in atoms if atom[0] == "code"]
    for version, source in itertools.product(versions, sources):
        given = [source.kind] if source else kinds
        details = source.details if source else {}
        for kind, *found in itertools.product(given, *([True, False] for _ in detectors)):
            if kind in ("index", "conda") and any(found):
                continue  # a release never contains the code of a commit
            contains = {**dict(zip(detectors, found)), **details.get("contains", {})}
            yield Distribution(name=name, version=version, source=Source(kind, {**details, "contains": contains}))


def _features(names: list[str], facts: Facts) -> list[dict[str, bool]]:
    open_names = [name for name in names if facts.feature(name) is None]
    found = []
    for combination in itertools.product((True, False), repeat=len(open_names)):
        answer = dict(zip(open_names, combination))
        if sum(answer.get(name, False) for name in SHARDING) <= 1 + (answer.get("fsdp", False) and answer.get("fsdp2", False)):
            found.append(answer)
    return found


def _accelerators(atoms: list[Atom], facts: Facts) -> list[tuple[Accelerator, ...]]:
    conditions = [atom[2] for atom in atoms]
    known = facts.accelerators()
    if known is not None:
        return _completed(known, conditions, _highest_count(atoms))
    kinds = _devices(conditions, Accelerator())
    found: list[tuple[Accelerator, ...]] = []
    for count in range(_highest_count(atoms) + 2):
        found += itertools.islice(itertools.combinations_with_replacement(kinds, count), LIMIT)
    return found


def _completed(
    known: tuple[Accelerator, ...], conditions: list[tuple[Any, ...]], highest: int
) -> list[tuple[Accelerator, ...]]:
    """Known devices with their unknown properties filled in; one that has :func:`has_more` occurs any number of times."""
    options: list[list[tuple[Accelerator, ...]]] = []
    size = 1
    for device in known:
        numbers = range(1, highest + 2) if has_more(device) else (1,)
        size *= len(numbers)
        if size > LIMIT:
            return [known]
        kinds = _devices(conditions, device)
        options.append([(kind,) * number for kind in kinds for number in numbers])
        size *= len(kinds)
    return [tuple(itertools.chain(*choice)) for choice in itertools.product(*options)] if size <= LIMIT else [known]


def _highest_count(atoms: list[Atom]) -> int:
    return max((int(key[1][0]) for atom in atoms for i in atom[1] for key in (i[0], i[2]) if key), default=1)


def _devices(conditions: list[tuple[Any, ...]], known: Accelerator) -> list[Accelerator]:
    """One device for every combination of unknown properties that the conditions distinguish."""
    ways: list[list[Any]] = [
        ["nvidia", "amd", OTHER, *(v for c in conditions for v in c[0] or ())],
        list(_cells(c[1] for c in conditions if c[1])),
        [OTHER, *(n for c in conditions for n in c[2] or ())],
        [OTHER, *(g for c in conditions for g in c[3] or ())],
        list(_cells(c[4] for c in conditions if c[4])),
    ]
    for position, value in enumerate((known.vendor, known.compute_capability, known.name, known.gfx, known.memory_mib)):
        if value is not None:
            ways[position] = [value]
    return [
        Accelerator(vendor=vendor, compute_capability=capability, name=name, gfx=gfx, memory_mib=memory)
        for vendor, capability, name, gfx, memory in itertools.product(*map(dict.fromkeys, ways))
    ]
