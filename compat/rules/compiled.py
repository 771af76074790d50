"""The compiled matrix: a file with a small header that is always read, and one block per rule that is read on demand.

The header indexes the package conditions of the rules by distribution, so the cost of a check depends on the number of
installed distributions, not on the size of the matrix. The blocks are marshalled plain values, which are converted back to the
dataclasses of ``compat.rules.rule``.
"""

from __future__ import annotations

import marshal
import os

from compat.files import DATA, read_table
from compat.model import EMPTY
from compat.records import of_values, record, values_of
from compat.rules.rule import (
    OF_PACKAGES,
    AnyOf,
    Condition,
    FixTemplate,
    HasPackage,
    HasVariable,
    Rule,
    Signature,
    from_plain,
    to_plain,
)
from compat.versions import EVERY, Key, Ranges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
    from typing import Any, TypeAlias


_VERSION = 4
"""The marshal format version: the oldest one that all supported Python versions write and read identically."""
FILE = os.path.join(DATA, "rules.bin")


class Matrix:
    """An opened matrix. ``detectors`` maps a distribution to (detector, file, text) to look for in its installed files.

    ``variables`` are the environment variables that rules depend on, ``newest`` maps a package to the newest release that was
    assessed, and ``names`` maps every distribution that occurs in a condition to the numbers of the rules that depend on it.
    """

    def __init__(self, content: bytes) -> None:
        """Open a matrix from ``content``, as written by :func:`packed`."""
        self._start = 8 + int.from_bytes(content[:8], "big")
        (
            index, self._always, self._places, self.variables, self.detectors, self.newest, self.names, self._ids, self._errors,
        ) = marshal.loads(content[8 : self._start])  # fmt: skip
        self._index = {name: _Asked(parts) for name, parts in index.items()}
        self._content = content
        self._opened: dict[int, Rule] = {}
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._places) - 1

    def concerned(
        self, keys: Mapping[str, Key | None], among: Collection[int] | None = None, *, complete: bool = False
    ) -> list[int]:
        """Return the numbers of the rules that may apply to these distributions, in the matrix's order.

        ``keys`` maps each installed distribution to its version key (``None``: unknown, or several versions); ``complete``:
        no other one is installed. A rule is left out if one of them contradicts it, if it names none of them, or if it needs
        one that is not installed. ``among`` limits the rules to these.
        """
        found = _bits(self._always)
        contradicted = 0
        for name, asked in self._index.items():
            if name in keys:
                allowing, refusing = asked.by(keys[name])
                found |= allowing
                contradicted |= refusing
            elif complete:
                contradicted |= asked.needing()
        return _numbers(found & ~contradicted & (found if among is None else _bits(among)))

    def errors_about(self, names: Iterable[str]) -> set[int]:
        """Return the numbers of the rules that depend on one of these distributions and whose findings are errors."""
        return {number for name in names for number in self.names.get(name, ()) if self._errors[number]}

    def among(self, names: Container[str]) -> list[int]:
        """Return the numbers of the rules that need no distribution other than these, in the matrix's order."""
        others = 0
        for name, asked in self._index.items():
            if name not in names:
                others |= asked.needing()
        return _numbers((1 << len(self)) - 1 & ~others)

    def numbers(self, rules: Iterable[str]) -> list[int]:
        """Return the numbers of rules by their ids, in the matrix's order."""
        if not self._numbers:
            self._numbers = {rule: number for number, rule in enumerate(self._ids)}
        return sorted(self._numbers[rule] for rule in rules)

    def named(self, rule: str) -> Rule | None:
        """Return a rule by its id; ``None`` if there is none."""
        return self.rule(self._ids.index(rule)) if rule in self._ids else None

    def rule(self, number: int) -> Rule:
        if number not in self._opened:
            start, end = (self._start + place for place in self._places[number : number + 2])
            self._opened[number] = _unpacked(marshal.loads(self._content[start:end]))
        return self._opened[number]

    def rules(self) -> list[Rule]:
        """Return all rules, in the matrix's order."""
        return [self.rule(number) for number in range(len(self))]

    def extended(self, rules: Sequence[Rule]) -> Matrix:
        """Return the matrix with more rules, without opening its own."""
        more = Matrix(packed(rules))
        first, end = len(self), self._places[-1]
        index = {name: asked.parts for name, asked in self._index.items()}
        for name, asked in more._index.items():
            index[name] = (*index.get(name, ()), *asked.moved(first))
        detectors = dict(self.detectors)
        for name, found in more.detectors.items():
            detectors[name] = tuple(sorted({*detectors.get(name, ()), *found}))
        header = marshal.dumps((
            index,
            (*self._always, *(number + first for number in more._always)),
            (*self._places, *(end + place for place in more._places[1:])),
            tuple(sorted({*self.variables, *more.variables})),
            detectors,
            self.newest,
            {
                name: (*self.names.get(name, ()), *(number + first for number in more.names.get(name, ())))
                for name in sorted({*self.names, *more.names})
            },
            (*self._ids, *more._ids),
            self._errors + more._errors,
        ), _VERSION)  # fmt: skip
        return Matrix(_content(header, self._content[self._start :], more._content[more._start :]))


class _Asked:
    """What the rules ask of one distribution; ``parts`` as made by :func:`_part`, one for each file of rules.

    The bounds of all their ranges divide the versions into places, so that a version is compared with a few bounds and not with
    every range: place 0 is that of an unknown version, the even ones are those of the bounds, the odd ones lie between them.
    """

    def __init__(self, parts: tuple[_Part, ...]) -> None:
        self.parts = parts
        self._known: dict[Key | None, tuple[int, int]] = {}
        self._needing = -1

    def by(self, key: Key | None) -> tuple[int, int]:
        """Return the rules that a version of the distribution allows, and those that it contradicts, as bits."""
        if key not in self._known:
            allowing = refusing = 0
            for bounds, numbers, allowed, absent in self.parts:
                place = 0 if key is None else _place_of(key, bounds)
                allowing |= _bits(number for number, places in zip(numbers, allowed) if places >> place & 1)
                refusing |= _bits(number for number, places in zip(numbers, allowed) if not places >> place & 1) | _bits(absent)
            self._known[key] = allowing, refusing
        return self._known[key]

    def needing(self) -> int:
        """Return the rules that need the distribution, in any version, as bits."""
        if self._needing < 0:
            self._needing = _bits(number for _, numbers, _, _ in self.parts for number in numbers)
        return self._needing

    def moved(self, first: int) -> Iterator[_Part]:
        """Yield the parts for the same rules numbered from ``first``."""
        for bounds, numbers, allowed, absent in self.parts:
            yield bounds, tuple(number + first for number in numbers), allowed, tuple(number + first for number in absent)


_Part: TypeAlias = "tuple[tuple[Key, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]"
"""(bounds in order, the rules that need the distribution, the places each of them allows as bits, those that need it absent)"""


def _part(asked: Sequence[tuple[int, HasPackage]]) -> _Part:
    """Compile the conditions of rules, by their numbers, on one distribution."""
    needed = [(number, each.ranges if each.how == "in" else EVERY) for number, each in asked if each.how != "absent"]
    ends = {end for _, ranges in needed for low, _, high, _ in ranges for end in (low, high) if end is not None}
    bounds = tuple(sorted(ends))
    return (
        bounds, tuple(number for number, _ in needed), tuple(_places_in(ranges, bounds) for _, ranges in needed),
        tuple(number for number, each in asked if each.how == "absent"),
    )  # fmt: skip


def _places_in(ranges: Ranges, bounds: tuple[Key, ...]) -> int:
    """The places of the versions in ranges, as bits; with that of an unknown version, which contradicts none."""
    places = 1
    for low, with_low, high, with_high in ranges:
        first = 1 if low is None else _place_of(low, bounds) + (not with_low)
        last = 2 * len(bounds) + 1 if high is None else _place_of(high, bounds) - (not with_high)
        places |= (1 << last + 1) - (1 << first)
    return places


def _place_of(key: Key, bounds: tuple[Key, ...]) -> int:
    low, high = 0, len(bounds)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if bounds[middle] < key else (low, middle)
    return 2 * low + (2 if low < len(bounds) and bounds[low] == key else 1)


def _bits(numbers: Iterable[int]) -> int:
    """A set of numbers as the bits of one."""
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def _numbers(bits: int) -> list[int]:
    """The numbers of a set of bits, in order."""
    return [number for number, bit in enumerate(reversed(f"{bits:b}")) if bit == "1"]


def _content(header: bytes, *blocks: bytes) -> bytes:
    return b"".join((len(header).to_bytes(8, "big"), header, *blocks))


def packed(rules: Sequence[Rule], newest: Mapping[str, str] = EMPTY) -> bytes:
    """Compile a sequence of rules and the newest releases that were assessed."""
    asked: dict[str, list[tuple[int, HasPackage]]] = {}
    always: list[int] = []
    detectors: dict[str, set[tuple[str, str, str]]] = {}
    variables: set[str] = set()
    naming: dict[str, list[int]] = {}
    places, blocks = [0], []
    for number, rule in enumerate(rules):
        if all(each.how == "absent" for each in rule.packages):
            always.append(number)
        for each in rule.packages:
            asked.setdefault(each.name, []).append((number, each))
        for package, detector, path, text in rule.detectors:
            detectors.setdefault(package, set()).add((detector, path, text))
        for name in named_distributions(rule):
            naming.setdefault(name, []).append(number)
        variables.update(asked_variables(rule))
        blocks.append(marshal.dumps(_plain(rule), _VERSION))
        places.append(places[-1] + len(blocks[-1]))
    header = marshal.dumps((
        {name: (_part(found),) for name, found in asked.items()},
        tuple(always),
        tuple(places),
        tuple(sorted(variables)),
        {name: tuple(sorted(found)) for name, found in detectors.items()},
        dict(newest),
        {name: tuple(numbers) for name, numbers in sorted(naming.items())},
        tuple(rule.id for rule in rules),
        bytes(rule.severity == "error" for rule in rules),
    ), _VERSION)  # fmt: skip
    return _content(header, *blocks)


def asked_variables(rule: Rule) -> set[str]:
    """The environment variables a rule's conditions depend on."""
    return {each.name for each in _flat(rule) if isinstance(each, HasVariable)}


def named_distributions(rule: Rule) -> set[str]:
    """The distributions a rule's conditions depend on."""
    return {each.name for each in _flat(rule) if isinstance(each, OF_PACKAGES)}


def _flat(rule: Rule) -> Iterator[Condition]:
    """All conditions of a rule, alternatives one by one."""
    for each in (*rule.packages, *rule.when, *(each for group in rule.unless for each in group)):
        yield from each.conditions if isinstance(each, AnyOf) else (each,)


def in_memory(rules: Sequence[Rule], newest: Mapping[str, str] = EMPTY) -> Matrix:
    """Build a matrix from these rules in memory, without a file."""
    return Matrix(packed(rules, newest))


def open_matrix(extra: Sequence[str] = ()) -> Matrix:
    """Open the matrix shipped with this package, and add the rules from the ``extra`` files.

    In a source tree whose rule files are newer than the compiled file, the rule files are read instead.
    """
    folder = source_folder()
    if folder is not None and _stale(folder):
        from compat.rules.loader import load_assessed, load_folder

        matrix = in_memory(load_folder(folder), load_assessed(folder))
    else:
        matrix = _shipped()
    if not extra:
        return matrix
    from compat.rules.loader import load_file, unique

    own = [rule for path in extra for rule in load_file(path)]
    same = filter(None, map(matrix.named, dict.fromkeys(rule.id for rule in own)))
    unique([*same, *own])
    return matrix.extended(own)


def _shipped() -> Matrix:
    """The matrix of this installation, opened once per process: a server and a test suite open it thousands of times."""
    try:
        status = os.stat(FILE)
        key = (FILE, status.st_mtime_ns, status.st_size)
    except OSError:
        return Matrix(read_table(FILE))  # raises the error that says what to do
    if key not in _matrices:
        _matrices.clear()
        _matrices[key] = Matrix(read_table(FILE))
    return _matrices[key]


_matrices: dict[tuple[str, int, int], Matrix] = {}


def source_folder() -> str | None:
    """``matrix/rules`` next to the package; ``None`` if this does not run from a source tree."""
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))), "matrix", "rules")
    return folder if os.path.isdir(folder) else None


def _stale(folder: str) -> bool:
    try:
        compiled = os.stat(FILE).st_mtime_ns
    except OSError:
        return True
    with os.scandir(folder) as entries:
        return any(entry.stat().st_mtime_ns > compiled for entry in entries if entry.name.endswith(".toml"))


def _plain(rule: Rule) -> tuple[Any, ...]:
    fields = dict(zip(Rule.__annotations__, values_of(rule)))
    for name in ("packages", "when"):
        fields[name] = tuple(map(to_plain, fields[name]))
    fields["unless"] = tuple(tuple(map(to_plain, group)) for group in rule.unless)
    fields["errors"] = tuple(map(values_of, rule.errors))
    fields["fixes"] = tuple(
        tuple({**dict(zip(_OF_FIX, values_of(fix))), "when": tuple(map(to_plain, fix.when))}.values()) for fix in rule.fixes
    )
    return tuple(fields.values())


def _unpacked(values: tuple[Any, ...]) -> Rule:
    fields = dict(zip(Rule.__annotations__, values))
    for name in ("packages", "when"):
        fields[name] = tuple(map(from_plain, fields[name]))
    fields["unless"] = tuple(tuple(map(from_plain, group)) for group in fields["unless"])
    fields["errors"] = tuple(of_values(Signature, each) for each in fields["errors"])
    fixes = []
    for each in fields["fixes"]:
        fix = dict(zip(_OF_FIX, each))
        fix["when"] = tuple(map(from_plain, fix["when"]))
        fixes.append(of_values(FixTemplate, fix.values()))
    fields["fixes"] = tuple(fixes)
    return of_values(Rule, fields.values())


_OF_FIX = tuple(FixTemplate.__annotations__)


# --- Evidence for the version bounds of rules (``matrix/evidence``, from ``make audit``), compiled for ``compat rules show``.


EVIDENCE = os.path.join(DATA, "evidence.bin")
EVIDENCE_FIELDS = ("package", "bound", "inside", "outside", "how", "seen", "date")


@record(frozen=True)
class BoundEvidence:
    """Evidence for one bound of a range: the releases inside and outside it, what was observed, how, and the date."""

    package: str
    bound: str
    inside: str
    outside: str
    how: str
    seen: str
    date: str


def evidence_of(rule: str) -> tuple[BoundEvidence, ...]:
    """Return the evidence for a rule; empty if no audit has run since the rule changed, or if it is user-defined."""
    return tuple(BoundEvidence(*row) for row in marshal.loads(read_table(EVIDENCE)).get(rule, ()))
