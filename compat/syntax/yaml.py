"""YAML text as a tree of values with line numbers, for files of several megabytes.

The tree is built from libyaml's events without recursion: PyYAML's own composer in C overflows the stack on deep nesting.
Aliases share the value they name. The values that a reader visits are counted, so that a small file whose aliases would
expand to millions of values is refused, and so is a key that occurs twice. A :class:`Document` keeps scalars as text: a
version ``3.10`` is never taken for a number. :func:`parse_yaml` returns plain values, for configurations.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import yaml

from compat.errors import InputError
from compat.files import regular_path
from compat.redact import excerpt
from compat.syntax.json import line_of, parse_json, read_text

Content: TypeAlias = "str | list[Value] | list[tuple[Value, Value]] | None"
Table: TypeAlias = "dict[str, Value]"
Lines: TypeAlias = dict[tuple[str, ...], int]
"""path of a key → its line, from 1."""


DEPTH = 100
"""Levels of nesting; more than in any real file."""
_VALUES = 1_000_000
"""Values in one file; a 2 MB lock has a tenth of that."""
_ITEMS = 50_000
"""Items of one list, or keys and values of one table."""
_SPARE = 50_000
"""Values that aliases may repeat, in addition to one for every character of the text."""
_LONGEST = 300
"""Characters of one error, since its names come from the file."""
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
LIMIT = 1024 * 1024
"""Bytes; the largest configuration file that is read."""
_BUDGET = 50_000
"""Values in one configuration, including those repeated by aliases."""
_SCALAR, _LIST, _TABLE = "a string", "a list", "a table"
_EVENTS: dict[type[object], str] = {
    yaml.ScalarEvent: "scalar", yaml.MappingStartEvent: _TABLE, yaml.SequenceStartEvent: _LIST,
    yaml.MappingEndEvent: "end", yaml.SequenceEndEvent: "end", yaml.AliasEvent: "alias", yaml.DocumentStartEvent: "document",
}  # fmt: skip


class Value:
    """A value: its kind, its content (text, items, or pairs of a table), its 1-based line and its tag, if any.

    ``is_plain``: a scalar without quotes, which may be a number, true or false. ``start`` … ``end`` is a scalar's position
    in the text, with its quotes; 0 … 0 for a value that is not written there.
    """

    __slots__ = ("content", "end", "is_plain", "kind", "line", "start", "tag")

    def __init__(
        self, kind: str, content: Content, line: int, tag: str | None = None, *, is_plain: bool = False, start: int = 0,
        end: int = 0,
    ) -> None:  # fmt: skip
        self.kind = kind
        self.content = content
        self.line = line
        self.tag = tag
        self.is_plain = is_plain
        self.start = start
        self.end = end

    @property
    def is_list(self) -> bool:
        return self.kind is _LIST

    @property
    def is_table(self) -> bool:
        return self.kind is _TABLE

    @property
    def is_text(self) -> bool:
        """Whether it is a scalar other than ``null``."""
        return self.kind is _SCALAR and self.content is not None

    @property
    def is_null(self) -> bool:
        return self.kind is _SCALAR and self.content is None

    def as_text(self, text: str | None) -> Value:
        """Return a scalar at this value's position."""
        return Value(_SCALAR, text, self.line)

    def as_list(self, values: list[Value]) -> Value:
        """Return a list at this value's position."""
        return Value(_LIST, values, self.line)

    def as_table(self, values: dict[str, Value]) -> Value:
        """Return a table at this value's position."""
        return Value(_TABLE, [(each.as_text(key), each) for key, each in values.items()], self.line)


class Document:
    """A YAML text whose values are read individually; every wrong type is an :class:`InputError` with its line."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.content = text
        self._left = len(text) + _SPARE
        self.root = _composed(text, file)

    def wrong(self, problem: str, value: Value | None = None) -> InputError:
        clipped = problem if len(problem) <= _LONGEST else f"{excerpt(problem, _LONGEST)}…"
        return InputError(clipped, self.file, value.line if value is not None else None)

    def table(self, value: Value | None, name: str) -> Table:
        """Return the values of a table by key, with merge keys (``<<``) resolved; empty for ``null`` and a missing value."""
        return self._table(value, name, 0)

    def inner(self, value: Value | None, name: str) -> Table:
        """Like :meth:`table`; empty for a value of another type, too."""
        return self.table(value, name) if value is not None and value.is_table else {}

    def _table(self, value: Value | None, name: str, depth: int) -> Table:
        if value is None or value.is_null:
            return {}
        if not value.is_table or depth > DEPTH:
            raise self.wrong(f"expected {name} to be a table, not {value.kind}", value)
        own: dict[str, Value] = {}
        merged: list[Value] = []
        pairs: Any = value.content
        self._count(len(pairs), value)
        for key, each in pairs:
            if key.kind is not _SCALAR:
                raise self.wrong(f"{name}: expected a key to be a string, not {key.kind}", key)
            if key.content == "<<":
                merged += each.content if each.is_list else [each]
            else:
                own[key.content or ""] = each
        if not merged:
            return own
        self._count(len(merged), value)
        inherited: dict[str, Value] = {}
        for each in reversed(merged):
            inherited.update(self._table(each, f"{name} <<", depth + 1))
        return {**inherited, **own}

    def items(self, value: Value | None, name: str) -> list[Value]:
        """Return the items of a list; empty for ``null`` and a missing value."""
        if value is None or value.is_null:
            return []
        if not value.is_list:
            raise self.wrong(f"expected {name} to be a list, not {value.kind}", value)
        items: Any = value.content
        self._count(len(items), value)
        return list(items)

    def text(self, value: Value | None, name: str) -> str | None:
        """Return the text of a scalar; ``None`` if it is missing or ``null``."""
        if value is None:
            return None
        if value.kind is not _SCALAR:
            raise self.wrong(f"expected {name} to be a string, not {value.kind}", value)
        return value.content if isinstance(value.content, str) else None

    def span(self, value: Value) -> tuple[int, int] | None:
        """Return start and end of a scalar's text, without quotes; ``None`` if it is written with escapes or folded."""
        text = value.content
        if not text or not isinstance(text, str):
            return None
        end = value.end - (not value.is_plain and self.content[value.end - 1] in "'\"")
        start = end - len(text)  # an anchor or a tag may be in front of it
        return (start, end) if start >= value.start and self.content[start:end] == text else None

    def needed_text(self, value: Value | None, name: str, inside: Value) -> str:
        """Like :meth:`text`, but required in ``inside``."""
        text = self.text(value, name)
        if not text:
            raise self.wrong(f"expected {name} (a string)", value or inside)
        return text

    def flag(self, value: Value | None, name: str) -> bool:
        """Whether a scalar is ``true``; a missing one is ``false``."""
        text = (self.text(value, name) or "false").lower()
        if text not in ("true", "false", "yes", "no", "on", "off"):
            raise self.wrong(f"expected {name} to be true or false, not {excerpt(text, 40)!r}", value)
        return text in ("true", "yes", "on")

    def _count(self, values: int, where: Value) -> None:
        self._left -= values
        if self._left < 0:
            raise self.wrong("its aliases expand to too many values", where)


def _composed(text: str, file: str) -> Value | None:
    """Return the only document of a YAML text; ``None`` if it is empty."""
    # PyYAML has the C parser only if libyaml is available
    parser = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Composer(parser(text), file, text.startswith("\ufeff")).compose()
    except yaml.MarkedYAMLError as problem:
        conflict = ("\n" + text).find("\n<<<<<<< ")
        if conflict >= 0:
            raise InputError("has an unresolved merge conflict", file, text.count("\n", 0, conflict) + 1) from None
        mark = problem.problem_mark or problem.context_mark
        message = problem.problem or problem.context or "not understood"
        if "nesting depth" in message:  # the C parser has a limit of its own
            raise InputError("cannot be parsed: nested too deeply", file, mark.line + 1 if mark else None) from None
        # at the end of a text without a final line ending, libyaml counts one line too many
        line = min(mark.line + 1, len(f"{text}.".splitlines())) if mark else None
        raise InputError(f"is not YAML: {message}", file, line) from None
    except yaml.reader.ReaderError as problem:
        line = text[: problem.position].count("\n") + 1
        raise InputError(f"is not YAML: {problem.reason}", file, line) from None
    except UnicodeEncodeError as problem:
        line = text.count("\n", 0, problem.start) + 1
        raise InputError("is not YAML: it contains an unpaired surrogate", file, line) from None


class _Composer:
    """Builds a tree from events; open containers are on a stack."""

    def __init__(self, parser: Any, file: str, marked: bool) -> None:
        self._parser = parser
        self._file = file
        self._lead = int(marked)
        """The parser does not count a byte order mark."""
        self._anchors: dict[str, Value] = {}
        self._open: list[tuple[Value, str | None, list[Value]]] = []
        """Containers: the value, its anchor and its items (keys and values in turn)."""
        self._root: Value | None = None
        self._left = _VALUES

    def compose(self) -> Value | None:
        documents = 0
        get_event = self._parser.get_event
        while (event := get_event()) is not None:
            kind = _EVENTS.get(type(event))
            line = event.start_mark.line + 1
            if kind == "scalar":
                text, tag = event.value, event.tag
                plain = event.implicit[0] or tag == "tag:yaml.org,2002:null"
                value = Value(
                    _SCALAR, None if plain and text in _NULL else text, line, tag, is_plain=plain,
                    start=event.start_mark.index + self._lead, end=event.end_mark.index + self._lead,
                )  # fmt: skip
                self._add(value, event.anchor)
            elif kind in (_LIST, _TABLE):
                if len(self._open) >= DEPTH:
                    raise InputError("cannot be parsed: nested too deeply", self._file, line)
                self._open.append((Value(kind, None, line, event.tag), event.anchor, []))
            elif kind == "end":
                value, anchor, items = self._open.pop()
                value.content = items if value.kind is _LIST else self._pairs(items)
                self._add(value, anchor)
            elif kind == "alias":
                if event.anchor not in self._anchors:
                    name = excerpt(event.anchor, 40)
                    raise InputError(f"is not YAML: found undefined alias {name!r}", self._file, line)
                self._add(self._anchors[event.anchor], None)
            elif kind == "document":
                documents += 1
                if documents > 1:
                    raise InputError("is not YAML: expected a single document", self._file, line)
        return self._root

    def _pairs(self, items: list[Value]) -> list[tuple[Value, Value]]:
        """Return keys and values in pairs. YAML forbids a key that occurs twice: its last value would hide the others."""
        seen: set[str] = set()
        for key in items[::2]:
            if key.kind is _SCALAR and key.content != "<<":
                name = key.content if isinstance(key.content, str) else ""
                if name in seen:
                    raise InputError(f"the key {excerpt(name, 60)!r} occurs twice", self._file, key.line)
                seen.add(name)
        return list(zip(items[::2], items[1::2], strict=True))

    def _add(self, value: Value, anchor: str | None) -> None:
        self._left -= 1
        if self._left < 0:
            raise InputError(f"has more than {_VALUES} values", self._file, value.line)
        if anchor is not None:
            # only now, so that no value can contain itself
            self._anchors[anchor] = value
        if self._open:
            items = self._open[-1][2]
            items.append(value)
            if len(items) > _ITEMS:
                raise InputError(f"has more than {_ITEMS} values in one list or table", self._file, value.line)
        else:
            self._root = value


# --- Configurations, as plain values with the lines of their keys.


def read_table(path: str, expected: str) -> tuple[dict[str, Any], Lines]:
    """Return the table in a YAML or (``.json``) JSON file, and the lines of its keys (only top-level ones for JSON).

    Raises :class:`InputError`, naming what was ``expected``, if the file cannot be read or is not a table.
    """
    text = read_text(regular_path(path), LIMIT)
    lines: Lines = {}
    if path.endswith(".json"):
        value = parse_json(text, path)
        lines = {(key,): line_of(text, (key,)) or 1 for key in value} if isinstance(value, dict) else {}
    else:
        value, lines = parse_yaml(text, path)
    if not isinstance(value, dict):
        raise InputError(f"expected {expected}", path, 1)
    return value, lines


def parse_yaml(text: str, file: str) -> tuple[Any, Lines]:
    """Return the value of a YAML text and the lines of its keys; ``None`` for an empty text."""
    plain = _Plain(file)
    root = _composed(text, file)
    return None if root is None else plain.of(root, ()), plain.lines


class _Plain:
    """Converts values to Python's own; only the plain types are constructed."""

    def __init__(self, file: str) -> None:
        self.lines: Lines = {}
        self._file = file
        self._left = _BUDGET
        self._loader = yaml.SafeLoader("")

    def of(self, value: Value, path: tuple[str, ...]) -> Any:
        self._left -= 1
        if self._left < 0:
            raise InputError(f"expands to more than {_BUDGET} values", self._file, value.line)
        if value.kind is _SCALAR:
            text: Any = value.content
            if text is None:
                return None
            resolve: Any = self._loader.resolve
            tag = value.tag or resolve(yaml.ScalarNode, text, (value.is_plain, not value.is_plain))
            try:
                return self._loader.construct_object(yaml.ScalarNode(tag, text))
            except yaml.constructor.ConstructorError as problem:
                raise InputError(f"is not YAML: {problem.problem}", self._file, value.line) from None
            except ValueError:
                return text  # an invalid date or number
        if value.tag not in (None, "!", _TAGS[value.kind]):
            raise InputError(f"has a value of the unsupported type {value.tag}", self._file, value.line)
        content: Any = value.content
        if value.is_list:
            return [self.of(each, (*path, str(position))) for position, each in enumerate(content)]
        inherited: dict[str, object] = {}
        own: dict[str, object] = {}
        for key, each in content:
            if key.kind is not _SCALAR:
                raise InputError("has a key that is not a scalar", self._file, key.line)
            if key.content == "<<" and key.is_plain:
                for source in each.content if each.is_list else [each]:
                    merged = self.of(source, path)
                    inherited = {**(merged if isinstance(merged, dict) else {}), **inherited}
                continue
            inner = (*path, key.content or "")
            own[inner[-1]] = self.of(each, inner)
            self.lines[inner] = key.line
        return {**inherited, **own}


_TAGS = {_LIST: "tag:yaml.org,2002:seq", _TABLE: "tag:yaml.org,2002:map"}
