"""One stage of a Dockerfile while it is read: what is installed so far, which variables are set, what it starts."""

from __future__ import annotations

import posixpath

from compat.environment import EMPTY
from compat.read.files.docker.base_images import image_variables, known_stack
from compat.read.files.docker.dockerfile_variables import unresolved
from compat.read.files.installs.installed import Installed
from compat.read.files.listing import Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from compat.environment import Environment
    from compat.read.files.docker.build_context import BuildContext, Copied
    from compat.read.files.docker.dockerfile_text import Instruction
    from compat.read.files.listing import Listing

_MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
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
        self.machine = _MACHINES.get(platform.partition("/")[2].partition("/")[0])

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
