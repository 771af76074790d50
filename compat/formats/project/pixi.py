"""pixi.toml: what its features require from conda and from package indexes, and the edit of these requirements.

An environment is made of features, and one environment is installed. The default feature is at the top level of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from compat.errors import InputError
from compat.formats.conda_lock import PixiLock, platform_marker
from compat.formats.conda_spec import channel_of, parse_match_spec, stated_distribution
from compat.formats.edit.changes import Change, Statement
from compat.formats.edit.files import Edit
from compat.formats.edit.installer import Installer
from compat.formats.listing import ROOT, Choice, Edge, Entry, Listing, check_entries
from compat.formats.locks.tables import Table, index_source, read_toml
from compat.formats.project.draft import direct_source
from compat.formats.project.edit import ClauseItem, edit_tables
from compat.formats.project.toml_edit import TomlFile, inline_texts, with_keys
from compat.formats.registry import Commands, Format
from compat.formats.requirements.requirement import parse_requirement
from compat.formats.specifiers import EXACT, public
from compat.model import Distribution
from compat.records import record, replace
from compat.syntax.toml import Places, Slot

_DEFAULT = "default"
_SYSTEMS = {"linux": "sys_platform == 'linux'", "osx": "sys_platform == 'darwin'", "win": "sys_platform == 'win32'",
            "unix": "sys_platform != 'win32'"}  # fmt: skip
"""The targets that stand for several platforms."""
_WORKSPACES = ("workspace", "project")


@record(frozen=True)
class _Stated:
    """A requirement of a feature, with the marker of the platforms that it is for."""

    feature: str
    found: Distribution
    line: int | None
    slot: Slot
    conda: bool
    marker: str | None = None


class Pixi(Format):
    """A pixi.toml; :class:`InputError` for an invalid requirement, platform or environment."""

    kind = "pixi.toml"
    add, add_from, add_conda = PixiLock.add, PixiLock.add_from, PixiLock.add_conda

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        document, places = read_toml(path, text), Places(text)
        stated = list(_stated(document, places))
        check_entries(len(stated), path, None)
        # the environments with their features; the default one always exists
        environments = {_DEFAULT: frozenset({_DEFAULT})}
        for name, value in document.section("environments").content.items():
            table = Table(value, document.file, document.line, f"environments.{name}") if isinstance(value, dict) else None
            features = document.section("environments").texts(name) if table is None else table.texts("features")
            bare = table is not None and table.flag("no-default-feature")
            environments[name] = frozenset(features if bare else (*features, _DEFAULT))
        several = len(environments) > 1
        choices = tuple(Choice("environment", name, default=name == _DEFAULT) for name in environments) if several else ()
        edges = tuple(
            Edge(ROOT, number, each.marker, choice if several else None)
            for choice, features in enumerate(environments.values())
            for number, each in enumerate(stated) if each.feature in features
        )  # fmt: skip
        entries = tuple(Entry(each.found, each.line) for each in stated)
        pythons = {each.found.specifier or f"=={each.found.version}" for each in stated if each.found.name == "python"}
        only = next(iter(pythons)) if len(pythons) == 1 else None
        platforms = [marker for each in _workspace(document).texts("platforms") if (marker := _marker(each, document))]
        return (
            Listing(
                path, self.kind, entries, edges, choices, exclusive=several, environments=tuple(platforms),
                requires_python=only if only not in ("==None", "*") else None,
            ),
        )  # fmt: skip

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        file = TomlFile(path, content)
        statements = [
            Statement(each.found, path, each.line, (_CondaItem if each.conda else _Item)(each.slot))
            for each in _stated(file.root, file.places)
        ]  # fmt: skip
        return (edit_tables(file, statements, changes, _Item, "pypi-dependencies"),)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        return Commands((), (pip.in_folder_of(path) + PixiLock.sync,))


# --- Reading: features, their requirements, and the environments made of them.


def _workspace(document: Table) -> Table:
    return next((table for each in _WORKSPACES if (table := document.table(each)) is not None), document.section("workspace"))


def _stated(document: Table, places: Places) -> Iterator[_Stated]:
    channels = [each.rpartition("/")[2] for each in _workspace(document).content.get("channels", ()) if isinstance(each, str)]
    features = document.section("feature")
    tables = [(_DEFAULT, document, "")]
    tables += [(name, features.section(name), f"feature.{name}.") for name in features.content]
    for feature, table, header in tables:
        yield from _required(feature, table, header, None, places, channels)
        targets = table.section("target")
        for name in targets.content:
            marker = _SYSTEMS.get(name) or _marker(name, document)
            yield from _required(feature, targets.section(name), f"{header}target.{name}.", marker, places, channels)


def _marker(platform: str, document: Table) -> str | None:
    try:
        return platform_marker(platform)
    except ValueError as problem:
        raise document.wrong(str(problem)) from None


def _required(
    feature: str, table: Table, header: str, marker: str | None, places: Places, channels: list[str]
) -> Iterator[_Stated]:  # fmt: skip
    for key in ("dependencies", "pypi-dependencies"):
        of_conda, section = key == "dependencies", table.section(key)
        for name, value in section.content.items():
            line = places.key(f"{header}{key}", name)
            item = Table(value if isinstance(value, dict) else {"version": value}, table.file, line, f"{header}{key}.{name}")
            try:
                found = _of_conda(name, item, channels) if of_conda else _of_index(name, item)
            except ValueError as problem:
                raise item.wrong(str(problem)) from None
            yield _Stated(feature, found, line, Slot(section.content, name, name), of_conda, marker)


def _of_conda(name: str, item: Table, channels: list[str]) -> Distribution:
    version, build = item.text("version") or "*", item.text("build")
    spec = parse_match_spec(f"{name} {version}{f' {build}' if build else ''}")
    channel = channel_of(spec.name, item.text("channel"), channels)
    details = {"channel": channel, "spec": spec.unclear}
    return stated_distribution(spec, details, None if spec.exact else spec.specifier)


def _of_index(name: str, item: Table) -> Distribution:
    version, extras = (item.text("version") or "*").strip(), ",".join(item.texts("extras"))
    found = parse_requirement(f"{name}{f'[{extras}]' if extras else ''}{'' if version == '*' else version}")
    source = direct_source(item, item.text("path"), "editable")
    if source is None and (index := item.text("index")) is not None:
        source = index_source(index)
    return found if source is None else replace(found, source=source)


# --- Editing: a version, or a table with one.


class _Item(ClauseItem):
    """A package from an index, which is an address."""

    def index(self, file: TomlFile, url: str) -> str:
        return url


class _CondaItem(_Item):
    """A package from a channel; its build belongs to one release, and is dropped."""

    def change(self, file: TomlFile, change: Change, how: str) -> None:
        source = change.source
        if source is not None and source.kind not in ("index", "nightly", "conda"):
            raise InputError(f"{change.name} comes from conda, but its new release does not: change it by hand", file.path)
        assert change.after is not None
        values: dict[str, Any] = {"version": self.changed_constraint(self.constraint(), change, how)}
        if source is not None and source.kind == "conda":  # another channel, whose builds have other names
            values = {"version": f"=={public(change.after)}", "channel": source.details["channel"]}
            if "variant" in source.details:
                values["build"] = source.details["variant"]
        if self.in_table:
            with_keys(self._owner, self._key, values, ("build", "channel"))
        elif len(values) > 1:
            self._owner[self._key] = inline_texts(values)
        else:
            super().change(file, replace(change, source=None), how)

    def changed_constraint(self, old: str | None, change: Change, how: str) -> str:
        assert change.after is not None
        after = public(change.after)  # local labels belong to wheels
        return f"=={after}" if how == EXACT else super().changed_constraint(old, replace(change, after=after), how)

    def use_index(self, file: TomlFile, url: str) -> None:
        """Leave the channel: an index has no conda packages."""
