"""conda's ``environment.yml``: its packages, its ``pip:`` section, its Python requirement, and how they are edited.

An exported environment has version and build of every package. Others have ranges: ``=1.2`` is interpreted by
``compat.formats.conda_spec``. Line selectors (``# [linux]``) are comments that conda-lock interprets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from compat.errors import InputError
from compat.files import decoded
from compat.formats.conda_lock import lock_commands, platform_marker, selector_marker
from compat.formats.conda_spec import MatchSpec, conda_distribution, parse_match_spec
from compat.formats.edit.changes import (
    REMOVE,
    Change,
    Statement,
    decided,
    index_replacement,
    moved_editable,
    requirement_for,
    rewritten,
)
from compat.formats.edit.files import Edit, Replacement, encoding_of, line_end, replaced
from compat.formats.listing import ROOT, Edge, Entry, Listing
from compat.formats.registry import Commands, Format
from compat.formats.requirements.requirement import Unnamed, editable, name_at_start, parse_requirement
from compat.formats.specifiers import EXACT, changed, public
from compat.model import Distribution, Environment
from compat.records import record
from compat.redact import excerpt, without_secrets
from compat.syntax.yaml import Document, Value
from compat.versions import ranges_of

if TYPE_CHECKING:
    from compat.formats.edit.dispatch import Installer

_LONGEST = 1000
"""Characters; longer lines are not searched for a selector."""


class CondaEnvironment(Format):
    """environment.yml; :class:`InputError` for invalid YAML, a wrong type, or an invalid conda or pip package.

    ``complete`` is set for an export, where every package has its build and every pip line is a pin.
    """

    kind = "environment.yml"

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        from compat.formats.edit.dispatch import verified

        return verified(edit_conda(path, content, changes), self, changes)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        return Commands(lock_commands(path, changes, pip), (f"conda env update --file {pip.quoted(path)}",))

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return (_Reading(path, text).listing(),)


class _Reading:
    """A file being converted to a listing."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.document = Document(text, path)
        self.lines = text.splitlines()
        self.entries: list[Entry] = []
        self.selectors: dict[int, str] = {}
        """Entry → its platforms."""
        self.requirements: list[Value] = []
        """Lines for pip, which installs them after conda."""
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
        """Return the marker of the line's selector comment."""
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        if len(text) > _LONGEST:  # many packages on one line
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
        """Read the ``pip:`` section, which conda passes to pip as a requirements file next to the environment file."""
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
        self.pinned = (
            self.pinned
            and not found.unread
            and all(
                entry.distribution.version is not None or (source is not None and source.kind == "directory")
                for entry in found.entries
                for source in (entry.distribution.source,)
            )
        )

    def _edges(self) -> tuple[Edge, ...] | None:
        if not self.selectors:
            return None
        return tuple(
            Edge(ROOT, number, self.selectors.get(number, entry.distribution.marker))
            for number, entry in enumerate(self.entries)
        )

    def _platforms(self, value: Value | None) -> tuple[str, ...]:
        """Return the ``platforms`` that conda-lock reads, as markers."""
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


# --- One conda match specification as text, rewritten for another release.


_SPEC = re.compile(
    r"(?P<head>(?:[^\s\[\]=<>!~]+::)?[A-Za-z0-9._-]+)(?P<gap>[ \t]*)(?P<version>[^\s\[\]]*(?:[ \t]*[,|<>=!~][^\s\[\]]*)*)"
    r"(?P<build>[ \t]+[^\s\[\]]+)?(?P<keys>\[.*\])?"
)


def rewritten_spec(text: str, change: Change, how: str) -> str:
    """Return the changed specification; the build is dropped, because it belongs to one release.

    :class:`InputError` (without a place) for a source that conda does not support, and a version in brackets.
    """
    if change.source is not None and change.source.kind not in ("index", "nightly"):
        raise InputError(f"{change.name} comes from conda, but its new release does not: change it by hand")
    found = _SPEC.fullmatch(text.strip())
    assert change.after is not None
    if found is None or "version" in (found["keys"] or "") or "|" in found["version"]:
        raise InputError(f"expected a conda package such as 'numpy=1.26', not {excerpt(text, 60)!r}")
    head, gap, version, keys = found["head"], found["gap"], found["version"], found["keys"] or ""
    after = public(change.after)  # local labels belong to wheels
    sign = re.match(r"={0,2}", version)
    mark = "" if sign is None else sign[0]
    single = not re.search(r"[,<>!~*]", version)
    if how != EXACT:
        return f"{head}{gap}{changed(re.sub(r'^=(?!=)', '==', version), change.before, after, how)}{keys}"
    if single and (mark or gap):
        return f"{head}{gap}{mark}{after}{keys}"
    return f"{head}=={after}{keys}"


# --- Edits of conda's ``environment.yml``: its packages, and the lines it passes to pip.


_OPTIONS = ("-i ", "--index-url ", "--extra-index-url ", "--find-links ", "-f ", "--index-url=", "--extra-index-url=")


@record(frozen=True)
class _Place:
    """A list item: its text, its line, and the start and end of its text in the file."""

    text: str
    line: int
    start: int
    end: int
    pip: bool = False


def edit_conda(path: str, content: bytes, changes: Sequence[Change]) -> tuple[Edit, ...]:
    """Return the edit of an environment file.

    :class:`InputError` for what conda cannot install (a commit, a vendor's index), and for items that share a line.
    """
    file = _Environment(path, content)
    for change in changes:
        wanted = decided(file.statements, change, exact=True)
        for statement, how in wanted:
            file.change(statement, change, how)
        if not wanted and change.after is not None and (change.direct or not change.implied):
            file.add(change)
        if change.index_url is not None and (not wanted or any(s.place.pip for s, _ in wanted)):
            file.use_index(change.index_url)
    return (file.edit(),)


class _Environment:
    """The file, its statements, and the changes collected for it."""

    def __init__(self, path: str, content: bytes) -> None:
        self.path = path
        self.content = content
        self.text = decoded(path, content)
        self._starts = [0]
        for line in self.text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._taken: set[tuple[int, int]] = set()
        self._replacements: list[Replacement] = []
        self._added: list[str] = []
        document = Document(self.text, path)
        root = document.table(document.root, "the file")
        self._packages: list[_Place] = []
        self._pip: list[_Place] = []
        for item in document.items(root.get("dependencies"), "dependencies"):
            if item.is_table:
                lines = document.items(document.table(item, "dependencies").get("pip"), "dependencies.pip")
                self._pip += [self._place(document.needed_text(e, "a requirement", e), e.line, pip=True) for e in lines]
            else:
                self._packages.append(self._place(document.needed_text(item, "a package", item), item.line, pip=False))
        self.statements = [*self._conda_statements(), *self._pip_statements()]

    def _place(self, text: str, line: int, *, pip: bool) -> _Place:
        """Return the position of an item; start and end are 0 if the text is written differently (quoted, folded)."""
        start, end = self._starts[line - 1], self._starts[min(line, len(self._starts) - 1)]
        at = self.text.find(text, start, end)
        while at >= 0 and ((at, at + len(text)) in self._taken or not self._is_whole(at, at + len(text))):
            at = self.text.find(text, at + 1, end)
        if at < 0:
            return _Place(text, line, 0, 0, pip)
        self._taken.add((at, at + len(text)))
        return _Place(text, line, at, at + len(text), pip)

    def _is_whole(self, start: int, end: int) -> bool:
        before, behind = self.text[start - 1 : start], self.text[end : end + 1]
        return before in " \t'\"[,-" and behind in " \t\r\n'\"],"

    def _conda_statements(self) -> Iterator[Statement]:
        for place in self._packages:
            try:
                spec = parse_match_spec(place.text)
            except ValueError as problem:
                raise InputError(f"dependencies: {problem}", self.path, place.line) from None
            found = conda_distribution(spec.name, spec.version, spec.build, {}, spec.specifier)
            pin = Distribution(found.name, found.version, found.source, None, None if found.version else found.specifier)
            yield Statement(pin, self.path, place.line, place=place)

    def _pip_statements(self) -> Iterator[Statement]:
        for place in self._pip:
            text = place.text.strip()
            operand = text.removeprefix("-e ").strip()
            if text.startswith("-") and operand == text:
                continue
            try:
                found = parse_requirement(text.partition(" -")[0]) if operand == text else editable(operand)
            except Unnamed:
                continue
            except ValueError as problem:
                name = name_at_start(text)
                if name is None or "$" not in text:
                    raise InputError(str(problem), self.path, place.line) from None
                found = Distribution(name)
            yield Statement(found, self.path, place.line, place=place)

    def change(self, statement: Statement, change: Change, how: str) -> None:
        """Record the change of an item."""
        place: _Place = statement.place
        if not place.end or "$" in place.text:
            raise InputError(f"cannot edit {change.name} as it is written; change it by hand", self.path, place.line)
        if how == REMOVE:
            self._remove(place, change)
            return
        try:
            new = self._pip_text(place.text, change, how) if place.pip else rewritten_spec(place.text, change, how)
        except InputError as problem:
            raise InputError(problem.message, self.path, place.line) from None
        if new != place.text:
            self._replacements.append((place.start, place.end, self._quoted(place, new)))

    def _quoted(self, place: _Place, new: str) -> str:
        """Quote an item that YAML would otherwise misread."""
        in_quotes = self.text[place.start - 1] in "'\""
        flow = self.text[self._starts[place.line - 1] : place.start].lstrip()[:1] != "-"
        special = new[:1] in "&*!|>%@`{[" or ": " in new or " #" in new or (flow and any(sign in new for sign in ",[]{}"))
        return f'"{new}"' if special and not in_quotes else new

    @staticmethod
    def _pip_text(text: str, change: Change, how: str) -> str:
        operand = text.removeprefix("-e ").lstrip()
        if operand != text and change.is_direct_url:
            return text[: len(text) - len(operand)] + moved_editable(operand, change)
        if operand != text:
            return rewritten(operand, change, how)
        requirement, option, rest = text.partition(" -")
        return rewritten(requirement, change, how) + option + rest

    def _line(self, place: _Place) -> tuple[int, int]:
        return self._starts[place.line - 1], self._starts[place.line]

    def _remove(self, place: _Place, change: Change) -> None:
        start, end = self._line(place)
        alone = self.text[start : place.start].strip(" \t'\"") == "-"
        others = [each for each in (self._pip if place.pip else self._packages) if each is not place]
        if not alone or (place.pip and not others):
            raise InputError(f"remove {change.name} from its list by hand", self.path, place.line)
        self._replacements.append((start, end, ""))

    def add(self, change: Change) -> None:
        """Add a requirement at the end of the pip section."""
        self._added.append(requirement_for(change) + (f"  # {change.reason}" if change.reason else ""))

    def use_index(self, url: str) -> None:
        """Set an index in the pip section."""
        named: list[tuple[str, tuple[int, int]]] = []
        for place in self._pip:
            option = next((each for each in _OPTIONS if place.text.startswith(each)), None)
            if option is not None and place.end:
                value = place.text[len(option) :].strip()
                named.append((value, (place.end - len(value), place.end)))
        found = index_replacement(url, named, ())
        if found is None or any(url in text for _, _, text in self._replacements) or f"--extra-index-url {url}" in self._added:
            return
        if found[0] is not None:
            self._replacements.append((*found[0], url))
        else:
            self._added.insert(0, f"--extra-index-url {url}")

    def edit(self) -> Edit:
        """Return the edit with all recorded changes."""
        replacements: list[Any] = list(self._replacements)
        if self._added:
            replacements.append(self._addition())
        text = replaced(self.text, replacements)
        return Edit(self.path, self.content, encoding_of(self.path, self.content, self.text).encode(text))

    def _addition(self) -> Replacement:
        last = self._pip[-1] if self._pip else self._packages[-1] if self._packages else None
        if last is None or not last.end or (any(not each.end for each in self._pip)):
            raise InputError("expected one dependency per line, so that others can be added", self.path)
        start, end = self._line(last)
        indent = self.text[start : last.start].rstrip(" \t'\"")
        if indent.strip() != "-":
            raise InputError("expected one dependency per line, so that others can be added", self.path, last.line)
        newline = line_end(self.text)
        blank = indent[: indent.index("-")]
        lines = self._added if self._pip else ["pip:", *(f"  - {each}" for each in self._added)]
        lead = f"{blank}- "
        text = newline.join(lead + each if self._pip or not number else blank + each for number, each in enumerate(lines))
        closed = self.text[start:end].endswith(("\n", "\r"))
        return (end, end, text + newline) if closed else (end, end, newline + text)
