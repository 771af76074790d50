"""Requirements files (pip, uv): what they list, with what they include."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from compat.errors import InputError, printable
from compat.formats.format import Commands, Format
from compat.formats.include import Includes, NotRead
from compat.formats.listing import Entry, Listing, check_entries
from compat.formats.requirements.direct_url import is_url
from compat.formats.requirements.lines import INDEX_URL, constrained, decode, header, logical_lines, options_of
from compat.formats.requirements.requirement import INDEX, Unnamed, editable, name_at_start, parse_requirement
from compat.model import Distribution, Environment, Source
from compat.records import replace
from compat.redact import without_credentials
from compat.versions import key_of

if TYPE_CHECKING:
    from compat.formats.edit.changes import Change
    from compat.formats.edit.commands import Installer
    from compat.formats.edit.files import Edit


__all__ = ["decode", "read_requirements"]

_INDEXED = (INDEX.kind, "nightly")
_COMPILERS = ("uv pip compile", "pip-compile")
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ ./=:,@+'\"[]<>!~-")
"""What a command in a comment may have, so that it can be run again: nothing that a shell takes for more than a word."""
_CONFLICT = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")
_PARTIAL = ("--no-deps", "--no-emit-package", "--no-emit-workspace", "--no-emit-local", "--no-install-", "--unsafe-package",
            "--prune", "--only-emit-")  # fmt: skip


def read_requirements(path: str, text: str, numbers: Sequence[int] = ()) -> tuple[Listing, ...]:
    """The one listing of a requirements file and of the files it includes (``-r``), narrowed by constraints (``-c``).

    ``numbers`` are those of the lines, where the text is taken out of another file.
    Raises :class:`InputError` for a line that is neither a requirement nor an option. An include that was not opened is
    in ``unread``. ``complete`` is set for a whole freeze and for what a resolver wrote, where every line is a pin.
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
        from compat.formats.requirements.edit import edit_requirements

        return edit_requirements(path, content, changes, compiled=_compiled(path) is not None)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        """What was compiled is compiled again, with the command it says it was made by."""
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
    """The file with the exact releases that pip-compile has made of this one."""
    stem, ending = os.path.splitext(path)
    return f"{stem}.txt" if ending == ".in" and os.path.isfile(f"{stem}.txt") else None


class _File:
    """One file that is read: its lines, how deep it was included, and whether it holds constraints."""

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
        """Number and text of each logical line."""
        for line in logical_lines(self.text):
            yield self._numbers[line.number - 1] if self._numbers else line.number, line.text

    def before(self, number: int) -> str:
        """The line before a line, or ""."""
        return "" if self._numbers or number < 2 else self.lines[number - 2]


class _Reading:
    """What has been read so far of a file and of what it includes."""

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
            self._add(file, number, _as_written(parse_requirement(text), text))
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
        """``torch==${TORCH}``: pip takes the value from its environment, which no file contains."""
        self.whole = False
        name = name_at_start(text)
        if name is None:
            self.unread.append(f"{file.path}:{number}: {text[:60]} was not read: it depends on a variable")
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
                reason = "it is skipped, its name is unknown"
                self.notes.append(f"{file.path}:{number}: -e {operand} is a project of its own; {reason}")
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
        """The entry with the index it comes from, where the file names the only one."""
        found = entry.distribution
        if found.source is None or found.source.kind not in _INDEXED or not (self.no_index or self.index):
            return entry
        if self.no_index:
            return replace(entry, distribution=replace(found, source=None))
        if not self.one_index:
            return entry
        return replace(entry, distribution=replace(found, source=Source(found.source.kind, {"url": self.index})))


def _freeze(lines: list[str]) -> str | None:
    """The Python that ``uv pip freeze`` names before it lists everything that is installed."""
    words = lines[0].split() if lines else []
    if words[:2] != ["Using", "Python"] or len(words) < 3 or (len(words) > 3 and words[3] != "environment"):
        return None
    try:
        key_of(words[2])
    except ValueError:
        return None
    return words[2]


def _as_written(found: Distribution, text: str) -> Distribution:
    """``name @ address`` has no version of its own: the version in the address is derived later."""
    by_address = found.source is not None and found.source.kind == "url" and not is_url(text)
    return replace(found, version=None) if by_address else found


def _frozen_editable(comment: str) -> Distribution | None:
    """``# Editable install with no version control (verl==0.4.0)``, which ``pip freeze`` writes above a bare path."""
    if not comment.startswith("# Editable ") or not comment.rstrip().endswith(")"):
        return None
    try:
        return parse_requirement(comment.rstrip()[:-1].rpartition("(")[2])
    except ValueError:
        return None


def _is_resolved(lines: list[str], entries: list[Entry]) -> bool:
    """Whether a resolver wrote the file and every line of it pins one release."""
    comments = header(lines)
    command = next((c for c in comments if c.startswith(("uv export", "uv pip compile", "pip-compile"))), "")
    by_resolver = any("autogenerated by uv" in c or "autogenerated by pip-compile" in c for c in comments)
    if not command or not by_resolver or any(option in command for option in _PARTIAL):
        return False
    if any(entry.file is not None or (entry.distribution.version is None and _from_index(entry)) for entry in entries):
        return False
    return not any("considered to be unsafe in a requirements file" in line for line in lines)


def _from_index(entry: Entry) -> bool:
    return entry.distribution.source is None or entry.distribution.source.kind in _INDEXED
