"""Requirements and constraints files (pip, uv): reading them with the files they include, and editing them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from compat.errors import InputError, printable
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
from compat.formats.edit.dispatch import problem_of_statements
from compat.formats.edit.files import Edit, Mapped, Replacement, encoding_of, joined, line_end, replaced, smallest
from compat.formats.include import Includes, NotRead
from compat.formats.listing import Entry, Listing, check_entries
from compat.formats.registry import Commands, Format
from compat.formats.requirements.lines import INDEX_URL, LogicalLine, constrained, decode, header, logical_lines, options_of
from compat.formats.requirements.requirement import INDEX, Unnamed, editable, is_url, name_at_start, parse_requirement
from compat.model import Distribution, Environment, Source
from compat.records import record, replace
from compat.redact import excerpt, without_credentials
from compat.versions import key_of

if TYPE_CHECKING:
    from compat.formats.edit.dispatch import Installer

__all__ = ["decode", "read_requirements"]

_INDEXED = (INDEX.kind, "nightly")
_COMPILERS = ("uv pip compile", "pip-compile")
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ ./=:,@+'\"[]<>!~-")
"""Characters allowed in a command that is rerun from a comment: none that a shell treats specially."""
_CONFLICT = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")
_PARTIAL = ("--no-deps", "--no-emit-package", "--no-emit-workspace", "--no-emit-local", "--no-install-", "--unsafe-package",
            "--prune", "--only-emit-")  # fmt: skip


def read_requirements(path: str, text: str, numbers: Sequence[int] = ()) -> tuple[Listing, ...]:
    """Return the listing of a requirements file and the files it includes (``-r``), narrowed by constraints (``-c``).

    ``numbers`` are the line numbers if the text is a part of another file.
    Raises :class:`InputError` for a line that is neither a requirement nor an option. An include that was not opened is
    in ``unread``. ``complete`` is set for a complete freeze and for resolver output in which every line is a pin.
    """
    file, reading = _File(path, text, numbers=numbers), _Reading(path)
    python = _freeze(file.lines)
    reading.read(file, skipped=1 if python is not None else 0)
    entries = [reading.with_index(entry) for entry in reading.entries]
    whole = reading.whole and not reading.unread and (python is not None or _is_resolved(file.lines, entries))
    notes = list(reading.notes)
    found = constrained(entries, reading.constraints, notes)
    return (
        Listing(
            path, "requirements", found, complete=whole, notes=tuple(map(printable, dict.fromkeys(notes))),
            unread=tuple(map(printable, reading.unread)), context=Environment(python=python),
        ),
    )  # fmt: skip


class Requirements(Format):
    """Requirements and constraints files (pip, uv)."""

    kind = "requirements"
    says_build = True

    def decode(self, path: str, content: bytes) -> str:
        return decode(content, path)

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return read_requirements(path, text)

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:

        return edit_requirements(path, content, changes, compiled=_compiled(path) is not None)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        """Compiled files are compiled again, with the command in their header."""
        output, built = _compiled(path), pip.build_options(changes)
        install = f"{pip.start('install')} -r {pip.quoted(output or path)}{built}"
        if output is not None:
            options = f"{pip.upgrades(changes)}{pip.index_options(changes)}"
            return Commands((f"uv pip compile {pip.quoted(path)} --output-file {pip.quoted(output)}{options}",), (install,))
        if any(change.index_url is not None for change in changes):
            install += pip.mixed
        comments = header(self.decode(path, content).splitlines())
        made = next((line for line in comments if line.startswith((*_COMPILERS, "uv export"))), "")
        if not made or not _WORD.issuperset(made):
            return Commands((), (install,))
        if made.startswith("uv export"):
            return Commands((f"uv lock{pip.upgrades(changes)}", made), (install,))
        return Commands((f"{made}{pip.upgrades(changes)}",), (install,))


def _compiled(path: str) -> str | None:
    """Return the pip-compile output of this file, if it exists."""
    stem, ending = os.path.splitext(path)
    return f"{stem}.txt" if ending == ".in" and os.path.isfile(f"{stem}.txt") else None


class _File:
    """A file that is read: its lines, its include depth, and whether it holds constraints."""

    def __init__(
        self, path: str, text: str, depth: int = 0, purpose: str = "requirements", numbers: Sequence[int] = ()
    ) -> None:
        self.path = path
        self.text = text.removeprefix("\ufeff")
        self.lines = self.text.splitlines()
        self.depth = depth
        self.purpose = purpose
        self._numbers = numbers

    def logical_lines(self) -> Iterator[tuple[int, str]]:
        """Yield number and text of each logical line."""
        for line in logical_lines(self.text):
            yield self._numbers[line.number - 1] if self._numbers else line.number, line.text

    def before(self, number: int) -> str:
        """Return the physical line before a line, or ""."""
        return "" if self._numbers or number < 2 else self.lines[number - 2]


class _Reading:
    """What has been read so far of a file and its includes."""

    def __init__(self, path: str) -> None:
        self.includes = Includes(path)
        self.entries: list[Entry] = []
        self.constraints: list[Entry] = []
        self.notes: list[str] = []
        self.unread: list[str] = []
        self.index: str | None = None
        self.one_index = True
        self.no_index = False
        self.whole = True

    def read(self, file: _File, skipped: int = 0) -> None:
        for number, line in file.logical_lines():
            if number <= skipped:
                continue
            if line[0] == "-":
                self._options(file, number, line)
                continue
            text, option, rest = line.partition(" -")
            if option:
                for name, _ in options_of("-" + rest, file.path, number):
                    if name in INDEX_URL:
                        self.notes.append(f"{file.path}:{number}: pip ignores {name} after a requirement")
            self._requirement(file, number, text)

    def _requirement(self, file: _File, number: int, text: str) -> None:
        try:
            found = parse_requirement(text)
            if found.source is not None and found.source.kind == "url" and not is_url(text):
                found = replace(found, version=None)  # name @ address: its version is derived later
            self._add(file, number, found)
        except Unnamed as problem:
            self.whole = False
            self.notes.append(f"{file.path}:{number}: {problem}; skipped")
        except ValueError as problem:
            if text.startswith(_CONFLICT):
                raise InputError("has an unresolved merge conflict", file.path, number) from None
            if "}" not in text.partition("${")[2]:
                raise InputError(f"expected a requirement or an option: {problem}", file.path, number) from None
            self._with_variable(file, number, text)

    def _with_variable(self, file: _File, number: int, text: str) -> None:
        """``torch==${TORCH}``: pip takes the value from its environment, which is unknown here."""
        self.whole = False
        name = name_at_start(text)
        if name is None:
            self.unread.append(f"{file.path}:{number}: {excerpt(text, 60)} was not read: it depends on a variable")
            return
        self.notes.append(f"{file.path}:{number}: the version of {name} depends on a variable")
        self._add(file, number, Distribution(name, source=INDEX))

    def _add(self, file: _File, number: int, found: Distribution) -> None:
        check_entries(len(self.entries) + len(self.constraints) + 1, file.path, number)
        if file.purpose == "constraints":
            self.constraints.append(Entry(found, number, file.path))
        else:
            self.entries.append(Entry(found, number, file.path if file.depth else None))

    def _options(self, file: _File, number: int, line: str) -> None:
        for name, value in options_of(line, file.path, number):
            if name in INDEX_URL:
                self.index = without_credentials(value)
            elif name in ("--extra-index-url", "--find-links"):
                self.one_index = False
                self.notes.append(f"{file.path}:{number}: packages may also come from {without_credentials(value)}")
            elif name == "--no-index":
                self.no_index = True
            elif name == "--editable":
                self._editable(file, number, value)
            elif name in ("--requirement", "--constraint"):
                self._include(file, number, name, value)

    def _editable(self, file: _File, number: int, operand: str) -> None:
        try:
            found = editable(operand)
        except Unnamed:
            named = _frozen_editable(file.before(number))
            if named is None:
                reason = "skipped, as its name is unknown"
                self.notes.append(f"{file.path}:{number}: -e {operand} is a separate project; {reason}")
                return
            found = replace(named, source=Source("directory", {"path": operand, "editable": True}))
        except ValueError as problem:
            raise InputError(f"expected a directory or a repository after -e: {problem}", file.path, number) from None
        self._add(file, number, found)

    def _include(self, file: _File, number: int, name: str, target: str) -> None:
        purpose = "constraints" if name == "--constraint" else file.purpose
        try:
            opened = self.includes.open(file.path, target, purpose, file.depth + 1)
        except NotRead as reason:
            option = "-c" if name == "--constraint" else "-r"
            self.unread.append(f"{file.path}:{number}: {option} {target} was not read: {reason}")
            return
        if opened is not None:
            path, content = opened
            self.read(_File(path, decode(content, path), file.depth + 1, purpose))

    def with_index(self, entry: Entry) -> Entry:
        """Return the entry with its index, if the file names only one."""
        found = entry.distribution
        if found.source is None or found.source.kind not in _INDEXED or not (self.no_index or self.index):
            return entry
        if self.no_index:
            return replace(entry, distribution=replace(found, source=None))
        if not self.one_index:
            return entry
        return replace(entry, distribution=replace(found, source=Source(found.source.kind, {"url": self.index})))


def _freeze(lines: list[str]) -> str | None:
    """Return the Python version in the header of ``uv pip freeze`` output."""
    words = lines[0].split() if lines else []
    if words[:2] != ["Using", "Python"] or len(words) < 3 or (len(words) > 3 and words[3] != "environment"):
        return None
    try:
        key_of(words[2])
    except ValueError:
        return None
    return words[2]


def _frozen_editable(comment: str) -> Distribution | None:
    """``# Editable install with no version control (verl==0.4.0)``, which ``pip freeze`` writes above a bare path."""
    if not comment.startswith("# Editable ") or not comment.rstrip().endswith(")"):
        return None
    try:
        return parse_requirement(comment.rstrip()[:-1].rpartition("(")[2])
    except ValueError:
        return None


def _is_resolved(lines: list[str], entries: list[Entry]) -> bool:
    """Whether a resolver wrote the file and every line pins one release."""
    comments = header(lines)
    command = next((c for c in comments if c.startswith(("uv export", "uv pip compile", "pip-compile"))), "")
    by_resolver = any("autogenerated by uv" in c or "autogenerated by pip-compile" in c for c in comments)
    if not command or not by_resolver or any(option in command for option in _PARTIAL):
        return False
    for entry in entries:
        source = entry.distribution.source
        if entry.file is not None or (entry.distribution.version is None and (source is None or source.kind in _INDEXED)):
            return False
    return not any("considered to be unsafe in a requirements file" in line for line in lines)


# --- Editing requirements and constraints files, and their includes.


# --- ``--hash`` options, and their replacement by the hashes of another release.


_HASH = re.compile(r"(?<=\s)--hash[=\s]\s*\S+")


def hash_options(line: str, start: int) -> tuple[tuple[int, int], ...]:
    """Return start and end of each ``--hash`` after a requirement."""
    return tuple(found.span() for found in _HASH.finditer(line, start))


def hash_replacement(
    text: str, line: LogicalLine, hashes: tuple[tuple[int, int], ...], behind: int, change: Change, path: str
) -> list[Replacement]:
    """Return the replacements that overwrite the old hashes with the new ones, or insert those at ``behind`` if there are none.

    :class:`InputError` if the change has no hashes: pip refuses a file in which only some requirements have them.
    """
    spans = [_mapped(line).span(*each) for each in hashes]
    if not spans:
        at = _mapped(line).span(behind, behind)[0]
        return [(at, at, new_hashes(change, path, line.number, f" \\{line_end(text)}    "))]
    between = text[spans[0][1] : spans[1][0]] if len(spans) > 1 else text[_mapped(line).span(behind, behind)[0] : spans[0][0]]
    start, end = spans[0][0], spans[-1][1]
    return [(start, end, new_hashes(change, path, line.number, between)[len(between) :])]


def new_hashes(change: Change, path: str, line: int | None, between: str) -> str:
    """Return the ``--hash`` options of the new release, with ``between`` before each."""
    if not change.hashes or change.is_direct_url:
        problem = "cannot have hashes (it is not a release)" if change.is_direct_url else "has none"
        raise InputError(f"every requirement in this file has hashes, but {change.name} {change.after} {problem}", path, line)
    return "".join(f"{between}--hash={each}" for each in change.hashes)


_INCLUDES = {"--requirement": False, "--constraint": True}
_INDEXES = ("--index-url", "--pypi-url", "--default-index", "--extra-index-url", "--find-links")
_EDITABLE = re.compile(r"(?:-e|--editable)[=\s]*")
_VARIABLE = Source("variable")


@record(frozen=True)
class _Place:
    """The logical line of a requirement, and its start and end in that line."""

    line: LogicalLine
    start: int
    end: int
    hashes: tuple[tuple[int, int], ...] = ()
    editable: bool = False


class RequirementsFile:
    """A file being edited: its text, statements and options, and the replacements collected so far."""

    def __init__(self, path: str, content: bytes, *, constraint: bool = False) -> None:
        self.path = path
        self.content = content
        self.text = decode(content, path)
        self._encoded = encoding_of(path, content, self.text)
        self.constraint = constraint
        self.statements: list[Statement] = []
        self.includes: list[tuple[int, bool, str]] = []
        """(line, whether it is ``-c``, file) of each ``-r`` and ``-c``."""
        self.indexes: list[tuple[str, tuple[int, int]]] = []
        """Index addresses with their positions."""
        self.require_hashes = False
        self.no_binary: set[str] = set()
        """Names of the distributions that are built from source even if they have wheels."""
        self.replacements: list[Replacement] = []
        self.first: int | None = None
        """Start of the first line that is not a comment."""
        self.added: list[str] = []
        for line in logical_lines(self.text):
            if line.number == 1 and line.text.startswith("Using Python "):
                continue
            self.first = line.start if self.first is None else self.first
            self._line(line)

    def _line(self, line: LogicalLine) -> None:
        if line.text[0] != "-":
            self._requirement(line)
            return
        for name, value in options_of(line.text, self.path, line.number):
            if name in _INCLUDES:
                self.includes.append((line.number, self.constraint or _INCLUDES[name], value))
            elif name in _INDEXES and (at := line.text.rfind(value)) >= 0:
                self.indexes.append((value, _mapped(line).span(at, at + len(value))))
            elif name == "--editable":
                self._editable(line, value)
            elif name == "--no-binary":
                self.no_binary.update(part.strip() for part in value.split(","))
            self.require_hashes = self.require_hashes or name == "--require-hashes"

    def _editable(self, line: LogicalLine, operand: str) -> None:
        found = _EDITABLE.match(line.text)
        if found is None:
            raise InputError("expected -e at the start of its line", self.path, line.number)
        try:
            self._state(line, editable(operand), _Place(line, found.end(), len(line.text), editable=True))
        except Unnamed:
            return
        except ValueError as problem:
            raise InputError(f"expected a directory or a repository after -e: {problem}", self.path, line.number) from None

    def _requirement(self, line: LogicalLine) -> None:
        text, option, rest = line.text.partition(" -")
        if option:
            options_of(f"-{rest}", self.path, line.number)
        hashes = hash_options(line.text, len(text))
        self.require_hashes = self.require_hashes or bool(hashes)
        try:
            found = parse_requirement(text)
        except Unnamed:
            return
        except ValueError as problem:
            name = name_at_start(text)
            if "${" not in text or name is None:
                raise InputError(f"expected a requirement or an option: {problem}", self.path, line.number) from None
            found = Distribution(name, source=_VARIABLE)
        self._state(line, found, _Place(line, 0, len(text.rstrip()), hashes))

    def _state(self, line: LogicalLine, found: Distribution, place: _Place) -> None:
        self.statements.append(Statement(found, self.path, line.number, self.constraint, (self, place)))

    def change(self, statement: Statement, change: Change, how: str, *, hashed: bool) -> None:
        """Record the change of a statement."""
        _, place = statement.place
        line: LogicalLine = place.line
        if statement.found.source is _VARIABLE:
            message = f"the version of {change.name} depends on a variable, which is set elsewhere: change it there"
            raise InputError(message, self.path, line.number)
        if how == REMOVE:
            self.replacements.append((line.start, self._behind(line), ""))
            return
        start, end = place.start, place.end
        old = line.text[start:end]
        try:
            new = moved_editable(old, change) if place.editable and change.is_direct_url else rewritten(old, change, how)
        except InputError as problem:
            raise InputError(problem.message, self.path, line.number) from None
        if new == old:
            return
        if place.editable and not change.is_direct_url:
            start, old = 0, line.text[:end]  # a release cannot be editable
        first, last, text = smallest(old, new)
        self.replacements.append((*_mapped(line).span(start + first, start + last), text))
        if hashed:
            self.replacements += hash_replacement(self.text, line, place.hashes, place.end, change, self.path)

    def _behind(self, line: LogicalLine) -> int:
        """Return the end of a line, including the indented comments (``# via …``) that a resolver writes after it."""
        end = line.end
        while (found := re.compile(r"[ \t]+#.*(?:\r?\n|$)").match(self.text, end)) and found[0]:
            end = found.end()
        return end

    @property
    def pinned(self) -> bool:
        """Whether every requirement is a pin, as in the output of pip freeze and pip-compile."""
        from_index = [s.found for s in self.statements if s.found.source is None or s.found.source.kind in ("index", "nightly")]
        return len(from_index) > 0 and all(found.version is not None for found in from_index)

    def add(self, change: Change, *, hashed: bool) -> None:
        """Append a requirement, with the reason as a comment unless the file is pinned."""
        end = line_end(self.text)
        pinned = self.pinned
        line = requirement_for(change)
        if hashed:
            line += new_hashes(change, self.path, None, f" \\{end}    ")
        if not pinned and change.reason:
            line += f"  # {change.reason}"
        self.added.append(line)

    def use_index(self, url: str, span: tuple[int, int] | None) -> None:
        """Set an index: replace the one at ``span``, or add an option at the top."""
        if span is not None and all(each[:2] != span for each in self.replacements):
            self.replacements.append((*span, url))
            return
        self._in_front(f"--extra-index-url {url}")

    def build(self, name: str) -> None:
        """Build a distribution from source even if it has wheels."""
        self.no_binary.add(name)
        self._in_front(f"--no-binary {name}")

    def _in_front(self, option: str) -> None:
        """Insert an option on its own line before the first statement."""
        at = len(self.text) if self.first is None else self.first
        end = line_end(self.text)
        lead = end if at == len(self.text) and self.text and not self.text.endswith("\n") else ""
        self.replacements.append((at, at, f"{lead}{option}{end}"))

    def edit(self) -> Edit:
        """Return the edit with all recorded changes."""
        text = replaced(self.text, self.replacements)
        if self.added:
            end = line_end(self.text)
            whole = not text or text.endswith(("\n", "\r"))
            block = end.join(self.added)
            text += f"{block}{end}" if whole else f"{end}{block}"
        return Edit(self.path, self.content, self._encoded.encode(text))


def edit_requirements(path: str, content: bytes, changes: Sequence[Change], *, compiled: bool = False) -> tuple[Edit, ...]:
    """Return the edits of a requirements file and its includes; ``compiled``: another file pins its exact releases.

    :class:`InputError` for a version that depends on a variable, a local directory, missing hashes, and an included
    file that cannot be opened but matters.
    """
    files, unread = _opened(path, content)
    top, statements = files[0], [statement for file in files for statement in file.statements]
    hashed = any(file.require_hashes for file in files)
    for change in changes:
        wanted = decided(statements, change, exact=not compiled)
        for statement, how in wanted:
            statement.place[0].change(statement, change, how, hashed=hashed)
        if wanted or change.after is None:
            continue
        if unread:
            raise InputError(f"cannot tell whether {change.name} is listed: {unread[0]}", path)
        if not compiled and (top.pinned or change.direct or not change.implied):
            top.add(change, hashed=hashed)
    _use_indexes(top, files, statements, changes)
    for change in changes:
        if change.no_binary and not any({change.name, ":all:"} & file.no_binary for file in files):
            top.build(change.name)
    return tuple(_verified(file, changes) for file in files)


def _verified(file: RequirementsFile, changes: Sequence[Change]) -> Edit:
    """Return the edit of a file; :class:`InputError` if the result does not list what it should."""
    edit = file.edit()
    after = RequirementsFile(file.path, edit.after, constraint=file.constraint)
    old, new = ([statement.found for statement in each.statements] for each in (file, after))
    problem = problem_of_statements(old, new, changes)
    if problem is not None:
        raise InputError(f"cannot be changed safely: {problem}", file.path)
    return edit


def _opened(path: str, content: bytes) -> tuple[list[RequirementsFile], list[str]]:
    """Return the file and all its includes, and what could not be opened."""
    includes = Includes(path)
    files = [RequirementsFile(path, content)]
    unread: list[str] = []
    waiting = [(files[0], 0)]
    while waiting:
        file, depth = waiting.pop()
        for line, constraint, target in file.includes:
            try:
                opened = includes.open(file.path, target, "constraints" if constraint else "requirements", depth + 1)
            except NotRead as reason:
                unread.append(f"{file.path}:{line}: {target} was not read: {reason}")
                continue
            if opened is not None and all(each.path != opened[0] for each in files):
                files.append(RequirementsFile(*opened, constraint=constraint))
                waiting.append((files[-1], depth + 1))
    return files, unread


def _use_indexes(
    top: RequirementsFile, files: Sequence[RequirementsFile], statements: Sequence[Statement], changes: Sequence[Change]
) -> None:
    """Add the vendors' indexes that the changes need."""
    moved = {change.name for change in changes}
    kept = {s.found.version.partition("+")[2] for s in statements if s.found.version and s.found.name not in moved}
    for url in dict.fromkeys(change.index_url for change in changes if change.after is not None):
        places = [] if url is None else [(file, index_replacement(url, file.indexes, kept)) for file in files]
        if url is None or any(place is None for _, place in places):
            continue
        file, span = next(((file, place[0]) for file, place in places if place and place[0]), (top, None))
        file.use_index(url, span)


def _mapped(line: LogicalLine) -> Mapped:
    """Return the text of a line with the offset of each letter."""
    return joined(line.pieces).part(line.lead, line.lead + len(line.text))
