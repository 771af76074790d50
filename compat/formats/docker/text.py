"""The text of a Dockerfile → instructions, split as BuildKit does: continuations, comments, here-documents, flags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate

from compat.errors import InputError
from compat.formats.edit.files import Mapped, joined
from compat.formats.installs.edit import InstallScript
from compat.records import record
from compat.redact import excerpt
from compat.syntax.json import parse_json
from compat.syntax.shell import Word, written_words
from compat.workload.wrappers import SHELLS, program_name

_DIRECTIVES = ("escape", "syntax", "check")
_WITH_DOCUMENTS = ("RUN", "COPY", "ADD")
_BLANK = " \t"
_LONGEST = 256 * 1024
"""Characters; the largest real ones have 60,000."""
_CONFLICT = ("<<<<<<< ", ">>>>>>> ", "||||||| ")


@record(frozen=True)
class Delimiter:
    """The delimiter of a here-document; ``tabs``: leading tabs are removed from its lines (``<<-``)."""

    name: str
    tabs: bool


@record(frozen=True)
class Piece:
    """A part of a physical line: the line's number, the text, and its offset in the file."""

    number: int
    text: str
    offset: int


@record(frozen=True)
class HereDocument:
    """A here-document: its delimiter, its text, the number of its first line, and its lines with their line ends."""

    name: str
    text: str
    line: int
    pieces: tuple[Piece, ...] = ()

    @property
    def is_shell(self) -> bool:
        """Whether no other program is named in its first line."""
        first = self.text.partition("\n")[0]
        return not first.startswith("#!") or first.rstrip().endswith(SHELLS)


@record(frozen=True)
class Setting:
    """A variable of an ``ARG`` or ``ENV``: its value as written, which starts at ``start`` in the instruction's text."""

    name: str
    value: str | None
    start: int


@record(frozen=True)
class Instruction:
    """One instruction: its name in capitals, its flags (``--from=…``) and the text after them on one line.

    ``words`` is set for the JSON form. ``lines`` are the physical lines, comments left out.
    """

    name: str
    text: str
    line: int
    flags: tuple[str, ...] = ()
    words: tuple[str, ...] | None = None
    documents: tuple[HereDocument, ...] = ()
    lines: tuple[Piece, ...] = ()

    def flag(self, name: str) -> str | None:
        """Return the value of a flag, "" if it has none; ``None`` if it is missing."""
        for each in self.flags:
            key, _, value = each[2:].partition("=")
            if key == name:
                return value.strip("\"'")
        return None

    def settings(self) -> Iterator[Setting]:
        """Yield the variables of an ``ARG`` or ``ENV``, whose old form is ``A one value``."""
        words = list(written_words(self.text))
        if self.name == "ENV" and words and "=" not in words[0].value:
            name = words[0].value
            value = self.text.strip()[len(name) :].strip()
            yield Setting(name, value, self.text.rfind(value))
            return
        for word in words:
            name, equals, value = word.value.partition("=")
            yield Setting(name, value if equals else None, word.start + len(name) + 1)

    @property
    def script(self) -> HereDocument | None:
        """The here-document of a ``RUN`` that only a shell reads; ``None`` if the text is the script."""
        head = without_documents(self.text).split()
        shell = not head or program_name(head[0]) in SHELLS
        return self.documents[0] if self.documents and self.words is None and shell else None

    def mapped(self) -> Mapped:
        """Return the text with the offset of each letter, for an editor."""
        whole = joined((each.text, each.offset) for each in self.lines)
        end = len(whole.text.rstrip())
        return whole.part(end - len(self.text.rstrip()), end)


@record(frozen=True)
class Dockerfile:
    """The instructions in order; ``syntax`` is the requested frontend, ``template``: it has lines that only a template has."""

    instructions: tuple[Instruction, ...]
    syntax: str | None = None
    template: bool = False
    escape: str = "\\"


def parse_dockerfile(path: str, text: str) -> Dockerfile:
    """Parse a Dockerfile.

    Raises :class:`InputError` for an unterminated here-document, a merge conflict, and text that is too long.
    """
    if len(text) > _LONGEST:
        raise InputError(f"expected a Dockerfile, which has at most {_LONGEST // 1024} KiB", path)
    source = _Source(path, text)
    directives = source.directives()
    escape = directives.get("escape", "\\")
    if escape not in ("\\", "`"):
        raise InputError(f"expected '\\' or '`' after escape=, not {excerpt(escape, 20)!r}", path, 1)
    found: list[Instruction] = []
    template = False
    while (pieces := source.logical_line(escape)) is not None:
        line = "".join(piece.text for piece in pieces)
        if not line.strip():
            continue
        if line.lstrip().startswith(("{%", "{{", "{#", "%}", "}}")):
            template = True
            continue
        found.append(source.instruction(line, pieces))
    return Dockerfile(tuple(found), directives.get("syntax"), template or ("{{" in text and "}}" in text), escape)


class _Source:
    """The physical lines, and the read position."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        mark = len(text) - len(text.removeprefix("\ufeff"))
        written = text[mark:].split("\n")
        self.starts = list(accumulate((len(line) + 1 for line in written), initial=mark))
        self.lines = [line.removesuffix("\r") for line in written]
        self.at = 0

    def directives(self) -> dict[str, str]:
        """Read ``# escape=`` and other directives, which are only valid at the very top."""
        found: dict[str, str] = {}
        for line in self.lines:
            name, equals, value = line.lstrip(_BLANK)[1:].partition("=")
            name = name.strip().lower()
            if not line.lstrip(_BLANK).startswith("#") or not equals or name not in _DIRECTIVES or name in found:
                break
            found[name] = value.strip()
            self.at += 1
        return found

    def logical_line(self, escape: str) -> list[Piece] | None:
        """Return the pieces of the next line with its continuations; ``None`` at the end."""
        pieces: list[Piece] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            stripped = line.strip()
            if line.startswith(_CONFLICT):
                raise InputError("has an unresolved merge conflict", self.path, self.at)
            if stripped.startswith("#") or (pieces and not stripped):
                continue  # comments and empty lines within a continuation are skipped
            start = self.starts[self.at - 1]
            if not pieces:
                start, line = start + len(line) - len(line.lstrip(_BLANK)), line.lstrip(_BLANK)
            text = line.rstrip(_BLANK)
            if not text.endswith(escape) or text.endswith(escape * 2):  # a doubled escape is not a continuation
                return [*pieces, Piece(self.at, line, start)]
            pieces.append(Piece(self.at, text[:-1], start))
        return pieces or None

    def instruction(self, line: str, pieces: list[Piece]) -> Instruction:
        name, rest = _first_word(line)
        name = name.upper()
        flags: list[str] = []  # --name=value, whose value may be quoted
        behind = 0
        for word in written_words(rest):
            if len(word.value) < 3 or not word.value.startswith("--"):
                behind = word.start
                break
            flags.append(word.value)
            behind = word.end
        rest = rest[behind:].lstrip(_BLANK)
        words = json_words(rest) if rest.startswith("[") else None
        documents: list[HereDocument] = []
        inner = _first_word(rest)[0].upper() if name == "ONBUILD" else name
        if "<<" in rest and words is None and inner in _WITH_DOCUMENTS:
            documents = [self._document(each) for each in _delimiters(rest)]
        return Instruction(name, rest, pieces[0].number, tuple(flags), words, tuple(documents), tuple(pieces))

    def _document(self, delimiter: Delimiter) -> HereDocument:
        first = self.at
        pieces: list[Piece] = []
        for number, written in enumerate(self.lines[first:], first):
            line = written.lstrip("\t") if delimiter.tabs else written
            if line == delimiter.name:
                self.at = number + 1
                text = "".join(each.text for each in pieces[:-1])
                return HereDocument(line, text, first + 1, tuple(pieces[:-1]))
            start = self.starts[number] + len(written) - len(line)
            pieces += [Piece(number + 1, line, start), Piece(number + 1, "\n", self.starts[number + 1] - 1)]
        raise InputError(f"expected a line {excerpt(delimiter.name, 60)!r} that ends the here-document", self.path, self.at)


def _first_word(text: str) -> tuple[str, str]:
    parts = text.strip().split(None, 1)
    return (parts[0], parts[1] if len(parts) > 1 else "") if parts else ("", "")


def json_words(text: str) -> tuple[str, ...] | None:
    """Return the words of the JSON form; ``None`` for the shell form."""
    try:
        found = parse_json(text, "")
    except (InputError, ValueError):
        return None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        return None
    return tuple(found)


def _delimiters(text: str) -> list[Delimiter]:
    """Return the delimiter of each here-document that a line starts."""
    found = []
    for word in written_words(text):
        number, sign, rest = word.value.partition("<<")
        if not sign or (number and not (number.isascii() and number.isdecimal())):
            continue
        name = rest.removeprefix("-").replace('"', "").replace("'", "")
        if name and "<" not in name:
            found.append(Delimiter(name, rest.startswith("-")))
    return found


def without_documents(text: str) -> str:
    """Return a line without its ``<<EOF`` words."""
    return " ".join(word.value for word in written_words(text) if not _delimiters(word.value))


# --- The same instructions for an editor.


def read_commands(script: InstallScript) -> None:
    """Pass the words of ``RUN``, the defaults of ``ARG`` and the values of ``ENV`` to the editor of install commands."""
    for instruction in parse_dockerfile(script.path, script.text).instructions:
        mapped = instruction.mapped()
        if instruction.name in ("ARG", "ENV"):
            for each in instruction.settings():
                if each.value is not None:
                    written = each.value
                    start = each.start
                    if len(written) > 1 and written[0] == written[-1] and written[0] in "\"'":
                        start, written = start + 1, written[1:-1]
                    script.variables.define(each.name, written, mapped.span(start, start + len(written)) if written else None)
        elif instruction.name != "RUN":
            continue
        elif instruction.words is not None:
            quoted = re.finditer(r'"(?:[^"\\]|\\.)*"', mapped.text)
            words = [Word(str(parse_json(found[0], script.path)), *found.span()) for found in quoted]
            if words:
                script.read_words(mapped, words, json=True)
        elif (document := instruction.script) is None:
            script.read(mapped)
        elif document.is_shell:
            script.read(joined((each.text, each.offset) for each in document.pieces))
