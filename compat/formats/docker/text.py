"""The text of a Dockerfile → instructions, split as BuildKit does: continuations, comments, here-documents, flags."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.formats.edit.files import Mapped, joined
from compat.records import record
from compat.redact import excerpt
from compat.syntax.json import parse_json
from compat.syntax.shell import Word, written_words
from compat.workload.wrappers import SHELLS

if TYPE_CHECKING:
    from compat.formats.installs.edit import InstallScript


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
class HereDocument:
    """A here-document: its delimiter, its text and the number of its first line."""

    name: str
    text: str
    line: int


@record(frozen=True)
class Instruction:
    """One instruction: its name in capitals, its flags (``--from=…``) and the text after them on one line.

    ``words`` is set for the JSON form. ``lines`` are the physical lines with their numbers, comments left out.
    """

    name: str
    text: str
    line: int
    flags: tuple[str, ...] = ()
    words: tuple[str, ...] | None = None
    documents: tuple[HereDocument, ...] = ()
    lines: tuple[tuple[int, str], ...] = ()

    def flag(self, name: str) -> str | None:
        """Return the value of a flag, "" if it has none; ``None`` if it is missing."""
        for each in self.flags:
            key, _, value = each[2:].partition("=")
            if key == name:
                return value.strip("\"'")
        return None


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
        raise InputError(f"expected '\\' or '`' behind escape=, not {excerpt(escape, 20)!r}", path, 1)
    found: list[Instruction] = []
    template = False
    while (pieces := source.logical_line(escape)) is not None:
        line = "".join(piece for _, piece in pieces)
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
        self.lines = [line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n")]
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

    def logical_line(self, escape: str) -> list[tuple[int, str]] | None:
        """Return the pieces of the next line with its continuations; ``None`` at the end."""
        pieces: list[tuple[int, str]] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            stripped = line.strip()
            if line.startswith(_CONFLICT):
                raise InputError("has an unresolved merge conflict", self.path, self.at)
            if stripped.startswith("#") or (pieces and not stripped):
                continue  # comments and empty lines within a continuation are skipped
            text, goes_on = _continued(line if pieces else line.lstrip(_BLANK), escape)
            pieces.append((self.at, text))
            if not goes_on:
                return pieces
        return pieces or None

    def instruction(self, line: str, pieces: list[tuple[int, str]]) -> Instruction:
        name, rest = _first_word(line)
        name = name.upper()
        flags, rest = _flags(rest)
        words = json_words(rest) if rest.startswith("[") else None
        documents: list[HereDocument] = []
        inner = _first_word(rest)[0].upper() if name == "ONBUILD" else name
        if "<<" in rest and words is None and inner in _WITH_DOCUMENTS:
            documents = [self._document(each) for each in _delimiters(rest)]
        return Instruction(name, rest, pieces[0][0], flags, words, tuple(documents), tuple(pieces))

    def _document(self, delimiter: Delimiter) -> HereDocument:
        name, tabs = delimiter.name, delimiter.tabs
        first = self.at + 1
        for at in range(self.at, len(self.lines)):
            line = self.lines[at].lstrip("\t") if tabs else self.lines[at]
            if line == name:
                body = self.lines[self.at : at]
                self.at = at + 1
                text = "\n".join(each.lstrip("\t") for each in body) if tabs else "\n".join(body)
                return HereDocument(name, text, first)
        raise InputError(f"expected a line {excerpt(name, 60)!r} that ends the here-document", self.path, self.at)


def _continued(line: str, escape: str) -> tuple[str, bool]:
    """Return a line without its trailing escape, and whether it had one; a doubled escape is not a continuation."""
    text = line.rstrip(_BLANK)
    if not text.endswith(escape) or text.endswith(escape * 2):
        return line, False
    return text[:-1], True


def _first_word(text: str) -> tuple[str, str]:
    parts = text.strip().split(None, 1)
    return (parts[0], parts[1] if len(parts) > 1 else "") if parts else ("", "")


def _flags(text: str) -> tuple[tuple[str, ...], str]:
    """Return the leading ``--name=value`` words, whose values may be quoted."""
    found: list[str] = []
    behind = 0
    for word in written_words(text):
        if len(word.value) < 3 or not word.value.startswith("--"):
            behind = word.start
            break
        found.append(word.value)
        behind = word.end
    return tuple(found), text[behind:].lstrip(_BLANK)


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
        if not sign or (number and not (number.isascii() and number.isdigit())):
            continue
        name = rest.removeprefix("-").replace('"', "").replace("'", "")
        if name and "<" not in name:
            found.append(Delimiter(name, rest.startswith("-")))
    return found


def without_documents(text: str) -> str:
    """Return a line without its ``<<EOF`` words."""
    return " ".join(word.value for word in written_words(text) if not _delimiters(word.value))


# --- The same instructions for an editor, with the offset of each letter.


def read_commands(script: InstallScript) -> None:
    """Pass the words of ``RUN``, the defaults of ``ARG`` and the values of ``ENV`` to the editor of install commands."""
    text = script.text
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
    """Return the text after name and flags of an instruction, with the offset of each letter."""
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
    quoted = re.finditer(r'"(?:[^"\\]|\\.)*"', mapped.text)
    words = [Word(str(parse_json(found[0], script.path)), *found.span()) for found in quoted]
    if words:
        script.read_words(mapped, words, json=True)


def _documents(script: InstallScript, instruction: Instruction, text: str, starts: Sequence[int]) -> None:
    """Read a here-document that only a shell reads as the script, else the line before it."""
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
