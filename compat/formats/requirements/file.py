"""Requirements and constraints files (pip, uv), with the files they include; the command that compiled one."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from compat.errors import printable
from compat.formats.include import Includes, NotRead
from compat.formats.listing import Entry, Listing, check_entries
from compat.formats.pins import pins_of
from compat.formats.registry import Commands, Format, Relocking, read_content
from compat.formats.requirements.lines import (
    INDEX_URL,
    Requirement,
    apply_constraints,
    decode,
    header,
    of_others,
    python_of_freeze,
    requires_hashes,
    statements_of,
)
from compat.formats.requirements.requirement import INDEX, is_url, mark_source_build, names_to_build
from compat.model import Distribution, Environment, Source
from compat.records import record, replace
from compat.redact import without_credentials

if TYPE_CHECKING:
    from compat.formats.edit.changes import Change
    from compat.formats.edit.files import Edit
    from compat.formats.edit.installer import Installer

__all__ = ["decode", "read_requirements"]

_INDEXED = (INDEX.kind, "nightly")
_LABELLED = ("torch", "torchvision", "torchaudio", "xformers")
"""Distributions of which another index may have the same release, with a local label that installers prefer."""
_PARTIAL = ("--no-deps", "--no-emit-package", "--no-emit-workspace", "--no-emit-local", "--no-install-", "--unsafe-package",
            "--prune", "--only-emit-")  # fmt: skip


class Requirements(Format):
    """Requirements and constraints files (pip, uv)."""

    kind = "requirements"
    says_build = True

    def decode(self, path: str, content: bytes) -> str:
        return decode(content, path)

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return read_requirements(path, text)

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        """Return the edits of a file and its includes, and of the files that it was compiled from."""
        from compat.formats.edit.files import merged
        from compat.formats.requirements.edit import edit_requirements

        edits = merged({}, edit_requirements(path, content, changes, compiled=_compiled(path) is not None))
        made = compiled_from(path, self.decode(path, content))
        for source in () if made is None else made.sources:
            file = os.path.join(made.folder, source) if made is not None else source
            edits = merged(edits, edit_requirements(file, read_content(file), changes, compiled=True))
        return tuple(edits.values())

    def relocking(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Relocking | None:
        from compat.formats.requirements.edit import files_of

        made = compiled_from(path, self.decode(path, content))
        if made is None:
            return None
        named = (os.path.join(made.folder, each) for each in made.sources)
        files = [os.path.relpath(file, made.folder or ".") for each in named for file in files_of(each, read_content(each))]
        return made.relocking(files)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        """Compiled files are compiled again, with the command in their header."""
        output, built = _compiled(path), pip.build_options(changes)
        install = f"{pip.start('install')} -r {pip.quoted(output or path)}{built}"
        if output is not None:
            options = f"{pip.upgrades(changes)}{pip.index_options(changes)}"
            return Commands((f"uv pip compile {pip.quoted(path)} --output-file {pip.quoted(output)}{options}",), (install,))
        if any(change.index_url is not None for change in changes):
            install += pip.mixed
        made = compile_command(self.decode(path, content))
        if not made or not is_harmless(made):
            return Commands((), (install,))
        if made.startswith("uv export"):
            return Commands((f"uv lock{pip.upgrades(changes)}", made), (install,))
        return Commands((f"{made}{pip.upgrades(changes)}",), (install,))


def _compiled(path: str) -> str | None:
    """Return the pip-compile output of this file, if it exists."""
    stem, ending = os.path.splitext(path)
    return f"{stem}.txt" if ending == ".in" and os.path.isfile(f"{stem}.txt") else None


def read_requirements(path: str, text: str, numbers: Sequence[int] = ()) -> tuple[Listing, ...]:
    """Return the listing of a requirements file and the files it includes (``-r``), narrowed by constraints (``-c``).

    ``numbers`` are the line numbers if the text is a part of another file.
    Raises :class:`InputError` for a line that is neither a requirement nor an option. An include that was not opened is
    in ``unread``. ``complete`` is set for a complete freeze and for resolver output in which every line is a pin.
    """
    text = text.removeprefix("\ufeff")
    lines = text.splitlines()
    reading = _Reading(path)
    reading.read(path, text, numbers=numbers)
    python = python_of_freeze(lines)
    entries = [reading.as_installed(entry) for entry in reading.entries]
    whole = reading.whole and not reading.unread and (python is not None or _is_resolved(lines, entries))
    notes = list(reading.notes)
    found = apply_constraints(entries, reading.constraints, notes)
    return (
        Listing(
            path, "requirements", found, complete=whole, notes=tuple(map(printable, dict.fromkeys(notes))),
            unread=tuple(map(printable, reading.unread)), context=Environment(python=python),
            loose=() if whole else reading.loose_pins(), indexes=tuple(filter(None, (reading.index, *reading.more))),
            constraints=of_others(entries, reading.constraints), hashed=reading.hashed,
        ),
    )  # fmt: skip


class _Reading:
    """What has been read so far of a file and its includes."""

    def __init__(self, path: str) -> None:
        self.includes = Includes(path)
        self.entries: list[Entry] = []
        self.constraints: list[Entry] = []
        self.notes: list[str] = []
        self.unread: list[str] = []
        self.projects: list[Entry] = []
        """The pins of local projects."""
        self.index: str | None = None
        self.more: list[str] = []
        self.no_index = False
        self.no_binary: set[str] = set()
        self.whole = True
        self.hashed = False

    def read(self, path: str, text: str, depth: int = 0, purpose: str = "requirements", numbers: Sequence[int] = ()) -> None:
        """Read a file, which is included ``depth`` files deep; ``purpose`` is ``requirements`` or ``constraints``."""
        for statement in statements_of(path, text, numbers):
            number = statement.line.number
            place = f"{path}:{number}"
            self.hashed = self.hashed or requires_hashes(statement)
            if isinstance(statement, Requirement):
                found = self._required(place, statement)
                if found is None:
                    self._project(path, statement.line.text.strip(), depth)
                    continue
                check_entries(len(self.entries) + len(self.constraints) + 1, path, number)
                if purpose == "constraints":
                    self.constraints.append(Entry(found, number, path))
                else:
                    self.entries.append(Entry(found, number, path if depth else None))
            elif statement.name in INDEX_URL:
                self.index = without_credentials(statement.value)
            elif statement.name in ("--extra-index-url", "--find-links"):
                self.more.append(without_credentials(statement.value))
                self.notes.append(f"{place}: packages may also come from {self.more[-1]}")
            elif statement.name == "--no-index":
                self.no_index = True
            elif statement.name == "--no-binary":
                self.no_binary |= names_to_build(statement.value)
            elif statement.name in ("--requirement", "--constraint"):
                inner = "constraints" if statement.name == "--constraint" else purpose
                try:
                    opened = self.includes.open(path, statement.value, inner, depth + 1)
                except NotRead as reason:
                    option = "-c" if statement.name == "--constraint" else "-r"
                    self.unread.append(f"{place}: {option} {statement.value} was not read: {reason}")
                    continue
                if opened is not None:
                    file, content = opened
                    self.read(file, decode(content, file), depth + 1, inner)

    def _project(self, path: str, folder: str, depth: int) -> None:
        """Keep the pins of a project that is installed from its folder, whose requirements are not read."""
        folder = folder.removeprefix("-e").removeprefix("--editable").strip(" =\t'\"").partition("[")[0].removeprefix("file:")
        for name in ("pyproject.toml", "setup.py", "setup.cfg"):
            try:
                opened = self.includes.open(path, f"{folder or '.'}/{name}", "project", depth + 1)
            except NotRead:
                continue
            if opened is not None:
                self.projects += pins_of(opened[0], opened[1].decode("utf-8", "replace"))

    def loose_pins(self) -> tuple[Entry, ...]:
        """Return the pins of projects that are not listed by name as well."""
        stated = {(each.distribution.name, each.distribution.version) for each in self.entries}
        return tuple(each for each in self.projects if (each.distribution.name, each.distribution.version) not in stated)

    def _required(self, place: str, statement: Requirement) -> Distribution | None:
        """Return what a statement requires, with a note about what is unknown."""
        found = statement.found
        self.notes += [f"{place}: pip ignores {name} after a requirement" for name in statement.options if name in INDEX_URL]
        if statement.variable or (found is None and not statement.editable):
            self.whole = False
        if found is None:
            if statement.variable:
                self.unread.append(f"{place}: {statement.problem}")
            else:
                self.notes.append(f"{place}: {statement.problem}{'' if statement.editable else '; skipped'}")
        elif statement.variable:
            self.notes.append(f"{place}: the version of {found.name} depends on a variable")
        elif found.source is not None and found.source.kind == "url" and not is_url(statement.line.text):
            return replace(found, version=None)  # name @ address: its version is derived later
        return found

    def as_installed(self, entry: Entry) -> Entry:
        """Return the entry with its index, and as built from source where the file says so."""
        entry = self._with_index(entry)
        return replace(entry, distribution=mark_source_build(entry.distribution, self.no_binary)) if self.no_binary else entry

    def _with_index(self, entry: Entry) -> Entry:
        """Return the entry with its index if the file names only one, and otherwise with the additional ones."""
        found = entry.distribution
        if found.source is None or found.source.kind not in _INDEXED or not (self.no_index or self.index or self.more):
            return entry
        if self.no_index:
            return replace(entry, distribution=replace(found, source=None))
        if not self.more:
            return replace(entry, distribution=replace(found, source=Source(found.source.kind, {"url": self.index})))
        if found.name not in _LABELLED:
            return entry
        return replace(entry, distribution=replace(found, source=Source(found.source.kind, {"more": self.more})))


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


# --- Files that a resolver wrote: the command in their header, and the files that it reads.


UV, PIP_TOOLS = "uv pip compile", "pip-compile"
COMPILERS = (UV, PIP_TOOLS)
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ ./=:,@+-")
_IN_QUOTES = _PLAIN | frozenset("[]<>!~")
"""Characters allowed in a command that is rerun from a comment: none that a shell treats specially there."""
_FLAGS = frozenset((
    "--generate-hashes", "--no-annotate", "--no-header", "--strip-extras", "--no-strip-extras", "--universal", "--pre",
    "--emit-index-url", "--emit-find-links", "--emit-index-annotation", "--emit-build-options", "--no-emit-index-url",
    "--no-emit-find-links", "--allow-unsafe", "--no-allow-unsafe", "--annotate", "--header", "--resolver=backtracking",
))  # fmt: skip
_VALUED = frozenset((
    "--output-file", "--constraint", "--constraints", "--override", "--overrides", "--python-version", "--python-platform",
    "--resolution", "--prerelease", "--index-strategy", "--annotation-style", "--no-emit-package", "--unsafe-package",
    "--torch-backend", "--exclude-newer", "--index-url", "--extra-index-url", "--default-index", "--index", "--find-links",
    "--fork-strategy",
))  # fmt: skip
_SHORT = {"-o": "--output-file", "-c": "--constraint", "-i": "--index-url", "-f": "--find-links", "-p": "--python-version"}
_FILES = ("--constraint", "--constraints", "--override", "--overrides")
_ONLY_ONCE = ("--upgrade", "-U", "--quiet", "-q", "--verbose", "-v")
"""Options of that run, not of the file."""


@record(frozen=True)
class Compiled:
    """The command that wrote a file, as its header has it: ``options`` are (name, value) pairs, "" for a flag.

    ``sources`` and the constraints in ``options`` are relative to ``folder``, where it was run.
    """

    command: str
    folder: str
    output: str
    sources: tuple[str, ...]
    options: tuple[tuple[str, str], ...]

    def relocking(self, files: Sequence[str]) -> Relocking | None:
        """Return how uv compiles it again, if uv did; ``files`` are all that the sources include."""
        if not self.command.startswith(UV):
            return None
        options = (word for option in self.options for word in filter(None, option))
        words = (
            "pip",
            "compile",
            *self.sources,
            "--output-file",
            self.output,
            *options,
            "--custom-compile-command",
            self.command,
        )
        named = (value for name, value in self.options if name in _FILES)
        return Relocking(words, tuple(dict.fromkeys((*files, *named, self.output))), self.folder)


def is_harmless(command: str) -> bool:
    """Whether a shell only splits it into words: ``> ~/.profile`` in a comment is a redirection, ``'torch>2'`` a word."""
    parts = command.replace('"', "'").split("'")
    plain, quoted = parts[::2], parts[1::2]
    return len(parts) % 2 == 1 and _PLAIN.issuperset("".join(plain)) and _IN_QUOTES.issuperset("".join(quoted))


def compile_command(text: str) -> str:
    """Return the command that a resolver wrote into the header of a file, or ""."""
    return next((line for line in header(text.splitlines()) if line.startswith((*COMPILERS, "uv export"))), "")


def compiled_from(path: str, text: str) -> Compiled | None:
    """Return how a file was compiled; ``None`` unless its sources are requirements files that are there.

    The header of a file is not trusted: only options that select releases or their form are taken from it.
    """
    command = compile_command(text)
    name = next((each for each in COMPILERS if command.startswith(each)), None)
    if name is None or not is_harmless(command):
        return None
    words = list(_words(shlex.split(command)[len(name.split()) :]))
    if None in words:
        return None
    options = [word for word in words if word is not None and word[0]]
    sources = tuple(value for option, value in filter(None, words) if not option)
    output = next((value for option, value in options if option == "--output-file"), os.path.basename(path))
    parts, real = os.path.normpath(output).split(os.sep), os.path.realpath(path).split(os.sep)
    if real[-len(parts) :] != parts:
        return None
    given = os.path.normpath(os.path.join(os.path.dirname(path) or ".", *[os.pardir] * (len(parts) - 1)))
    folder = "" if given == "." else given
    files = [each for option, each in options if option in _FILES] + list(sources)
    if not sources or not all(_is_requirements(os.path.join(folder, each)) for each in files):
        return None
    return Compiled(command, folder, output, sources, tuple(each for each in options if each[0] != "--output-file"))


def _is_requirements(path: str) -> bool:
    return not os.path.isabs(path) and path.endswith((".in", ".txt")) and os.path.isfile(path)


def _words(words: Sequence[str]) -> Iterator[tuple[str, str] | None]:
    """Yield the options of a command, operands without a name, and ``None`` for anything unknown."""
    waiting = ""
    for word in words:
        name, equals, value = word.partition("=")
        name = _SHORT.get(name, name)
        if waiting:
            yield waiting, word
            waiting = ""
        elif not word.startswith("-"):
            yield "", word
        elif word in _FLAGS:
            yield word, ""
        elif name in _VALUED and equals:
            yield name, value
        elif name in _VALUED:
            waiting = name
        elif word not in _ONLY_ONCE and name != "--upgrade-package":
            yield None
    if waiting:
        yield None
