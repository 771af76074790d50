"""What functions and methods of Python return: those of texts, lists, tables, paths and files (:mod:`compat.syntax.values`)."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence

from compat.syntax.values import (
    File,
    Table,
    Text,
    Unknown,
    Value,
    conditional,
    derived,
    is_true,
    items_of,
    joined,
    lines_of,
    path_of,
    pieces,
)

CHANGING = ("update", "setdefault", "pop", "append", "extend", "insert", "clear", "remove", "add", "discard")
"""Methods that change the list or table that they are called on."""
_STRIPPED = ("strip", "lstrip", "rstrip", "removeprefix", "removesuffix")
_CHANGED = ("lower", "upper", "replace", "title")
_ASKED = ("startswith", "endswith", "isspace", "isdigit", "isidentifier")
_SAME = ("encode", "decode", "resolve", "absolute", "expanduser", "as_posix")
_PATHS = ("abspath", "realpath", "normpath", "relpath", "expanduser", "fspath")


def of_text(text: Text, name: str, args: Sequence[Value], line: int) -> Value:
    """Return what a method of a text, or of a path, returns."""
    if name in _SAME:
        return text
    if name == "splitlines":
        return list(lines_of(text))
    if name == "joinpath":
        return path_of([text, *args], line)
    if name == "format":
        return _formatted(text, args, line)
    if name in ("split", "rsplit", "partition", "rpartition"):
        separator = args[0].value if args and isinstance(args[0], Text) else None
        if not args and name == "split":
            return pieces(text, None)
        if not separator:
            return Unknown(line)
        if len(args) == 1 and name.endswith("split"):
            return pieces(text, separator)
        more = [each for each in args[1:] if isinstance(each, int)]
        return [derived(text, each) for each in getattr(text.value, name)(separator, *more)]
    given = [each.value for each in args if isinstance(each, Text)]
    if len(given) < len(args) or len(given) != (2 if name == "replace" else len(given[:1])):
        return Unknown(line)
    if name in (*_STRIPPED, *_CHANGED):
        return derived(text, getattr(text.value, name)(*given))
    return bool(getattr(text.value, name)(*given)) if name in _ASKED else Unknown(line)


def _formatted(text: Text, args: Sequence[Value], line: int) -> Value:
    parts = text.value.split("{}")
    if len(parts) != len(args) + 1 or any("{" in part for part in parts):
        return Unknown(line)
    both: list[Value] = [Text(parts[0], line)]
    for given, part in zip(args, parts[1:]):
        both += [given, Text(part, line)]
    return joined(both, line)


def of_list(found: list[Value], name: str, args: Sequence[Value], line: int) -> Value:
    """Apply a method of a list or a set."""
    if name in ("append", "add", "insert") and args:
        found.insert(args[0] if name == "insert" and isinstance(args[0], int) else len(found), args[-1])
    elif name in ("extend", "update") and args:
        for each in args:
            found += items_of(each, line)
    elif name in ("union", "copy"):
        return [*found, *(each for other in args for each in items_of(other, line))]
    elif name in ("remove", "discard") and args:
        same = [each for each in found if isinstance(each, Text) and isinstance(args[0], Text) and each.value == args[0].value]
        if same:
            found.remove(same[0])
    elif name in ("sort", "reverse"):
        pass
    elif name == "clear":
        found.clear()
    else:
        return Unknown(line)
    return None


def of_table(found: Table, name: str, args: Sequence[Value], line: int) -> Value:
    """Apply a method of a dictionary."""
    key = args[0].value if args and isinstance(args[0], Text) else None
    if name == "keys":
        return items_of(found, line)
    if name == "values":
        return list(found.values())
    if name == "items":
        return [[Text(each, line) if isinstance(each, str) else each, value] for each, value in found.items()]
    if name == "copy":
        return dict(found)
    if name == "update" and args:
        for each in args:
            found.update(each if isinstance(each, dict) else {Unknown(line): Unknown(line)})
        return None
    if key is not None and name in ("get", "setdefault", "pop"):
        value = found.get(key, args[1] if len(args) > 1 else None)
        if name == "setdefault":
            found[key] = value
        elif name == "pop":
            found.pop(key, None)
        return value
    return Unknown(line)


def of_file(file: File, name: str, line: int) -> Value:
    """Return what a method of an open file returns."""
    if name == "read":
        return file.content
    if name == "readlines":
        return list(lines_of(file.content))
    return None if name == "close" else Unknown(line)


def path_function(name: str, args: Sequence[Value], line: int) -> Value:
    """Return what a function of ``os.path``, or ``Path``, returns; paths are relative to the folder of the code."""
    if name == "getcwd":
        return Text("", line)
    if name in ("join", "Path", "PurePath"):
        return path_of(args, line) if args else Text("", line)
    if not args or not isinstance(args[0], Text):
        return Unknown(line)
    if name in _PATHS:
        return args[0]
    if name == "dirname":
        return Text(posixpath.dirname(args[0].value), line)
    return Text(posixpath.basename(args[0].value), line) if name == "basename" else Unknown(line)


def built_in(
    name: str, args: Sequence[Value], options: Mapping[str | Unknown, Value], line: int,
    call: Callable[[Value, list[Value]], Value],
) -> Value:  # fmt: skip
    """Return what a function of Python itself returns; ``call`` calls one of the code."""
    if name in ("list", "tuple", "set", "sorted", "frozenset", "reversed", "iter"):
        if args and isinstance(args[0], Unknown):
            return args[0]
        return items_of(args[0], line) if args else []
    if name in ("dict", "OrderedDict"):
        start: Table = {}
        if args and isinstance(args[0], dict):
            start.update(args[0])
        elif args and isinstance(args[0], list):
            for pair in args[0]:
                both = pair if isinstance(pair, list) and len(pair) == 2 else [None, Unknown(line)]
                start[both[0].value if isinstance(both[0], Text) else Unknown(line)] = both[1]
        elif args:
            return Unknown(line)
        return {**start, **options}
    if name == "print":
        return None
    return _of_first(name, args, line, call) if args else Unknown(line)


def _of_first(name: str, args: Sequence[Value], line: int, call: Callable[[Value, list[Value]], Value]) -> Value:
    """Return what a function of at least one argument returns."""
    if name == "str":
        return args[0] if isinstance(args[0], (Text, Unknown)) else Text(str(args[0]), line)
    if name == "len":
        return len(items_of(args[0], line)) if isinstance(args[0], (list, dict)) else Unknown(line)
    if name in ("filter", "map") and len(args) == 2:
        function = args[0]
        items = items_of(args[1], line)
        if name == "map":
            return [call(function, [each]) for each in items]
        kept: list[Value] = []
        for each in items:
            wanted = is_true(each if function is None else call(function, [each]))
            if wanted is not False:
                kept.append(each if wanted else conditional(each, line))
        return kept
    if name in ("sum", "chain", "from_iterable"):
        lists = args if name == "chain" else items_of(args[0], line)
        return [each for inner in lists for each in items_of(inner, line)]
    if name == "enumerate":
        return [[number, each] for number, each in enumerate(items_of(args[0], line))]
    return Unknown(line)
