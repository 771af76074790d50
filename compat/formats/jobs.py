"""Jobs in deployment files: shell text in YAML and JSON with its positions, and what a job installs.

A template (Helm, ``${{ … }}`` of workflows) is read with every placeholder as an unknown variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from compat.errors import InputError, printable
from compat.formats.docker.base_images import known_stack
from compat.formats.include import WorkingFolders
from compat.formats.installs.files import InstallFiles
from compat.formats.installs.shell import ShellSteps
from compat.formats.installs.steps import Command, Installs, Step, alternatives
from compat.formats.installs.words import Install, requirement
from compat.formats.listing import Listing
from compat.formats.specifiers import is_version
from compat.model import EMPTY, Accelerator, Environment, Workload
from compat.records import record
from compat.redact import without_secrets
from compat.syntax.shell_commands import ShellCommand
from compat.syntax.yaml import Document, Value

if TYPE_CHECKING:
    from compat.formats.installs.edit import InstallScript
    from compat.formats.installs.steps import Line

_CONTROL = re.compile(r"[ \t]*\{\{-?[ \t]*(?:/\*|if|else|end|range|with|define|template|include|toYaml|tpl|\$\w+[ \t]*:?=)")
_FILLED = re.compile(r"\$\{\.+\}")
_MOST_DOCUMENTS = 200
_MOST_GPUS = 1024
_AHEAD = 60
"""Lines searched for the next line of a text."""
LARGEST = 1024 * 1024
"""Characters of a file; larger ones carry data."""


@record(frozen=True)
class Placed:
    """A line of shell text: number, text and file offset (``None`` if it is written differently in the file)."""

    number: int
    text: str
    offset: int | None


class JobFile:
    """The text of a YAML file of one or several documents, and the positions of its values."""

    def __init__(self, path: str, text: str, expected: str) -> None:
        if len(text) > LARGEST:
            raise InputError(f"is larger than {LARGEST // 1024 // 1024} MiB: expected {expected}", path)
        self.path = path
        self.template = "{{" in text
        self.text = without_templates(text) if self.template else text
        self.lines = self.text.split("\n")
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def documents(self) -> list[Document]:
        """Return the documents, with line numbers of the file; :class:`InputError` for invalid YAML."""
        cuts = [number for number, line in enumerate(self.lines) if line.rstrip() == "---" or line.startswith("--- ")]
        if len(cuts) > _MOST_DOCUMENTS:
            raise InputError(f"has more than {_MOST_DOCUMENTS} documents", self.path, cuts[_MOST_DOCUMENTS] + 1)
        found = []
        for start, end in zip([0, *cuts], [*cuts, len(self.lines)]):
            if any(line.strip() and not line.lstrip().startswith("#") for line in self.lines[start:end]):
                found.append(Document("\n" * start + "\n".join(self.lines[start:end]), self.path))
        return found

    def placed(self, value: Value) -> list[Placed]:
        """Return the lines of a text, each located in the file after the previous one."""
        found: list[Placed] = []
        at = min(value.line, len(self.lines)) - 1  # YAML also ends lines at a lone carriage return
        for piece in str(value.content).rstrip("\n").split("\n"):
            words = piece.strip()
            ahead = range(at, min(at + _AHEAD, len(self.lines))) if words else ()
            line = next((number for number in ahead if words in self.lines[number]), None)
            if line is None:
                found.append(Placed(min(at, len(self.lines) - 1) + 1, piece, None if words else self._starts[at]))
                continue
            found.append(Placed(line + 1, words, self._starts[line] + self.lines[line].index(words)))
            at = min(line + 1, len(self.lines) - 1)
        return found

    def find(self, text: str, line: int) -> int | None:
        """Return the offset of a text on a line; ``None`` if it is written differently."""
        at = self.lines[line - 1].find(text) if line <= len(self.lines) else -1
        return self._starts[line - 1] + at if at >= 0 else None

    def edited(self, script: InstallScript, values: Iterable[Value]) -> None:
        """Pass the shell text of values to the editor of install commands; text that is written differently is skipped."""
        from compat.formats.edit.files import joined

        for value in values:
            lines = self.placed(value)
            pieces = [(each.text, each.offset) for each in lines if each.offset is not None]
            if len(pieces) < len(lines):
                continue
            before = self.text[pieces[0][1] - 1 : pieces[0][1]]
            outer = before if before in ("'", '"') and len(lines) == 1 else ""
            script.read(joined(part for text, at in pieces for part in ((text, at), ("\n", at + len(text)))), outer)


def without_templates(text: str) -> str:
    """Return the text of a template at the same length: control lines become blank, placeholders become variables."""
    lines = text.split("\n")
    steers = (_CONTROL.match(line) is not None and line.rstrip().endswith("}}") for line in lines)
    return "\n".join(" " * len(line) if blank else _filled(line) for line, blank in zip(lines, steers))


def _filled(line: str) -> str:
    """Replace each ``{{ … }}`` and ``${{ … }}`` in a line by ``${....}``."""
    parts: list[str] = []
    at = 0
    while (start := line.find("{{", at)) >= 0 and (end := line.find("}}", start + 2)) >= 0:
        start -= start > at and line[start - 1] == "$"
        parts += line[at:start], "${", "." * (end - start - 1), "}"
        at = end + 2
    return "".join((*parts, line[at:]))


def is_known(text: str | None) -> bool:
    """Whether a text is not empty and has no placeholder."""
    return bool(text) and "$" not in str(text)


def known_version(text: str | None) -> str | None:
    """Return the text if it is a version; ``None`` if it is not, or has a placeholder."""
    return text if text is not None and is_version(text) else None


def devices(name: str | None, count: int | None, vendor: str | None = None) -> tuple[Accelerator, ...] | None:
    """Return ``count`` GPUs of a name; ``None`` if the number is unknown."""
    if count is None or count > _MOST_GPUS:
        return None
    return (Accelerator(vendor=vendor, name=name if is_known(name) else None),) * count


@record(frozen=True)
class Script:
    """Shell text that a job runs; ``certain`` unless it is under a condition."""

    lines: tuple[Placed, ...]
    certain: bool = True
    directory: str | None = None


class Job:
    """A job of a file: what its image, scripts and requirements install, and its other commands.

    ``here``: its commands run in the project's folder, whose files may be opened.
    """

    def __init__(self, path: str, *, image: str | None = None, line: int = 1, here: bool = True) -> None:
        self.path = path
        self.image = image
        self.stack = known_stack(image) if is_known(image) and image is not None else Environment()
        self.folders = WorkingFolders(path)
        if not here:
            self.folders.folders = []
        self.files = InstallFiles(path, self.folders)
        self.others: list[tuple[ShellCommand, int]] = []
        self.exported: dict[str, str] = {}
        self._steps: list[Step] = []
        if self.stack.distributions:
            self._steps.append(Command(Install(requirements=self.stack.distributions), path, ((line, ""),)))

    def run(self, script: Script, variables: Mapping[str, str] = EMPTY) -> None:
        """Read a script that runs after the previous ones."""
        lines: list[Line] = [(each.number, each.text) for each in script.lines]
        if script.directory is not None:
            lines.insert(0, (lines[0][0] if lines else 1, f"cd {script.directory}"))
        read = ShellSteps(lines, lambda number: f"{self.path}:{number}", variables)
        self._steps += read.steps if script.certain else alternatives([read.steps, []])
        self.others += read.others
        self.exported.update(read.exported)
        for number, problem in read.unread:
            self.files.not_read(f"{self.path}:{number}", problem)

    def install(self, text: str, line: int) -> None:
        """Install one requirement, or one line of a list of them, as pip accepts it."""
        notes: list[str] = []
        found = requirement(text, notes) if text.strip() and not text.lstrip().startswith(("-", "#")) else None
        for note in notes:
            self.files.note(f"{self.path}:{line}", note)
        if text.lstrip().startswith(("-r ", "--requirement ")):
            self.requirements(text.split(None, 1)[1], line)
        elif found is not None:
            self.step(Install(requirements=(found,)), line)

    def step(self, install: Install, line: int) -> None:
        """Apply one install command."""
        self._steps.append(Command(install, f"{self.path}:{line}", ((line, ""),)))

    def requirements(self, file: str, line: int) -> None:
        """Install a requirements file."""
        self.step(Install(files=(file.strip(),)), line)

    def listing(
        self, kind: str, *, label: str | None = None, context: Environment, workload: Workload | None = None,
        variables: Mapping[str, str] = EMPTY,
    ) -> Listing:  # fmt: skip
        """Return the listing of the job; ``context`` is what the file itself specifies about the machine and Python."""
        installs = Installs(self.files)
        installs.run(self._steps)
        entries, edges = installs.listed()
        python = context.python or installs.python or self.stack.python
        whole = python is not None and python.count(".") == 2
        known = without_secrets({name: value for name, value in variables.items() if value and is_known(value)})
        return Listing(
            self.path, kind, entries, edges, label=label, requires_python=None if python is None or whole else f"=={python}.*",
            context=Environment(
                python=python if whole else None, os=context.os or self.stack.os, machine=context.machine,
                glibc=self.stack.glibc, cuda_toolkit=context.cuda_toolkit or self.stack.cuda_toolkit,
                accelerators=context.accelerators, variables=known or None, workload=workload,
            ),
            notes=tuple(printable(_FILLED.sub("{{ … }}", each)) for each in self.files.notes),
            unread=tuple(map(printable, self.files.unread)),
        )  # fmt: skip

    @property
    def says_something(self) -> bool:
        """Whether anything was installed, or should have been read."""
        return bool(self._steps or self.files.unread)
