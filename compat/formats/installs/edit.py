"""Edits of install commands in shell text and Dockerfiles, and of the variables that hold their versions."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence

from compat.errors import InputError
from compat.files import decode_utf8
from compat.formats.conda_spec import rewritten_spec
from compat.formats.edit.changes import (
    REMOVE,
    Change,
    Statement,
    decided,
    flavour,
    index_replacement,
    moved_editable,
    requirement_for,
    rewritten,
)
from compat.formats.edit.dispatch import edits_for, of_included, problem_of
from compat.formats.edit.files import Edit, Mapped, Replacement, as_if_written, encoding_of, line_at, replaced
from compat.formats.installs.command import install_of
from compat.formats.installs.variables import Variables, references
from compat.formats.installs.words import COMPILED_AT_INSTALL, Install, Operand
from compat.formats.listing import Listing
from compat.formats.registry import Format, read_listings
from compat.formats.specifiers import admits
from compat.records import record
from compat.redact import excerpt
from compat.syntax.shell import Word, quoted, simple_commands, substituted
from compat.workload.wrappers import handed_to_shell


@record(frozen=True)
class EditedCommand:
    """An install command: its words, the text that contains them, and what it installs."""

    words: tuple[Word, ...]
    mapped: Mapped
    install: Install
    json: bool = False
    outer: str = ""
    """The quotes around the whole text, where it is passed to a shell."""

    @property
    def is_conda(self) -> bool:
        """Whether its requirements are specifications of conda packages."""
        return self.install.manager in ("conda", "pixi") and all(word.value != "--pypi" for word in self.words)

    def raw(self, word: Word) -> str:
        return self.mapped.text[word.start : word.end]

    def span(self, word: Word) -> tuple[int, int]:
        """Return start and end of a word in the file."""
        return self.mapped.span(word.start, word.end)


@record(frozen=True)
class _Place:
    """A requirement in a command: its operand, and the word that contains it.

    ``value`` is the requirement as written, with its variables; ``option`` is what the word has before it: ``--with=``.
    """

    command: EditedCommand
    operand: Operand
    value: str
    option: str

    @property
    def word(self) -> Word:
        return self.command.words[self.operand.at]

    @property
    def first(self) -> int:
        """The index of the first word of the statement: ``-e`` belongs to it."""
        return self.operand.at - self.operand.is_editable


_CLOSED = frozenset(("-i", "--index-url", "--default-index", "--no-index", "--no-deps"))
"""Options of a command that does not install what is on another index, or what its packages require."""


class InstallScript:
    """Every install command of a file, and the replacements collected so far.

    ``literal``: write versions into the commands even if they come from a variable. ``escape`` encodes new text where the file
    holds the commands in strings.
    """

    escape: Callable[[str], str] = staticmethod(str)

    def __init__(self, path: str, text: str, *, literal: bool) -> None:
        self.path = path
        self.text = text
        self.variables = Variables()
        self.commands: list[EditedCommand] = []
        self.statements: list[Statement[_Place]] = []
        self.replacements: list[Replacement] = []
        self._literal = literal

    def read(self, mapped: Mapped, outer: str = "") -> None:
        """Read the commands in shell text; ``outer`` are the quotes around it."""
        for command in simple_commands(mapped.text):
            words = list(command.words)
            for word in words:
                for start, end in substituted(mapped.text, word):
                    self.read(mapped.part(start, end))
            while words and (found := re.fullmatch(r"([A-Za-z_]\w*)=(.*)", words[0].value, re.DOTALL)):
                self._define(mapped, words.pop(0), found[1], found[2])
            if words and words[0].value in ("export", "declare", "local", "readonly"):
                for word in words[1:]:
                    name, equals, value = word.value.partition("=")
                    if equals:
                        self._define(mapped, word, name, value)
            elif words:
                self.read_words(mapped, words, outer=outer)

    def _define(self, mapped: Mapped, word: Word, name: str, value: str) -> None:
        raw = mapped.text[word.start : word.end]
        at = raw.find(value, len(name) + 1) if value else -1
        span = mapped.span(word.start + at, word.start + at + len(value)) if at >= 0 else None
        self.variables.define(name, value, span)

    def read_words(self, mapped: Mapped, words: Sequence[Word], *, json: bool = False, outer: str = "") -> None:
        """Read a command given as words; with ``json`` each one is quoted (as in a Dockerfile)."""
        text = None if json or outer else handed_to_shell([word.value for word in words])
        inner = next((word for word in words if word.value == text and word.spans), None)
        if inner is not None:
            quotes = mapped.text[inner.start] if mapped.text[inner.start] in "'\"" else ""
            self.read(mapped.picked(inner.value, inner.places), quotes or " ")
            return
        words = self._with_program(words)
        install = install_of([self.variables.filled(word.value) for word in words])
        if install is None:
            return
        command = EditedCommand(tuple(words), mapped, install, json, outer)
        self.commands.append(command)
        stated = [(operand, found) for operand, found in zip(install.operands, install.requirements) if operand is not None]
        shared = Counter(operand.at for operand, _ in stated)
        for operand, found in sorted(stated, key=lambda each: each[0].at):
            written = words[operand.at].value
            option = f"--{operand.option}=" if written.startswith("--") else ""
            if shared[operand.at] > 1 or (written.startswith("-") and operand.is_editable):
                continue  # --with=torch,numpy and --editable=./project are left alone
            line = line_at(self.text, command.span(words[operand.at])[0])
            place = _Place(command, operand, written[len(option) :], option)
            self.statements.append(Statement(found, self.path, line, place=place))

    def _with_program(self, words: Sequence[Word]) -> list[Word]:
        """``$PIP install``: expand the program's name, a variable that may hold several words."""
        value = self.variables.filled(words[0].value)
        if value == words[0].value or not value.strip():
            return list(words)
        return [*(Word(part, words[0].start, words[0].end) for part in value.split()), *words[1:]]

    def change(self, statement: Statement[_Place], change: Change, how: str) -> None:
        """Record the change of a requirement; :class:`InputError` for a computed version."""
        place = statement.place
        if how == REMOVE:
            self._remove(statement, change)
            return
        value = place.value
        if references(value):
            if not self._literal and self._by_variable(place, change):
                return
            value = self.variables.filled(value)
        if references(value) or "{" in value:  # a brace: filled in by Python or a template
            message = f"the version of {change.name} is only known when the script runs: {excerpt(place.value, 60)}"
            raise InputError(message, self.path, statement.line)
        try:
            new = self._rewritten(place, value, change, how)
        except InputError as problem:
            raise InputError(problem.message, self.path, statement.line) from None
        if new == value:
            return
        # a release cannot be editable
        self._put(place, place.word.start if change.is_direct_url else place.command.words[place.first].start, new)
        if change.name in COMPILED_AT_INSTALL and ".whl" in value and not change.is_direct_url:
            # let a command build with the torch that is installed, in place of a wheel that was built for another one
            stated = any(word.value.startswith("--no-build-isolation") for word in place.command.words)
            if place.command.install.manager in ("pip", "uv") and not place.command.json and not stated:
                at = self._end(place.command)
                self.replacements.append((at, at, " --no-build-isolation"))

    def _by_variable(self, place: _Place, change: Change) -> bool:
        """Change the variable that holds the version, or its default; return whether that was possible."""
        if change.after is None or change.is_direct_url:
            return False
        text = self.variables.with_default(place.value, change.after)
        found = self.variables.moved(place.value, change)
        if text is not None:
            self._put(place, place.word.start, text)
        self.replacements += found or []
        return text is not None or found is not None

    def _put(self, place: _Place, start: int, requirement: str) -> None:
        self._write(place.command, start, place.word, place.option + requirement)

    def _write(self, command: EditedCommand, start: int, word: Word, new: str) -> None:
        text = json.dumps(new) if command.json else quoted(new, command.raw(word), command.outer)
        self.replacements.append((*command.mapped.span(start, word.end), text))

    def _rewritten(self, place: _Place, value: str, change: Change, how: str) -> str:
        if place.command.is_conda:
            return rewritten_spec(value, change, how)
        if re.fullmatch(r"[A-Za-z0-9][\w.-]*@\d[\w.+]*", value):  # torch@2.6.0, as poetry add accepts it
            return f"{value.partition('@')[0]}@{change.after}"
        if place.operand.is_editable and change.is_direct_url:
            return moved_editable(value, change)
        return rewritten(value, change, how)

    def _remove(self, statement: Statement[_Place], change: Change) -> None:
        place = statement.place
        command = place.command
        install = command.install
        if len(install.requirements) < 2 and not (install.files or install.constraints or install.directories):
            message = f"{change.name} is all this command installs: remove the command by hand"
            raise InputError(message, self.path, statement.line)
        if command.json:
            raise InputError(f"remove {change.name} from the argument list by hand", self.path, statement.line)
        start = command.span(command.words[place.first - 1])[1]
        self.replacements.append((start, command.span(place.word)[1], ""))

    @property
    def adds_to(self) -> EditedCommand | None:
        """Return the last pip or uv command that installs something by name."""
        fitting = [each for each in self.commands if each.install.manager in ("pip", "uv") and self._last(each) is not None]
        return fitting[-1] if fitting else None

    def add(self, change: Change, near: Sequence[EditedCommand]) -> None:
        """Add a requirement to the command that installs what it is for, else another changed distribution, else the last.

        A command that asks one index alone, or leaves out requirements, does not take it if there is another.
        """
        named = set(re.findall(r"[a-z0-9][\w.-]*", change.why.lower())) - {change.name}
        reasons = [each.place.command for each in self.statements if each.found.name in named and change.is_on(each.line)]
        last = self.adds_to
        pip = [each for each in (*reasons, *near, *([last] if last else ())) if each.install.manager in ("pip", "uv")]
        if not pip:
            message = f"{change.name} is not listed here, and there is no pip install to add it to"
            raise InputError(f'{message}: add pip install "{requirement_for(change)}"', self.path)
        chosen = next((each for each in pip if _CLOSED.isdisjoint(word.value.partition("=")[0] for word in each.words)), pip[0])
        at, new = self._end(chosen), requirement_for(change)
        word = self._between(chosen) + quoted(new, '"', chosen.outer)
        self.replacements.append((at, at, f', "{new}"' if chosen.json else word))

    def _between(self, command: EditedCommand) -> str:
        """What is written between its requirements: a blank, or the continuation of the line and its indentation."""
        last = self._last(command)
        if last is None or command.json:
            return " "
        written = self.text[command.span(command.words[last - 1])[1] : command.span(command.words[last])[0]]
        return written if re.fullmatch(r"[ \t]*\\\r?\n[ \t]*", written) else " "

    def _last(self, command: EditedCommand) -> int | None:
        """Return the index of the last word that states a requirement."""
        return max((s.place.operand.at for s in self.statements if s.place.command is command), default=None)

    def _end(self, command: EditedCommand) -> int:
        """Return the offset behind the last requirement of a command, or behind its last word."""
        return command.span(command.words[self._last(command) or -1])[1]

    def use_index(self, command: EditedCommand, change: Change, labels: Sequence[str]) -> None:
        """Add the index of a release to a command, or name that of its default build."""
        url = change.index_url or change.default_index
        if url is None:
            return
        named: list[tuple[str, tuple[int, int]]] = []
        for word in command.words:
            option, equals, value = word.value.partition("=")
            if option == "--torch-backend" and equals:
                if flavour(url) and value != "auto":
                    self._write(command, word.start, word, f"--torch-backend={flavour(url)}")
                return
            address = value if equals and option.startswith("--") else word.value
            if "://" in address and "git+" not in address:
                at = command.raw(word).rfind(address)
                if at >= 0:
                    named.append((self.variables.filled(address), (word.start + at, word.start + at + len(address))))
        found = index_replacement(url, named, labels)
        if found is None:
            return
        if found[0] is not None:
            moved = (*command.mapped.span(*found[0]), url)
            self.replacements += [moved] if moved not in self.replacements else []
        elif change.index_url is None:
            return
        elif command.json:
            raise InputError(f"add --extra-index-url {url} to the argument list by hand", self.path)
        else:
            at = self._end(command)
            self.replacements.append((at, at, f" --extra-index-url {url}"))


# --- The edit of a file.


_DEEPEST = 4


def edit_installs(
    form: Format, path: str, content: bytes, changes: Sequence[Change], depth: int, collect: Callable[[InstallScript], None]
) -> tuple[Edit, ...]:
    """Return the edits of a file with install commands and of the files it installs from.

    ``collect`` is :meth:`InstallFormat.collect`. A variable that holds only this version is changed; otherwise the
    command is. :class:`InputError` for a computed version and a distribution that the file does not name.
    """
    text = decode_utf8(path, content)
    encoded = encoding_of(path, content, text)
    listings = form.listings(path, content)
    wrong: str | None = None
    for literal in (False, True):
        script = InstallScript(path, text, literal=literal)
        collect(script)
        elsewhere = of_included(listings, changes)
        _refuse_hidden(script, listings, changes)
        here = _gather(script, changes, elsewhere)
        try:
            after = replaced(text, ((start, end, script.escape(new)) for start, end, new in script.replacements))
        except ValueError as reason:
            wrong = str(reason)
            continue
        if depth > _DEEPEST:
            raise InputError(f"is installed from more than {_DEEPEST} files deep", path)
        edit = Edit(path, content, encoded.encode(after))
        edits = tuple(each for file, named in elsewhere.items() if named for each in edits_for(file, named, depth + 1))
        with as_if_written(edits):
            wrong = problem_of(edit, form, here)
        if wrong is None:
            return (edit, *edits)
    raise InputError(f"cannot be changed safely: {wrong}", path)


def _gather(script: InstallScript, changes: Sequence[Change], elsewhere: dict[str, list[Change]]) -> list[Change]:
    """Record and return the changes that belong to the script."""
    here: list[Change] = []
    moved = {change.name for change in changes}
    used = []
    for change in changes:
        wanted = decided([each for each in script.statements if change.is_on(each.line)], change, exact=True)
        for statement, how in wanted:
            script.change(statement, change, how)
            command = statement.place.command
            used.append(command)
            others = (s.found for s in script.statements if s.place.command is command and s.found.name not in moved)
            if change.after is not None:
                script.use_index(command, change, [(each.version or "").partition("+")[2] for each in others])
        if wanted:
            here.append(change)
    for file, found in elsewhere.items():
        found += [change for change in here if change not in found and _is_undone_by(file, change)]
    for change in changes:
        named = change in here or any(change in found for found in elsewhere.values())
        if named or change.after is None or (change.implied and not change.direct):
            continue
        if script.adds_to is None and elsewhere:
            next(iter(elsewhere.values())).append(change)
            continue
        there = [each.place.command for each in script.statements if change.lines is not None and change.is_on(each.line)]
        script.add(change, used or there)
        here.append(change)
    return here


def _is_undone_by(file: str, change: Change) -> bool:
    """Whether a file that is installed as well has a range for a distribution that excludes its new release."""
    if change.after is None:
        return False
    stated = (entry.distribution for listing in read_listings(file) for entry in listing.entries if entry.file in (None, file))
    ranges = (each.specifier for each in stated if each.name == change.name and each.version is None)
    return any(specifier is not None and not admits(specifier, change.after or "") for specifier in ranges)


def _refuse_hidden(script: InstallScript, listings: Sequence[Listing], changes: Sequence[Change]) -> None:
    """Raise :class:`InputError` for distributions whose position is unknown (``pip install $PACKAGES``), and for those that
    text of the script constrains, which one of its commands writes to a file."""
    lines = script.text.split("\n")
    stated = {statement.found.name for statement in script.statements}
    wanted = {change.name for change in changes if change.name not in stated}
    for listing in listings:
        for entry in listing.entries:
            limit, _, line = str(entry.distribution.extra.get("constraint", "")).rpartition(":")
            if limit == script.path and any(change.name == entry.distribution.name for change in changes):
                message = f"a command writes this constraint on {entry.distribution.name} to a file: change it here"
                raise InputError(message, script.path, int(line))
            if entry.distribution.name not in wanted or entry.file is not None or entry.line is None:
                continue
            if not lines[entry.line - 1].lstrip().upper().startswith("FROM "):  # installed by a base image
                message = f"{entry.distribution.name} is installed here in a way that cannot be changed safely"
                raise InputError(message, script.path, entry.line)
