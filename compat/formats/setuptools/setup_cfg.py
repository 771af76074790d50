"""``setup.cfg``: the requirements of ``[options]`` and ``[options.extras_require]``, collected with their places.

:class:`Collected` also takes those of ``setup.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from compat.formats.edit.changes import Change, Statement, requirement_for
from compat.formats.edit.dispatch import Span, edit_spans
from compat.formats.edit.files import Edit, Replacement, line_around, line_end
from compat.formats.include import Includes, NotRead
from compat.formats.listing import ROOT, Listing
from compat.formats.locks.tables import Table
from compat.formats.project.draft import Draft, specifier_of
from compat.formats.registry import Format
from compat.formats.requirements.file import decode, read_requirements
from compat.formats.requirements.requirement import Unnamed, parse_requirement
from compat.model import normalized
from compat.records import replace
from compat.redact import excerpt
from compat.syntax.ini import Ini, IniOption, parse_ini
from compat.syntax.toml import Places


class Collected:
    """What a project requires, as read so far: the draft of its listing, and the statements that can be edited."""

    def __init__(self, path: str, name: str | None) -> None:
        self.path = path
        self.statements: list[Statement[Span | None]] = []
        self._draft = Draft(Table({}, path), Places(""), None, None if name is None else normalized(name))
        self._includes = Includes(path)
        self._seen: set[tuple[str, int | None, str, int]] = set()
        self._stated: set[tuple[str, int]] = set()
        self._unread: set[str] = set()
        self._computed: dict[str, dict[int, None]] = {}
        self._conditional: dict[tuple[str, int], dict[str, None]] = {}

    def node(self, extra: str) -> tuple[int, str | None]:
        """Return the node of an extra and the marker in its name: ``dev:python_version < "3.8"``; "" is the project itself."""
        name, _, marker = extra.partition(":")
        return (self._draft.choice("extra", name.strip()) if name.strip() else ROOT), marker.strip() or None

    def note(self, line: int, text: str) -> None:
        self._draft.notes.append(f"{self.path}:{line}: {text}")

    def not_read(self, line: int, text: str) -> None:
        """Add something that only running the code decides, or another file."""
        place = f"{self.path}:{line}: {text}"
        if place not in self._unread:
            self._unread.add(place)
            self._draft.elsewhere.append(place)

    def computed(self, key: str, line: int) -> None:
        """Add a line that computes requirements in a way that was not followed."""
        self._computed.setdefault(key, {})[line] = None

    def conditional(self, key: str, requirement: str, line: int) -> None:
        """Add a requirement that depends on the undecided condition of a line."""
        words = " ".join(requirement.split())
        found = self._conditional.setdefault((key, line), {})
        if words and not words.startswith("#"):
            found[excerpt(words, 60)] = None

    def python(self, text: str, line: int) -> None:
        """Set the supported Pythons from ``python_requires``."""
        try:
            self._draft.requires_python = specifier_of(parse_requirement(f"python {text.strip().rstrip(',')}"))
        except ValueError:
            self.note(line, f"python_requires: {excerpt(text, 60)!r} is not a version specifier; it was ignored")

    def requirement(
        self, text: str, line: int, node: tuple[int, str | None], key: str, *, file: str | None = None, span: Span | None = None
    ) -> None:
        """Add one requirement, as setuptools reads it: a line that may be empty or end with a comment."""
        text = text.strip()
        text = "" if text.startswith("#") else text.partition(" #")[0].rstrip(" \\")
        place = f"{file or self.path}:{line}"
        if not text:
            return
        try:
            found = parse_requirement(text)
        except Unnamed as problem:
            self._draft.notes.append(f"{place}: {problem}; skipped")
            return
        except ValueError:
            where = "" if file is None else f"{place}: "
            self.not_read(line, f"{where}{key}: {excerpt(text, 60)!r} is not a requirement (PEP 508); skipped")
            return
        parent, marker = node
        if marker is not None and found.marker is None:
            try:
                found = replace(found, marker=parse_requirement(f"x; {marker}").marker)
            except ValueError:
                self._draft.notes.append(f"{place}: the condition {excerpt(marker, 60)!r} of an extra is not a marker; ignored")
        if (found.name, line, file or "", parent) in self._seen:
            return
        self._seen.add((found.name, line, file or "", parent))
        if file is None and (found.name, line) not in self._stated:
            self._stated.add((found.name, line))
            self.statements.append(Statement(found, self.path, line, span))
        self._draft.add(found, line, parent, file)

    def file(self, name: str, line: int, node: tuple[int, str | None], key: str) -> None:
        """Add what a requirements file of the project lists; a file of which only some lines matter is a note."""
        opened = self.open(name, f"{key} {node[0]}")
        if isinstance(opened, NotRead):
            self.not_read(line, f"{name} ({key}) was not read: {opened}")
            return
        for listing in read_requirements(opened[0], decode(opened[1], opened[0])):
            self._draft.notes += listing.notes
            self._draft.elsewhere += listing.unread
            for entry in listing.entries:
                self._draft.add(entry.distribution, entry.line, node[0], entry.file or listing.file)

    def open(self, name: str, purpose: str) -> tuple[str, bytes] | NotRead:
        """Return path and content of a file of the project, or the reason why it is not opened."""
        try:
            return self._includes.open(self.path, name, purpose, 1) or NotRead("it was read before")
        except NotRead as reason:
            return reason

    def listing(self, kind: str) -> Listing:
        for key, computed in self._computed.items():
            first, *others = computed
            also = f" (lines {', '.join(map(str, others[:8]))}, too)" if others else ""
            self.not_read(first, f"{key} is computed in a way that could not be followed{also}")
        for (key, line), texts in self._conditional.items():
            if texts:
                listed = ", ".join(list(texts)[:8]) + (f" and {len(texts) - 8} more" if len(texts) > 8 else "")
                depend = "depends" if len(texts) == 1 else "depend"
                self.not_read(line, f"{listed} ({key}) {depend} on this condition: not read")
        return self._draft.listing(kind)


class SetupCfg(Format):
    """A setup.cfg; no listing for a file of tool settings only. :class:`InputError` for text outside of a section."""

    kind = "setup.cfg"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        ini = parse_ini(text, path)
        if not any(name.split(".")[0] in ("options", "metadata") for name in ini):
            return ()
        found = _collected(path, ini)
        read_configuration(path, text, found)
        return (found.listing(self.kind),)

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        text = self.decode(path, content)
        ini = parse_ini(text, path)
        found = _collected(path, ini)
        read_configuration(path, text, found)
        return edit_spans(self, path, content, changes, found.statements, lambda change: _addition(text, ini, change))


def _collected(path: str, ini: Ini) -> Collected:
    name = ini.get("metadata", {}).get("name")
    return Collected(path, name.value if name is not None and len(name.lines) == 1 else None)


def read_configuration(path: str, text: str, found: Collected) -> None:
    """Add what a setup.cfg requires; :class:`InputError` if it is not a configuration file."""
    ini = parse_ini(text, path)
    options = ini.get("options", {})
    python = options.get("python_requires")
    if python is not None:
        found.python(python.value.replace("\n", ","), python.line)
    for key, option in options.items():
        if key in ("install_requires", "requires"):
            _list(path, text, option, found, "", key)
    for section, extras in ini.items():
        if section.partition(".")[2].replace("-", "_") == "extras_require":
            for extra, option in extras.items():
                _list(path, text, option, found, extra.replace("_", "-"), f"extra {extra}")


def _list(path: str, text: str, option: IniOption, found: Collected, extra: str, key: str) -> None:
    """Add the requirements of an option: one on each line, or separated by semicolons on one line, or those of a file."""
    node = found.node(extra)
    own = path == found.path
    if option.value.startswith("file:"):
        for name in option.value.removeprefix("file:").replace("\n", ",").split(","):
            if name.strip():
                found.file(name.strip(), option.line, node, key)
        return
    dangling = len(option.lines) > 1 or (option.lines and option.lines[0].number > option.line)
    for line in option.lines:
        for part in [line.text] if dangling else line.text.split(";"):
            at = line.offset + line.text.find(part)
            written = part.partition(" #")[0].strip()
            start = at + part.find(written)
            span = Span(start, start + len(written), written, gone=line_around(text, line.offset) if dangling else None)
            found.requirement(part, line.number, node, key, file=None if own else path, span=span if own else None)


def _addition(text: str, ini: Ini, change: Change) -> Replacement | None:
    """Return the insertion of a requirement behind the last one of ``install_requires``; ``None`` without such lines."""
    option = ini.get("options", {}).get("install_requires")
    if option is None or not option.lines or option.lines[-1].number == option.line or option.value.startswith("file:"):
        return None
    last = option.lines[-1]
    return last.end, last.end, f"{line_end(text)}{option.indent}{requirement_for(change)}"
