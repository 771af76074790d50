"""Variables of a Dockerfile: ``ENV`` and ``ARG`` pairs, and how Docker fills them into other instructions."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING

from compat.formats.docker.base_images import image_variables, known_stack
from compat.formats.docker.text import Instruction
from compat.formats.installs.steps import Installed
from compat.formats.listing import Entry, Listing
from compat.model import EMPTY, Environment
from compat.syntax.shell import written_words
from compat.syntax.shell_commands import name_end, parameter

if TYPE_CHECKING:
    from compat.formats.docker.context import BuildContext, Copied


_DEEPEST = 8
"""``${A:-${B:-…}}``."""
_WIDEST = 1 << 13
"""Characters that are filled in at most, then a value is not known: ``ENV A=$A$A`` doubles with every line."""


def substituted(text: str, known: Mapping[str, str], escape: str = "\\") -> str:
    """A word as Docker reads it: quotes taken off, variables filled in; what is not known is left as ``${NAME}``."""
    return _Word(text, known, escape).read()


def unresolved(text: str) -> bool:
    """Whether a variable, or a place a template fills in, is left in a word."""
    return "$" in text or "{{" in text


def pairs(text: str, known: Mapping[str, str], escape: str = "\\") -> list[tuple[str, str]]:
    """The pairs of an ``ENV``: ``A=1 B="two words"``, or ``A one value`` in the old form."""
    words = [word.value for word in written_words(text)]
    if words and "=" not in words[0]:
        rest = text.strip()[len(words[0]) :].strip()
        return [(words[0], substituted(rest, known, escape))]
    return [(name, substituted(value, known, escape)) for name, equals, value in (w.partition("=") for w in words) if equals]


def declared(text: str, known: Mapping[str, str], escape: str = "\\") -> list[tuple[str, str | None]]:
    """The names of an ``ARG`` with their defaults; ``None`` where the value has to be given."""
    found: list[tuple[str, str | None]] = []
    for word in written_words(text):
        name, equals, value = word.value.partition("=")
        found.append((name, substituted(value, known, escape) if equals else None))
    return found


class _Word:
    """Goes through one word once."""

    def __init__(self, text: str, known: Mapping[str, str], escape: str, depth: int = 0) -> None:
        self.text = text
        self.known = known
        self.escape = escape
        self.depth = depth
        self.width = 0

    def read(self) -> str:
        text, at, quote = self.text, 0, ""
        result: list[str] = []
        while at < len(text):
            letter = text[at]
            if letter == self.escape and quote != "'" and at + 1 < len(text):
                at += 1
                keeps = quote == '"' and text[at] not in '"$' + self.escape
                result.append(letter + text[at] if keeps else text[at])
            elif letter in "\"'" and quote in ("", letter):
                quote = "" if quote else letter
            elif letter == "$" and quote != "'":
                at = self._variable(at, result)
                continue
            else:
                result.append(letter)
            at += 1
        return "".join(result)

    def _variable(self, at: int, result: list[str]) -> int:
        """Adds what stands for the variable at ``at``; returns where the text goes on."""
        if self.text.startswith("${", at):
            end = closing_brace(self.text, at + 2)
            if end < 0 or self.depth > _DEEPEST:
                result.append(self.text[at:])
                return len(self.text)
            self._add(result, self._braced(self.text[at + 2 : end]))
            return end + 1
        end = name_end(self.text, at + 1)
        name = self.text[at + 1 : end]
        self._add(result, self.known.get(name, f"${name}"))
        return end

    def _add(self, result: list[str], value: str) -> None:
        self.width += len(value)
        result.append(value if self.width < _WIDEST else "$")

    def _braced(self, inside: str) -> str:
        if "$" in inside:
            name = inside[: name_end(inside)]
            inside = name + _Word(inside[len(name) :], self.known, self.escape, self.depth + 1).read()
        value = parameter(inside, self.known)
        if value is None and inside[name_end(inside) :].startswith((":+", "+")):
            return ""  # nothing is set where nothing is declared
        return f"${{{inside}}}" if value is None else value


def closing_brace(text: str, at: int) -> int:
    """Where the brace is closed that was opened before ``at``; -1 where it is not."""
    level = 1
    while True:
        close = text.find("}", at)
        if close < 0:
            return -1
        level += text.count("${", at, close) - 1
        if level <= 0:
            return close
        at = close + 1


# --- One stage of a Dockerfile while it is read: what is installed so far, which variables are set, what it starts.


MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
"""Processors as the platforms of images name them, and as Python does."""
_MOST_NOTES = 200
_MOST_VARIABLES = 1000


class Stage:
    """A stage; everything its parent has is there to begin with.

    ``command`` and ``entrypoint`` are the words they start, ``triggers`` what runs where a later stage is made from it.
    ``locks`` are the lock files that are installed, by path, and ``gone`` what was uninstalled after that.
    """

    def __init__(self, path: str, number: int, name: str | None, line: int, parent: Stage | None = None) -> None:
        self.path = path
        self.number = number
        self.name = name
        self.line = line
        self.used = False
        self.system: str | None = None if parent is None else parent.system
        self.stack: Environment | None = None if parent is None else parent.stack
        self.machine: str | None = None if parent is None else parent.machine
        self.python: str | None = None if parent is None else parent.python
        self.toolkit: str | None = None if parent is None else parent.toolkit
        self.installed: Installed = Installed(() if parent is None else parent.installed.entries())
        self.locks: dict[str, Listing] = {} if parent is None else dict(parent.locks)
        self.gone: set[str] = set() if parent is None else set(parent.gone)
        self.variables: dict[str, str] = {} if parent is None else dict(parent.variables)
        self.arguments: dict[str, str] = {} if parent is None else dict(parent.arguments)
        self.workdir: str = "/" if parent is None else parent.workdir
        self.copies: list[Copied] = [] if parent is None else list(parent.copies)
        self.documents: dict[str, tuple[str, int]] = {} if parent is None else dict(parent.documents)
        self.entrypoint: tuple[str, ...] | None = None if parent is None else parent.entrypoint
        self.command: tuple[str, ...] | None = None if parent is None else parent.command
        self.own_command = False
        self.triggers: list[Instruction] = []
        self.notes: dict[str, None] = {} if parent is None else dict(parent.notes)
        self.unread: dict[str, None] = {} if parent is None else dict(parent.unread)

    def start(self, image: str) -> None:
        """Begin with what a base image says about itself."""
        self.stack = known_stack(image)
        self.system = image
        self.python = self.stack.python
        self.toolkit = self.stack.cuda_toolkit
        self.variables.update(image_variables(image))
        for distribution in self.stack.distributions or ():
            self.installed.add(Entry(distribution, self.line))

    def on_platform(self, platform: str) -> None:
        """The processor that ``--platform=linux/arm64`` names."""
        self.machine = MACHINES.get(platform.partition("/")[2].partition("/")[0])

    def known(self) -> dict[str, str]:
        """The variables an instruction sees, by ``ENV`` and ``ARG``: the later statement wins, as in BuildKit."""
        return {**self.variables, **self.arguments}

    def set(self, name: str, value: str) -> None:
        """An environment variable; a value that is not known in full is not kept."""
        self.arguments.pop(name, None)
        if unresolved(value):
            self.variables.pop(name, None)
        elif len(self.variables) < _MOST_VARIABLES:
            self.variables[name] = value

    def declare(self, name: str, default: str | None, globals_: Mapping[str, str], given: Mapping[str, str] = EMPTY) -> None:
        """An ``ARG``: what was given for it, its default, or what was declared in front of the first ``FROM``."""
        value = given.get(name, globals_.get(name) if default is None else default)
        if value is not None and not unresolved(value) and len(self.arguments) < _MOST_VARIABLES:
            self.arguments[name] = value
        elif default is not None:
            self.arguments.pop(name, None)

    def place(self, name: str, directory: str | None = None) -> str:
        """A path as the image has it: absolute, by the working directory."""
        return posixpath.normpath(posixpath.join("/", self.workdir, directory or "", name))

    def note(self, line: int, text: str) -> None:
        if len(self.notes) < _MOST_NOTES:
            self.notes[f"{self.path}:{line}: {text}"] = None

    def not_read(self, line: int, text: str) -> None:
        """Something that should have been read: the check must not end well because of it."""
        if len(self.unread) < _MOST_NOTES:
            self.unread[f"{self.path}:{line}: {text}"] = None

    def open(self, context: BuildContext, path: str, copies: list[Copied]) -> tuple[str, bytes, int]:
        """Path, content and number of lines in front of a file of the image; :class:`NotRead` where it cannot be had."""
        if path in self.documents:
            text, first = self.documents[path]
            return self.path, text.encode("utf-8", "surrogatepass"), first - 1
        return (*context.open(path, [*self.copies, *copies]), 0)
