"""Editing TOML files: tomlkit changes values in place; new keys and tables are inserted as lines of text.

tomlkit would put a new key after the comments that belong to the next table; a line of text goes where a user would put it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array, InlineTable, Item, String

from compat.errors import InputError
from compat.files import decode_utf8
from compat.formats.edit.files import Edit, line_end
from compat.formats.locks.tables import Table
from compat.syntax.toml import Places, Slot, parse_text


class TomlFile:
    """The document of a file; :class:`InputError` if it is not UTF-8, not TOML, or not preserved exactly by tomlkit.

    ``text`` is passed if the TOML is a part of the file (the metadata of a script).
    """

    def __init__(self, path: str, content: bytes, text: str | None = None) -> None:
        self.path = path
        self.content = content
        self.text = text = decode_utf8(path, content) if text is None else text
        parse_text(text, path)
        try:
            self.document: Any = tomlkit.parse(text)
        except (TOMLKitError, ValueError) as problem:
            raise InputError(f"cannot be edited: {problem}", path) from None
        if tomlkit.dumps(self.document) != text:
            raise InputError("cannot be edited without changing other lines", path)
        self.root = Table(self.document, path, text=text)
        self.places = Places(text)
        self._lines: list[tuple[str, str]] = []
        self._arrays: dict[tuple[str, str], list[str]] = {}
        self._sources: list[tuple[str, dict[str, Any]]] = []

    def table(self, *keys: str) -> Any:
        """Return the table at these keys, or ``None``."""
        found: Any = self.document
        for key in keys:
            if not isinstance(found, dict) or key not in found:
                return None
            found = found[key]
        return found

    def add_line(self, header: str, line: str) -> None:
        """Add a line at the end of the table with this header, which is created if missing."""
        self._lines.append((header, line))

    def add_string(self, header: str, key: str, text: str, comment: str) -> None:
        """Add a string to an array that does not exist yet; strings for the same array are collected."""
        line = f"    {as_written(text, None).as_string()},{f' # {comment}' if comment else ''}"
        self._arrays.setdefault((header, key), []).append(line)

    def source(self, header: str, url: str, **more: object) -> dict[str, Any]:
        """Return the source (an index) with this address among the ``[[header]]`` tables; add it with ``more`` if missing."""
        added = [each for name, each in self._sources if name == header]
        known = [*(self.table(*header.split(".")) or ()), *added]
        for each in known:
            if str(each.get("url", "")).rstrip("/") == url.rstrip("/") and "name" in each:
                return each  # type: ignore[no-any-return]
        # https://download.pytorch.org/whl/cu128 → pytorch-cu128, with a number appended if the name is taken
        parts = urlsplit(url)
        labels = (parts.hostname or "index").split(".")
        site = labels[-2] if len(labels) > 1 else labels[0]
        last = parts.path.rstrip("/").rpartition("/")[2]
        base = re.sub(r"[^a-z0-9]+", "-", f"{site}-{last}".lower()).strip("-")
        name, number = base, 1
        while any(str(each.get("name")) == name for each in known):
            number += 1
            name = f"{base}-{number}"
        found = {"name": name, "url": url, **more}
        self._sources.append((header, found))
        return found

    def edited(self) -> str:
        """Return the edited text; :class:`InputError` if it would not be valid TOML."""
        text = tomlkit.dumps(self.document)
        arrays = [(header, "\n".join((f"{key} = [", *lines, "]"))) for (header, key), lines in self._arrays.items()]
        for header, line in (*self._lines, *arrays):
            text = _with_line(text, header, line)
        for header, values in self._sources:
            lines = [f"{key} = {tomlkit.item(value).as_string()}\n" for key, value in values.items()]
            text = f"{_closed(text)}\n[[{header}]]\n{''.join(lines)}"
        if line_end(self.text) == "\r\n":
            text = re.sub(r"(?<!\r)\n", "\r\n", text)
        try:
            parse_text(text, self.path)
        except InputError as problem:
            reason = problem.message.removeprefix("is not TOML: ")
            where = f"line {problem.line}: " if problem.line is not None else ""
            raise InputError(f"cannot be edited: the result would not be valid TOML ({where}{reason})", self.path) from None
        return text

    def edit(self) -> Edit:
        return Edit(self.path, self.content, self.edited().encode("utf-8"))


class ArrayItem:
    """A string in an array. It is found again by identity, because others may be removed before it."""

    def __init__(self, slot: Slot) -> None:
        self._array = slot.owner
        self._item = slot.owner[slot.key]
        self.text = str(self._item)

    def set(self, text: str) -> None:
        at = self._at()
        self._array[at] = self._item = as_written(text, self._item)

    def remove(self) -> None:
        del self._array[self._at()]

    def _at(self) -> int:
        return next(at for at, item in enumerate(self._array) if item is self._item)


def as_written(text: str, old: object) -> Any:
    """Return a string in the quotes of the old one if possible, with its comment."""
    literal = isinstance(old, String) and old.as_string().startswith("'") and "'" not in text
    new = tomlkit.string(text, literal=literal or ('"' in text and "'" not in text))
    return _with_trivia(new, old) if isinstance(old, String) else new


def _with_trivia(new: Item, old: Item) -> Item:
    """Give a value the blanks and the comment of the one that it replaces."""
    new.trivia.indent, new.trivia.comment_ws = old.trivia.indent, old.trivia.comment_ws
    new.trivia.comment, new.trivia.trail = old.trivia.comment, old.trivia.trail
    return new


def with_keys(owner: Any, key: object, values: dict[str, str], dropped: Collection[str] = ()) -> None:
    """Set texts in the table ``owner[key]`` and drop other keys; an inline table keeps its style."""
    table = owner[key]
    gone = [name for name in table if name in dropped and name not in values]
    if isinstance(table, InlineTable) and (gone or any(name not in table for name in values)):
        kept = [name for name in table if name not in gone]
        texts = {name: tomlkit.item(table[name]).as_string() for name in kept}
        texts.update((name, as_written(text, table.get(name)).as_string()) for name, text in values.items())
        owner[key] = _with_trivia(inline_table(texts, tight=not table.as_string().startswith("{ ")), table)
        return
    for name in gone:
        del table[name]
    for name, text in values.items():
        if str(table.get(name)) != text:
            table[name] = as_written(text, table.get(name))


def inline_table(texts: Mapping[str, str], *, tight: bool = False) -> Any:
    """Return ``{ name = value, … }`` with values in TOML notation."""
    inside = ", ".join(f"{name} = {text}" for name, text in texts.items())
    return tomlkit.value(f"{{{inside}}}" if tight else f"{{ {inside} }}")


def inline_texts(values: Mapping[str, str]) -> Any:
    return inline_table({name: as_written(text, None).as_string() for name, text in values.items()})


def append(array: Array, text: str, comment: str) -> None:
    """Append a string, on its own line if the others have one."""
    item = as_written(text, None)
    written = array.as_string()
    if "\n" not in written:
        array.append(item)
        return
    indent = re.search(r"\n([ \t]*)[\"'{]", written)
    array.add_line(item, indent="    " if indent is None else indent[1], comment=comment or None)


def _with_line(text: str, header: str, line: str) -> str:
    start = Places(text).key(header)
    if start is None:
        return f"{_closed(text)}\n[{header}]\n{line}\n"
    lines = text.split("\n")
    end = next((n for n in range(start, len(lines)) if lines[n].startswith("[")), len(lines))
    while end > start and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    lines[end:end] = [line] if end < len(lines) else [line, ""]
    return "\n".join(lines)


def _closed(text: str) -> str:
    """Return a text whose last line, if it has one, has an end."""
    return text if not text or text.endswith("\n") else f"{text}\n"
