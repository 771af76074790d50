"""The lines and simple commands of shell scripts, with plain variables expanded. Nothing is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compat.records import record
from compat.syntax.shell import OPERATORS, Word, open_quote, placed_words, without_comment

_KEYWORDS = frozenset(("if", "then", "else", "elif", "do", "while", "until", "{", "}", "!", "(", ")", "fi", "done", "esac"))
LONGEST = 4000
"""Most lines of a script read."""
_COMMANDS = 50_000
"""Most commands and assignments of a script read."""
_WIDEST = 1 << 13
"""Characters of a word after which no more variables are expanded: ``A=$A$A`` doubles with every line."""
_MOST = 1 << 20
"""Characters that are expanded in one script, and variables that are recorded for its commands."""


_MOST_JOINED = 300
"""Lines that one pair of quotes may span."""
_MOST_TRIES = 20


@record(frozen=True)
class LogicalLine:
    """Physical lines that form one line for a shell: their text, the index of the first, and the index after the last."""

    text: str
    start: int
    end: int


def logical_lines(lines: Sequence[str]) -> list[LogicalLine]:
    """Join continuation lines and lines within one pair of quotes. Comments are skipped.

    The body of a here-document is included in its command's lines, but not in its text.
    """
    found: list[LogicalLine] = []
    tries = _MOST_TRIES
    at = 0
    while at < len(lines):
        start = at
        text, at = _continued(lines, at)
        if text.lstrip().startswith("#"):
            continue
        if tries and (quote := open_quote(text)):
            parts, end = [text], at
            while quote and end < min(len(lines), at + _MOST_JOINED):
                parts.append(lines[end])
                quote = open_quote(lines[end], quote)
                end += 1
            if quote:
                tries -= 1
            else:
                text, at = "\n".join(parts), end
        delimiter = here_document(text)
        body = at
        while delimiter and body < len(lines) and lines[body].strip() != delimiter:
            body += 1
        if delimiter and body < len(lines):
            at = body + 1
        found.append(LogicalLine(text, start, at))
    return found


def _continued(lines: Sequence[str], at: int) -> tuple[str, int]:
    """Join a line with those that a backslash continues; return the text and the index after them."""
    parts: list[str] = []
    while at < len(lines):
        text = lines[at]
        at += 1
        comment = parts and text.lstrip().startswith("#")  # a comment ends the continuation, contrary to what people expect
        if comment or not text.endswith("\\"):
            parts.append("" if comment else text)
            break
        parts.append(text[:-1])
    return " ".join(parts), at


def here_document(text: str) -> str | None:
    """Return the delimiter of the here-document that a line starts."""
    before, sign, after = text.partition("<<")
    if not sign or after.startswith("<") or open_quote(before):
        return None
    words = after.lstrip("-").split(None, 1)
    return words[0].strip("\"'").rstrip(";)&|") or None if words else None


class ShellCommand:
    """A simple command: its words, the variables set before it and its working directory (or ``None``)."""

    def __init__(self, words: list[str], variables: dict[str, str], exported: dict[str, str], directory: str | None) -> None:
        self.words = words
        self.variables = variables
        self.exported = exported
        self.directory = directory


def commands_of(text: str, arguments: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> list[ShellCommand]:
    """Return the simple commands of a script in order; lines that cannot be read are skipped.

    ``arguments`` are ``$1`` … and ``$@``, ``variables`` those that are already set.
    """
    reader = ShellReader(variables or {}, arguments)
    return [each for line in logical_lines(text.splitlines()[:LONGEST]) for each in reader.read(line.text)]


class ShellReader:
    """Reads a script line by line, tracking its variables and working directory."""

    def __init__(self, variables: Mapping[str, str], arguments: Sequence[str] = ()) -> None:
        self._known = dict(variables)
        self._arguments = arguments
        self._directory: str | None = None
        self._own: dict[str, str] = {}
        self._exported: dict[str, str] = {}
        self._now: tuple[dict[str, str], dict[str, str]] | None = None
        self._room = _MOST
        """Variables that may still be recorded for commands."""
        self._commands = 0
        self._grown = 0

    def read(self, line: str) -> list[ShellCommand]:
        """Return the commands of one logical line; none if its quotes are unbalanced."""
        found: list[ShellCommand] = []
        for written in _simple_commands(line):
            self._commands += 1
            if self._commands > _COMMANDS:
                break
            words = [word.value for word in written]
            if self._grown < _MOST:
                length = sum(map(len, words)) + len(words)
                words = _expanded(line, written, self._known, self._arguments)
                self._grown += sum(map(len, words)) + len(words) - length
            words = words[next((at for at, word in enumerate(words) if word not in _KEYWORDS), len(words)) :]
            if not words:
                continue
            if words[0] in ("export", "declare", "local", "readonly", "set", "typeset"):
                self._assign(words[1:], export=words[0] == "export")
            elif all(_is_assignment(word) for word in words):
                self._assign(words, export=any(word.partition("=")[0] in self._exported for word in words))
            elif words[0] == "cd":
                self._directory = words[1] if len(words) == 2 and "$" not in words[1] else None
            else:
                variables, exported = self._variables()
                found.append(ShellCommand(words, variables, exported, self._directory))
        return found

    @property
    def exported(self) -> dict[str, str]:
        """Return the variables that the next command sees."""
        return self._variables()[1]

    def _assign(self, words: Sequence[str], *, export: bool) -> None:
        """Set ``NAME=value`` and, after ``export``, ``NAME``."""
        for word in words if self._room else ():
            name, equals, value = word.partition("=")
            if equals and _is_assignment(word):
                self._known[name] = self._own[name] = value
            if export and name in self._own:
                self._exported[name] = self._own[name]
        self._now = None

    def _variables(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the script's variables and its exports; commands without an assignment between them share the mappings."""
        if self._now is None:
            self._room = max(0, self._room - len(self._own) - len(self._exported))
            if not self._room:
                self._known, self._exported, self._own = {}, {}, {}  # unknown rather than outdated
            self._now = dict(self._own), dict(self._exported)
        return self._now


def slurm_directives(text: str) -> list[str]:
    """Return the options on the ``#SBATCH`` lines of a batch script."""
    found: list[str] = []
    for line in text.splitlines()[:LONGEST]:
        if line.startswith("#SBATCH"):
            found += line[7:].partition(" #")[0].split()
    return found


def _simple_commands(line: str) -> list[list[Word]]:
    """Return the words of each simple command, without redirections."""
    try:
        words = list(placed_words(without_comment(line), OPERATORS))
    except ValueError:
        return []
    commands: list[list[Word]] = [[]]
    skip = False
    for word in words:
        value = word.value
        if skip:
            skip = False
        elif value and not value.strip("<>&") and ("<" in value or ">" in value):
            skip = True  # a redirection and its target
            if commands[-1] and commands[-1][-1].value.isdecimal():
                commands[-1].pop()
        elif value and not value.strip(";&|"):
            commands.append([])
        else:
            commands[-1].append(word)
    return [command for command in commands if command]


def _expanded(line: str, words: Sequence[Word], known: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    result: list[str] = []
    filled = 0
    for each in words:
        word = each.value
        if filled > _MOST or len(word) > _WIDEST:
            result.append(word)
        elif word in ("$@", "$*", "${@}", "${*}"):
            result.extend(arguments)
            filled += sum(map(len, arguments)) + len(arguments)
        elif word.startswith("$") and line[each.start] == "$" and (value := _looked_up(word, known, arguments)) is not None:
            result.extend(value.split())  # an unquoted variable may expand to several words
            filled += len(value)
        elif "$" in word:
            result.append(_inside(word, known, arguments))
            filled += len(result[-1])
        else:
            result.append(word)
    return result


def _looked_up(word: str, known: Mapping[str, str], arguments: Sequence[str]) -> str | None:
    """Return the value of a word that is a single variable; ``None`` if it is not, or unknown."""
    name = word[2:-1] if word.startswith("${") and word.endswith("}") else word[1:]
    name, sign, default = name.partition(":-")
    if name.isascii() and name.isdigit():
        position = int(name) if len(name) < 4 else 0
        if 0 < position <= len(arguments):
            return arguments[position - 1]
        return default if sign else None
    if not name.replace("_", "a").isalnum() or "$" in default:
        return parameter(word[2:-1], known) if word.startswith("${") and word.endswith("}") and "$" not in default else None
    value = known.get(name)
    return default if sign and not value else value


def _inside(word: str, known: Mapping[str, str], arguments: Sequence[str]) -> str:
    """Expand the known variables in a word."""
    result: list[str] = []
    length = at = 0
    last = word.rfind("}")
    while at < len(word):
        sign = word.find("$", at)
        if sign < 0:
            result.append(word[at:])
            break
        end = sign + 1
        if word.startswith("{", end) and last > end:
            end = word.index("}", end) + 1
        else:
            while end < len(word) and (word[end].isalnum() or word[end] == "_"):
                end += 1
        value = _looked_up(word[sign:end], known, arguments) if end > sign + 1 and length + sign - at < _WIDEST else None
        result += word[at:sign], word[sign:end] if value is None else value
        length += len(result[-2]) + len(result[-1])
        at = end
    return "".join(result)


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.replace("_", "a").isalnum() and not name[0].isdecimal()


# --- The value of ``${…}``: the forms that sh, bash and Docker share.


_PARAMETERS_LONGEST = 400
"""Characters of a value matched against a pattern, and of the pattern."""


def name_end(text: str, start: int = 0) -> int:
    """Return the end of the variable name that starts at ``start``."""
    end = start
    while end < len(text) and text[end].isascii() and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return start if end > start and text[start].isdecimal() else end


def parameter(inside: str, known: Mapping[str, str]) -> str | None:
    """Return the value of ``${inside}``; ``None`` if it is unknown, or in an unsupported form.

    ``:-``, ``-``, ``:+``, ``+``, ``:?``, ``%``, ``%%``, ``#``, ``##``, ``/a/b``, ``//a/b`` and ``:offset:length``. An
    unknown variable takes the default; whether ``:+`` replaces it is unknown.
    """
    end = name_end(inside)
    name, form = inside[:end], inside[end:]
    if not name:
        return None
    value = known.get(name)
    if not form:
        return value
    for sign in (":-", "-", ":=", "="):
        if form.startswith(sign):
            missing = not value if sign[0] == ":" else value is None
            return form[len(sign) :] if missing else value
    if value is None:
        return None
    if form.startswith((":+", "+")):
        return form.lstrip(":")[1:] if value or form[0] == "+" else ""
    if form.startswith((":?", "?")):
        return value
    return _changed(value, form)


def _changed(value: str, form: str) -> str | None:
    """Return a value with a part removed or replaced."""
    if "$" in form or len(value) > _PARAMETERS_LONGEST or len(form) > _PARAMETERS_LONGEST:
        return None
    if form[0] in "%#":
        longest = form[1:2] == form[0]
        return _cut(value, form[1 + longest :], front=form[0] == "#", longest=longest)
    if form[0] == "/":
        every = form.startswith("//")
        old, _, new = form[1 + every :].partition("/")
        return None if not old or old.strip("*?[]") != old else value.replace(old, new, -1 if every else 1)
    offset, _, length = form[1:].partition(":")
    if form[0] != ":" or not _digits(offset) or (length and not _digits(length)):
        return None
    return value[int(offset) : int(offset) + int(length)] if length else value[int(offset) :]


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6


def _cut(value: str, pattern: str, *, front: bool, longest: bool) -> str:
    from fnmatch import fnmatchcase

    places = range(len(value) + 1) if front else range(len(value), -1, -1)
    for at in reversed(places) if longest else places:
        if fnmatchcase(value[:at] if front else value[at:], pattern):
            return value[at:] if front else value[:at]
    return value
