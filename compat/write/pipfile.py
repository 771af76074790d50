"""Changes to a Pipfile: its packages, which pipenv locks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compat.environment import normalized
from compat.write.changes import Change
from compat.write.edits import Edit
from compat.write.poetry import PoetryItem
from compat.write.specifiers import changed
from compat.write.statements import REMOVE, Statement, decided
from compat.write.toml_file import TomlFile, as_written
from compat.write.uv_sources import index_name

_TABLES = ("packages", "dev-packages")


class _Item(PoetryItem):
    """A package: clauses as PEP 440 has them, ``*`` for any release."""

    revisions = ("ref",)
    source_key = "index"

    def moved(self, old: str | None, change: Change, how: str) -> str:
        assert change.after is not None
        return changed("" if old in (None, "*") else str(old), change.before, change.after, how) or "*"


def edit_pipfile(path: str, content: bytes, changes: Sequence[Change]) -> tuple[Edit, ...]:
    """The edit of a Pipfile; :class:`InputError` for a folder of the project, and for what is no constraint."""
    file = TomlFile(path, content)
    for change in changes:
        wanted = decided(list(_statements(file)), change, exact=True)
        for statement, how in wanted:
            item: _Item = statement.place
            if how == REMOVE:
                item.remove()
                continue
            item.change(file, change, how)
            if change.index_url is not None:
                item.use_source(_source(file, change.index_url))
        if not wanted and change.after is not None and (change.direct or not change.implied):
            _add(file, change)
    return (file.edit(),)


def _statements(file: TomlFile) -> Iterator[Statement]:
    for header in _TABLES:
        table = file.table(header) or {}
        for key in table:
            if isinstance(table[key], (str, dict)) and normalized(key) != "python":
                line = file.places.key(header, key)
                item = _Item(key, table, key)
                yield Statement(item.found(file, line), file.path, line, place=item)


def _add(file: TomlFile, change: Change) -> None:
    holder: dict[str, Any] = {change.name: ""}
    item = _Item(change.name, holder, change.name)
    if change.is_direct_url:
        item.go_direct(change)
    else:
        holder[change.name] = as_written(f"=={change.after}", None)
    if change.index_url is not None:
        item.use_source(_source(file, change.index_url))
    comment = f" # {change.reason}" if change.reason else ""
    file.add_line("packages", f"{change.name} = {holder[change.name].as_string()}{comment}")


def _source(file: TomlFile, url: str) -> str:
    """The name of the source with this address, which is added where it is not there."""
    known = file.table("source") or ()
    for each in known:
        if str(each.get("url", "")).rstrip("/") == url.rstrip("/") and "name" in each:
            return str(each["name"])
    name = index_name(url, {str(each.get("name")) for each in known})
    quoted = (as_written(text, None).as_string() for text in (name, url))
    file.add_table("[[source]]\nname = {}\nurl = {}\nverify_ssl = true\n".format(*quoted))
    return name
