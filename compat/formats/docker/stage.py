"""One stage of a Dockerfile while it is read: its variables, what is installed, and what each ``RUN`` adds."""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from compat.errors import InputError
from compat.formats.docker.base_images import image_variables, known_stack, system_python
from compat.formats.docker.text import Instruction, without_documents
from compat.formats.include import NotRead
from compat.formats.installs.command import install_of
from compat.formats.installs.steps import Installed
from compat.formats.installs.words import Install, LockInstall, from_index
from compat.formats.listing import Entry, Listing
from compat.formats.requirements.lines import constrained
from compat.model import EMPTY, Environment, normalized
from compat.records import replace
from compat.syntax.shell import written_words
from compat.syntax.shell_commands import commands_of, name_end, parameter
from compat.workload.wrappers import SHELLS, program_name, unwrapped

if TYPE_CHECKING:
    from compat.formats.include import BuildContext, Copied

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


# --- ``RUN`` of a Dockerfile: the commands in it, in order, applied to the stage.


_TELLING = ("pip", "uv", "conda", "mamba", "poetry", "pdm", "pixi", "setup.py", "apt", "yum", "dnf", ".sh", "make")
"""A RUN without any of these installs nothing that is looked for."""
_BRANCHES = ("if", "case", "elif", "else", "then")
_SYSTEM = ("apt", "apt-get", "yum", "dnf", "microdnf")
_BLANKS = str.maketrans(dict.fromkeys("\"'=<>[]@/;~!,`()&|", " "))


class Run:
    """One ``RUN`` while it is read."""

    def __init__(self, stage: Stage, instruction: Instruction, context: BuildContext, mounts: list[Copied]) -> None:
        self.stage = stage
        self.context = context
        self.mounts = mounts
        self.places = _Places(instruction)

    def read(self, instruction: Instruction) -> None:
        """Apply what the instruction installs to the stage."""
        text, first = _script(instruction)
        if not any(word in text for word in _TELLING):
            return
        self.places.at = first
        before = self.stage.installed.changes
        known = self.stage.known()
        if instruction.words is not None:
            self._commands(_handed_on(instruction.words, known, {}, None, 0))
        else:
            found = commands_of(text, (), known)
            self._commands(each for c in found for each in _handed_on(c.words, known, c.exported, c.directory, 0))
            if not found and " install" in text:
                # a command whose quotes do not pair is left out by the shell reader: it may have installed something
                self.stage.not_read(self.places.at, "the RUN was not read: expected quotes that pair")
        if not set(_BRANCHES).isdisjoint(text.split()) and self.stage.installed.changes != before:
            self.stage.note(instruction.line, "installs under a condition; every branch was read, the last one counts")

    def _commands(self, commands: Iterator[tuple[list[str], Mapping[str, str], str | None]]) -> None:
        for words, variables, directory in commands:
            install = install_of(words, variables)
            if install is not None:
                self.install(install, directory)
            else:
                self._other(words, variables)

    def install(self, install: Install, directory: str | None) -> None:
        """Apply one install command."""
        stage, line = self.stage, self.places.line_of(("install", "add", "sync", "uninstall", "create"))
        if install.python is not None:
            stage.python = install.python
        entries: list[Entry] = []
        constraints: list[Entry] = []
        for file, is_constraint in install.files:
            (constraints if is_constraint else entries).extend(self._file(file, directory, line, is_constraint))
        entries += [Entry(each, self.places.line_of((each.name,))) for each in install.requirements]
        for project, _ in install.directories if not install.no_deps else ():
            entries += self._project(project, directory, line)
        for lock in install.locks:
            self._lock(lock, directory, line)
        for name in install.removed:
            stage.installed.remove(name)
            stage.gone.add(name)
        notes: list[str] = []
        for entry in constrained(entries, constraints, notes):
            if install.index_url is not None and entry.file is not None:
                entry = replace(entry, distribution=from_index(entry.distribution, install.index_url))
            self._add(entry, upgrade=install.upgrade)
        for note in (*install.notes, *notes):
            stage.note(line, note)

    def _add(self, entry: Entry, *, upgrade: bool) -> None:
        name = entry.distribution.name
        locked = (each.distribution.name for lock in self.stage.locks.values() for each in lock.entries)
        if entry.distribution.version is None and name not in self.stage.gone and not upgrade and name in locked:
            return
        self.stage.gone.discard(name)
        self.stage.installed.add(entry, upgrade=upgrade)

    def _file(self, file: str, directory: str | None, line: int, is_constraint: bool) -> list[Entry]:
        """The entries of ``-r`` and ``-c``, which may also name a project or a lock."""
        option = "-c" if is_constraint else "-r"
        name = posixpath.basename(file)
        if name == "pyproject.toml" and not is_constraint:
            return self._project(posixpath.dirname(file) or ".", directory, line)
        if name.startswith("pylock.") and not is_constraint:
            self._lock(LockInstall(file), directory, line)
            return []
        try:
            if "://" in file:
                raise NotRead("it is an address")
            path, content, shift = self._open(file, directory)
        except NotRead as reason:
            self.stage.not_read(line, f"{option} {file} was not read: {reason}")
            return []
        from compat.formats.requirements.file import decode, read_requirements

        found: list[Entry] = []
        for listing in read_requirements(path, decode(content, path)):
            self.stage.notes.update(dict.fromkeys(listing.notes))
            self.stage.unread.update(dict.fromkeys(listing.unread))
            for entry in listing.entries:
                place = None if entry.line is None else entry.line + shift
                found.append(replace(entry, file=None if shift else entry.file or path, line=place))
        return found

    def _open(self, file: str, directory: str | None) -> tuple[str, bytes, int]:
        return self.stage.open(self.context, self.stage.place(file, directory), self.mounts)

    def _project(self, project: str, directory: str | None, line: int) -> list[Entry]:
        """What a project that is installed from source declares, by its pyproject.toml."""
        from compat.formats.installs.files import installed_directly, selected
        from compat.formats.registry import format_named

        folder, _, extras = project.partition("[")
        folder = folder.removeprefix("file://")
        try:
            path, content, _ = self._open(posixpath.join(folder or ".", "pyproject.toml"), directory)
        except NotRead as reason:
            self.stage.note(line, f"what {project} requires was not read (pyproject.toml: {reason})")
            return []
        asked = LockInstall(path, tuple(each.strip() for each in extras.rstrip("]").split(",")), default_groups=False)
        found: list[Entry] = []
        for listing in format_named("pyproject").listings(path, content):
            self.stage.unread.update(dict.fromkeys(listing.unread))
            found += [replace(entry, file=entry.file or path) for entry in installed_directly(selected(listing, asked))]
        return found

    def _lock(self, lock: LockInstall, directory: str | None, line: int) -> None:
        """A lock file or an environment file that is installed."""
        from compat.formats.installs.files import selected
        from compat.formats.registry import format_of

        try:
            path, content, _ = self._open(lock.file, directory)
        except NotRead as reason:
            self.stage.not_read(line, f"{lock.file}, which is installed, was not read: {reason}")
            return
        for listing in format_of(path, content).listings(path, content):
            self.stage.locks[path] = selected(listing, lock)
            for name in {entry.distribution.name for entry in listing.entries}:
                if name not in lock.left_out:
                    self.stage.installed.remove(name)
                    self.stage.gone.discard(name)
                elif not self.stage.installed.has(name):
                    self.stage.gone.add(name)
            self.stage.python = listing.context.python or self.stage.python

    def _other(self, words: Sequence[str], variables: Mapping[str, str]) -> None:
        """A command that is no installer of Python distributions."""
        try:
            rest = unwrapped(words, {})
        except InputError:
            return
        name = program_name(rest[0]) if rest else ""
        if name in _SYSTEM and "install" in rest:
            self._packages(rest[rest.index("install") + 1 :])
        elif name == "xargs" and any(word in rest for word in ("pip", "pip3", "uv")) and "install" in rest:
            self.stage.not_read(self.places.line_of(("xargs",)), "what xargs installs was not read")
        elif name in (*SHELLS, ".", "source") or name.endswith(".sh"):
            script = next((word for word in rest if word.endswith(".sh")), None)
            if script is not None and "install" in script:
                self.stage.note(self.places.line_of((script,)), f"what {script} installs was not read")
        elif name.startswith("python") and "setup.py" in rest and not {"install", "develop"}.isdisjoint(rest):
            self.stage.note(self.places.line_of(("setup.py",)), "what setup.py installs was not read")

    def _packages(self, packages: Sequence[str]) -> None:
        """Packages of the system that matter: a Python, the CUDA toolkit."""
        for package in packages:
            version = package.removeprefix("python").partition("-")[0]
            if package.startswith("python") and version.startswith("3.") and version[2:].isdecimal():
                self.stage.python = version
            elif package in ("python3", "python3-dev", "python3-venv", "python3-pip") and self.stage.python is None:
                self.stage.python = system_python(self.stage.system or "")
            mark, _, release = package.partition("-toolkit-") if "-toolkit-" in package else package.partition("-")
            parts = release.split("-")
            if mark == "cuda" and len(parts) == 2 and all(part.isascii() and part.isdigit() for part in parts):
                self.stage.toolkit = ".".join(parts)


def _script(instruction: Instruction) -> tuple[str, int]:
    """The shell text of a RUN, and its first line: a here-document is the script where nothing but a shell reads it."""
    if instruction.words is not None:
        return " ".join(instruction.words), instruction.line
    if instruction.documents:
        head = without_documents(instruction.text).split()
        document = instruction.documents[0]
        if not head or program_name(head[0]) in SHELLS:
            shebang = document.text.partition("\n")[0]
            other = shebang.startswith("#!") and not any(shebang.rstrip().endswith(shell) for shell in SHELLS)
            return ("" if other else document.text), document.line
        return " ".join(head), instruction.line
    return instruction.text, instruction.line


def _handed_on(
    words: Sequence[str], known: Mapping[str, str], exported: Mapping[str, str], directory: str | None, depth: int
) -> Iterator[tuple[list[str], Mapping[str, str], str | None]]:
    """A command, or those in the text that it hands to a shell (``bash -c``), with their variables and folder."""
    variables = {**known, **exported}
    try:
        rest = unwrapped(words, variables)
    except InputError:
        return
    if rest and program_name(rest[0]) in SHELLS and depth < 4:
        for at, word in enumerate(rest[1:-1], 1):
            if word.startswith("-") and not word.startswith("--") and "c" in word:
                for command in commands_of(rest[at + 1], rest[at + 3 :], variables):
                    inner = {**variables, **command.exported}
                    yield from _handed_on(command.words, inner, {}, command.directory or directory, depth + 1)
                return
    yield list(words), variables, directory


class _Places:
    """The physical lines of an instruction, by the words on them; goes forward only."""

    def __init__(self, instruction: Instruction) -> None:
        self.at = instruction.line
        self._instruction = instruction
        self._lines: dict[str, list[int]] | None = None

    def line_of(self, words: Sequence[str]) -> int:
        """The next line with one of the words (or the distribution of that name); else the one that was reached."""
        if self._lines is None:
            self._lines = self._indexed()
        places = [self._lines.get(word, []) for word in words]
        following = [lines[at] for lines in places if (at := bisect_left(lines, self.at)) < len(lines)]
        self.at = min(following, default=self.at)
        return self.at

    def _indexed(self) -> dict[str, list[int]]:
        lines = list(self._instruction.lines)
        for document in self._instruction.documents:
            lines += enumerate(document.text.split("\n"), document.line)
        found: dict[str, list[int]] = {}
        for number, text in lines:
            for word in text.translate(_BLANKS).split():
                for name in {word, normalized(word), normalized(word.partition("-")[0])}:
                    found.setdefault(name, []).append(number)
        return found
