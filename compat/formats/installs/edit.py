"""Changes to shell scripts and Dockerfiles: the words of their install commands, and the variables those are made of."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from compat.errors import InputError
from compat.files import decoded
from compat.formats.docker.text import Instruction, parse_dockerfile
from compat.formats.edit.changes import Change, decided
from compat.formats.edit.dispatch import edits_for, problem_of
from compat.formats.edit.files import Edit, Mapped, encoding_of, joined, replaced
from compat.formats.format import Format
from compat.formats.installs.edit_commands import InstallScript
from compat.formats.listing import Listing
from compat.formats.registry import format_named
from compat.records import record
from compat.syntax.shell import Word, written_words
from compat.workload.wrappers import SHELLS

_DEEPEST = 4


@record(frozen=True)
class Installs:
    """What becomes of a file: its own edit, and the changes that belong into files it installs from."""

    edit: Edit
    elsewhere: dict[str, tuple[Change, ...]]

    def with_others(self, path: str, depth: int) -> tuple[Edit, ...]:
        """The edit, and those of the files it installs from."""
        if depth > _DEEPEST:
            raise InputError(f"is installed from more than {_DEEPEST} files deep", path)
        return (self.edit, *(edit for file, named in self.elsewhere.items() for edit in edits_for(file, named, depth + 1)))


def edit_shell(path: str, content: bytes, changes: Sequence[Change]) -> Installs:
    """The edit of a shell script; :class:`InputError` for a version that is computed, and for what is not named."""

    def read(script: InstallScript, text: str) -> None:
        lead = 1 if text.startswith("\ufeff") else 0
        script.read(Mapped(text[lead:], range(lead, len(text))))

    return _edited(path, content, format_named("shell"), changes, read)


def edit_dockerfile(path: str, content: bytes, changes: Sequence[Change]) -> Installs:
    """The edit of a Dockerfile: words of ``RUN``, defaults of ``ARG``, values of ``ENV``; errors as for a script."""
    return _edited(path, content, format_named("dockerfile"), changes, _read_dockerfile)


def _edited(
    path: str, content: bytes, form: Format, changes: Sequence[Change], read: Callable[[InstallScript, str], None]
) -> Installs:
    """Variables are changed where the version is one; where others hang on the variable, the command is."""
    text = decoded(path, content)
    encoded = encoding_of(path, content, text)
    listings = form.listings(path, content)
    wrong: str | None = None
    for literal in (False, True):
        script = InstallScript(path, text, literal=literal)
        read(script, text)
        elsewhere = _elsewhere(listings, changes)
        _refuse_hidden(script, listings, changes)
        here = _gather(script, changes, elsewhere)
        try:
            after = replaced(text, script.replacements)
        except ValueError as reason:
            wrong = str(reason)
            continue
        edit = Edit(path, content, encoded.encode(after))
        wrong = problem_of(edit, form, here)
        if wrong is None:
            return Installs(edit, {file: tuple(found) for file, found in elsewhere.items() if found})
    raise InputError(f"cannot be changed safely: {wrong}", path)


def _gather(script: InstallScript, changes: Sequence[Change], elsewhere: dict[str, list[Change]]) -> list[Change]:
    """Have the script note down every change that belongs into it; those are returned."""
    here: list[Change] = []
    moved = {change.name for change in changes}
    used = []
    for change in changes:
        wanted = decided(script.statements, change, exact=True)
        for statement, how in wanted:
            script.change(statement, change, how)
            command = statement.place.command
            used.append(command)
            others = (s.found for s in script.statements if s.place.command is command and s.found.name not in moved)
            if change.after is not None:
                script.use_index(command, change, [(each.version or "").partition("+")[2] for each in others])
        if wanted:
            here.append(change)
    for change in changes:
        named = change in here or any(change in found for found in elsewhere.values())
        if named or change.after is None or (change.implied and not change.direct):
            continue
        if script.adds_to is None and elsewhere:
            next(iter(elsewhere.values())).append(change)
            continue
        script.add(change, used)
        here.append(change)
    return here


def _refuse_hidden(script: InstallScript, listings: Sequence[Listing], changes: Sequence[Change]) -> None:
    """:class:`InputError` for what the file installs in a way whose place was not found (``pip install $PACKAGES``)."""
    lines = script.text.split("\n")
    stated = {statement.found.name for statement in script.statements}
    wanted = {change.name for change in changes if change.name not in stated}
    for listing in listings:
        for entry in listing.entries:
            if entry.distribution.name not in wanted or entry.file is not None or entry.line is None:
                continue
            if not lines[entry.line - 1].lstrip().upper().startswith("FROM "):  # a base image brings it
                message = f"{entry.distribution.name} is installed here in a way that cannot be changed safely"
                raise InputError(message, script.path, entry.line)


def _elsewhere(listings: Sequence[Listing], changes: Sequence[Change]) -> dict[str, list[Change]]:
    """The files that are installed from, each with the changes of what it names."""
    found: dict[str, list[Change]] = {}
    for listing in listings:
        for entry in listing.entries:
            limit = str(entry.distribution.extra.get("constraint", "")).rpartition(":")[0]
            for file in filter(None, (entry.file, limit)):
                named = found.setdefault(file, [])
                named += [c for c in changes if c.name == entry.distribution.name and c not in named]
    return found


def _read_dockerfile(script: InstallScript, text: str) -> None:
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    dockerfile = parse_dockerfile(script.path, text)
    for instruction in dockerfile.instructions:
        mapped = _mapped(instruction, text, starts)
        if instruction.name in ("ARG", "ENV"):
            _define(script, mapped, instruction.name)
        elif instruction.name == "RUN":
            if instruction.words is not None:
                _json_words(script, mapped)
            elif instruction.documents:
                _documents(script, instruction, text, starts)
            else:
                script.read(mapped)


def _mapped(instruction: Instruction, text: str, starts: Sequence[int]) -> Mapped:
    """The text behind name and flags of an instruction, each letter with its place."""
    pieces = []
    for number, piece in instruction.lines:
        start = starts[number - 1]
        at = text.find(piece, start)
        pieces.append((piece, at if at >= 0 else start))
    whole = joined(pieces)
    end = len(whole.text.rstrip())
    start = end - len(instruction.text.rstrip())
    return whole.part(start, end)


def _define(script: InstallScript, mapped: Mapped, name: str) -> None:
    words = [(word.value, word.start) for word in written_words(mapped.text)]
    if name == "ENV" and words and "=" not in words[0][0]:  # ENV NAME value, the old form
        key = words[0][0]
        value = mapped.text[len(key) :].strip()
        at = mapped.text.rfind(value)
        script.variables.define(key, value, mapped.span(at, at + len(value)) if value else None)
        return
    for word, start in words:
        key, equals, written = word.partition("=")
        value = written[1:-1] if len(written) > 1 and written[0] == written[-1] and written[0] in "\"'" else written
        if equals:
            at = start + len(key) + 1 + written.find(value)
            script.variables.define(key, value, mapped.span(at, at + len(value)) if value else None)


def _json_words(script: InstallScript, mapped: Mapped) -> None:
    words = [Word(json.loads(found[0]), *found.span()) for found in re.finditer(r'"(?:[^"\\]|\\.)*"', mapped.text)]
    if words:
        script.read_words(mapped, words)


def _documents(script: InstallScript, instruction: Instruction, text: str, starts: Sequence[int]) -> None:
    """A here-document is the script where nothing but a shell reads it; else the line in front of it is."""
    head = re.sub(r"<<-?\S+", "", instruction.text).split()
    document = instruction.documents[0]
    if head and head[0].rpartition("/")[2] not in SHELLS:
        script.read(_mapped(instruction, text, starts))
        return
    shebang = document.text.partition("\n")[0]
    if shebang.startswith("#!") and not shebang.rstrip().endswith(SHELLS):
        return
    pieces = []
    for number, line in enumerate(document.text.split("\n"), document.line):
        start = starts[number - 1]
        pieces += [(line, text.find(line, start) if line else start), ("\n", starts[number] - 1)]
    script.read(joined(pieces))
