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
from compat.records import create_unchecked, record, values_of
from compat.rules.rule import (
    OF_PACKAGES,
    AnyOf,
    Condition,
    FixTemplate,
    HasVariable,
    Rule,
    Signature,
    from_plain,
    to_plain,
)
from compat.versions import Key, contains, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
    from typing import Any


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
        header = marshal.loads(content[8 : self._start])
        self._index, self._places, self.variables, self.detectors, self.newest, self.names, self._ids, self._errors = header
        self._content = content
        self._opened: dict[int, Rule] = {}
        self._numbers: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._places) - 1

    def concerned(self, keys: Mapping[str, Key | None], about: Iterable[str] | None = None) -> list[int]:
        """Return the numbers of the rules that may apply to these distributions, in the matrix's order.

        ``keys`` maps each installed distribution to its version key (``None``: unknown, or several versions). A rule is left
        out if one of them contradicts it, or if it names none of them. ``about`` limits the rules to those that depend on one
        of these distributions.
        """
        wanted = None if about is None else {number for name in about for number in self.names.get(name, ())}
        open_rules: set[int] = set(self._index.get("", ()))
        contradicted: set[int] = set()
        for name, key in keys.items():
            for number, how, ranges in self._index.get(name, ()):
                if wanted is not None and number not in wanted:
                    continue
                if how == "absent" or (how == "in" and key is not None and not contains(ranges, key)):
                    contradicted.add(number)
                else:
                    open_rules.add(number)
        found = open_rules - contradicted
        return sorted(found if wanted is None else found & wanted)

    def among(self, names: Container[str]) -> list[int]:
        """Return the numbers of the rules that need no distribution other than these, in the matrix's order."""
        others: set[int] = set()
        for name, found in self._index.items():
            if name and name not in names:
                others.update(number for number, how, _ in found if how != "absent")
        return [number for number in range(len(self)) if number not in others]

    def is_error(self, number: int) -> bool:
        """Whether a rule's findings are errors, without reading the rule's block."""
        return bool(self._errors[number])

    def numbers(self, rules: Iterable[str]) -> list[int]:
        """Return the numbers of rules by their ids, in the matrix's order."""
        if not self._numbers:
            self._numbers = {rule: number for number, rule in enumerate(self._ids)}
        return sorted(self._numbers[rule] for rule in rules)

    def named(self, rule: str) -> Rule | None:
        """Return a rule by its id; ``None`` if there is none."""
        return self.rule(self._ids.index(rule)) if rule in self._ids else None

    def rule(self, number: int) -> Rule:
        """Return a rule by its number."""
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
        index: dict[str, tuple[object, ...]] = dict(self._index)
        for name, found in more._index.items():
            moved = (each + first if name == "" else (each[0] + first, *each[1:]) for each in found)
            index[name] = (*index.get(name, ()), *moved)
        detectors = dict(self.detectors)
        for name, found in more.detectors.items():
            detectors[name] = tuple(sorted({*detectors.get(name, ()), *found}))
        header = marshal.dumps((
            index,
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


def _content(header: bytes, *blocks: bytes) -> bytes:
    return b"".join((len(header).to_bytes(8, "big"), header, *blocks))


def packed(rules: Sequence[Rule], newest: Mapping[str, str] = EMPTY) -> bytes:
    """Compile a sequence of rules and the newest releases that were assessed."""
    index: dict[str, list[object]] = {}
    detectors: dict[str, set[tuple[str, str, str]]] = {}
    variables: set[str] = set()
    naming: dict[str, list[int]] = {}
    places, blocks = [0], []
    for number, rule in enumerate(rules):
        if all(each.how == "absent" for each in rule.packages):
            index.setdefault("", []).append(number)
        for each in rule.packages:
            index.setdefault(each.name, []).append((number, each.how, each.ranges))
        for package, detector, path, text in rule.detectors:
            detectors.setdefault(package, set()).add((detector, path, text))
        for name in named_distributions(rule):
            naming.setdefault(name, []).append(number)
        variables.update(asked_variables(rule))
        blocks.append(marshal.dumps(_plain(rule), _VERSION))
        places.append(places[-1] + len(blocks[-1]))
    header = marshal.dumps((
        {name: tuple(found) for name, found in index.items()},
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
    fields = dict(zip(_FIELDS, values_of(rule)))
    for name, _ in _PARTS:
        fields[name] = tuple(map(values_of, fields[name]))
    at = tuple(FixTemplate.__annotations__).index("when")
    fields["fixes"] = tuple((*each[:at], tuple(map(to_plain, each[at])), *each[at + 1 :]) for each in fields["fixes"])
    for name in ("packages", "when"):
        fields[name] = tuple(map(to_plain, fields[name]))
    fields["unless"] = tuple(tuple(map(to_plain, group)) for group in fields["unless"])
    return tuple(fields.values())


def _unpacked(values: tuple[Any, ...]) -> Rule:
    fields = dict(zip(_FIELDS, values))
    for name in ("packages", "when"):
        fields[name] = tuple(map(from_plain, fields[name]))
    fields["unless"] = tuple(tuple(map(from_plain, group)) for group in fields["unless"])
    for name, kind in _PARTS:
        parts = [dict(zip(kind.__annotations__, each)) for each in fields[name]]
        for part in parts if kind is FixTemplate else ():
            part["when"] = tuple(map(from_plain, part["when"]))
        fields[name] = tuple(create_unchecked(kind, part) for part in parts)
    return create_unchecked(Rule, fields)


_FIELDS = tuple(Rule.__annotations__)
_PARTS: tuple[tuple[str, Any], ...] = (("errors", Signature), ("fixes", FixTemplate))


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


def packed_evidence(rules: Iterable[Rule], rows: Iterable[Mapping[str, str]]) -> bytes:
    """Return the content of the compiled file: the rows that agree with the current rules."""
    ranges = {(rule.id, name): found for rule in rules for name, found in rule.ranges.items()}
    found: dict[str, list[tuple[str, ...]]] = {}
    for row in rows:
        held = ranges.get((row["rule"], row["package"]), ())
        if contains(held, key_of(row["inside"])) and not (row["outside"] and contains(held, key_of(row["outside"]))):
            found.setdefault(row["rule"], []).append(tuple(row[name] for name in EVIDENCE_FIELDS))
    return marshal.dumps(found, 4)


def evidence_of(rule: str) -> tuple[BoundEvidence, ...]:
    """Return the evidence for a rule; empty if no audit has run since the rule changed, or if it is user-defined."""
    return tuple(BoundEvidence(*row) for row in marshal.loads(read_table(EVIDENCE)).get(rule, ()))
