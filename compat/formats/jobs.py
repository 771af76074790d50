"""Jobs in deployment files: shell text in YAML and JSON with its positions, and what a job installs.

A template (Helm, ``${{ … }}`` of workflows) is read with every placeholder as an unknown variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from compat.errors import InputError, printable
from compat.formats.docker.base_images import known_stack, server_of
from compat.formats.edit.files import joined
from compat.formats.entrypoint import is_job, read_job, started
from compat.formats.include import WorkingFolders
from compat.formats.installs.edit import InstallScript
from compat.formats.installs.files import InstallFiles, selected
from compat.formats.installs.shell import ShellSteps
from compat.formats.installs.steps import Installs, alternatives
from compat.formats.installs.unread import mentions_install
from compat.formats.installs.words import Command, Install, Line, LockInstall, requirement
from compat.formats.listing import Listing
from compat.formats.specifiers import is_version
from compat.model import EMPTY, Accelerator, Environment, Workload
from compat.records import record, replace
from compat.redact import excerpt, without_secrets
from compat.syntax.shell_commands import ShellCommand
from compat.syntax.yaml import Document, Value
from compat.workload.launch import COMMAND
from compat.workload.wrappers import handed_to_shell

_CONTROL = re.compile(r"[ \t]*\{\{-?[ \t]*(?:/\*|if|else|end|range|with|define|template|include|toYaml|tpl|\$\w+[ \t]*:?=)")
_FILLED = re.compile(r"\$\{(?!\.\.\.\})\.+\}")
DEFAULT_MEMORY = "default-shm"
"""The feature of a job whose container has Docker's 64 MiB of shared memory."""
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
        check_size(path, text, expected)
        self.path = path
        self.template = "{{" in text
        self.text = without_templates(text) if self.template else text
        self._written = text.split("\n")
        self.lines = self.text.split("\n")
        self._starts = list(accumulate((len(line) + 1 for line in self.lines), initial=0))

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

    def written_on(self, line: int) -> str:
        """Return a line with its placeholders; "" behind the last one: YAML also ends lines at a lone carriage return."""
        return self._written[line - 1] if line <= len(self._written) else ""

    def find(self, text: str, line: int) -> int | None:
        """Return the offset of a text on a line; ``None`` if it is written differently."""
        at = self.lines[line - 1].find(text) if line <= len(self.lines) else -1
        return self._starts[line - 1] + at if at >= 0 else None

    def edited(self, script: InstallScript, values: Iterable[Value]) -> None:
        """Pass the shell text of values to the editor of install commands; text that is written differently is skipped."""
        for value in values:
            lines = self.placed(value)
            pieces = [(each.text, each.offset) for each in lines if each.offset is not None]
            if len(pieces) < len(lines):
                continue
            before = self.text[pieces[0][1] - 1 : pieces[0][1]]
            outer = before if before in ("'", '"') and len(lines) == 1 else ""
            script.read(joined(part for text, at in pieces for part in ((text, at), ("\n", at + len(text)))), outer)


def check_size(path: str, text: str, expected: str) -> None:
    """Raise :class:`InputError` for a text that is too large to be a configuration."""
    if len(text) > LARGEST:
        raise InputError(f"is larger than {LARGEST // 1024 // 1024} MiB: expected {expected}", path)


def unread_installs(path: str, text: str) -> tuple[str, ...]:
    """Return what to say about a file in which nothing was found that installs, although a line looks like it.

    Recipes of a Makefile were read, and what runs in another container is not this file's.
    """
    for number, line in enumerate(text.split("\n"), 1):
        if "install" not in line or line.startswith("\t") or line.lstrip().startswith("#"):
            continue
        if "echo" not in line and "docker" not in line and mentions_install(line):
            return (f"{path}:{number}: the install command was not read: no command that the file starts contains it",)
    return ()


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


def variables_of(document: Document, value: Value | None, name: str) -> dict[str, str]:
    """Parse a table of variables; those without a known value are omitted."""
    table = document.table(value, name)
    found = {key: document.text(each, f"{name}.{key}") for key, each in table.items()}
    return {key: text for key, text in found.items() if text is not None and is_known(text)}


def is_known(text: str | None) -> bool:
    """Whether a text is not empty and has no placeholder."""
    return bool(text) and "$" not in str(text)


def known_version(text: str | None) -> str | None:
    """Return the text if it is a version; ``None`` if it is not, or has a placeholder."""
    return text if text is not None and is_version(text) else None


def count_of(text: str | None) -> int | None:
    """Return a number of GPUs, nodes or processes; ``None`` if unknown."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 5 else None


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


@record(frozen=True)
class Argument:
    """A word of a container's entry point or command, and the value in the file that contains it."""

    text: str
    value: Value


class Job:
    """A job of a file: what its image, scripts and requirements install, and what it starts.

    ``image`` is on ``line``; ``built``: the image is built by the project, so that its name says nothing about its content.
    ``here``: its commands run in the project's folder, whose files may be opened. ``where`` is the place of the job in notes.
    """

    def __init__(
        self, path: str, *, image: str | None = None, line: int = 1, built: bool = False, here: bool = True, where: str = "",
    ) -> None:  # fmt: skip
        self.path = path
        self.image = image
        self.where = where or path
        self.stack = known_stack(image) if image and is_known(image) and not built else Environment()
        self.folders = WorkingFolders(path)
        if not here:
            self.folders.folders = []
        self.files = InstallFiles(path, self.folders)
        self.workload: Workload | None = None
        self.variables: dict[str, str] = {}
        """The variables that the started command sets."""
        self.commands: list[tuple[ShellCommand, int]] = []
        """The commands of the scripts that install nothing, each with its line."""
        self.exported: dict[str, str] = {}
        """The variables that the scripts export."""
        self._installs = Installs(self.files)
        self.has_steps = False
        """Whether anything is installed."""
        if self.stack.distributions:
            self.step(Install(requirements=self.stack.distributions), line)

    def run(self, script: Script, variables: Mapping[str, str] = EMPTY) -> None:
        """Read a script that runs after the previous ones."""
        lines: list[Line] = [(each.number, each.text) for each in script.lines]
        if script.directory is not None:
            lines.insert(0, (lines[0][0] if lines else 1, f"cd {script.directory}"))
        read = ShellSteps(lines, lambda number: f"{self.path}:{number}", variables, opened=self.files.text)
        self._installs.run(read.steps if script.certain else alternatives([read.steps, []]))
        self.has_steps = self.has_steps or bool(read.steps)
        self.commands += read.others
        self.exported.update(read.exported)
        self.files.loose += read.loose
        for number, problem in read.unread:
            self.files.not_read(f"{self.path}:{number}", problem)
        for number, remark in read.elsewhere:
            self.files.not_here(f"{self.path}:{number}", remark)

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

    def lock(self, listing: Listing) -> None:
        """Install all that a listing has."""
        self._installs.lock(selected(listing, LockInstall(listing.file)))
        for note in listing.notes:
            self.files.notes[note] = None
        self.files.unread.update(dict.fromkeys(listing.unread))
        self.files.elsewhere.update(dict.fromkeys(listing.elsewhere))

    def step(self, install: Install, line: int) -> None:
        """Apply one install command."""
        self.has_steps = True
        self._installs.run([Command(install, f"{self.path}:{line}", ((line, ""),))])

    def requirements(self, file: str, line: int) -> None:
        """Install a requirements file."""
        self.step(Install(files=(file.strip(),)), line)

    def start_last_command(
        self, variables: Mapping[str, str] = EMPTY, scheduler: Mapping[str, str] = EMPTY, *, only_jobs: bool = False
    ) -> None:
        """Start the last job among the commands of the scripts; ``only_jobs``: unless it neither trains nor serves.

        ``scheduler`` are the variables that a scheduler sets for it.
        """
        found = read_job(self.path, self.commands, self.folders, {**variables, **self.exported}, scheduler)
        self.variables = dict(found.variables or {})
        for problem in found.unread:
            self.files.not_read("", problem)
        if only_jobs and (found.workload is None or not is_job(found.workload)):
            return
        self.workload = found.workload
        for note in found.notes:
            self.files.note("", note)

    def run_words(self, file: JobFile, words: Sequence[Argument], variables: Mapping[str, str]) -> None:
        """Read the script that the words of a container pass to a shell (``sh -c``), if any."""
        script = script_of(words)
        if script is None:
            return
        pieces = script.text.rstrip("\n").split("\n")
        lines = file.placed(script.value)
        if script.text != script.value.content:  # a part of a line, or with variables replaced
            numbers = [each.number for each in lines] if len(lines) == len(pieces) else [script.value.line] * len(pieces)
            lines = [Placed(number, piece, None) for number, piece in zip(numbers, pieces)]
        self.run(Script(tuple(lines)), variables)

    def start_container(
        self, place: str, entrypoint: Sequence[str] | None, command: Sequence[str] | None, variables: Mapping[str, str],
        *, default_memory: bool = False,
    ) -> None:  # fmt: skip
        """Start the image with an entry point (``None``: its own) and a command. ``place`` is the file and line of both.

        ``default_memory``: the container has the shared memory that Docker gives it by default.
        """
        if entrypoint is None and self.image:
            entrypoint = server_of(self.image)
        launch = started(entrypoint, command, variables, "", lambda _: None)
        if launch is None:
            return
        origins = {key: place if origin == COMMAND else origin for key, origin in launch.workload.origins.items()}
        features = launch.workload.features or ()
        if default_memory and is_job(launch.workload):
            features, origins = (*features, DEFAULT_MEMORY), {**origins, f"features.{DEFAULT_MEMORY}": place}
        self.workload = replace(launch.workload, origins=origins, features=features or None)
        self.variables = dict(launch.variables)
        for note in launch.notes:
            self.note(note)

    @property
    def is_relevant(self) -> bool:
        """Whether anything was installed or should have been read, or the job trains or serves."""
        return (
            self.has_steps
            or bool(self.files.unread or self.files.elsewhere or self.files.loose)
            or (self.workload is not None and is_job(self.workload))
        )

    def note(self, text: str) -> None:
        self.files.note(self.where, text)

    def note_image(self) -> None:
        """Add a note if the content of the image is unknown."""
        if self.image and not is_known(self.image):
            self.note(f"the image {excerpt(self.image, 200)} is only known at run time")
        elif self.image and not self.stack.distributions:
            self.note(f"the contents of the image {excerpt(self.image, 200)} are unknown")

    def listing(
        self, kind: str, *, label: str | None = None, context: Environment, variables: Mapping[str, str] = EMPTY
    ) -> Listing:
        """Return the listing of the job; ``context`` is what the file itself specifies about the machine and Python."""
        entries, edges = self._installs.listed()
        branches = self._installs.branches()
        python = context.python or self._installs.python
        exact = python if python is None or python.count(".") == 2 else None
        every = {**variables, **self.variables}
        known = without_secrets({name: value for name, value in every.items() if "$" not in value})
        return Listing(
            self.path, kind, entries, edges, label=label, requires_python=None if python == exact else f"=={python}.*",
            context=Environment(
                python=self.stack.python if python is None else exact, os=context.os or self.stack.os,
                machine=context.machine, glibc=self.stack.glibc, cuda_toolkit=context.cuda_toolkit or self.stack.cuda_toolkit,
                accelerators=context.accelerators, variables=known or None, workload=self.workload,
            ),
            notes=_shown(self.files.notes), unread=_shown(self.files.unread), elsewhere=_shown(self.files.elsewhere),
            together=self._installs.together(),
            stated=self._installs.stated(), branches=branches, loose=tuple(self.files.loose), indexes=self._installs.indexes(),
        )  # fmt: skip


def _shown(remarks: Iterable[str]) -> tuple[str, ...]:
    """Return remarks as they are printed, with placeholders as the file writes them."""
    return tuple(printable(_FILLED.sub("{{ … }}", each)) for each in remarks)


def script_of(words: Sequence[Argument]) -> Argument | None:
    """Return the script that the words of a container pass to a shell, if any."""
    inner = handed_to_shell([each.text for each in words])
    return next((each for each in reversed(words) if each.text == inner), None)


def texts_of(words: Sequence[Argument] | None) -> tuple[str, ...] | None:
    """Return the texts of the words of an entry point or a command."""
    return None if words is None else tuple(each.text for each in words)
