"""One stage of a Dockerfile being read: its variables, the files of its image, and what is installed."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from compat.formats.docker.base_images import (
    beside_torch,
    compiler_of,
    has_no_compiler,
    image_variables,
    is_bare,
    known_stack,
    server_of,
)
from compat.formats.docker.text import HereDocument, Instruction
from compat.formats.include import BuildContext, Copied, Missing, NotRead
from compat.formats.installs.files import InstallFiles, Opened
from compat.formats.installs.steps import Installs
from compat.formats.installs.words import AT_RUN_TIME, IMAGE_CONSTRAINT, Command
from compat.formats.listing import Branch, Entry
from compat.model import EMPTY, Environment
from compat.syntax.parameters import name_end, reference

_WIDEST = 1 << 13
"""Maximum length after substitution; longer values are unknown (``ENV A=$A$A`` doubles with every line)."""


def substituted(text: str, known: Mapping[str, str], escape: str = "\\") -> str:
    """Expand a word as Docker does: quotes removed, variables substituted; unknown ones are left as ``${NAME}``."""
    result: list[str] = []
    at = width = 0
    quote = ""
    while at < len(text):
        letter = text[at]
        if letter == "$" and quote != "'":
            value, end = reference(text, at, known)
            if value is None and text.startswith((":+", "+"), name_end(text, at + 2)):
                value = ""  # unset if it was never declared
            written = text[at:end] if value is None else value
            width += len(written)
            result.append(written if width < _WIDEST else "$")
            at = end
            continue
        if letter == escape and quote != "'" and at + 1 < len(text):
            at += 1
            keeps = quote == '"' and text[at] not in '"$' + escape
            result.append(letter + text[at] if keeps else text[at])
        elif letter in "\"'" and quote in ("", letter):
            quote = "" if quote else letter
        else:
            result.append(letter)
        at += 1
    return "".join(result)


def unresolved(text: str) -> bool:
    """Whether a word still contains a variable or a template placeholder."""
    return "$" in text or "{{" in text


# --- One stage being read: the files of its image, what is installed, its variables, and its command.


MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
"""CPU architectures: image platform → Python's name."""
_MOST_VARIABLES = 1000


class ImageFiles(InstallFiles):
    """The files of an image that come from the build context or whose text is known."""

    def __init__(self, path: str, context: BuildContext, parent: ImageFiles | None = None) -> None:
        super().__init__(path)
        self.context = context
        self.workdir = "/"
        self.copies: list[Copied] = []
        self.mounts: list[Copied] = []
        """The bind mounts of the current RUN."""
        self.documents: dict[str, HereDocument] = {}
        self.additions: dict[str, HereDocument] = {}
        """What commands append to files of the build context."""
        self._copied: dict[str, Opened] = {}
        self.made: set[str] = set()
        """Files that commands write, of which the text is unknown."""
        if parent is not None:
            self.workdir = parent.workdir
            self.copies = list(parent.copies)
            self.documents = dict(parent.documents)
            self.additions = dict(parent.additions)
            self.made = set(parent.made)
            self._copied = dict(parent._copied)
            self.notes = dict(parent.notes)
            self.unread = dict(parent.unread)
            self.elsewhere = dict(parent.elsewhere)
            self.loose = list(parent.loose)

    def place(self, name: str, directory: str | None = None) -> str:
        """Return the absolute path in the image, resolved against the working directory."""
        return posixpath.normpath(posixpath.join("/", self.workdir, directory or "", name))

    def copy(self, source: str, target: str) -> None:
        """Copy a file within the image, if it is known."""
        try:
            self._copied[target] = self.find(source, None)
        except NotRead:
            self._copied.pop(target, None)

    def open(self, file: str, command: Command, purpose: str, what: str) -> Opened | None:
        try:
            return self.find(file, command.directory, purpose)
        except NotRead as reason:
            if purpose == "project":
                self.not_here(command.where, f"{what} was not read (pyproject.toml: {reason})")
            elif isinstance(reason, Missing) and self.is_computed(file, command):
                self.not_read(command.where, f"{what} was not read: its content is {AT_RUN_TIME}")
            elif isinstance(reason, Missing):
                self.not_here(command.where, f"{what} was not read: {reason}")
            else:
                self.not_read(command.where, f"{what} was not read: {reason}")
            return None

    def requirements(self, file: str, command: Command) -> list[Entry]:
        added = self.additions.get(self.place(file, command.directory))
        more = [] if added is None else self._entries(self._own(added), "-r")
        return [*super().requirements(file, command), *more]

    def _own(self, document: HereDocument) -> Opened:
        return Opened(self.path, document.text.encode("utf-8", "surrogatepass"), document.line - 1)

    def find(self, file: str, directory: str | None, purpose: str = "") -> Opened:
        if "://" in file:
            raise NotRead("it is a URL")
        path = self.place(file, directory)
        if path in self.documents:
            return self._own(self.documents[path])
        if path in self._copied:
            return self._copied[path]
        return Opened(*self.context.open(path, [*self.copies, *self.mounts]))


class Stage:
    """A stage; it inherits everything from its parent.

    ``command`` and ``entrypoint`` are word lists, ``triggers`` the ONBUILD instructions that run in stages built on it.
    ``server``: the entry point of the base image, if it is a known server, which gets a command of options only.
    """

    def __init__(
        self, path: str, number: int, name: str | None, line: int, context: BuildContext, parent: Stage | None = None
    ) -> None:
        self.path = path
        self.number = number
        self.name = name
        self.line = line
        self.used = False
        self.own_command = False
        self.other_shell: bool = parent is not None and parent.other_shell
        """Whether ``RUN`` passes its text to something else than a shell."""
        self.triggers: list[Instruction] = []
        self.branches: tuple[Branch, ...] = () if parent is None else parent.branches
        self.files: ImageFiles = ImageFiles(path, context, None if parent is None else parent.files)
        self.installs: Installs = Installs(self.files) if parent is None else parent.installs.copied(self.files)
        self.system: str | None = None if parent is None else parent.system
        self.stack: Environment | None = None if parent is None else parent.stack
        self.closed: bool = parent is not None and parent.closed
        self.machine: str | None = None if parent is None else parent.machine
        self.toolkit: str | None = None if parent is None else parent.toolkit
        self.variables: dict[str, str] = {} if parent is None else dict(parent.variables)
        self.arguments: dict[str, str] = {} if parent is None else dict(parent.arguments)
        self.entrypoint: tuple[str, ...] | None = None if parent is None else parent.entrypoint
        self.command: tuple[str, ...] | None = None if parent is None else parent.command
        self.server: tuple[str, ...] | None = None if parent is None else parent.server
        self.starter: Instruction | None = None if parent is None else parent.starter
        self.project_files: set[str] = set() if parent is None else set(parent.project_files)
        """The installed lock files, whose folder usually has the environment, and ``pyvenv.cfg`` of created environments."""
        self.compiler: str = "" if parent is None else parent.compiler
        """What is noted with distributions that it compiles for CUDA: ``no_compiler`` if neither its base image nor what its
        commands install can, ``compiler`` if the base image alone can; "" if that is unknown."""
        self.has_installed: bool = parent is not None and parent.has_installed
        self.downloaded: set[str] = set() if parent is None else set(parent.downloaded)
        """The names of downloaded files, without their folders."""

    def start(self, image: str) -> None:
        """Start from the stack implied by a base image."""
        self.server = server_of(image)
        self.stack = known_stack(image)
        self.closed = is_bare(image)
        self.compiler = "no_compiler" if has_no_compiler(image) else "compiler" if compiler_of(image) else ""
        self.system = image
        self.installs.python = self.stack.python
        self.toolkit = self.stack.cuda_toolkit
        self.variables.update(image_variables(image))
        held = self.variables.get("PIP_CONSTRAINT") == IMAGE_CONSTRAINT
        for distribution in self.stack.distributions or ():
            self.installs.add(Entry(distribution, self.line))
            if (audio := beside_torch(distribution, "torchaudio")) is not None:
                self.installs.audio = Entry(audio, self.line)
            if held:
                self.files.of_image[distribution.name] = [Entry(distribution, self.line, IMAGE_CONSTRAINT)]

    def known(self) -> dict[str, str]:
        """Return the variables an instruction sees, from ``ENV`` and ``ARG``: the later statement wins, as in BuildKit."""
        return {**self.variables, **self.arguments}

    def set(self, name: str, value: str) -> None:
        """Set an environment variable; a value that is not fully known is dropped."""
        self.arguments.pop(name, None)
        if unresolved(value):
            self.variables.pop(name, None)
        elif len(self.variables) < _MOST_VARIABLES:
            self.variables[name] = value

    def declare(self, name: str, default: str | None, globals_: Mapping[str, str], given: Mapping[str, str] = EMPTY) -> None:
        """Declare an ``ARG``: the passed value, its default, or the value declared before the first ``FROM``."""
        value = given.get(name, globals_.get(name) if default is None else default)
        if value is not None and not unresolved(value) and len(self.arguments) < _MOST_VARIABLES:
            self.arguments[name] = value
        elif default is not None:
            self.arguments.pop(name, None)

    def download(self, words: Sequence[str]) -> None:
        """Remember the names of files that a command or ``ADD`` with these words downloads, but for conda's installers."""
        names = {posixpath.basename(word.partition("?")[0]) for word in words}
        if "://" in "".join(words):
            self.downloaded |= {name for name in names if not any(word in name.lower() for word in ("conda", "forge", "mamba"))}

    def note(self, line: int, text: str) -> None:
        self.files.note(f"{self.path}:{line}", text)

    def not_read(self, line: int, text: str) -> None:
        """Report something that should have been read: without it the check is undecided."""
        self.files.not_read(f"{self.path}:{line}", text)
