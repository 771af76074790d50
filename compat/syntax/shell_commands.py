"""The simple commands of shell scripts, with plain variables expanded. Nothing is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compat.syntax.shell import SimpleCommand, Word, simple_commands, without_commands

LONGEST = 4000
"""Most lines of a script read."""
_COMMANDS = 50_000
"""Most commands and assignments of a script read."""
_WIDEST = 1 << 13
"""Characters of a word after which no more variables are expanded: ``A=$A$A`` doubles with every line."""
_MOST = 1 << 20
"""Characters that are expanded in one script, and variables that are recorded for its commands."""


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
    lines = text.splitlines()[:LONGEST]
    return [each for command in simple_commands("\n".join(lines)) if (each := reader.read(command)) is not None]


class ShellReader:
    """Reads a script command by command, tracking its variables and working directory."""

    def __init__(self, variables: Mapping[str, str], arguments: Sequence[str] = ()) -> None:
        self._known = dict(variables)
        self._arguments = arguments
        self._directory: str | None = None
        self._around: list[str | None] = []
        """The working directories outside the open subshells."""
        self._own: dict[str, str] = {}
        self._exported: dict[str, str] = {}
        self._now: tuple[dict[str, str], dict[str, str]] | None = None
        self._room = _MOST
        """Variables that may still be recorded for commands."""
        self._commands = 0
        self._grown = 0

    def read(self, command: SimpleCommand, *, certain: bool = True) -> ShellCommand | None:
        """Return the next command; ``None`` for one that only sets variables, whose values are unknown unless ``certain``."""
        self._commands += 1
        if self._commands > _COMMANDS:
            return None
        for keyword in command.keywords:
            if keyword == "(":
                self._around.append(self._directory)
            elif keyword == ")" and self._around:
                self._directory = self._around.pop()
        words = [word.value for word in command.words]
        if self._grown < _MOST:
            length = sum(map(len, words)) + len(words)
            words = _expanded(command.words, self._known, self._arguments)
            self._grown += sum(map(len, words)) + len(words) - length
        if not words:
            return None
        if words[0] in ("export", "declare", "local", "readonly", "set", "typeset"):
            self._assign(words[1:], export=words[0] == "export", certain=certain)
        elif all(_is_assignment(word) for word in words):
            self._assign(words, export=any(word.partition("=")[0] in self._exported for word in words), certain=certain)
        elif words[0] == "cd":
            self._directory = words[1] if len(words) == 2 and "$" not in words[1] else None
        else:
            return ShellCommand(words, *self._variables(), self._directory)
        return None

    @property
    def exported(self) -> dict[str, str]:
        """Return the variables that the next command sees."""
        return self._variables()[1]

    def _assign(self, words: Sequence[str], *, export: bool, certain: bool) -> None:
        """Set ``NAME=value`` and, after ``export``, ``NAME``. What is only known at run time becomes ``${NAME}``."""
        for word in words if self._room else ():
            name, equals, value = word.partition("=")
            if equals and _is_assignment(word):
                unknown = f"${{{name}}}"
                known = certain and not value.startswith("(")  # NAME=(…) is an array
                self._known[name] = self._own[name] = without_commands(value, unknown) if known else unknown
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


def _expanded(words: Sequence[Word], known: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    result: list[str] = []
    filled = 0
    for each in words:
        word = each.value
        if filled > _MOST or len(word) > _WIDEST:
            result.append(word)
        elif word in ("$@", "$*", "${@}", "${*}"):
            result.extend(arguments)
            filled += sum(map(len, arguments)) + len(arguments)
        elif word.startswith("$") and not each.is_quoted and (value := _looked_up(word, known, arguments)) is not None:
            # an unquoted variable may expand to several words
            result.extend(value.split())
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
    if "$" in form or "$" in value or len(value) > _PARAMETERS_LONGEST or len(form) > _PARAMETERS_LONGEST:
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
