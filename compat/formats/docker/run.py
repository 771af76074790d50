"""``RUN`` of a Dockerfile: its commands, applied to the stage in order."""

from __future__ import annotations

import posixpath
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from compat.errors import InputError
from compat.files import decode_utf8
from compat.formats.docker.base_images import (
    mentions_compiler,
    system_python,
)
from compat.formats.docker.stage import Stage
from compat.formats.docker.text import HereDocument, Instruction
from compat.formats.include import Missing, NotRead
from compat.formats.installs.command import install_of, with_inline
from compat.formats.installs.shell import ShellSteps
from compat.formats.installs.unread import (
    DOWNLOADERS,
    is_shell_script,
    made_commands,
    mentions_install,
    started_script,
    unread_install,
)
from compat.formats.installs.words import AT_RUN_TIME, COMPILED_AT_INSTALL, IMAGE_CONSTRAINT, Command, Line
from compat.formats.pins import pins_of
from compat.formats.registry import PROGRAMS
from compat.model import Distribution, normalized
from compat.records import replace
from compat.syntax.shell_commands import ShellCommand, commands_of
from compat.workload.wrappers import (
    SHELLS,
    handed_to_shell,
    program_name,
    shell_call,
    shell_script,
    unwrapped,
    with_input_named,
)

_RELEVANT = ("pip", "uv", "conda", "mamba", *PROGRAMS, "setup.py", "apt", "yum", "dnf", ".sh", "make")
"""A RUN without any of these installs nothing relevant."""
_BRANCHES = ("if", "case", "elif", "else", "then")
_OTHER_SOURCES = ("-f", "-i", "--find-links", "--index-url", "--extra-index-url", "--index", "--default-index")
"""Options that name where wheels may be that the index does not have."""
_SYSTEM = ("apt", "apt-get", "yum", "dnf", "microdnf")
_BLANKS = str.maketrans(dict.fromkeys("\"'=<>[]@/;~!,`()&|", " "))


class Run:
    """A ``RUN`` being read."""

    def __init__(self, stage: Stage, instruction: Instruction) -> None:
        self.stage = stage
        self.instruction = instruction
        self.places = _Places(instruction)

    def read(self) -> None:
        """Apply what the instruction installs to the stage."""
        instruction, known = self.instruction, self.stage.known()
        if self.stage.other_shell and instruction.words is None:
            if mentions_install(instruction.text):
                self.stage.not_read(instruction.line, "what the RUN installs was not read: SHELL is not a shell")
            return
        text = instruction.text if instruction.words is None else " ".join(instruction.words)
        if (document := instruction.script) is not None:
            text = document.text if document.is_shell else ""
            self.places.at = document.line
            if not document.is_shell and mentions_install(document.text):
                self.stage.not_read(document.line, "what the here-document installs was not read: it is not a shell script")
        elif instruction.documents:
            text = "\n".join((text, *(f"{each.text}\n{each.name}" for each in instruction.documents)))
        if mentions_compiler(text):
            self.stage.compiler = ""
        if IMAGE_CONSTRAINT in text or "PIP_CONSTRAINT" in text:  # which it empties, edits or leaves out
            self.stage.files.of_image.clear()
        before, installed = self.stage.installs.changes, self.stage.installs.copied(self.stage.files)
        is_skipped = False
        if instruction.words is not None:
            commands = [ShellCommand(list(instruction.words), {}, {}, None)]
        else:
            skipped: list[str] = []
            commands = commands_of(text, (), known, skipped=skipped)
            is_skipped = any(map(mentions_install, skipped))
        self._apply_all(commands, known)
        if is_skipped or (not commands and " install" in text and any(word in text for word in _RELEVANT)):
            # the shell reader skips a command with unbalanced quotes: it may have installed something
            self.stage.not_read(self.places.at, "the RUN was not read: unbalanced quotes")
        if not set(_BRANCHES).isdisjoint(text.split()) and self.stage.installs.changes != before:
            self.stage.note(instruction.line, "installs under a condition; every branch was read, the last one counts")
            lines = [(instruction.line, each) for each in text.split("\n")]
            alone = installed.copied(self.stage.files)
            alone.run(ShellSteps(lines, lambda _: f"{self.stage.path}:{instruction.line}", known).steps)
            self.stage.branches += alone.branches(installed)

    def read_start(self, words: Sequence[str]) -> None:
        """Apply what the command of the container installs when it starts; a script of the project is only named."""
        text = handed_to_shell(words)
        known = self.stage.known()
        if text is not None and mentions_install(text):
            self._apply_all(commands_of(text, (), known), known)
            return
        for started in [list(words)] if text is None else (each.words for each in commands_of(text, (), known)):
            started = unwrapped(started, {})
            name = started_script(started) or "".join(started[:1])
            try:
                script = self.stage.files.find(name, None).content.decode("utf-8", "replace")
            except NotRead:
                continue
            is_shell = name != started[0] or name.endswith(".sh") or is_shell_script(script)
            if is_shell and mentions_install(script):
                where = f"{self.stage.path}:{self.instruction.line}"
                self.stage.files.not_here(where, f"what {name} installs when the container starts was not read")
                self.stage.files.loose += pins_of(name, script)

    def _apply_all(self, commands: Iterable[ShellCommand], known: Mapping[str, str]) -> None:
        for each in commands:
            for command in _unwrapped_commands(each, known, 0):
                self._apply(command)

    def _apply(self, command: ShellCommand) -> None:
        for name, written in command.written.items():
            self._write(self.stage.files.place(name, command.directory), written, appended=name in command.appended)
        if command.words and program_name(command.words[0]) in DOWNLOADERS:
            self.stage.download(command.words[1:])
        if command.copied is not None:
            self.stage.files.copy(*(self.stage.files.place(name, command.directory) for name in command.copied))
        self.stage.files.made.update(self.stage.files.place(name, command.directory) for name in command.made)
        if (folder := _created_environment(command.words)) is not None:
            self.stage.project_files.add(self.stage.files.place(f"{folder}/pyvenv.cfg", command.directory))
        install = with_inline(command.words, install_of(command.words, command.variables))
        if install is None:
            self._other(command)
            return
        self.stage.has_installed = True
        install = replace(install, unknown=(*install.unknown, f"$@: {AT_RUN_TIME}")) if command.open_ended else install
        if not any(word.startswith(_OTHER_SOURCES) for word in command.words):
            install = replace(install, requirements=tuple(map(self._on_image, install.requirements)))
        self.stage.project_files.update(self.stage.files.place(each.file, command.directory) for each in install.locks)
        line = self.places.line_of(("install", "add", "sync", "uninstall", "create"))
        where, made = f"{self.stage.path}:{line}", self.stage.files.made
        placed = Command(install, where, directory=command.directory, made=made, computed=command.computed)
        self.stage.installs.install(placed, lambda name: self.places.line_of((name,)))
        if install.runs:
            self._other(command)

    def _on_image(self, found: Distribution) -> Distribution:
        """Return a requirement; one that is compiled for CUDA says on which image, and whether that has a compiler."""
        mark = self.stage.compiler
        if found.name not in COMPILED_AT_INSTALL or not mark or mentions_compiler(" ".join(self.stage.known())):
            return found
        return replace(found, extra={**found.extra, mark: self.stage.system})

    def _write(self, place: str, text: str, *, appended: bool) -> None:
        """Keep the text of a file that a command writes; one that is no here-document is on the line of the command."""
        line = next(
            (each.line for each in self.instruction.documents if each.text.rstrip("\n") == text.rstrip("\n")), self.places.at
        )
        files = self.stage.files
        copied = appended and place not in files.documents and files.context.find(place, files.copies) is not None
        kept = files.additions if copied else files.documents
        if appended and place in kept and not text.startswith(kept[place].text):  # by another RUN
            text, line = kept[place].text + text, kept[place].line
        kept[place] = HereDocument("", text, line)

    def _other(self, command: ShellCommand) -> None:
        """Handle a command that does not install Python distributions; it was unwrapped once without an error."""
        rest = unwrapped(command.words, {})
        name = program_name(rest[0]) if rest else ""
        if name in _SYSTEM and "install" in rest:
            self._packages(rest[rest.index("install") + 1 :])
        elif (script := self._script_of(rest, command)) is not None:
            self._script(script, command)
        elif (text := made_commands(rest, command.directory, self.stage.files.text)) is not None:
            line = self.places.line_of((rest[0],))
            self._run_lines([(line, each) for each in text.split("\n")], name, line, command)
        elif (unread := unread_install(command, self.stage.files.text)) is not None:
            line = self.places.line_of((name,))
            self.stage.files.loose += unread.pins
            if not unread.text:
                return
            if unread.elsewhere:
                self.stage.files.not_here(f"{self.stage.path}:{line}", unread.text)
            else:
                self.stage.not_read(line, unread.text)

    def _script_of(self, words: Sequence[str], command: ShellCommand) -> str | None:
        """Return the shell script that a command runs: an operand of a shell, or a program of the build context."""
        name = program_name(words[0]) if words else ""
        if not name:
            return None
        if name in (*SHELLS, ".", "source") or name.endswith(".sh"):
            script = shell_script(words)
            return None if script is None or "(" in script else script
        place = words[0] if name != words[0] else f"/usr/local/bin/{name}"
        try:
            opened = self.stage.files.find(place, command.directory)
        except NotRead:
            return None
        return place if is_shell_script(opened.content.decode("utf-8", "replace")) else None

    def _script(self, script: str, command: ShellCommand) -> None:
        """Apply what a shell script of the image installs; the places of one from the build context are those of the RUN."""
        line = self.places.line_of((script,))
        try:
            opened = self.stage.files.find(script, command.directory)
        except Missing:
            if "install" in script or posixpath.basename(script) in self.stage.downloaded:
                self.stage.files.not_here(f"{self.stage.path}:{line}", f"what {script} installs was not read")
            return
        except NotRead as reason:
            self.stage.not_read(line, f"what {script} installs was not read: {reason}")
            return
        within = opened.path == self.stage.path  # a here-document
        texts = decode_utf8(opened.path, opened.content).splitlines()
        lines = [(opened.before + number if within else line, each) for number, each in enumerate(texts, 1)]
        self._run_lines(lines, script, line, command)

    def _run_lines(self, lines: Sequence[Line], script: str, line: int, command: ShellCommand) -> None:
        """Apply what the lines of a script install, which a command on ``line`` starts."""
        where = f"{self.stage.path}:{line}"
        read = ShellSteps(lines, lambda _: where, command.variables, opened=self.stage.files.text)
        self.stage.installs.run(read.steps)
        self.stage.files.loose += read.loose
        for _, problem in read.unread:
            self.stage.not_read(line, f"{script}: {problem}")
        for _, remark in read.elsewhere:
            self.stage.files.not_here(where, f"{script}: {remark}")

    def _packages(self, packages: Sequence[str]) -> None:
        """Handle relevant system packages: Python and the CUDA toolkit."""
        for package in packages:
            version = package.removeprefix("python").partition("-")[0]
            if package.startswith("python") and version.startswith("3.") and version.isascii() and version[2:].isdecimal():
                self.stage.installs.python = version
            elif package in ("python3", "python3-dev", "python3-venv", "python3-pip") and self.stage.installs.python is None:
                self.stage.installs.python = system_python(self.stage.system or "")
            mark, _, release = package.partition("-toolkit-") if "-toolkit-" in package else package.partition("-")
            parts = release.split("-")
            if mark == "cuda" and len(parts) == 2 and all(part.isascii() and part.isdecimal() for part in parts):
                self.stage.toolkit = ".".join(parts)


def _created_environment(words: Sequence[str]) -> str | None:
    """Return the folder of the environment that ``python -m venv``, ``uv venv`` or ``virtualenv`` creates."""
    if not any(program_name(word) in ("venv", "virtualenv") for word in words[:4]):
        return None
    return ".venv" if words[-1].startswith("-") or words[-1] == "venv" else words[-1]


def _unwrapped_commands(command: ShellCommand, known: Mapping[str, str], depth: int) -> Iterator[ShellCommand]:
    """Yield a command, or those it passes to a shell (``bash -c``), with all the variables that each sees."""
    variables = {**known, **command.exported}
    words = with_input_named(command.words, command.source)
    try:
        rest = unwrapped(words, variables)
    except InputError:
        return
    call = shell_call(rest) if rest and program_name(rest[0]) in SHELLS else None
    text = handed_to_shell(rest) if call is None else command.taken if call.script is None and call.text is None else call.text
    if text is not None and depth < 4:
        for inner in commands_of(text, () if call is None else call.arguments, variables):
            inner.directory = inner.directory or command.directory
            yield from _unwrapped_commands(inner, variables, depth + 1)
        return
    found = ShellCommand(words, variables, {}, command.directory)
    found.taken, found.written, found.appended = command.taken, command.written, command.appended
    found.made, found.copied, found.source = command.made, command.copied, command.source
    found.open_ended, found.computed, found.piped_from = command.open_ended, command.computed, command.piped_from
    yield found


class _Places:
    """The physical lines of an instruction, indexed by word; searched forwards only."""

    def __init__(self, instruction: Instruction) -> None:
        self.at = instruction.line
        self._instruction = instruction
        self._lines: dict[str, list[int]] | None = None

    def line_of(self, words: Sequence[str]) -> int:
        """Return the next line with one of the words (or the distribution of that name), else the current one."""
        if self._lines is None:
            self._lines = {}
            for piece in (*self._instruction.lines, *(line for each in self._instruction.documents for line in each.pieces)):
                for word in piece.text.translate(_BLANKS).split():
                    for name in {word, normalized(word), normalized(word.partition("-")[0])}:
                        self._lines.setdefault(name, []).append(piece.number)
        places = [self._lines.get(word, []) for word in words]
        following = [lines[at] for lines in places if (at := bisect_left(lines, self.at)) < len(lines)]
        self.at = min(following, default=self.at)
        return self.at
