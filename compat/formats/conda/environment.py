"""``environment.yml`` of conda → listing: its packages, its ``pip:`` section, the Python it asks for.

An exported environment names version and build of everything. Others name ranges: what ``=1.2`` means is in
``compat.formats.conda.spec``. Line selectors (``# [linux]``) are what conda-lock makes of comments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.formats.conda.lock import lock_commands, platform_marker, selector_marker
from compat.formats.conda.spec import MatchSpec, conda_distribution, parse_match_spec
from compat.formats.format import Commands, Format
from compat.formats.listing import ROOT, Edge, Entry, Listing
from compat.model import Distribution, Environment
from compat.redact import without_secrets
from compat.syntax.yaml import Document, Value
from compat.versions import ranges_of

if TYPE_CHECKING:
    from compat.formats.edit.changes import Change
    from compat.formats.edit.commands import Installer
    from compat.formats.edit.files import Edit


_LONGEST = 1000
"""Characters of a line that is looked at for a selector."""


class CondaEnvironment(Format):
    """environment.yml; :class:`InputError` for what is no YAML, for a wrong type, and what is no package of conda or pip.

    ``complete`` is set for an export, where every package has its build and every line of pip is a pin.
    """

    kind = "environment.yml"

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        from compat.formats.conda.edit import edit_conda
        from compat.formats.edit.dispatch import verified

        return verified(edit_conda(path, content, changes), self, changes)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        return Commands(lock_commands(path, changes, pip), (f"conda env update --file {pip.quoted(path)}",))

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return (_Reading(path, text).listing(),)


class _Reading:
    """One file on its way to a listing."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.document = Document(text, path)
        self.lines = text.splitlines()
        self.entries: list[Entry] = []
        self.selectors: dict[int, str] = {}
        """Entry → the platforms it is for."""
        self.requirements: list[Value] = []
        """Lines for pip, which installs them when conda is done."""
        self.python: str | None = None
        self.requires_python: str | None = None
        self.pinned = True
        self.notes: tuple[str, ...] = ()
        self.unread: tuple[str, ...] = ()

    def listing(self) -> Listing:
        document = self.document
        root = document.table(document.root, "the file")
        if "dependencies" not in root:
            raise InputError("expected the 'dependencies' of a conda environment", self.path, 1)
        self._dependencies(document.items(root["dependencies"], "dependencies"))
        return Listing(
            self.path, "environment.yml", tuple(self.entries), edges=self._edges(),
            requires_python=self.requires_python, environments=self._platforms(root.get("platforms")),
            complete=self.pinned and bool(self.entries), notes=self.notes, unread=self.unread,
            context=Environment(python=self.python, variables=self._variables(root.get("variables"))),
        )  # fmt: skip

    def _dependencies(self, items: list[Value]) -> None:
        for item in items:
            if item.is_table:
                keys = self.document.table(item, "dependencies")
                if keys.keys() != {"pip"}:
                    raise self.document.wrong("expected a conda package or 'pip:' and its list", item)
                self.requirements += self.document.items(keys["pip"], "dependencies.pip")
            else:
                self._package(item)
        if self.requirements:
            self._pip()

    def _package(self, item: Value) -> None:
        text = self.document.needed_text(item, "a conda package", item)
        try:
            spec = parse_match_spec(text)
        except ValueError as problem:
            raise self.document.wrong(f"dependencies: {problem}", item) from None
        marker = self._selector(item.line)
        if marker is not None:
            self.selectors[len(self.entries)] = marker
        self.pinned = self.pinned and spec.exact
        if spec.name == "python" and marker is None:
            self._interpreter(spec)
        details = {"channel": spec.channel, "spec": spec.unclear}
        self.entries.append(Entry(conda_distribution(spec.name, spec.version, spec.build, details, spec.specifier), item.line))

    def _selector(self, line: int) -> str | None:
        """The marker of a comment on this line."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        if len(text) > _LONGEST:  # many packages stand on it
            return None
        _, found, comment = text.partition(" #")
        return selector_marker(comment) if found and "[" in comment else None

    def _interpreter(self, spec: MatchSpec) -> None:
        version, asked = spec.version, spec.specifier
        if version is not None and all(part.isascii() and part.isdigit() for part in version.split(".")):
            if version.count(".") >= 2:
                self.python = version
            else:
                asked = f"=={version}.*"
        if asked is not None:
            try:
                ranges_of(asked)
            except ValueError:
                return
            self.requires_python = asked

    def _pip(self) -> None:
        """The ``pip:`` section, which conda hands to pip as a requirements file beside the environment file."""
        from compat.formats.requirements.file import read_requirements

        lines: list[str] = []
        numbers: list[int] = []
        for item in self.requirements:
            lines += self.document.needed_text(item, "a requirement of pip", item).splitlines()
            numbers += [item.line] * (len(lines) - len(numbers))
        found = read_requirements(self.path, "\n".join(lines), numbers)[0]
        self.entries += found.entries
        self.notes += found.notes
        self.unread += found.unread
        self.pinned = self.pinned and not found.unread and all(_is_pin(entry.distribution) for entry in found.entries)

    def _edges(self) -> tuple[Edge, ...] | None:
        if not self.selectors:
            return None
        return tuple(
            Edge(ROOT, number, self.selectors.get(number, entry.distribution.marker))
            for number, entry in enumerate(self.entries)
        )

    def _platforms(self, value: Value | None) -> tuple[str, ...]:
        """The ``platforms`` that conda-lock reads, as markers."""
        found = []
        for item in self.document.items(value, "platforms"):
            try:
                marker = platform_marker(self.document.needed_text(item, "a platform", item))
            except ValueError as problem:
                raise self.document.wrong(f"platforms: {problem}", item) from None
            if marker is not None:
                found.append(marker)
        return tuple(found)

    def _variables(self, value: Value | None) -> dict[str, str] | None:
        if value is None or value.is_null:
            return None
        table = self.document.table(value, "variables")
        found = {name: self.document.text(each, f"variables.{name}") or "" for name, each in table.items()}
        return without_secrets(found)


def _is_pin(distribution: Distribution) -> bool:
    return distribution.version is not None or (distribution.source is not None and distribution.source.kind == "directory")
