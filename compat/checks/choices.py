"""Selections of extras and groups to check where a lock file leaves them open.

These are the defaults, each choice on its own, and the maximal sets without a conflict. Each selection is installable, so a
finding that needs several releases at once is only reported for releases that can be installed together.

A project that declares extras as conflicts, each with the same torch built for the CPU or for another CUDA, has them for
different machines. A build that does not fit the target is an error in none of them as long as another one has a build that
does: which one is installed is for the user to say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations

from compat.errors import InputError
from compat.model import normalized
from compat.records import record, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.formats.listing import Choice, Listing
    from compat.model import Distribution, Finding


_MOST = 200
"""The limit on maximal sets to check; each choice is always checked on its own as well."""

_MOST_PAIRED = 60
"""The largest number of choices for which all pairs are checked for undeclared conflicts."""


EVERY_CHOICE, _ALL_BUT = "every extra and group", "everything but"
"""Labels of the maximal sets: all choices, and all without those that are left out."""


def is_union(label: str) -> bool:
    """Whether a selection is all choices that go together, which need not be meant to be installed together."""
    return label == EVERY_CHOICE or label.startswith(_ALL_BUT)


@record(frozen=True)
class Requested:
    """The extras, groups and environment requested on the command line or by a target; ``None`` if unspecified.

    ``declared``: a target requests them for all files of a project, some of which may have no extras at all.
    """

    extras: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    environment: str | None = None
    declared: bool = False


@record(frozen=True)
class ChoiceSet:
    """A set of choices, as indices; ``label`` is "" for the default set."""

    numbers: frozenset[int]
    label: str = ""


def choice_sets(listing: Listing, requested: Requested, pairs: Sequence[tuple[int, int]] = ()) -> list[ChoiceSet]:
    """The sets of choices to check, simplest first; raises :class:`InputError` for an unknown extra, group or environment.

    ``pairs`` are choices that conflict although the file declares no conflict between them.
    """
    if listing.exclusive:
        return _environments(listing, requested)
    if not listing.choices and (requested.declared or (not requested.extras and not requested.groups)):
        return [ChoiceSet(frozenset())]
    defaults = frozenset(number for number, choice in enumerate(listing.choices) if choice.default)
    if requested.extras is not None or requested.groups is not None:
        return [ChoiceSet(_wanted(listing, requested, defaults))]
    conflicts = (*listing.conflicts, *pairs)
    sets = [ChoiceSet(defaults)]
    bare = frozenset(number for number in defaults if listing.choices[number].kind == "package")
    sets.append(ChoiceSet(bare, "without default groups"))
    for number, choice in enumerate(listing.choices):
        if number not in defaults and not choice.apart:
            sets.append(ChoiceSet(_with_defaults({number, *_owner(listing, number)}, defaults, conflicts), choice.label))
    sets += _maximal(listing, conflicts)
    seen: dict[frozenset[int], ChoiceSet] = {}
    for each in sets:
        seen.setdefault(each.numbers, each)
    return list(seen.values())


def one_by_one(listing: Listing) -> Listing:
    """The listing with its optional extras and groups in conflict, so that each is selected on its own."""
    optional = tuple(at for at, each in enumerate(listing.choices) if not each.default and each.kind in ("extra", "group"))
    return replace(listing, conflicts=(optional,))


def excluded_by(listing: Listing, numbers: Collection[int]) -> frozenset[int]:
    """The choices that a declared conflict keeps from being installed with these."""
    conflicting = _conflicts_of(listing.conflicts)
    return frozenset[int]().union(*(conflicting.get(number, ()) for number in numbers)) - frozenset(numbers)


def _environments(listing: Listing, requested: Requested) -> list[ChoiceSet]:
    sets = [ChoiceSet(frozenset((number,)), choice.label) for number, choice in enumerate(listing.choices)]
    if requested.environment is not None:
        sets = [each for each, choice in zip(sets, listing.choices) if choice.name == requested.environment]
        if not sets:
            raise _unknown("environment", requested.environment, listing)
    return sets or [ChoiceSet(frozenset())]


def _wanted(listing: Listing, requested: Requested, defaults: frozenset[int]) -> frozenset[int]:
    """The packages that are always installed plus the requested extras and groups (by default, the default groups)."""
    wanted = {number for number in defaults if listing.choices[number].kind == "package"}
    if requested.groups is None:
        wanted |= {number for number in defaults if listing.choices[number].kind == "group"}
    for kind, names in (("extra", requested.extras), ("group", requested.groups)):
        for name in names or ():
            if name in ("none", ""):
                continue
            of_kind = [number for number, choice in enumerate(listing.choices) if choice.kind == kind]
            found = [number for number in of_kind if _named(listing.choices[number], name)]
            if not found and name == "all":  # unless a choice has this name
                found = of_kind
            elif not found:
                raise _unknown(kind, name, listing)
            wanted.update(found)
            wanted.update(owner for number in found for owner in _owner(listing, number))
    return frozenset(wanted)


def _named(choice: Choice, name: str) -> bool:
    owner, bracket, inner = name.partition("[")
    if bracket and choice.package is not None:
        return normalized(choice.package) == normalized(owner) and normalized(choice.name) == normalized(inner.rstrip("]"))
    return normalized(choice.name) == normalized(name)


def in_project(requested: Requested, listing: Listing) -> Requested:
    """What is requested of the lock of a workspace (``kit[cpu]``), as one of its projects names it; without what it lacks."""

    def own(kind: str, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        of_kind = {normalized(choice.name) for choice in listing.choices if choice.kind == kind}
        inner = [name.partition("[")[2].rstrip("]") or name for name in names or ()]
        return None if names is None else tuple(name for name in inner if normalized(name) in of_kind) or ("none",)

    return replace(requested, extras=own("extra", requested.extras), groups=own("group", requested.groups))


def _unknown(kind: str, name: str, listing: Listing) -> InputError:
    known = [f"{choice.package}[{choice.name}]" if choice.package else choice.name
             for choice in listing.choices if choice.kind == kind]  # fmt: skip
    has = f"it has {', '.join(known)}" if known else f"it has no {kind}s"
    return InputError(f"unknown {kind} {name!r}; {has}", listing.file)


def _owner(listing: Listing, number: int) -> Iterable[int]:
    """The workspace member that an extra or group belongs to."""
    owner = listing.choices[number].package
    return [at for at, choice in enumerate(listing.choices) if choice.kind == "package" and choice.name == owner]


def unconflicted_pairs(listing: Listing, requested: Requested) -> list[tuple[int, int]]:
    """Every pair of choices without a declared conflict; empty if extras or groups were requested, or there are too many."""
    if requested.extras is not None or requested.groups is not None or len(listing.choices) > _MOST_PAIRED:
        return []
    conflicting = _conflicts_of(listing.conflicts)
    numbers = [number for number, choice in enumerate(listing.choices) if not choice.apart]
    return [(one, other) for one, other in combinations(numbers, 2) if other not in conflicting.get(one, ())]


def pair_set(pair: tuple[int, int], listing: Listing) -> ChoiceSet:
    """The set of two choices and the packages they belong to."""
    return ChoiceSet(frozenset((*pair, *(owner for number in pair for owner in _owner(listing, number)))))


def _with_defaults(wanted: set[int], defaults: frozenset[int], conflicts: Sequence[Sequence[int]]) -> frozenset[int]:
    """The wanted choices plus the defaults that do not conflict with them."""
    for number in sorted(defaults):
        if not any(number in conflict and not wanted.isdisjoint(set(conflict) - {number}) for conflict in conflicts):
            wanted.add(number)
    return frozenset(wanted)


def _maximal(listing: Listing, conflicts: Sequence[Sequence[int]]) -> list[ChoiceSet]:
    """Every maximal set of choices without a conflict, and without those that conflict with their own project."""
    apart = {number for number, choice in enumerate(listing.choices) if choice.apart}
    conflicting = _conflicts_of([set(each) - apart for each in conflicts])
    free = {number for number in range(len(listing.choices)) if number not in conflicting} - apart
    if not conflicting:
        return [ChoiceSet(frozenset(free), EVERY_CHOICE)]
    found = []
    for chosen in _maximal_independent(conflicting):
        numbers = {number for number in free | chosen if set(_owner(listing, number)) <= free | chosen}
        others = set(conflicting) - chosen
        named = (number for number in sorted(others) if others.isdisjoint({*_owner(listing, number)} - {number}))
        left_out = ", ".join(listing.choices[number].label for number in named)
        found.append(ChoiceSet(frozenset(numbers), f"{_ALL_BUT} {left_out}"))
    return found


def _conflicts_of(conflicts: Sequence[Collection[int]]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for conflict in conflicts:
        for number in conflict:
            found.setdefault(number, set()).update(other for other in conflict if other != number)
    return found


def _maximal_independent(conflicting: dict[int, set[int]]) -> list[set[int]]:
    """Maximal sets without conflicts, at most :data:`_MOST` (Bron-Kerbosch on the graph of compatible choices)."""
    everyone = set(conflicting)
    friends = {number: everyone - enemies - {number} for number, enemies in conflicting.items()}
    found: list[set[int]] = []
    waiting: list[tuple[set[int], set[int], set[int]]] = [(set(), set(everyone), set())]
    while waiting and len(found) < _MOST:
        chosen, possible, done = waiting.pop()
        if not possible:
            if not done:
                found.append(chosen)
            continue
        pivot = max(possible | done, key=lambda number: (len(friends[number] & possible), -number))
        for number in sorted(possible - friends[pivot]):
            waiting.append((chosen | {number}, possible & friends[number], done & friends[number]))
            possible = possible - {number}
            done = done | {number}
    return found


# --- Extras and groups that uv refuses to install together: two members of a declared conflict are active.
#
# An extra is active if it is selected or if a dependency requests it (``kit[cpu]``). uv's command line names extras and
# groups without their package, so one is also active if another of the same name is selected and its package is installed.


def extras_requested(listing: Listing) -> dict[int, int]:
    """Graph nodes that represent a conflicting extra requested by some dependency, mapped to that extra."""
    conflicting = _conflicting(listing)
    leading: dict[int, set[int | None]] = {}
    for _, child, _, choice in listing.edges or () if conflicting else ():
        if child >= len(listing.entries):
            leading.setdefault(child, set()).add(choice)
    found = {}
    for node, choices in leading.items():
        numbers = [number for number in choices if number is not None]
        if len(numbers) == 1 < len(choices) and numbers[0] in conflicting and listing.choices[numbers[0]].kind == "extra":
            found[node] = numbers[0]
    return found


def has_namesakes(listing: Listing) -> bool:
    """Whether a choice in a declared conflict may be active because another package has a choice of the same name."""
    return bool(_namesakes(listing))


def refusals(
    listing: Listing, chosen: Sequence[int], active: Sequence[int], installed: dict[int, int]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the contexts that uv refuses, with the conflict.

    ``chosen`` and ``active``: the contexts in which each choice is selected or active; ``installed``: those of each node.
    """
    namesakes = _namesakes(listing)
    owners = {entry.distribution.name: at for at, entry in enumerate(listing.entries)} if namesakes else {}

    def counts(number: int) -> int:
        named = 0
        for other in namesakes.get(number, ()):
            named |= chosen[other]
        owner = owners.get(listing.choices[number].package or "")
        return active[number] | (named & installed.get(owner, 0) if owner is not None else 0)

    count = {number: counts(number) for number in _conflicting(listing)}
    for conflict in listing.conflicts:
        seen = both = 0
        for number in conflict:
            both |= seen & count[number]
            seen |= count[number]
        if both:
            yield both, conflict


def _conflicting(listing: Listing) -> set[int]:
    return {number for conflict in listing.conflicts for number in conflict}


def _namesakes(listing: Listing) -> dict[int, list[int]]:
    """For each choice in a declared conflict, all choices with the same kind and name, where there are several."""
    by_name: dict[tuple[str, str], list[int]] = {}
    for number, choice in enumerate(listing.choices):
        if choice.package is not None and choice.kind != "package":
            by_name.setdefault(_name(choice), []).append(number)
    found = {number: by_name.get(_name(listing.choices[number]), []) for number in _conflicting(listing)}
    return {number: same for number, same in found.items() if len(same) > 1}


def _name(choice: Choice) -> tuple[str, str]:
    return choice.kind, normalized(choice.name)


def fitting(
    at: Collection[int], bad: Collection[int], torch: Sequence[frozenset[str]], sets: Sequence[ChoiceSet], listing: Listing
) -> list[int]:
    """The sets that can be installed instead of each of those ``at``, with the same release of torch; empty if one has none.

    ``bad`` are the sets whose build does not fit, ``torch`` the releases of torch, without the label of their build, in each.
    """
    others = [number for number in range(len(sets)) if number not in bad]
    found: set[int] = set()
    for number in at:
        instead = [
            other for other in others
            if torch[number] and torch[number] == torch[other] and _are_alternatives(sets[number], sets[other], listing)
        ]  # fmt: skip
        if not instead:
            return []
        found.update(instead)
    return sorted(found)


def _are_alternatives(one: ChoiceSet, other: ChoiceSet, listing: Listing) -> bool:
    return any(
        (mine := one.numbers.intersection(conflict)) and (theirs := other.numbers.intersection(conflict)) and mine != theirs
        for conflict in listing.conflicts
    )


_FOR_AMD = ("amd-aiter", "aiter", "amdsmi", "onnxruntime-rocm", "pytorch-triton-rocm", "triton-rocm")


def vendor_of(copy: Distribution) -> str | None:
    """The vendor of the only GPUs that a build is for, by its label, its index or its name; ``None`` if that is unknown.

    The builds of torch without a label on the default index are for NVIDIA's.
    """
    label = (copy.version or "").partition("+")[2]
    url = str(copy.source.details.get("url", "")) if copy.source is not None and copy.source.kind == "index" else ""
    if label.startswith("rocm") or "/rocm" in url or copy.name in _FOR_AMD:
        return "amd"
    plain = copy.name == "torch" and not label and not url.rstrip("/").endswith("/cpu")
    library = copy.name.startswith("nvidia-") and copy.name.rpartition("-cu")[2].isdecimal()
    return "nvidia" if plain or library or (label.startswith("cu") and label[2:].isdecimal()) else None


def is_about_build(finding: Finding) -> bool:
    """Whether a finding is about torch's build not fitting the target, which another build may."""
    return finding.origin == "build" and finding.verdict == "hit" and finding.packages.keys() == {"torch"}


def left_open(finding: Finding, instead: Sequence[ChoiceSet], listing: Listing) -> Finding:
    """The finding as *possible*: which extra or group is installed decides."""
    kinds = {listing.choices[number].kind for each in instead for number in each.numbers}
    unknown = tuple(path for kind, path in (("extra", "extras"), ("group", "groups")) if kind in kinds) or ("extras",)
    return replace(finding, verdict="possible", unknown=(*unknown, *finding.unknown), missing=(*unknown, *finding.missing))
