"""The values of Python expressions that are evaluated from their syntax tree: texts that know where they are written, and more.

A value is a :class:`Text`, a list, a dictionary, a :class:`File`, a constant of Python, :class:`OneOf` several texts, or an
:class:`Unknown`. Tuples and sets are lists: only what is in them matters here.
"""

from __future__ import annotations

import ast
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import TypeAlias

from compat.records import record, replace

_LONGEST = 1 << 16
"""Characters of a computed text; longer ones are unknown."""
MOST = 8
"""Alternatives of a text; more are unknown."""


@record(frozen=True)
class Text:
    """A text and its line; ``file`` if it was read from a file, ``node`` if it is exactly one constant of the code.

    ``condition`` is the line of an undecided condition under which it is used.
    """

    value: str
    line: int
    file: str | None = None
    node: ast.Constant | None = None
    condition: int | None = None


@record(frozen=True)
class Unknown:
    """What cannot be decided without running the code; ``file``: it is computed from this requirements file alone."""

    line: int
    file: Text | None = None


@record(frozen=True)
class OneOf:
    """Two or more texts, of which it is undecided which one an expression has."""

    texts: tuple[str, ...]


@record(frozen=True)
class File:
    """An open file: its path and content; the content refers to the path."""

    content: Text


@record(frozen=True)
class Function:
    """A function of the code, with the variables around it, those of the module first."""

    node: ast.FunctionDef | ast.Lambda
    around: tuple[Variables, ...]


Table: TypeAlias = dict["str | Unknown", "Value"]
Value: TypeAlias = "Text | OneOf | Unknown | File | Function | list[Value] | Table | bool | int | float | None"
Variables: TypeAlias = dict[str, "Value"]


def is_true(value: Value) -> bool | None:
    """Whether a value counts as true; ``None`` if that is undecided."""
    if isinstance(value, (Unknown, OneOf)):
        return None
    if isinstance(value, Text):
        return bool(value.value)
    if isinstance(value, (list, dict)) and any(isinstance(each, Unknown) for each in value):
        return None
    return True if isinstance(value, (File, Function)) else bool(value)


def items_of(value: Value, line: int) -> list[Value]:
    """Return what a loop over a value sees."""
    if isinstance(value, list):
        return list(value)
    if isinstance(value, dict):
        return [Text(key, line) if isinstance(key, str) else key for key in value]
    if isinstance(value, File):
        return list(lines_of(value.content))
    if isinstance(value, Unknown):
        return [value]
    return [Unknown(line)] if isinstance(value, (Text, OneOf)) else []


def has_unknown(value: Value) -> bool:
    return any(isinstance(each, Unknown) for each in _parts(value))


def texts_in(value: Value) -> Iterator[Text]:
    """Yield the texts in a value."""
    return (each for each in _parts(value) if isinstance(each, Text))


def _parts(value: Value) -> Iterator[Value]:
    """Yield a value and everything in it; a list or table that occurs several times is opened once."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, (list, dict)) and id(each) not in seen:
            seen.add(id(each))
            waiting += (
                reversed(each) if isinstance(each, list) else [*each.values(), *(k for k in each if isinstance(k, Unknown))]
            )


def size_of(value: Value) -> int:
    """Return what it costs to go through a value once, in steps."""
    if isinstance(value, Text):
        return len(value.value) // 200
    return len(value) // 20 if isinstance(value, (list, dict)) else 0


def lines_of(text: Text) -> Iterator[Text]:
    """Yield the lines of a text, each with its own number."""
    at = text.value
    for number, line in enumerate(at.splitlines()):
        yield Text(line, text.line + number, text.file, condition=text.condition)


def derived(text: Text, value: str) -> Text:
    """Return a text computed from another one: it stays at its line; only blanks around it may have changed for its node."""
    same = value == text.value or (text.node is not None and value == text.value.strip())
    lead = text.value[: text.value.find(value)] if value and value in text.value else ""
    return replace(text, value=value, line=text.line + (lead.count("\n") if text.node is None else 0),
                   node=text.node if same else None)  # fmt: skip


def pieces(text: Text, separator: str | None) -> list[Value]:
    """Split a text; its pieces are at the lines where they are written."""
    found: list[Value] = []
    at, line = 0, text.line
    for part in text.value.split() if separator is None else text.value.split(separator):
        start = text.value.index(part, at)
        line += text.value.count("\n", at, start)
        found.append(replace(text, value=part, line=line, node=None))
        line += part.count("\n")
        at = start + len(part)
    return found


def joined(parts: Iterable[Value], line: int, between: str = "") -> Value:
    """Concatenate texts; unknown if a part is."""
    ways: list[tuple[str, ...]] = []
    condition = None
    for part in parts:
        if not isinstance(part, (Text, OneOf, int, float)):
            return Unknown(line, part.file if isinstance(part, Unknown) else None)
        ways.append(alternatives(part))
        condition = condition or (part.condition if isinstance(part, Text) else None)
    if prod(map(len, ways)) > MOST:
        return Unknown(line)
    found = [between.join(each) for each in product(*ways)]
    return one_of(found, line, condition) if max(map(len, found)) <= _LONGEST else Unknown(line)


def alternatives(value: Value) -> tuple[str, ...]:
    """Return the texts that a value may be, a number as it is printed; empty for anything else."""
    if isinstance(value, OneOf):
        return value.texts
    if isinstance(value, Text):
        return (value.value,)
    return (str(value),) if isinstance(value, (int, float)) else ()


def one_of(texts: Iterable[str], line: int, condition: int | None = None) -> Value:
    """Return the value that is one of some texts; unknown if there are none or too many."""
    different = tuple(dict.fromkeys(texts))
    if len(different) == 1:
        return Text(different[0], line, condition=condition)
    return OneOf(different) if 0 < len(different) <= MOST else Unknown(line)


def path_of(parts: Sequence[Value], line: int) -> Value:
    """Join parts of a path, relative to the folder of the code."""
    texts = [part.value for part in parts if isinstance(part, Text)]
    if len(texts) < len(parts) or not texts:
        return Unknown(line)
    return Text(posixpath.normpath(posixpath.join(*texts)) if any(texts) else "", line)


def conditional(value: Value, line: int, depth: int = 0) -> Value:
    """Return a value that is only there under the undecided condition of a line."""
    if isinstance(value, Text):
        return value if value.condition is not None else replace(value, condition=line)
    if isinstance(value, list) and depth < 3:
        return [conditional(each, line, depth + 1) for each in value]
    if isinstance(value, dict) and depth < 3:
        return {key: conditional(each, line, depth + 1) for key, each in value.items()}
    return value if value is None or isinstance(value, (bool, Function, Unknown)) else Unknown(line)


def merged(left: Value, right: Value, line: int, seen: dict[tuple[int, int], Value]) -> Value:
    """Return the value after an undecided condition, of which ``left`` and ``right`` are the two outcomes."""
    key = (id(left), id(right))
    if key in seen:
        return seen[key]
    if isinstance(left, list) and isinstance(right, list):
        seen[key] = whole = []
        both = Counter(map(_key, left)) & Counter(map(_key, right))
        missing = Counter(both)
        for each in left:
            missing[_key(each)] -= 1
            whole.append(each if missing[_key(each)] >= 0 else conditional(each, line))
        for each in right:
            both[_key(each)] -= 1
            if both[_key(each)] < 0:
                whole.append(conditional(each, line))
        return whole
    if isinstance(left, dict) and isinstance(right, dict):
        seen[key] = table = type(left)()
        for name in dict.fromkeys((*left, *right)):
            if name in left and name in right:
                table[name] = merged(left[name], right[name], line, seen)
            else:
                table[name] = conditional(left.get(name, right.get(name)), line)
        return table
    return left if left is right or _key(left) == _key(right) else Unknown(line)


def _key(value: Value, depth: int = 0) -> object:
    """Return what values in lists are compared by: content of texts, constants and short lists, identity of others."""
    if isinstance(value, Text):
        return (value.value, value.condition is None)
    if isinstance(value, list):
        return tuple(_key(each, depth + 1) for each in value) if depth < 2 and len(value) < 100 else len(value)
    if isinstance(value, dict):
        return len(value)
    return (type(value), value) if value is None or isinstance(value, (bool, int, float, Unknown)) else id(value)


def copied(value: Value, seen: dict[int, Value]) -> Value:
    """Return a copy in which no list or table is shared with the original; what was one object stays one."""
    if not isinstance(value, (list, dict)):
        return value
    if id(value) in seen:
        return seen[id(value)]
    if isinstance(value, list):
        whole: list[Value] = []
        seen[id(value)] = whole
        whole += [copied(each, seen) for each in value]
        return whole
    table = type(value)()
    seen[id(value)] = table
    table.update((key, copied(each, seen)) for key, each in value.items())
    return table
