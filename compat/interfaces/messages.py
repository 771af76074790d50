"""Find the messages in a text that releases can raise, warn of or log, mined from their source.

A template is a message with a hole (:data:`HOLE`) for each part that is known only at run time. ``index.bin`` holds the sorted
hashes of an anchor per template: two or three consecutive words that few other templates share. A text is searched by looking
up each of its pairs and triples of words once, so that the search is linear in its length; only the few templates whose
anchor occurs are compared. ``cut.bin`` holds further anchors of long messages, for texts of which a part, and with it the
anchor, is missing. ``PACKAGE.bin`` holds the templates of one package in the order of the index, with the places and releases
of each. ``scripts/messages/tables.py`` writes the files.
"""

from __future__ import annotations

import os
import re
import sys
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TypedDict

from compat.files import DATA, read_table
from compat.interfaces.changes import releases_in
from compat.interfaces.table import header_of, value_of
from compat.records import kept, record

HOLE = "¤"
MAGIC = b"compat-messages-1\n"
FOLDER = os.path.join(DATA, "messages")
NATIVE = ".native"
"""Ends the names of the tables of compiled code, ``vllm.native``. Their modules are paths, ``csrc/cache_kernels.cu``."""
LONGEST_TEXT = 8000
"""Maximum number of characters of a text that are compared; templates are far shorter."""
_MOST_ALIKE = 64
"""Maximum number of templates that share an anchor; beyond it, the anchor is not distinctive."""
_LEAST_CUT = 30
"""Minimum number of letters that must match in a truncated message."""
_MANY_WORDS = 6
_FIRST_WORDS = 8
_BEGINNING = 12
"""Number of characters by which a truncated part is recognized."""
_WORD = re.compile(r"[A-Za-z0-9_]+")


@record(frozen=True)
class Place:
    """Where releases raise a message: ``guards`` are the enclosing conditions, innermost first."""

    module: str
    function: str
    guards: tuple[str, ...]
    versions: tuple[str, ...]


@record(frozen=True)
class Template:
    """One message of a package. ``kind``: raise, warn or log; ``name``: the exception or warning class, or the level.

    ``places`` are limited to those in the most releases if there are many; ``versions`` are the releases that contain the
    message anywhere, and ``known`` all releases of the package that were read, in order.
    """

    package: str
    kind: str
    name: str
    text: str
    places: tuple[Place, ...]
    versions: tuple[str, ...]
    known: tuple[str, ...]


@record(frozen=True)
class Match:
    """A template found in a text, from ``start`` to ``end``; ``letters`` and ``words`` count matches of its constant parts."""

    template: Template
    start: int
    end: int
    letters: int
    words: int


class Content(TypedDict):
    """A table in its file, with one entry per message in ``texts``, ``name``, ``life`` and ``places``; others are shared.

    ``places``: four numbers per place (module, function, guards, span). ``spans``: first and last releases of runs.
    """

    package: str
    versions: list[str]
    texts: list[str]
    name: list[int]
    names: list[str]
    life: list[int]
    places: list[list[int]]
    guards: list[list[int]]
    texts_of_guards: list[str]
    modules: list[str]
    functions: list[str]
    spans: list[list[int]]


class Table:
    """The messages of one package."""

    def __init__(self, content: Content) -> None:
        self.package = content["package"]
        self.versions = tuple(content["versions"])
        self.texts = content["texts"]
        self._content = content

    def __len__(self) -> int:
        return len(self.texts)

    def template(self, number: int) -> Template:
        content = self._content
        kind, _, name = content["names"][content["name"][number]].partition(" ")
        flat = content["places"][number]
        places = tuple(self._place(*flat[at : at + 4]) for at in range(0, len(flat), 4))
        return Template(
            self.package, kind, name, self.texts[number], places, self._releases(content["life"][number]), self.versions
        )

    def _place(self, module: int, function: int, guards: int, span: int) -> Place:
        content = self._content
        texts = tuple(content["texts_of_guards"][each] for each in content["guards"][guards])
        return Place(content["modules"][module], content["functions"][function], texts, self._releases(span))

    def _releases(self, span: int) -> tuple[str, ...]:
        return releases_in(self.versions, self._content["spans"][span])

    def templates(self) -> Iterator[Template]:
        return map(self.template, range(len(self)))

    def near(self, template: Template) -> Iterator[Place]:
        """Yield the places of similar messages: half of all words or the beginning shared, or the same condition and function.

        Messages that share few words count in the same module only.
        """
        modules = {place.module for place in template.places}
        conditions = {(place.function, place.guards[:1]) for place in template.places}
        words = set(_WORD.findall(template.text))
        for number, text in enumerate(self.texts):
            other = set(_WORD.findall(text))
            shared = len(words & other)
            alike = 2 * shared >= len(words | other) or _beginning(text) == _beginning(template.text)
            for place in self.template(number).places if text != template.text else ():
                inside = place.module in modules
                if (alike and (inside or shared >= _MANY_WORDS)) or (
                    inside and (place.function, place.guards[:1]) in conditions
                ):
                    yield place


class _Index:
    """The hashes of anchors, sorted; of each the position of its package in ``files`` and, in ``cut.bin``, the number there."""

    def __init__(self, content: bytes, *, numbered: bool) -> None:
        header, start = header_of(content, MAGIC)
        self.files: tuple[str, ...] = tuple(header["packages"])
        self.hashes, self._numbers = array("I"), array("H")
        end = start + 4 * header["count"]
        self.hashes.frombytes(content[start:end])
        self.owners = content[end : end + header["count"]]
        if numbered:
            self._numbers.frombytes(content[end + header["count"] :])
        if header["order"] != sys.byteorder:
            self.hashes.byteswap()
            self._numbers.byteswap()

    def of(self, hashed: int, packages: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Yield the templates with an anchor as (package, number); if there are many, only those of ``packages``."""
        first = at = bisect_left(self.hashes, hashed)
        while at < len(self.hashes) and self.hashes[at] == hashed:
            at += 1
        for entry in range(first, at):
            owner = self.owners[entry]
            package = self.files[owner]
            if at - first <= _MOST_ALIKE or package.removesuffix(NATIVE) in packages:
                yield package, self._numbers[entry] if self._numbers else self.owners.count(owner, 0, entry)


class Messages:
    """The tables in a folder, shipped or mined; the table of a package is opened when one of its anchors is found."""

    def __init__(self, folder: str = FOLDER) -> None:
        self._folder = folder
        self._index = _Index(self._read("index"), numbered=False)
        self._cut: _Index | None = None
        self.packages = tuple(name for name in self._index.files if not name.endswith(NATIVE))

    @kept
    def table(self, package: str) -> Table:
        """Return the messages of one of :attr:`packages`; with :data:`NATIVE` after its name those of its compiled code."""
        return Table(value_of(self._read(package)))

    def near(self, template: Template) -> Iterator[Place]:
        """Yield the places of messages of the same package that are similar to one (:meth:`Table.near`)."""
        native = any(is_native(place.module) for place in template.places)
        return self.table(f"{template.package}{NATIVE if native else ''}").near(template)

    def _read(self, name: str) -> bytes:
        path = os.path.join(self._folder, f"{name}.bin")
        if self._folder == FOLDER:
            return read_table(path)
        with open(path, "rb") as file:
            return file.read()

    def find(self, text: str, packages: Sequence[str] = ()) -> list[Match]:
        """Return the templates found in a text, longest match first, and of equal ones that of which least is missing.

        If an anchor belongs to many templates, only those of ``packages`` are compared.
        """
        text = plain(text)
        found = self._found(text, self._index, packages)
        if not found and letters_in((text,)) >= _LEAST_CUT:
            if self._cut is None:
                self._cut = _Index(self._read("cut"), numbered=True)
            found = self._found(text, self._cut, packages)
        return sorted(found, key=_longest)

    def _found(self, text: str, index: _Index, packages: Sequence[str]) -> list[Match]:
        seen: dict[tuple[str, int], Match] = {}
        for hashed in dict.fromkeys(_hashes_in(text)):
            for package, number in index.of(hashed, packages):
                if (package, number) not in seen:
                    template = self.table(package).template(number)
                    match = matched(template, text)
                    if match is not None:
                        seen[package, number] = match
        return list(seen.values())


@cache
def open_messages() -> Messages:
    """The shipped tables, opened once."""
    return Messages()


def is_native(module: str) -> bool:
    """Return whether the place of a message is a file of compiled code: a path, where Python's have dots."""
    return "/" in module


def plain(text: str) -> str:
    """Normalise a text for comparison: collapse white space and truncate to :data:`LONGEST_TEXT` characters."""
    return " ".join(text[: 2 * LONGEST_TEXT].split())[:LONGEST_TEXT]


def _beginning(text: str) -> list[str]:
    """Return the first words of a template, in which it says what is wrong: another release may advise something else."""
    return _WORD.findall(text)[:_FIRST_WORDS]


def matched(template: Template, text: str) -> Match | None:
    """Match a template against a normalised text; ``None`` if it does not occur. Its end, or its beginning, may be cut off.

    A text without backticks may be one that a web page had rendered as Markdown, where they are gone.
    """
    parts = (template.text if "`" in text else template.text.replace("`", "")).split(HOLE)
    found = _matched(template, text, parts)
    for at, part in enumerate(parts) if found is None else ():
        rest = _rest_of(part, text)
        if rest is not None and letters_in((text,)) >= _LEAST_CUT:
            found = _matched(template, text, (rest, *parts[at + 1 :]))
            if found is not None and found.letters >= _LEAST_CUT:
                return found
            found = None
    return found


def _matched(template: Template, text: str, parts: Sequence[str]) -> Match | None:
    begin, end = -1, 0
    found: list[str] = []
    if not text.endswith((".", "…")):
        parts = (*parts[:-1], parts[-1].rstrip(" .…"))  # people copy messages without their full stop
    for part in parts:
        at = text.find(part, end)
        whole = at >= 0
        if not whole:
            at = text.find(part[:_BEGINNING], end)
            rest = text[at:].rstrip(" .…") if at >= 0 else ""
            if not rest or not part.startswith(rest) or letters_in((*found, rest)) < _LEAST_CUT:
                return None
        begin = at if begin < 0 else begin
        end = at + len(part) if whole else len(text)
        found.append(part if whole else rest)
        if not whole:
            break
    if template.text.endswith(HOLE):
        end = len(text)
    return Match(template, begin, end, letters_in(found), sum(len(_WORD.findall(part)) for part in found))


def _rest_of(part: str, text: str) -> str | None:
    """Return what is left of a constant part if a text begins inside it, at the start of a word."""
    rests = (part[word.start() :] for word in _WORD.finditer(part) if word.start())
    return next((rest for rest in rests if text.startswith(rest) or rest.startswith(text.rstrip(" .…"))), None)


def _longest(match: Match) -> tuple[int, int, str, str]:
    template = match.template
    return -match.letters, len(template.text), template.package, template.text


def letters_in(parts: Sequence[str]) -> int:
    return sum(char.isalnum() for part in parts for char in part)


def anchors_in(template: str) -> Iterator[str]:
    """Yield the runs of three consecutive whole words in a template's constant parts, or of two if there are none."""
    runs = [
        [word[0] for word in _WORD.finditer(part) if _whole(word, part, first=at == 0, last=at == template.count(HOLE))]
        for at, part in enumerate(template.split(HOLE))
    ]
    size = 3 if any(len(run) >= 3 for run in runs) else 2
    for run in runs:
        for at in range(len(run) - size + 1):
            yield " ".join(run[at : at + size])


def _whole(word: re.Match[str], part: str, *, first: bool, last: bool) -> bool:
    """Return whether a word of a constant part is complete: it cannot continue in an adjacent hole."""
    return (first or word.start() > 0) and (last or word.end() < len(part))


def hash_of(anchor: str) -> int:
    return zlib.crc32(anchor.encode("ascii"))


def _hashes_in(text: str) -> Iterator[int]:
    words = _WORD.findall(text)
    for at in range(len(words) - 1):
        yield hash_of(" ".join(words[at : at + 2]))
        yield hash_of(" ".join(words[at : at + 3]))
