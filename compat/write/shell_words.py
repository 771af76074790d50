"""Shell text → its simple commands, each word with its place, so that a word can be changed where it stands."""

from __future__ import annotations

from collections.abc import Iterator

from compat.records import record

_OPERATORS = ";&|<>()\n"
_KEYWORDS = frozenset(("if", "then", "else", "elif", "do", "while", "until", "{", "}", "!", "time", "fi", "done", "esac"))


@record(frozen=True)
class Word:
    """One word: ``value`` without its quotes, variables left as they are; ``start`` … ``end`` with its quotes."""

    value: str
    start: int
    end: int
    places: tuple[int, ...] = ()
    """Where each letter of the value stands, where that was read from a shell's text."""


def simple_commands(text: str) -> Iterator[list[Word]]:
    """The commands of a script, of every branch, in the order in which they are written; keywords are left out."""
    words: list[Word] = []
    for word in _Tokens(text).read():
        if word is None:
            if words:
                yield words
            words = []
        elif words or word.value not in _KEYWORDS:
            words.append(word)
    if words:
        yield words


class _Tokens:
    """Goes through a text once; ``None`` stands between commands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._documents: list[str] = []

    def read(self) -> Iterator[Word | None]:
        text, end = self.text, len(self.text)
        while self.at < end:
            letter = text[self.at]
            if letter == "#":
                self._to_line_end()
            elif letter == "<" and text.startswith("<<", self.at) and not text.startswith("<<<", self.at):
                self._document()
            elif letter in "<>":
                self._redirection()
            elif letter in _OPERATORS:
                self.at += 1
                yield None
                if letter == "\n":
                    self._skip_documents()
            elif letter in " \t\r" or self._is_continuation():
                self.at += 1
            else:
                yield self._word()

    def _is_continuation(self) -> bool:
        """A backslash in front of a line end, of which both are left out."""
        for end in ("\\\n", "\\\r\n"):
            if self.text.startswith(end, self.at):
                self.at += len(end) - 1
                return True
        return False

    def _to_line_end(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _redirection(self) -> None:
        """``> file`` and ``2>&1``: the file is no word of the command."""
        while self.at < len(self.text) and self.text[self.at] in "<>&":
            self.at += 1
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        if self.at < len(self.text) and self.text[self.at] not in _OPERATORS + "\r#":
            self._word()

    def _document(self) -> None:
        """``<<EOF``: what follows the line is no shell text."""
        self.at += 3 if self.text.startswith("<<-", self.at) else 2
        while self.text.startswith((" ", "\t"), self.at):
            self.at += 1
        if self.at < len(self.text) and self.text[self.at] not in _OPERATORS:
            self._documents.append(self._word().value)

    def _skip_documents(self) -> None:
        while self._documents and self.at < len(self.text):
            end = self.text.find("\n", self.at)
            line = self.text[self.at : end if end >= 0 else None]
            self.at = len(self.text) if end < 0 else end + 1
            if line.strip() == self._documents[0]:
                self._documents.pop(0)

    def _word(self) -> Word:
        text, start, end = self.text, self.at, len(self.text)
        places: list[int] = []
        while self.at < end and text[self.at] not in " \t\r" + _OPERATORS:
            letter = text[self.at]
            if letter in "'\"":
                self._quoted(letter, places)
            elif letter == "\\":
                if not self._is_continuation():
                    places.append(self.at + 1)
                    self.at += 1
                self.at += 1
            elif text.startswith(("$(", "${"), self.at) or letter == "`":
                self._substitution(places)
            else:
                places.append(self.at)
                self.at += 1
        self.at = min(max(self.at, start + 1), end)
        places = [at for at in places if at < end]
        return Word("".join(text[at] for at in places), start, self.at, tuple(places))

    def _quoted(self, quote: str, places: list[int]) -> None:
        text = self.text
        self.at += 1
        while self.at < len(text) and text[self.at] != quote:
            if quote == '"' and text[self.at] == "\\" and self._is_continuation():
                self.at += 1
            elif quote == '"' and text[self.at] == "\\" and text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`"):
                places.append(self.at + 1)
                self.at += 2
            elif quote == '"' and (text.startswith(("$(", "${"), self.at) or text[self.at] == "`"):
                self._substitution(places)
            else:
                places.append(self.at)
                self.at += 1
        self.at += 1

    def _substitution(self, places: list[int]) -> None:
        """``$(…)``, ``${…}`` or `` `…` `` as it is written."""
        start = self.at
        self.at = self._behind_substitution()
        places += range(start, self.at)

    def _behind_substitution(self) -> int:
        text, start = self.text, self.at
        if text[start] == "`":
            end = text.find("`", start + 1)
            return len(text) if end < 0 else end + 1
        opened, closed = text[start + 1], ")" if text[start + 1] == "(" else "}"
        depth = 0
        for at in range(start + 1, len(text)):
            depth += (text[at] == opened) - (text[at] == closed)
            if depth == 0:
                return at + 1
        return len(text)


def quoted(text: str, old: str, outer: str = "") -> str:
    """A word as a shell takes it, in the quotes of the word ``old`` that it stands for, if it needs or had any.

    ``outer`` are quotes around the whole text, which the word cannot have.
    """
    quote = old[:1] if old[:1] in ("'", '"') and old[-1:] == old[:1] else ""
    needed = any(letter in text for letter in " <>;&|()[]*?'\"!#~\\")
    if not quote and not needed:
        return text
    quote = quote or '"'
    if quote in text or quote == outer:
        quote = "'" if quote == '"' else '"'
    return f"{quote}{text}{quote}"
