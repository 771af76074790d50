"""The compiled matrix: one file, a small header that is always read and one block a rule that is read when needed.

The header holds what decides whether a rule concerns an environment at all (its package conditions, indexed by
distribution), so a check costs what its distributions cost, not what the matrix holds. The blocks are marshalled plain
values; ``compat.matrix.rule`` gives them their names again.
"""

from __future__ import annotations

import marshal
import os

from compat.errors import InputError
from compat.matrix.rule import Example, FixTemplate, Rule, Signature
from compat.records import replace, values_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from compat.matrix.conditions import Atom

_MAGIC = b"compat-matrix-1\n"
_VERSION = 4
"""Of the marshal format: the oldest that every supported Python writes and reads alike."""
FILE = os.path.join(os.path.dirname(__file__), "compiled", "rules.bin")


class Matrix:
    """An opened matrix. ``detectors`` maps a distribution to (detector, file, text) to look for in what is installed."""

    def __init__(self, content: bytes) -> None:
        start = len(_MAGIC) + 8
        if content[: len(_MAGIC)] != _MAGIC:
            raise InputError("is not a compiled matrix of this version", FILE)
        end = start + int.from_bytes(content[len(_MAGIC) : start], "big")
        self._content = content
        self._index, self._conditions, self.ids, self._places, self.variables, self.detectors = marshal.loads(
            content[start:end]
        )
        self._start = end
        self._opened: dict[int, Rule] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def concerned(self, names: Iterable[str]) -> list[int]:
        """Numbers of the rules that name one of these distributions, or none at all; in the matrix's order."""
        found = set(self._index.get("", ()))
        for name in names:
            found.update(self._index.get(name, ()))
        return sorted(found)

    def package_conditions(self, number: int) -> tuple[Atom, ...]:
        """The package conditions of a rule, without opening the rule."""
        conditions: tuple[Atom, ...] = self._conditions[number]
        return conditions

    def rule(self, number: int) -> Rule:
        """A rule by its number."""
        if number not in self._opened:
            start, end = self._places[number]
            self._opened[number] = _unpacked(marshal.loads(self._content[self._start + start : self._start + end]))
        return self._opened[number]

    def by_id(self, name: str) -> Rule | None:
        """A rule by its id, ``None`` where there is none."""
        return self.rule(self.ids.index(name)) if name in self.ids else None

    def rules(self) -> list[Rule]:
        """Every rule, in the matrix's order."""
        return [self.rule(number) for number in range(len(self))]


def packed(rules: Sequence[Rule]) -> bytes:
    """The compiled form of a sequence of rules."""
    index: dict[str, list[int]] = {}
    detectors: dict[str, list[tuple[str, str, str]]] = {}
    variables: set[str] = set()
    places, blocks, length = [], [], 0
    for number, rule in enumerate(rules):
        for name in _named(rule) or ("",):
            index.setdefault(name, []).append(number)
        for package, detector, file, text in rule.detectors:
            detectors.setdefault(package, []).append((detector, file, text))
        variables.update(atom[1] for atoms in (rule.when, *rule.unless) for atom in atoms if atom[0] == "variable")
        block = marshal.dumps(_plain(rule), _VERSION)
        places.append((length, length + len(block)))
        length += len(block)
        blocks.append(block)
    header = marshal.dumps(
        (
            {name: tuple(numbers) for name, numbers in index.items()},
            tuple(rule.packages for rule in rules),
            tuple(rule.id for rule in rules),
            tuple(places),
            tuple(sorted(variables)),
            {name: tuple(sorted(set(found))) for name, found in detectors.items()},
        ),
        _VERSION,
    )
    return b"".join((_MAGIC, len(header).to_bytes(8, "big"), header, *blocks))


def open_matrix(extra: Sequence[str] = ()) -> Matrix:
    """The matrix this package ships, with the rules of ``extra`` files added.

    In a source tree whose rule files are newer than the compiled file, the rule files are read instead.
    """
    folder = _source_folder()
    if extra or (folder is not None and _stale(folder)):
        from compat.matrix.loader import load_file, load_folder, unique

        shipped = load_folder(folder) if folder is not None else tuple(_shipped().rules())
        return Matrix(packed(unique([*shipped, *(rule for path in extra for rule in load_file(path))])))
    return _shipped()


def _shipped() -> Matrix:
    try:
        with open(FILE, "rb") as file:
            return Matrix(file.read())
    except FileNotFoundError:
        raise InputError("the compiled matrix is missing: reinstall compat-doctor", FILE) from None


def _source_folder() -> str | None:
    """``matrix/rules`` beside the package, where this runs from a source tree."""
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "matrix", "rules")
    return folder if os.path.isdir(folder) else None


def _stale(folder: str) -> bool:
    try:
        compiled = os.stat(FILE).st_mtime_ns
    except OSError:
        return True
    with os.scandir(folder) as entries:
        return any(entry.stat().st_mtime_ns > compiled for entry in entries if entry.name.endswith(".toml"))


def _named(rule: Rule) -> tuple[str, ...]:
    """The distributions one of which must be there for the rule to hold."""
    return tuple(atom[1] for atom in rule.packages if atom[2] != "absent")


def _plain(rule: Rule) -> tuple[Any, ...]:
    parts: dict[str, Any] = {name: tuple(map(values_of, getattr(rule, name))) for name in ("errors", "fixes", "examples")}
    return values_of(replace(rule, **parts))


def _unpacked(values: tuple[Any, ...]) -> Rule:
    fields = dict(zip(_FIELDS, values))
    fields["errors"] = tuple(Signature(*each) for each in fields["errors"])
    fields["fixes"] = tuple(FixTemplate(*each) for each in fields["fixes"])
    fields["examples"] = tuple(Example(*each) for each in fields["examples"])
    return Rule(**fields)


_FIELDS = tuple(Rule.__annotations__)
