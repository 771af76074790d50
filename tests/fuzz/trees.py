"""Values of JSON, TOML and YAML files: changed at random places, and written again."""

from __future__ import annotations

import json
import marshal
import random
import sys
from typing import Any

_ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**63, 10**30, 1.5, -0.0, 1e308, "", " ", "a", "1", "\0", "\ud800", "\u2028", "a\nb", "é", "../../etc/passwd",
    "==1", ">=1,<2", "1.0+cu124", "not a version", "sys_platform == 'linux'", "(", "extra == 'a'", [], {}, [[]], [{}], [None], {"": None},
    ["a", 1], {"name": 1}, {"name": "a"}, [["a"]], "main", "linux", "torch", "python", "${X}", "https://files.example/a-1-py3-none-any.whl",
    "a" * 300, "1." * 200, [1] * 50, "2.6.0", "==2.6.*", ">=3", "*", "^1", "file:///etc/passwd", "-r base.txt",
)  # fmt: skip


def parsed(text: str, form: str) -> Any:
    """The value of a seed; ``None`` where it is none (a seed may be broken on purpose)."""
    try:
        if form == "json":
            return json.loads(text)
        if form == "yaml":
            import yaml

            return yaml.safe_load(text)
        if form == "toml" and sys.version_info >= (3, 11):
            import tomllib

            return json.loads(json.dumps(tomllib.loads(text), default=str))
    except Exception:
        return None
    return None


def changed(tree: Any, chance: random.Random) -> Any:
    """A copy with one to three changes: a value of another type, a key or element lost, doubled, moved or renamed."""
    tree = marshal.loads(marshal.dumps(tree))
    for _ in range(chance.choice((1, 1, 2, 3))):
        places = list(_places(tree))
        if not places:
            return _odd(chance)
        _change(places, chance)
    return tree


def _odd(chance: random.Random) -> Any:
    """A copy: one value that stands in two places could be put into itself, and every later input would have it."""
    return marshal.loads(marshal.dumps(chance.choice(_ODD)))


def _places(tree: Any) -> Any:
    waiting = [tree]
    while waiting:
        each = waiting.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ()
        for key in keys:
            yield each, key
            if isinstance(each[key], (dict, list)):
                waiting.append(each[key])


def _change(places: list[Any], chance: random.Random) -> None:
    holder, key = chance.choice(places)
    other, at = chance.choice(places)
    how = chance.randrange(8)
    if how <= 2:
        holder[key] = _odd(chance)
    elif how == 3:
        del holder[key]
    elif how == 4:
        holder[key] = marshal.loads(marshal.dumps(other[at]))
    elif how == 5:
        holder[key] = chance.choice(([holder[key]], {"a": holder[key]}, [holder[key]] * 3))
    elif how == 6 and isinstance(holder, dict):
        name = at if isinstance(at, str) else chance.choice(("", "name", "version", "a b", "\0", "é", "<<"))
        holder[name] = holder.pop(key)
    elif isinstance(holder, list):
        holder.insert(chance.randrange(len(holder) + 1), marshal.loads(marshal.dumps(other[at])))


def written(tree: Any, form: str, chance: random.Random) -> str:
    """The value as a text of its form."""
    if form == "json" or (form == "yaml" and chance.random() < 0.3):
        return json.dumps(tree, indent=chance.choice((None, 1, 4)), ensure_ascii=chance.random() < 0.5)
    return _yaml(tree, 0) if form == "yaml" else _toml(tree)


def _yaml(value: Any, depth: int) -> str:
    space = "\n" + "  " * depth
    if isinstance(value, dict) and value:
        return space + space.join(f"{_scalar(key)}: {_yaml(each, depth + 1)}" for key, each in value.items())
    if isinstance(value, list) and value:
        return space + space.join(f"- {_yaml(each, depth + 1)}" for each in value)
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str) and value and value.replace("-", "").replace("_", "").isalnum():
        return value
    return json.dumps(value, default=str)


def _toml(tree: Any) -> str:
    if not isinstance(tree, dict):
        return f"a = {_inline(tree)}\n"
    lines = [f"{_key(key)} = {_inline(value)}" for key, value in tree.items() if not _is_table(value)]
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            lines += _tables(_key(key), value)
        elif _is_table(value):
            for each in value:
                lines += [f"\n[[{_key(key)}]]", *_body(_key(key), each)]
    return "\n".join(lines) + "\n"


def _tables(name: str, table: dict[str, Any]) -> list[str]:
    return [f"\n[{name}]", *_body(name, table)]


def _body(name: str, table: dict[str, Any]) -> list[str]:
    lines = [f"{_key(key)} = {_inline(value)}" for key, value in table.items() if not (isinstance(value, dict) and value)]
    for key, value in table.items():
        if isinstance(value, dict) and value:
            lines += _tables(f"{name}.{_key(key)}", value)
    return lines


def _is_table(value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value)
    return isinstance(value, list) and bool(value) and all(isinstance(each, dict) and each for each in value)


def _key(key: Any) -> str:
    text = str(key)
    return text if text.isascii() and text.replace("-", "").replace("_", "").isalnum() else json.dumps(text)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_inline(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if value is None:
        return '"null"'
    return json.dumps(value, default=str)
