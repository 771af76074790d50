"""Shell text → words, operators and simple commands with their positions, in one pass and linear time.

All readers and editors split shell text here. Nothing is run or expanded: substitutions are kept as written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compat.records import record

OPERATORS = ";&|<>"
_SCRIPT_OPERATORS = ";&|<>()\n"
_KEYWORDS = frozenset(("if", "then", "else", "elif", "do", "while", "until", "{", "}", "!", "time", "fi", "done", "esac"))


@record(frozen=True)
class Word:
    """A word: ``value`` without its quotes, with variables unexpanded; ``start`` … ``end`` includes the quotes.

    ``spans`` are the parts of the text that make up the value; empty if it was not read from shell text.
    """

    value: str
    start: int
    end: int
    spans: tuple[tuple[int, int], ...] = ()

    @property
    def places(self) -> tuple[int, ...]:
        """Return the index of each letter of the value."""
        return tuple(at for start, end in self.spans for at in range(start, end))


class _Dialect:
    """What ends a word, what a backslash protects in double quotes, and whether the text is a script.

    In a script ``$(…)``, ``${…}`` and `` `…` `` belong to one word, and a backslash continues a line.
    """

    def __init__(self, blanks: str, operators: str, protected: str, *, script: bool = False) -> None:
        self.ends = frozenset(blanks + operators)
        self.ends_or_nothing = self.ends | {""}
        self.protected = protected
        self.script = script
        more = "$`" if script else ""
        self.plain = re.compile(f"[^{re.escape(blanks + operators + more)}'\"\\\\]+")
        self.notable = re.compile(f'["\\\\{more}]')


_SHLEX = _Dialect(" \t\r\n", "", '"\\')
_SHLEX_WITH_OPERATORS = _Dialect(" \t\r\n", OPERATORS, '"\\')
_DOCKER = _Dialect(" \t\r\n\v\f\x1c\x1d\x1e\x1f\x85\xa0", "", '"\\')
_SCRIPT = _Dialect(" \t\r", _SCRIPT_OPERATORS, '"\\$`', script=True)


def _scan(text: str, at: int, dialect: _Dialect, spans: list[tuple[int, int]]) -> tuple[int, str | None]:
    """Append the spans of the word at ``at``; return its end and its problem: an open quote, or a trailing backslash."""
    problem = None
    end = len(text)
    while at < end and (letter := text[at]) not in dialect.ends:
        if letter == "'":
            close = text.find("'", at + 1)
            if close < 0:
                problem, close = "no closing quotation", end
            spans.append((at + 1, close))
            at = close + 1
        elif letter == '"':
            at, closed = _double_quoted(text, at + 1, dialect, spans)
            problem = problem if closed else "no closing quotation"
        elif letter == "\\":
            joined = _line_end(text, at) if dialect.script else 0
            if joined:
                at = joined
            elif at + 1 < end:
                spans.append((at + 1, at + 2))
                at += 2
            else:
                problem, at = "no escaped character", end
        elif dialect.script and (letter == "`" or text.startswith(("$(", "${"), at)):
            behind = _behind_substitution(text, at)
            spans.append((at, behind))
            at = behind
        else:
            found = dialect.plain.match(text, at)
            behind = at + 1 if found is None else found.end()
            spans.append((at, behind))
            at = behind
    return min(at, end), problem


def _double_quoted(text: str, start: int, dialect: _Dialect, spans: list[tuple[int, int]]) -> tuple[int, bool]:
    """Append the parts up to the closing quote; return the next index, and whether the quote is closed."""
    at = start
    while found := dialect.notable.search(text, at):
        at = found.start()
        letter = text[at]
        if letter == '"':
            spans.append((start, at))
            return at + 1, True
        if letter == "\\" and dialect.script and (joined := _line_end(text, at)):
            spans.append((start, at))
            start = at = joined
        elif letter == "\\" and (after := text[at + 1 : at + 2]) and after in dialect.protected:
            spans.append((start, at))
            start, at = at + 1, at + 2
        elif letter == "`" or text.startswith(("$(", "${"), at):
            at = _behind_substitution(text, at)
        else:
            at += 1
    spans.append((start, len(text)))
    return len(text), False


def _line_end(text: str, at: int) -> int:
    """Return the index after a backslash and a line end; 0 if there is no line end."""
    return next((at + len(end) for end in ("\\\n", "\\\r\n") if text.startswith(end, at)), 0)


def _behind_substitution(text: str, start: int) -> int:
    """Return the end of ``$(…)``, ``${…}`` or `` `…` ``."""
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


def shell_words(line: str, operators: str = "") -> list[str]:
    """Split into words without their quotes; runs of ``operators`` (none, or :data:`OPERATORS`) are separate words.

    Equivalent to ``shlex`` with the operators as its punctuation, which takes quadratic time for a long word.
    Raises ``ValueError`` if a quote is not closed or nothing follows the last backslash.
    """
    return [word.value for word in placed_words(line, operators)]


def placed_words(line: str, operators: str = "") -> Iterator[Word]:
    """Like :func:`shell_words`, with the position of each word."""
    dialect = _SHLEX_WITH_OPERATORS if operators else _SHLEX
    at, end = 0, len(line)
    while at < end:
        start = at
        if line[at] in operators:
            while at < end and line[at] in operators:
                at += 1
            yield Word(line[start:at], start, at)
        elif line[at] in dialect.ends:
            at += 1
        elif (plain := dialect.plain.match(line, at)) and line[plain.end() : plain.end() + 1] in dialect.ends_or_nothing:
            at = plain.end()  # the common case
            yield Word(plain.group(), start, at)
        else:
            spans: list[tuple[int, int]] = []
            at, problem = _scan(line, at, dialect, spans)
            if problem:
                raise ValueError(problem)
            yield Word("".join([line[first:last] for first, last in spans]), start, at, tuple(spans))


def written_words(text: str) -> Iterator[Word]:
    """Yield the words of a Dockerfile instruction with their quotes as ``value``; a quote need not be closed."""
    at, end = 0, len(text)
    while at < end:
        if text[at] in _DOCKER.ends:
            at += 1
        else:
            start = at
            at, _ = _scan(text, start, _DOCKER, [])
            yield Word(text[start:at], start, at)


_SIGNS = re.compile(r"""[\\'"#`();&|]""")
_TO_SINGLE_QUOTE = re.compile(r"[^']*'")
_TO_DOUBLE_QUOTE = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BEFORE_COMMENT = frozenset(" \t;&|")


def _signs(text: str, quote: str = "") -> Iterator[tuple[int, str]]:
    """Yield position and letter of each of `` ` ( ) ; & | `` outside of quotes, up to a comment.

    The last item is the end of the commands, with the quote that is still open, or "". ``quote`` is open at the start.
    """
    at = 0
    while True:
        if quote:
            closed = _TO_SINGLE_QUOTE.match(text, at) if quote == "'" else _TO_DOUBLE_QUOTE.match(text, at)
            if closed is None:
                yield len(text), quote
                return
            at = closed.end()
            quote = ""
        found = _SIGNS.search(text, at)
        if found is None:
            yield len(text), ""
            return
        at = found.start()
        letter = text[at]
        if letter == "#" and (at == 0 or text[at - 1] in _BEFORE_COMMENT):
            yield at, ""
            return
        if letter in "'\"":
            quote = letter
        elif letter not in "\\#":
            yield at, letter
        at += 2 if letter == "\\" else 1


def without_comment(line: str) -> str:
    """Return a line up to a ``#`` that starts a word outside of quotes."""
    if "#" not in line:
        return line
    *_, (end, _) = _signs(line)
    return line[:end]


def open_quote(text: str, quote: str = "") -> str:
    """Return the quote that is open at the end of a text."""
    if not quote and "'" not in text and '"' not in text:
        return ""
    *_, (_, found) = _signs(text, quote)
    return found


@record(frozen=True)
class Segment:
    """The text of one simple command, and the operator before it (``&&``, ``||``, ``;``, ``|`` …; "" for the first)."""

    operator: str
    text: str


def segments(line: str) -> list[Segment]:
    """Split a line into simple commands as written, without its comment; ``$(…)`` and `` `…` `` belong to one command."""
    found: list[Segment] = []
    operator = ""
    start = depth = 0
    ticks = False
    *signs, (end, _) = _signs(line)
    for at, letter in signs:
        if at < start:
            continue  # the second letter of an operator
        if letter == "`":
            ticks = not ticks
        elif ticks:
            continue
        elif letter == "(":
            depth += bool(depth or line[at - 1 : at] in ("$", "<", ">"))
        elif letter == ")":
            depth = max(0, depth - 1)
        elif not depth and not (letter == "&" and (line[at - 1 : at] == ">" or line[at + 1 : at + 2] == ">")):  # 2>&1, &>
            found.append(Segment(operator, line[start:at]))
            operator = line[at : at + 2] if line[at : at + 2] in ("&&", "||", ";;") else letter
            start = at + len(operator)
    found.append(Segment(operator, line[start:end]))
    return found


def simple_commands(text: str) -> Iterator[list[Word]]:
    """Yield the commands of a script in source order, in every branch; keywords are left out."""
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
    """The words of a text in one pass, with ``None`` between commands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._documents: list[str] = []

    def read(self) -> Iterator[Word | None]:
        text, end = self.text, len(self.text)
        while self.at < end:
            letter = text[self.at]
            if letter == "#":
                line_end = text.find("\n", self.at)
                self.at = end if line_end < 0 else line_end
            elif letter == "<" and text.startswith("<<", self.at) and not text.startswith("<<<", self.at):
                self._document()
            elif letter in "<>":
                self._redirection()
            elif letter in _SCRIPT_OPERATORS:
                self.at += 1
                yield None
                if letter == "\n":
                    self._skip_documents()
            elif letter in " \t\r":
                self.at += 1
            elif joined := _line_end(text, self.at):
                self.at = joined
            else:
                yield self._word()

    def _redirection(self) -> None:
        """Skip ``> file`` and ``2>&1``: the file is not a word of the command."""
        while self.at < len(self.text) and self.text[self.at] in "<>&":
            self.at += 1
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        if self.at < len(self.text) and self.text[self.at] not in _SCRIPT_OPERATORS + "\r#":
            self._word()

    def _document(self) -> None:
        """Skip the lines after ``<<EOF``, which are not shell text."""
        self.at += 3 if self.text.startswith("<<-", self.at) else 2
        while self.text.startswith((" ", "\t"), self.at):
            self.at += 1
        if self.at < len(self.text) and self.text[self.at] not in _SCRIPT_OPERATORS:
            self._documents.append(self._word().value)

    def _skip_documents(self) -> None:
        while self._documents and self.at < len(self.text):
            end = self.text.find("\n", self.at)
            line = self.text[self.at : end if end >= 0 else None]
            self.at = len(self.text) if end < 0 else end + 1
            if line.strip() == self._documents[0]:
                self._documents.pop(0)

    def _word(self) -> Word:
        start = self.at
        spans: list[tuple[int, int]] = []
        end, _ = _scan(self.text, start, _SCRIPT, spans)
        self.at = max(end, start + 1)
        return Word("".join([self.text[first:last] for first, last in spans]), start, end, tuple(spans))


def quoted(text: str, old: str, outer: str = "") -> str:
    """Quote a word for a shell, with the quotes of the word ``old`` that it replaces, if it needs or had any.

    ``outer`` are quotes around the whole text, which the word cannot use.
    """
    quote = old[:1] if old[:1] in ("'", '"') and old[-1:] == old[:1] else ""
    needed = any(letter in text for letter in " <>;&|()[]*?'\"!#~\\")
    if not quote and not needed:
        return text
    quote = quote or '"'
    if quote in text or quote == outer:
        quote = "'" if quote == '"' else '"'
    return f"{quote}{text}{quote}"
