"""The simple commands of shell scripts, with plain variables expanded and loops written out. Nothing is run.

The output of ``echo``, ``printf`` and ``cat`` is computed where a command reads it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from compat.records import replace
from compat.syntax.parameters import expanded, reference
from compat.syntax.shell import SimpleCommand, Word, simple_commands, substituted, without_commands

_MOST_ROUNDS = 200
_MOST_COMMANDS = 20_000
"""Commands of a script after its loops are written out; a loop that would exceed it is read once."""
_PRINTED = 1 << 20
"""Characters of a command's output."""


def unrolled(commands: Sequence[SimpleCommand]) -> list[SimpleCommand]:
    """Return the commands with the body of ``for NAME in WORD…`` once for each word, after an assignment of ``NAME``.

    The body of any other loop is read once.
    """
    found: list[SimpleCommand] = []
    open_ones: list[tuple[SimpleCommand | None, int]] = []
    """The loops around a command: the ``for`` and the number of commands before its body, or ``None`` for another loop."""
    waiting: SimpleCommand | None = None
    for command in commands:
        for keyword in command.keywords:
            if keyword == "do":
                open_ones.append((waiting, len(found)))
                waiting = None
            elif keyword == "done" and open_ones:
                loop, start = open_ones.pop()
                if loop is not None:
                    found[start:] = _rounds(loop, found[start:], len(found))
        if _is_for(command):
            waiting = command
            found.append(replace(command, words=()))
        else:
            found.append(command)
    return found


def _is_for(command: SimpleCommand) -> bool:
    words = [word.value for word in command.words[:3]]
    return words[:1] == ["for"] and words[2:] == ["in"] and words[1].isidentifier() and len(command.words) > 3


def _rounds(loop: SimpleCommand, body: Sequence[SimpleCommand], before: int) -> list[SimpleCommand]:
    values = loop.words[3:]
    if len(values) > _MOST_ROUNDS or before + len(values) * (len(body) + 1) > _MOST_COMMANDS:
        return list(body)
    name = loop.words[1].value
    found: list[SimpleCommand] = []
    for word in values:
        found.append(SimpleCommand("\n", (), (Word(f"{name}={word.value}", word.start, word.end, word.spans),)))
        found += body
    return found


def braces(word: str) -> list[str]:
    """Return the words that ``a{b,c}d`` expands to; the word itself if it has no such braces, or nested ones."""
    found = re.fullmatch(r"([^{}]*)\{([^{}]*,[^{}]*)\}([^{}]*)", word)
    if found is None or found[1].endswith("$"):
        return [word]
    return [f"{found[1]}{each}{found[3]}" for each in found[2].split(",")]


def fed(words: Sequence[str], text: str) -> list[str] | None:
    """Return the command that ``xargs`` runs with the words of a text; ``None`` for any other program."""
    if words[0] != "xargs":
        return None
    at = 1
    place = None
    while at < len(words) and words[at].startswith("-"):
        option, attached = words[at][:2], words[at][2:]
        if option in ("-I", "-n", "-P", "-L", "-d", "-E", "-s", "-a"):
            at += not attached
            place = (attached or "".join(words[at : at + 1])) if option == "-I" else place
        at += 1
    inner, given = list(words[at:]), text.split()
    if place and len(given) * inner.count(place) > _PRINTED:
        return None
    if place:
        return [each for word in inner for each in (given if word == place else [word])]
    return [*inner, *given] if inner else None


def printed(words: Sequence[str], documents: Sequence[str], taken: str | None) -> str | None:
    """Return what a command prints, ``None`` if that is unknown. ``taken`` is what it reads from a pipe."""
    name, operands = words[0], list(words[1:])
    if name == "echo":
        while operands and re.fullmatch(r"-[neE]+", operands[0]):
            operands.pop(0)
        text = " ".join(operands)
        return None if len(text) > _PRINTED else _interpreted(text) + "\n"
    if name == "printf" and operands and not operands[0].startswith("-") and len(operands[0]) <= _PRINTED:
        return _formatted(_interpreted(operands[0]), operands[1:])
    if name in ("cat", "tee") and (name == "tee" or not [each for each in operands if each != "-"]):
        return documents[-1] if documents else taken
    return None


def _interpreted(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\")


def _formatted(form: str, operands: Sequence[str]) -> str | None:
    """Return the output of ``printf``, which repeats its format; only ``%s`` and ``%b`` are known."""
    pieces = re.split(r"%[sb]", form.replace("%%", "\0"))
    if any("%" in piece for piece in pieces):
        return None
    holes = len(pieces) - 1
    parts: list[str] = []
    for at in range(0, max(len(operands), 1), max(holes, 1)):
        values = [*operands[at : at + holes], *[""] * holes][:holes]
        parts += [text for pair in zip(pieces, [*values, ""], strict=True) for text in pair]
        if len(parts) > _PRINTED:
            return None
        if not holes:
            break
    return "".join(parts).replace("\0", "%")


LONGEST = 4000
"""Most lines of a script read."""
_COMMANDS = 50_000
"""Most commands and assignments of a script read."""
_WIDEST = 1 << 13
"""Characters of a word in which variables are expanded."""
_LONGEST_ARRAY = 1000
_DEEPEST = 3
"""``$(… $(…))``."""
_DEFAULT = re.compile(r"\$\{(\w+):?=([^{}$`]*)\}")
_READING = ("read", "mapfile", "readarray", "getopts")
"""Commands that set the variables they name."""
_ALL_ARGUMENTS = ("$@", "$*", "${@}", "${*}")
_MOST = 1 << 20
"""Characters that are expanded in one script, and variables that are recorded for its commands."""


class ShellCommand:
    """A simple command: its words, the variables set before it and its working directory (or ``None``).

    ``taken`` is the text on its standard input, if known; ``written`` the text that it writes, by the name of the file.
    ``appended`` are those of which it is only the end, ``made`` files that it writes something unknown into, ``copied`` the
    file that it copies, and the copy.
    ``open_ended``: it also has words that are only known at run time (``"$@"``). ``piped_from`` is the program before it in a
    pipe, ``source`` the file that its standard input is (``< FILE``, ``cat FILE |``). ``computed`` are the variables that the
    script has set to something unknown.
    """

    def __init__(self, words: list[str], variables: dict[str, str], exported: dict[str, str], directory: str | None) -> None:
        self.words = words
        self.variables = variables
        self.exported = exported
        self.directory = directory
        self.taken: str | None = None
        self.written: dict[str, str] = {}
        self.appended: set[str] = set()
        self.made: list[str] = []
        self.copied: tuple[str, str] | None = None
        self.open_ended = False
        self.piped_from: str | None = None
        self.source: str | None = None
        self.computed: Collection[str] = ()


def commands_of(
    text: str,
    arguments: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    depth: int = 0,
    skipped: list[str] | None = None,
) -> list[ShellCommand]:
    """Return the simple commands of a script in order; lines that cannot be read are skipped.

    ``arguments`` are ``$1`` … and ``$@``, ``variables`` those that are already set. Of a substitution, only commands that
    install something are returned. The skipped lines are added to ``skipped``.
    """
    reader = ShellReader(variables or {}, arguments)
    text = "\n".join(text.splitlines()[:LONGEST])
    found: list[ShellCommand] = []
    refused: list[tuple[int, int]] = []
    commands = simple_commands(text, refused)
    if skipped is not None:
        skipped += [text[start:end] for start, end in refused]
    for command in unrolled(commands):
        for word in command.words if depth < _DEEPEST else ():
            for start, end in substituted(text, word) if "install" in word.value else ():
                found += commands_of(text[start:end], arguments, {**(variables or {}), **reader.exported}, depth + 1)
        if (each := reader.read(command)) is not None:
            found.append(each)
    return found


class ShellReader:
    """Reads a script command by command, tracking its variables and working directory."""

    def __init__(self, variables: Mapping[str, str], arguments: Sequence[str] = (), computed: set[str] | None = None) -> None:
        self._known = {**variables, **{str(number): value for number, value in enumerate(arguments, 1)}}
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
        self._arrays: dict[str, list[str]] = {}
        self.computed: set[str] = set() if computed is None else computed
        """The variables that are set to something unknown anywhere in the script."""
        self._printed: str | None = None
        """What the previous command printed."""
        self._previous = ""
        """The program of the previous command."""
        self._shown: str | None = None
        """The file that the previous command printed."""
        self._files: dict[str, str] = {}
        self._begun: set[str] = set()
        """Files that a command writes from their beginning."""

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
        if words[:1] == [":"]:  # : ${NAME:=value}
            defaults = [found for word in words for found in _DEFAULT.findall(word) if not self._known.get(found[0])]
            self._assign(["=".join(found) for found in defaults], export=False, certain=certain)
        if self._grown < _MOST:
            before = _cost(words)
            words = self._filled(command.words)
            self._grown += _cost(words) - before
        if not words:
            return None
        taken, self._printed = self._printed if command.operator == "|" else None, None
        if self._sets(words, certain=certain):
            return None
        found = ShellCommand(words, *self._variables(), self._directory)
        self._write(found, command, taken)
        found.words = fed(words, found.taken) or words if found.taken and self._grown < _MOST else words
        self._grown += _cost(found.words) if found.words is not words else 0
        found.open_ended = not self._arguments and any(word.value in _ALL_ARGUMENTS for word in command.words)
        found.computed = self.computed
        found.piped_from = self._previous if command.operator == "|" else None
        found.source = "".join(self._filled([command.source])) if command.source else self._shown if found.piped_from else None
        self._previous = words[0].rpartition("/")[2]
        self._shown = words[1] if self._previous == "cat" and len(words) == 2 else None
        return found

    def _sets(self, words: Sequence[str], *, certain: bool) -> bool:
        """Whether a command only changes variables, arguments or the working directory, which it then does."""
        if words[0] == "set" and words[1:2] == ["--"]:
            self._arguments = words[2:] if certain and len(words) <= _LONGEST_ARRAY else ()
            self._known.update({str(number): value for number, value in enumerate(self._arguments, 1)})
        elif words[0] in ("export", "declare", "local", "readonly", "set", "typeset"):
            self._assign(words[1:], export=words[0] == "export", certain=certain)
        elif all(_is_assignment(word) for word in words):
            self._assign(words, export=any(word.partition("=")[0] in self._exported for word in words), certain=certain)
        elif words[0] in _READING or words[:2] == ["printf", "-v"]:
            names = [word for word in words[1:] if word.isidentifier()]
            for name in names:
                self._known.pop(name, None)
            self.computed.update(names)
        elif words[0] in ("cd", "pushd"):
            self._directory = words[1] if len(words) == 2 and "$" not in words[1] else None
        else:
            return False
        return True

    def _write(self, found: ShellCommand, command: SimpleCommand, taken: str | None) -> None:
        """Record what a command reads and prints, and the files that it writes."""
        documents = [expanded(each, self._known) if "$" in each else each for each in command.documents]
        found.taken = documents[-1] if documents else taken
        if found.taken is not None:
            found.written.update((word, found.taken) for word in found.words if word in ("/dev/stdin", "-"))
        found.copied = _copied(found.words)
        text = printed(found.words, documents, taken)
        self._printed = text
        outputs = [(self._filled([word]), appended) for word, appended in command.outputs]
        if text is None:
            found.made += [name for names, _ in outputs for name in names]
            return
        if found.words[0] == "tee":
            appended = any(word in ("-a", "--append") for word in found.words)
            outputs += [([word], appended) for word in found.words[1:] if not word.startswith("-")]
        for names, appended in outputs:
            if len(names) == 1 and "$" not in names[0] and names[0] != "/dev/null":
                whole = f"{self._directory or ''}/{names[0]}"
                if not appended:
                    self._begun.add(whole)
                elif whole not in self._begun:
                    found.appended.add(names[0])
                self._files[whole] = (self._files.get(whole, "") if appended else "") + text
                self._grown += len(text) + 16
                found.written[names[0]] = self._files[whole]

    @property
    def exported(self) -> dict[str, str]:
        """Return the variables that the next command sees."""
        return self._variables()[1]

    def learn(self, other: ShellReader) -> None:
        """Take the variables that another script has set. They fill the words of commands, and are exported to none."""
        for name, value in other._own.items():
            self._known[name] = value
            if value == f"${{{name}}}":
                self.computed.add(name)

    def _assign(self, words: Sequence[str], *, export: bool, certain: bool) -> None:
        """Set ``NAME=value`` and, after ``export``, ``NAME``. What is only known at run time becomes ``${NAME}``."""
        for word in words if self._room else ():
            name, equals, value = word.partition("=")
            more, name = name.endswith("+"), name.removesuffix("+")
            if equals and _is_assignment(word):
                unknown = f"${{{name}}}"
                if value.startswith("("):  # NAME=(…) is an array
                    self._assign_array(name, value, more=more, certain=certain)
                    value = unknown
                elif more:
                    value = self._known.get(name, "") + value
                self._known[name] = self._own[name] = without_commands(value, unknown) if certain else unknown
                if self._own[name] == unknown:
                    self.computed.add(name)
            if export and name in self._own:
                self._exported[name] = self._own[name]
        self._now = None

    def _assign_array(self, name: str, value: str, *, more: bool, certain: bool) -> None:
        elements = [word for command in simple_commands(value[1:-1]) for word in command.words] if certain else []
        before = self._arrays.get(name, []) if more else []
        found = [*before, *self._filled(elements)]
        self._arrays.pop(name, None)
        # a command's output is any number of words, unless it ends an option
        if certain and len(found) <= _LONGEST_ARRAY and not any(each.startswith(("$(", "`")) for each in found):
            self._arrays[name] = [without_commands(each, f"${{{name}}}") for each in found]

    def _filled(self, words: Sequence[Word]) -> list[str]:
        """Return the words with the known variables expanded."""
        result: list[str] = []
        filled = 0
        for each in words:
            word = each.value
            many: Sequence[str] | None = None
            if filled > _MOST or len(word) > _WIDEST:
                many = [word]
            elif word in _ALL_ARGUMENTS:
                many = self._arguments
            elif word.startswith("${") and word.endswith(("[@]}", "[*]}")):
                many = self._arrays.get(word[2:-4], [word])
            elif word.startswith("$") and not each.is_quoted and (found := reference(word, 0, self._known))[1] == len(word):
                # an unquoted variable may expand to several words
                many = [word] if found[0] is None else found[0].split()
            elif "{" in word and "," in word and each.end - each.start == len(word):
                many = [expanded(part, self._known) for part in braces(word)]
            else:
                many = [expanded(word, self._known) if "$" in word else word]
            result.extend(many)
            filled += sum(map(len, many)) + len(many)
        return result

    def _variables(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the script's variables and its exports; commands without an assignment between them share the mappings."""
        if self._now is None:
            self._room = max(0, self._room - len(self._own) - len(self._exported))
            if not self._room:
                self._known, self._exported, self._own = {}, {}, {}  # unknown rather than outdated
            self._now = dict(self._own), dict(self._exported)
        return self._now


def _copied(words: Sequence[str]) -> tuple[str, str] | None:
    """Return the file that a command copies, moves or links, and its new name."""
    names = [word for word in words[1:] if not word.startswith("-")]
    if words[0] not in ("cp", "mv", "ln") or len(names) != 2 or names[1].endswith(("/", ".")) or "$" in "".join(names):
        return None
    return names[0], names[1]


def slurm_directives(text: str) -> list[str]:
    """Return the options on the ``#SBATCH`` lines of a batch script."""
    found: list[str] = []
    for line in text.splitlines()[:LONGEST]:
        if line.startswith("#SBATCH"):
            found += line[7:].partition(" #")[0].split()
    return found


def _cost(words: Sequence[str]) -> int:
    """Return the characters that words count for; reading a word takes longer than copying it."""
    return sum(map(len, words)) + 16 * len(words)


def _is_assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.removesuffix("+").replace("_", "a").isalnum() and not name[0].isdecimal()
