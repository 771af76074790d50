"""Changes to requirements and constraints files, and to the files they include."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compat.errors import InputError
from compat.formats.edit.changes import REMOVE, Change, Statement, decided
from compat.formats.edit.dispatch import problem_of_statements
from compat.formats.edit.files import Edit, Mapped, Replacement, encoding_of, joined, line_end, replaced, smallest
from compat.formats.edit.index_options import index_replacement
from compat.formats.include import Includes, NotRead
from compat.formats.requirements.lines import LogicalLine, decode, logical_lines, options_of
from compat.formats.requirements.requirement import Unnamed, editable, name_at_start, parse_requirement
from compat.formats.requirements.text import moved_editable, requirement_for, rewritten
from compat.model import Distribution, Source
from compat.records import record

# --- ``--hash`` of a requirements file: where they stand, and those of another release in their place.


_HASH = re.compile(r"(?<=\s)--hash[=\s]\s*\S+")


def hash_options(line: str, start: int) -> tuple[tuple[int, int], ...]:
    """Start and end of each ``--hash`` behind a requirement."""
    return tuple(found.span() for found in _HASH.finditer(line, start))


def hash_replacement(
    text: str, line: LogicalLine, hashes: tuple[tuple[int, int], ...], behind: int, change: Change, path: str
) -> list[Replacement]:
    """What puts the hashes of the new release in the place of the old ones, or behind the requirement at ``behind``.

    :class:`InputError` where the plan has none: pip refuses a file in which only some have hashes.
    """
    spans = [_mapped(line).span(*each) for each in hashes]
    if not spans:
        at = _mapped(line).span(behind, behind)[0]
        return [(at, at, new_hashes(change, path, line.number, f" \\{line_end(text)}    "))]
    between = text[spans[0][1] : spans[1][0]] if len(spans) > 1 else text[_mapped(line).span(behind, behind)[0] : spans[0][0]]
    start, end = spans[0][0], spans[-1][1]
    return [(start, end, new_hashes(change, path, line.number, between)[len(between) :])]


def new_hashes(change: Change, path: str, line: int | None, between: str) -> str:
    """The options of a release, with ``between`` in front of each."""
    if not change.hashes or change.is_direct_url:
        problem = "cannot have them (it is no release)" if change.is_direct_url else "come without any"
        raise InputError(f"every requirement has hashes here, and {change.name} {change.after} {problem}", path, line)
    return "".join(f"{between}--hash={each}" for each in change.hashes)


_INCLUDES = {"--requirement": False, "--constraint": True}
_INDEXES = ("--index-url", "--pypi-url", "--default-index", "--extra-index-url", "--find-links")
_EDITABLE = re.compile(r"(?:-e|--editable)[=\s]*")
_VARIABLE = Source("variable")


@record(frozen=True)
class _Place:
    """A requirement's logical line, and where in it the requirement stands."""

    line: LogicalLine
    start: int
    end: int
    hashes: tuple[tuple[int, int], ...] = ()
    editable: bool = False


class RequirementsFile:
    """One file: its text, what it states, its options, and the changes that are gathered for it."""

    def __init__(self, path: str, content: bytes, *, constraint: bool = False) -> None:
        self.path = path
        self.content = content
        self.text = decode(content, path)
        self._encoded = encoding_of(path, content, self.text)
        self.constraint = constraint
        self.statements: list[Statement] = []
        self.includes: list[tuple[int, bool, str]] = []
        """(line, whether for constraints, the file) of ``-r`` and ``-c``."""
        self.indexes: list[tuple[str, tuple[int, int]]] = []
        """Addresses of indexes, each with its place."""
        self.require_hashes = False
        self.no_binary: set[str] = set()
        """What is built although it has wheels."""
        self.replacements: list[Replacement] = []
        self.first: int | None = None
        """Where the first line that is no comment starts."""
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
        """Note down what a statement becomes."""
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
            start, old = 0, line.text[:end]  # a release is no editable
        first, last, text = smallest(old, new)
        self.replacements.append((*_mapped(line).span(start + first, start + last), text))
        if hashed:
            self.replacements += hash_replacement(self.text, line, place.hashes, place.end, change, self.path)

    def _behind(self, line: LogicalLine) -> int:
        """The end of a line with the indented comments (``# via …``) that a resolver writes behind it."""
        end = line.end
        while (found := re.compile(r"[ \t]+#.*(?:\r?\n|$)").match(self.text, end)) and found[0]:
            end = found.end()
        return end

    @property
    def pinned(self) -> bool:
        """Whether everything it lists is a pin, as in what pip freeze and pip-compile write."""
        from_index = [s.found for s in self.statements if s.found.source is None or s.found.source.kind in ("index", "nightly")]
        return len(from_index) > 0 and all(found.version is not None for found in from_index)

    def add(self, change: Change, *, hashed: bool) -> None:
        """A requirement the file does not have, at its end; with the reason where people write it by hand."""
        end = line_end(self.text)
        pinned = self.pinned
        line = requirement_for(change)
        if hashed:
            line += new_hashes(change, self.path, None, f" \\{end}    ")
        if not pinned and change.reason:
            line += f"  # {change.reason}"
        self.added.append(line)

    def use_index(self, url: str, span: tuple[int, int] | None) -> None:
        """Name an index: in the place of another one, or on a line of its own in front of everything."""
        if span is not None and all(each[:2] != span for each in self.replacements):
            self.replacements.append((*span, url))
            return
        self._in_front(f"--extra-index-url {url}")

    def build(self, name: str) -> None:
        """Have a distribution built although it has wheels."""
        self.no_binary.add(name)
        self._in_front(f"--no-binary {name}")

    def _in_front(self, option: str) -> None:
        """An option on a line of its own, in front of everything."""
        at = len(self.text) if self.first is None else self.first
        end = line_end(self.text)
        lead = end if at == len(self.text) and self.text and not self.text.endswith("\n") else ""
        self.replacements.append((at, at, f"{lead}{option}{end}"))

    def edit(self) -> Edit:
        """The file with everything that was noted down."""
        text = replaced(self.text, self.replacements)
        if self.added:
            end = line_end(self.text)
            whole = not text or text.endswith(("\n", "\r"))
            block = end.join(self.added)
            text += f"{block}{end}" if whole else f"{end}{block}"
        return Edit(self.path, self.content, self._encoded.encode(text))


def edit_requirements(path: str, content: bytes, changes: Sequence[Change], *, compiled: bool = False) -> tuple[Edit, ...]:
    """The edits of a requirements file and of what it includes; ``compiled``: another file has its exact releases.

    :class:`InputError` for a version that depends on a variable, a folder of the project, missing hashes, and a file that
    is included and cannot be opened, where what it says would matter.
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
    """The edit of a file; :class:`InputError` where it does not say then what it should."""
    edit = file.edit()
    after = RequirementsFile(file.path, edit.after, constraint=file.constraint)
    old, new = ([statement.found for statement in each.statements] for each in (file, after))
    problem = problem_of_statements(old, new, changes)
    if problem is not None:
        raise InputError(f"cannot be changed safely: {problem}", file.path)
    return edit


def _opened(path: str, content: bytes) -> tuple[list[RequirementsFile], list[str]]:
    """The file and all that it includes, and what could not be opened."""
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
    """The indexes of vendors that the changes need."""
    moved = {change.name for change in changes}
    kept = {s.found.version.partition("+")[2] for s in statements if s.found.version and s.found.name not in moved}
    for url in dict.fromkeys(change.index_url for change in changes if change.after is not None):
        places = [] if url is None else [(file, index_replacement(url, file.indexes, kept)) for file in files]
        if url is None or any(place is None for _, place in places):
            continue
        file, span = next(((file, place[0]) for file, place in places if place and place[0]), (top, None))
        file.use_index(url, span)


def _mapped(line: LogicalLine) -> Mapped:
    """The text of a line with the place of each letter."""
    return joined(line.pieces).part(line.lead, line.lead + len(line.text))
