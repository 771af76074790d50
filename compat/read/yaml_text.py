"""YAML text as plain values with the line of every key; safe on hostile input.

Only the plain types are constructed. Anchors are resolved within a budget, so that a small file whose aliases would
unfold into millions of values is refused instead of unfolded.
"""

from __future__ import annotations

import yaml

from compat.errors import InputError
from compat.read.json_text import line_of, parse_json, read_text
from compat.read.regular_file import regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Lines = dict[tuple[str, ...], int]
    """path of a key → its line, from 1."""

LIMIT = 1024 * 1024
"""Bytes; the largest configuration file that is read."""
_BUDGET = 50_000
"""Values in one file, those that aliases repeat included."""
_MAPPING, _SEQUENCE = "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"


def read_table(path: str, expected: str) -> tuple[dict[str, Any], Lines]:
    """The table in a YAML or (``.json``) JSON file, and the lines of its keys, of the outermost ones in JSON.

    Raises :class:`InputError`, naming what was ``expected``, where the file cannot be read or holds no table.
    """
    text = read_text(regular(path), LIMIT)
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
    """The value of a YAML text and the lines of its keys; an empty text is ``None``."""
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None, {}
        reader = _Reader(loader, file)
        return reader.value(node, ()), reader.lines
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        message = problem.problem or problem.context or "not understood"
        raise InputError(f"is not YAML: {message}", file, mark.line + 1 if mark else None) from None
    except yaml.reader.ReaderError as problem:
        line = text.count("\n", 0, problem.position) + 1
        raise InputError(f"is not YAML: {problem.reason}", file, line) from None
    except RecursionError:
        raise InputError("is not YAML that can be read: nested too deeply", file) from None


class _Reader:
    """One document being turned into plain values."""

    def __init__(self, loader: yaml.SafeLoader, file: str) -> None:
        self._loader = loader
        self._file = file
        self._left = _BUDGET
        self.lines: Lines = {}

    def value(self, node: yaml.Node, path: tuple[str, ...]) -> Any:
        self._left -= 1
        if self._left < 0:
            raise InputError(f"unfolds into more than {_BUDGET} values", self._file, node.start_mark.line + 1)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if isinstance(node, yaml.SequenceNode) and node.tag == _SEQUENCE:
            return [self.value(each, (*path, str(position))) for position, each in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and node.tag == _MAPPING:
            return self._mapping(node, path)
        raise InputError(f"has a value of the unsupported type {node.tag}", self._file, node.start_mark.line + 1)

    def _mapping(self, node: yaml.MappingNode, path: tuple[str, ...]) -> dict[str, Any]:
        inherited: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise InputError("has a key that is no word", self._file, key.start_mark.line + 1)
            if key.tag == "tag:yaml.org,2002:merge":
                for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    merged = self.value(source, path)
                    inherited = {**(merged if isinstance(merged, dict) else {}), **inherited}
                continue
            inner = (*path, key.value)
            own[key.value] = self.value(value, inner)
            self.lines[inner] = key.start_mark.line + 1
        return {**inherited, **own}

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        try:
            return self._loader.construct_object(node)
        except ValueError:
            # a date or a number that is none
            return node.value
