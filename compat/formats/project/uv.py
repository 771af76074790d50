"""``[tool.uv]`` of a project or a script: where its dependencies come from, and what overrides and constrains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat.formats.listing import Entry
from compat.formats.locks.tables import Table, index_source, path_source, vcs_source
from compat.formats.requirements.direct_url import direct_url
from compat.formats.requirements.lines import constrained
from compat.model import Distribution, Source, normalized
from compat.records import replace

if TYPE_CHECKING:
    from compat.formats.project.pyproject import Draft


_MOST_SOURCES = 100
"""For one distribution; real lists have three."""


class UvSettings:
    """The settings that change what is installed; :class:`InputError` where one has a wrong type."""

    def __init__(self, table: Table, draft: Draft) -> None:
        self._table = table
        self._draft = draft
        self._indexes = {
            str(each.get("name")): each["url"] for each in table.tables("index") if isinstance(each.get("url"), str)
        }
        sources = table.table("sources")
        self._sources: dict[str, list[Table]] = {}
        for name, value in ({} if sources is None else sources.content).items():
            where = f"tool.uv.sources.{name}"
            items = value if isinstance(value, list) else [value]
            line = draft.places.key("tool.uv.sources", name)
            if len(items) > _MOST_SOURCES or not all(isinstance(each, dict) for each in items):
                raise draft.wrong(where, f"expected a table or a list of at most {_MOST_SOURCES} tables", line)
            self._sources[normalized(name)] = [Table(each, draft.path, line, where) for each in items]
        self._overrides = self._list("override-dependencies")
        self._constraints = self._list("constraint-dependencies")

    def _list(self, key: str) -> list[Entry]:
        value = self._table.content.get(key)
        if value is None:
            return []
        found = self._draft.requirements(value, f"tool.uv.{key}", self._draft.places.key("tool.uv", key))
        return [Entry(distribution, line, self._draft.path) for distribution, line in found]

    def default_groups(self) -> tuple[str, ...] | None:
        """The groups that uv installs if nothing is said; ``None`` for all of them."""
        value = self._table.content.get("default-groups", ["dev"])
        if value == "all":
            return None
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._table.expected("default-groups", 'a list of names or "all"')
        return tuple(map(normalized, value))

    def sourced(self, found: Distribution, kind: str | None = None, choice: str | None = None) -> Distribution:
        """A dependency with the source that is set for it, as one of an extra or a group where ``kind`` says so."""
        given = [each for each in self._sources.get(found.name, ()) if self._meant(each, kind, choice)]
        if not given:
            return found
        sources = [self._source(each) for each in given]
        first = sources[0]
        if len(sources) == 1 and given[0].text("marker") is None and first is not None:
            return self._wheel(found, first)
        # some apply on one platform and some on another; elsewhere it is the index
        if all(source is not None and source.kind == "index" for source in sources):
            return found
        return replace(found, source=None)

    @staticmethod
    def _meant(source: Table, kind: str | None, choice: str | None) -> bool:
        for each in ("extra", "group"):
            name = source.text(each)
            if name is not None and (kind != each or choice is None or normalized(name) != normalized(choice)):
                return False
        return True

    @staticmethod
    def _wheel(found: Distribution, source: Source) -> Distribution:
        """The version in a wheel's file name replaces what was asked."""
        if source.kind != "url" or "url" not in source.details:
            return replace(found, source=source)
        version = direct_url(str(source.details["url"]), found.name, None).version
        if version is None:
            return replace(found, source=source)
        return replace(found, source=source, version=version, specifier=None)

    def _source(self, given: Table) -> Source | None:
        repository, url, path = given.text("git"), given.text("url"), given.text("path")
        if repository is not None:
            revision = given.text("rev") or given.text("tag") or given.text("branch")
            commit = revision if revision and len(revision) == 40 and given.text("rev") else None
            return vcs_source(repository, commit, None if commit else revision, given.text("subdirectory"))
        if url is not None:
            return direct_url(url, "", None).source
        if path is not None:
            return path_source(path, editable=given.flag("editable"))
        if given.flag("workspace"):
            return Source("directory", {"editable": True})
        name = given.text("index")
        return None if name is None else index_source(self._indexes.get(name))

    def applied(self, entries: list[Entry], notes: list[str]) -> tuple[Entry, ...]:
        """The entries, overridden and constrained."""
        overrides: dict[str, dict[str | None, Entry]] = {}
        for each in self._overrides:
            overrides.setdefault(each.distribution.name, {})[each.distribution.marker] = each
        entries = [self._overridden(entry, overrides.get(entry.distribution.name, {}), notes) for entry in entries]
        return constrained(entries, self._constraints, notes)

    @staticmethod
    def _overridden(entry: Entry, overrides: dict[str | None, Entry], notes: list[str]) -> Entry:
        if not overrides:
            return entry
        asked = entry.distribution
        override = overrides.get(asked.marker) or next(iter(overrides.values()))
        place = f"{override.file}:{override.line}"
        if len(overrides) > 1 and asked.marker not in overrides:
            notes.append(f"{place}: {asked.name} is overridden in several ways; its version is not known")
            return replace(entry, distribution=replace(asked, version=None, specifier=None, source=None))
        forced = override.distribution
        direct = forced.source is not None and forced.source.kind not in ("index", "nightly")
        changed = replace(
            asked, version=forced.version, specifier=forced.specifier, extra={**asked.extra, "override": place},
            marker=forced.marker,  # uv puts the override in the place of what is asked, its marker too
            source=forced.source if direct else asked.source,
        )  # fmt: skip
        return replace(entry, distribution=changed)

    def conflicts(self) -> tuple[tuple[int, ...], ...]:
        """Choices that cannot be made together, by their numbers; those of other projects are left out."""
        value = self._table.content.get("conflicts", [])
        if not isinstance(value, list):
            raise self._table.expected("conflicts", "a list of lists")
        numbers = {(choice.kind, normalized(choice.name)): number for number, choice in enumerate(self._draft.choices)}
        found = []
        for each in value:
            if not isinstance(each, list) or not all(isinstance(item, dict) for item in each):
                raise self._table.wrong("conflicts: expected a list of lists of tables")
            members = [self._member(Table(item, self._draft.path, None, "tool.uv.conflicts"), numbers) for item in each]
            known = tuple(number for number in members if number is not None)
            if len(known) == len(members) > 1:
                found.append(known)
        return tuple(found)

    def _member(self, item: Table, numbers: dict[tuple[str, str], int]) -> int | None:
        package, extra, group = item.text("package"), item.text("extra"), item.text("group")
        if package is not None and normalized(package) != self._draft.project:
            return None
        return numbers.get(("extra", normalized(extra)) if extra is not None else ("group", normalized(group or "")))
