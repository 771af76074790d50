"""Editing requirements and constraints files, and their includes."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence

from compat.errors import InputError
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
from compat.formats.edit.files import Edit, Replacement, encoding_of, line_end, replaced, smallest
from compat.formats.include import Includes, NotRead
from compat.formats.listing import Entry
from compat.formats.requirements.lines import Requirement, decode, requires_hashes, statements_of
from compat.formats.requirements.requirement import names_to_build
from compat.formats.specifiers import EXACT
from compat.records import record

_HASH = re.compile(r"(?<=\s)--hash[=\s]\s*\S+")
_COMMENTS = re.compile(r"(?:[ \t]+#.*(?:\r?\n|$))+")
"""The indented comments (``# via …``) that a resolver writes after a requirement."""


@record(frozen=True)
class _Place:
    """A requirement, and the file that contains it."""

    file: _EditedFile
    requirement: Requirement


@record(frozen=True)
class _Include:
    """A ``-r`` or a ``-c``."""

    line: int
    file: str
    constraint: bool


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
            place = statement.place
            place.file.change(place.requirement, change, how, hashed=hashed)
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
    edits = []
    for file in files:
        edit = file.edit()
        after = _EditedFile(file.path, edit.after, constraint=file.constraint)
        old, new = ([statement.found for statement in each.statements] for each in (file, after))
        stated = [change for change in changes if change.after is not None or not file.constraint]  # it installs nothing
        problem = problem_of_statements(old, new, stated)
        if problem is not None:
            raise InputError(f"cannot be changed safely: {problem}", file.path)
        edits.append(edit)
    return tuple(edits)


def edit_to_one(path: str, content: bytes, kept: Entry, others: Collection[Entry]) -> tuple[Edit, ...]:
    """Return the edits that leave one of several requirements for a distribution, in a requirements file and its includes.

    A pin in another file becomes that of the one that is kept; every other line is removed.
    """
    wanted, files = kept.distribution, _opened(path, content)[0]
    places = {(each.file or path, each.line) for each in others}
    for file in files:
        for statement in file.statements:
            found, requirement = statement.found, statement.place.requirement
            if found.name != wanted.name or statement.constraint or (file.path, statement.line) not in places:
                continue
            equal = (
                file.path != (kept.file or path) and found.version and wanted.version and "--hash" not in requirement.options
            )
            change = Change(found.name, found.version, wanted.version)
            file.change(requirement, change, EXACT if equal else REMOVE, hashed=False)
    return tuple(file.edit() for file in files if file.replacements)


def files_of(path: str, content: bytes) -> list[str]:
    """Return a requirements file, all that it includes, and the folders of projects that they name."""
    files = _opened(path, content)[0]
    sources = ((file.path, each.found.source) for file in files for each in file.statements)
    local = (
        os.path.join(os.path.dirname(file), str(it.details["path"])) for file, it in sources if it and "path" in it.details
    )
    return [*(file.path for file in files), *local]


def _opened(path: str, content: bytes) -> tuple[list[_EditedFile], list[str]]:
    """Return the file and all its includes, and what could not be read."""
    includes = Includes(path)
    files = [_EditedFile(path, content)]
    unread: list[str] = []
    waiting = [(files[0], 0)]
    while waiting:
        file, depth = waiting.pop()
        unread += file.unread
        for include in file.includes:
            purpose = "constraints" if include.constraint else "requirements"
            try:
                opened = includes.open(file.path, include.file, purpose, depth + 1)
            except NotRead as reason:
                unread.append(f"{file.path}:{include.line}: {include.file} was not read: {reason}")
                continue
            if opened is not None and all(each.path != opened[0] for each in files):
                files.append(_EditedFile(*opened, constraint=include.constraint))
                waiting.append((files[-1], depth + 1))
    return files, unread


def _use_indexes(
    top: _EditedFile, files: Sequence[_EditedFile], statements: Sequence[Statement[_Place]], changes: Sequence[Change]
) -> None:
    """Add the vendors' indexes that the changes need."""
    moved = {change.name for change in changes}
    kept = {s.found.version.partition("+")[2] for s in statements if s.found.version and s.found.name not in moved}
    needed = [change.index_url for change in changes if change.after is not None]
    for url in filter(None, dict.fromkeys((*needed, *(change.default_index for change in changes)))):
        places = [(file, index_replacement(url, file.indexes, kept)) for file in files]
        if any(place is None for _, place in places):
            continue
        file, span = next(((file, place[0]) for file, place in places if place and place[0]), (top, None))
        if span is not None or url in needed:
            file.use_index(url, span)


def changed_requirement(requirement: Requirement, change: Change, how: str) -> Replacement:
    """Return the replacement that changes a requirement, as positions in its logical line.

    :class:`InputError` (without a place) if it is installed from a local directory.
    """
    start, end = requirement.start, requirement.end
    old = requirement.line.text[start:end]
    if not requirement.editable:
        return start, end, rewritten(old, change, how)
    if change.is_direct_url:
        return start, end, moved_editable(old, change)
    new = rewritten(old, change, how)
    return (start if new == old else requirement.lead), end, new  # a release cannot be editable


class _EditedFile:
    """A file, its statements and options, and the replacements collected so far."""

    def __init__(self, path: str, content: bytes, *, constraint: bool = False) -> None:
        self.path = path
        self.content = content
        self.text = decode(content, path)
        self._encoded = encoding_of(path, content, self.text)
        self.constraint = constraint
        self.statements: list[Statement[_Place]] = []
        self.unread: list[str] = []
        """Requirements whose name depends on a variable."""
        self.includes: list[_Include] = []
        self.indexes: list[tuple[str, tuple[int, int]]] = []
        """Index addresses with their positions."""
        self.require_hashes = False
        self.no_binary: set[str] = set()
        """Names of the distributions that are built from source even if they have wheels."""
        self.replacements: list[Replacement] = []
        self.first: int | None = None
        """Start of the first line that is not a comment."""
        self.added: list[str] = []
        for each in statements_of(path, self.text):
            line = each.line
            self.first = line.start if self.first is None else self.first
            self.require_hashes = self.require_hashes or requires_hashes(each)
            if isinstance(each, Requirement):
                if each.found is not None:
                    self.statements.append(Statement(each.found, path, line.number, _Place(self, each), constraint))
                elif each.variable:
                    self.unread.append(f"{path}:{line.number}: {each.problem}")
            elif each.name in ("--requirement", "--constraint"):
                self.includes.append(_Include(line.number, each.value, constraint or each.name == "--constraint"))
            elif (index := each.index) is not None:
                self.indexes.append((each.value, line.span(*index)))
            elif each.name == "--no-binary":
                self.no_binary |= names_to_build(each.value)

    def change(self, requirement: Requirement, change: Change, how: str, *, hashed: bool) -> None:
        line = requirement.line
        if requirement.variable:
            message = f"the version of {change.name} depends on a variable, which is set elsewhere: change it there"
            raise InputError(message, self.path, line.number)
        if how == REMOVE:
            comments = _COMMENTS.match(self.text, line.end)
            self.replacements.append((line.start, line.end if comments is None else comments.end(), ""))
            return
        try:
            start, end, new = changed_requirement(requirement, change, how)
        except InputError as problem:
            raise InputError(problem.message, self.path, line.number) from None
        old = line.text[start:end]
        if new == old:
            return
        first, last, text = smallest(old, new)
        self.replacements.append((*line.span(start + first, start + last), text))
        if hashed:
            self.replacements.append(self._hashes(requirement, change))

    def _hashes(self, requirement: Requirement, change: Change) -> Replacement:
        """Return the replacement of the old hashes by those of the new release, or their insertion if there are none."""
        line, end = requirement.line, requirement.end
        spans = [line.span(*found.span()) for found in _HASH.finditer(line.text, end)]
        behind = line.span(end, end)[0]
        if not spans:
            return behind, behind, self._new_hashes(change, line.number)
        between = self.text[spans[0][1] : spans[1][0]] if len(spans) > 1 else self.text[behind : spans[0][0]]
        return spans[0][0], spans[-1][1], self._new_hashes(change, line.number, between)[len(between) :]

    def _new_hashes(self, change: Change, line: int | None, between: str | None = None) -> str:
        """Return the ``--hash`` options of the new release, each after ``between`` (by default on its own line).

        :class:`InputError` if it has none: pip refuses a file in which only some requirements have hashes.
        """
        if not change.hashes or change.is_direct_url:
            problem = "cannot have hashes (it is not a release)" if change.is_direct_url else "has none"
            message = f"every requirement in this file has hashes, but {change.name} {change.after} {problem}"
            raise InputError(message, self.path, line)
        between = f" \\{line_end(self.text)}    " if between is None else between
        return "".join(f"{between}--hash={each}" for each in change.hashes)

    @property
    def pinned(self) -> bool:
        """Whether every requirement is a pin, as in the output of pip freeze and pip-compile."""
        from_index = [s.found for s in self.statements if s.found.source is None or s.found.source.kind in ("index", "nightly")]
        return len(from_index) > 0 and all(found.version is not None for found in from_index)

    def add(self, change: Change, *, hashed: bool) -> None:
        """Append a requirement, with the reason as a comment unless the file is pinned."""
        hashes = self._new_hashes(change, None) if hashed else ""
        reason = f"  # {change.reason}" if change.reason and not self.pinned else ""
        self.added.append(requirement_for(change) + hashes + reason)

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
        text = replaced(self.text, self.replacements)
        if self.added:
            end = line_end(self.text)
            block = end.join(self.added)
            text += f"{block}{end}" if not text or text.endswith(("\n", "\r")) else f"{end}{block}"
        return Edit(self.path, self.content, self._encoded.encode(text))
