"""Shell text → words and simple commands with their positions, in one pass and linear time.

All readers and editors split shell text here. Nothing is run or expanded: substitutions are kept as written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compat.records import record, replace

_OPERATORS = ";&|<>()\n"
_KEYWORDS = frozenset(("if", "then", "else", "elif", "do", "while", "until", "{", "}", "!", "fi", "done", "esac"))
_MOST_TRIES = 20
"""How often a quote or a here-document that is not closed is searched for, each time to the end of the text."""


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

    @property
    def is_quoted(self) -> bool:
        """Whether it starts with a quote or a backslash."""
        return not self.spans or self.spans[0][0] > self.start


@record(frozen=True)
class SimpleCommand:
    """A simple command: its words, the control operator before it ("" for none), and the reserved words between them.

    Parentheses count as reserved words, except those of a function definition, which is left out with its name. The
    operator of a new line is "\\\\n". There are no words if only reserved words are between two operators. ``outputs``
    are the files that standard output is written to, each with whether it is appended; ``documents`` the here-documents
    and here-strings; ``source`` is the file that standard input is read from.
    """

    operator: str
    keywords: tuple[str, ...]
    words: tuple[Word, ...]
    outputs: tuple[tuple[Word, bool], ...] = ()
    documents: tuple[str, ...] = ()
    source: Word | None = None


class _Dialect:
    """What ends a word, what a backslash protects in double quotes, and whether the text is a script.

    In a script ``$(…)``, ``${…}`` and `` `…` `` belong to one word, and a backslash continues a line.
    """

    def __init__(self, blanks: str, protected: str, *, script: bool = False) -> None:
        ends = blanks + (_OPERATORS if script else "")
        more = "$`" if script else ""
        self.ends = frozenset(ends)
        self.ends_or_nothing = self.ends | {""}
        self.protected = protected
        self.script = script
        self.plain = re.compile(f"[^{re.escape(ends + more)}'\"\\\\]+")
        self.notable = re.compile(f'["\\\\{more}]')


_SHLEX = _Dialect(" \t\r\n", '"\\')
_DOCKER = _Dialect(" \t\r\n\v\f\x1c\x1d\x1e\x1f\x85\xa0", '"\\')
_SCRIPT = _Dialect(" \t\r", '"\\$`', script=True)


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
        elif dialect.script and text.startswith(("$'", '$"'), at):
            at += 1  # the sign is part of the quote
        elif dialect.script and (letter == "`" or text.startswith(("$(", "${"), at)):
            behind = _behind_substitution(text, at)
            problem = problem if behind else "no closing quotation"
            _add_substitution(text, at, behind or end, "\"'", spans)
            at = behind or end
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
            spans.append((start, at))
            start, at = at, _behind_substitution(text, at)
            if not at:
                break
            _add_substitution(text, start, at, '"', spans)
            start = at
        else:
            at += 1
    spans.append((start, len(text)))
    return len(text), False


def _line_end(text: str, at: int) -> int:
    """Return the index after a backslash and the end of a line or of the text; 0 if there is none."""
    if text.startswith("\\\n", at) or (at + 1 == len(text) and text[at] == "\\"):
        return at + 2
    return at + 3 if text.startswith("\\\r\n", at) else 0


_INSIDE = re.compile(r"""\\.|\$[({]|[(){}`'"]|(?<=[\s;&|(])\#""", re.DOTALL)
_CLOSED_BY = {"$(": ")", "${": "}", "`": "`", '"': '"', "(": ")", "<(": ")", ">(": ")"}


def _behind_substitution(text: str, start: int) -> int:
    """Return the end of ``$(…)``, ``${…}``, ``<(…)``, ``(…)`` or `` `…` ``; 0 if it is not closed."""
    opened = text[start : start + 2] if text[start] in "$<>" else text[start]
    open_ones = [_CLOSED_BY[opened]]
    at = start + len(opened)
    while found := _INSIDE.search(text, at):
        sign, at, innermost = found[0], found.end(), open_ones[-1]
        if sign == innermost:
            open_ones.pop()
            if not open_ones:
                return at
        elif sign in ("$(", "${", "`") or (sign == '"' and innermost != '"') or (sign == "(" and innermost == ")"):
            open_ones.append(_CLOSED_BY[sign])
        elif innermost in (")", "`") and sign in ("'", "#"):
            at = text.find(sign if sign == "'" else "\n", at) + 1
            if not at:
                break
    return 0


def _add_substitution(text: str, start: int, end: int, quotes: str, spans: list[tuple[int, int]]) -> None:
    """Append the parts of a substitution: ``${A:-"default"}`` without its quotes, a command as written."""
    if text.startswith("${", start) and "(" not in text[start:end]:
        for at in range(start, end):
            if text[at] in quotes:
                spans.append((start, at))
                start = at + 1
    spans.append((start, end))


def substituted(text: str, word: Word) -> Iterator[tuple[int, int]]:
    """Yield start and end of the commands in each ``$(…)`` and `` `…` `` of a word of ``text``."""
    for start, end in word.spans:
        opened = "`" if text[start] == "`" else text[start : start + 2]
        is_text = text[start - 1 : start] == text[end : end + 1] == "'"
        if opened in ("$(", "`") and text[end - 1] == _CLOSED_BY[opened] and not is_text:
            yield start + len(opened), end - 1


def without_commands(text: str, instead: str) -> str:
    """Return the value of a word with each ``$(…)`` and `` `…` `` replaced, and each ``${…}`` that contains one."""
    if "$(" not in text and "`" not in text:
        return text
    parts: list[str] = []
    at = 0
    for found in re.finditer(r"\$[({]|`", text):
        start = found.start()
        if start >= at:
            end = _behind_substitution(text, start) or len(text)
            known = found[0] == "${" and "$(" not in text[start:end] and "`" not in text[start:end]
            parts += text[at:start], text[start:end] if known else instead
            at = end
    return "".join((*parts, text[at:]))


def shell_words(line: str) -> list[str]:
    """Split into words without their quotes, as ``shlex`` does, which takes quadratic time for a long word.

    Raises ``ValueError`` if a quote is not closed or nothing follows the last backslash.
    """
    words: list[str] = []
    at, end = 0, len(line)
    while at < end:
        if line[at] in _SHLEX.ends:
            at += 1
        elif (plain := _SHLEX.plain.match(line, at)) and line[plain.end() : plain.end() + 1] in _SHLEX.ends_or_nothing:
            at = plain.end()  # the common case
            words.append(plain.group())
        else:
            spans: list[tuple[int, int]] = []
            at, problem = _scan(line, at, _SHLEX, spans)
            if problem:
                raise ValueError(problem)
            words.append("".join([line[first:last] for first, last in spans]))
    return words


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


def simple_commands(text: str, skipped: list[tuple[int, int]] | None = None) -> list[SimpleCommand]:
    """Return the commands of a script in source order, in every branch.

    Redirections, comments and here-documents are left out; so is a line with a quote or a substitution that is not closed,
    whose start and end are added to ``skipped``.
    """
    lexer = _Lexer(text)
    found = lexer.read()
    if skipped is not None:
        skipped += lexer.skipped
    return found


class _Lexer:
    """The commands of a text in one pass."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._found: list[SimpleCommand] = []
        self._before_line = 0
        """The number of commands found before the current line."""
        self._operator = ""
        self._keywords: list[str] = []
        self._words: list[Word] = []
        self._outputs: list[tuple[Word, bool]] = []
        self._source: Word | None = None
        self._strings: list[str] = []
        """The here-strings of the current command."""
        self._documents: list[tuple[str, bool, int]] = []
        """The here-documents that start after the current line: delimiter, ``<<-``, and number of the command."""
        self._tries = _MOST_TRIES
        self.skipped: list[tuple[int, int]] = []
        """The lines that a shell refuses."""

    def read(self) -> list[SimpleCommand]:
        text, end = self._text, len(self._text)
        while self._at < end:
            letter = text[self._at]
            if letter in " \t\r":
                self._at += 1
            elif letter == "#":
                self._at = self._end_of_line()
            elif letter in "<>" or text.startswith("&>", self._at):
                self._redirection()
            elif letter in "()":
                self._parenthesis(letter)
            elif letter in _OPERATORS:
                both = text[self._at : self._at + 2]
                operator = both if both in ("&&", "||", ";;") else letter
                self._end_command(operator)
                self._at += len(operator)
                if letter == "\n":
                    self._start_line()
            elif joined := _line_end(text, self._at):
                self._at = joined
            else:
                self._word()
        self._end_command("")
        return self._found

    def _end_of_line(self) -> int:
        end = self._text.find("\n", self._at)
        return len(self._text) if end < 0 else end

    def _end_command(self, operator: str) -> None:
        if self._words or self._keywords:
            outputs = tuple(self._outputs)
            strings = tuple(self._strings)
            keywords, words = tuple(self._keywords), tuple(self._words)
            self._found.append(SimpleCommand(self._operator, keywords, words, outputs, strings, self._source))
            self._keywords, self._words, self._outputs, self._strings, self._source = [], [], [], [], None
        elif operator in ("\n", "&") and self._operator in ("&&", "||", "|", ";;"):
            return  # the command is on the next line; ";;&" and "|&"
        self._operator = operator

    def _start_line(self) -> None:
        """Skip the here-documents of the previous line."""
        for name, indented, number in self._documents:
            at = start = self._at
            while at < len(self._text) and self._tries:
                before = at
                end = self._text.find("\n", at)
                line, at = (self._text[at:], len(self._text)) if end < 0 else (self._text[at:end], end + 1)
                if line.strip() == name:
                    self._at = at
                    self._add_document(number, self._text[start:before], indented=indented)
                    break
            else:
                self._tries = max(0, self._tries - 1)
        self._documents.clear()
        self._before_line = len(self._found)

    def _add_document(self, number: int, text: str, *, indented: bool) -> None:
        if number < len(self._found):
            command = self._found[number]
            text = "".join(line.lstrip("\t") for line in text.splitlines(keepends=True)) if indented else text
            self._found[number] = replace(command, documents=(*command.documents, text))

    def _not_closed(self) -> None:
        """Skip the current line, which a shell refuses as a whole."""
        del self._found[self._before_line :]
        self._keywords, self._words, self._outputs, self._operator, self._source = [], [], [], "", None
        self._tries -= 1
        start = self._text.rfind("\n", 0, self._at) + 1
        self._at = self._end_of_line() if self._tries > 0 else len(self._text)
        self.skipped.append((start, self._at))

    def _parenthesis(self, letter: str) -> None:
        if found := _ARITHMETIC.match(self._text, self._at):
            self._add(found.end())
        elif self._words and (found := _DEFINITION.match(self._text, self._at)):
            self._words.clear()
            self._at = found.end()
        else:
            self._end_command("")
            self._keywords.append(letter)
            self._at += 1

    def _add(self, end: int) -> None:
        """Add a word that is not split further."""
        self._words.append(Word(self._text[self._at : end], self._at, end, ((self._at, end),)))
        self._at = end

    def _redirection(self) -> None:
        """Skip ``2> file`` and ``2>&1``, which are no words of the command, and remember ``<<EOF``."""
        text, start = self._text, self._at
        if text.startswith(("<(", ">("), start):
            end = _behind_substitution(text, start)
            if end:
                self._add(end)
            else:
                self._not_closed()
            return
        before = self._words[-1] if self._words else None
        descriptor = ""
        if before is not None and before.end == start and text[before.start : start].isdecimal() and text[start] != "&":
            descriptor = self._words.pop().value
        sign = _REDIRECTION.match(text, start)
        assert sign is not None
        self._at = sign.end()
        if self._at < len(text) and text[self._at] not in _OPERATORS + "\r#":
            target = self._scanned()
            if target is not None and sign[1] in ("<<", "<<-"):
                self._documents.append((target.value, sign[1] == "<<-", len(self._found)))
            elif target is not None and sign[1] == "<<<":
                self._strings.append(f"{target.value}\n")
            elif target is not None and sign[1] in (">", ">>", ">|", "&>") and descriptor in ("", "1"):
                self._outputs.append((target, sign[1] == ">>"))
            elif target is not None and sign[1] == "<" and descriptor in ("", "0"):
                self._source = target

    def _scanned(self) -> Word | None:
        """Return the word at the current position; ``None`` if it is not closed."""
        start = self._at
        spans: list[tuple[int, int]] = []
        end, problem = _scan(self._text, start, _SCRIPT, spans)
        if not problem and self._text.startswith("(", end) and self._text[end - 1] == "=":
            behind = _behind_substitution(self._text, end)  # NAME=(…)
            spans.append((end, behind))
            end, problem = behind, None if behind else "no closing parenthesis"
        if problem:
            self._not_closed()
            return None
        self._at = end
        return Word("".join([self._text[first:last] for first, last in spans]), start, end, tuple(spans))

    def _word(self) -> None:
        word = self._scanned()
        if word is None:
            return
        reserved = word.value in _KEYWORDS and word.value == self._text[word.start : word.end]
        if reserved and word.value == "{" and self._words and self._words[0].value == "function":
            self._words.clear()
        if reserved and not self._words:
            self._keywords.append(word.value)
        else:
            self._words.append(word)


_ARITHMETIC = re.compile(r"\(\((?:[^()\n]|\([^()\n]*\))*\)\)")
_REDIRECTION = re.compile(r"(<<-|[<>&|]+)[ \t]*")
_DEFINITION = re.compile(r"\([ \t]*\)")


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
