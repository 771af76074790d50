"""A Dockerfile → what its stages install, their base image and variables, and the workload they start.

Nothing is built or run, and only files of the build context are opened.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence

from compat.errors import InputError, printable
from compat.formats.docker.run import Run
from compat.formats.docker.stage import MACHINES, Stage, substituted, unresolved
from compat.formats.docker.text import Dockerfile, Instruction, json_words, parse_dockerfile, read_commands, without_documents
from compat.formats.entrypoint import started
from compat.formats.include import BuildContext, Copied
from compat.formats.installs.edit import InstallScript
from compat.formats.installs.files import InstallFormat
from compat.formats.installs.unread import mentions_install
from compat.formats.listing import Listing
from compat.model import EMPTY, Environment, Workload
from compat.records import replace
from compat.redact import excerpt, is_secret
from compat.syntax.shell import written_words
from compat.workload.wrappers import SHELLS, program_name

# --- The instructions, applied stage by stage. Versions come from install commands (with Docker's and the shell's variables
# substituted), the tags of base images, and requirements, projects and lock files of the build context.


_MOST_STAGES = 200
_SHELLS = (*SHELLS, "pwsh", "powershell", "cmd")
_MOST_TRIGGERS = 20
_NOTHING = ("EXPOSE", "HEALTHCHECK", "LABEL", "MAINTAINER", "STOPSIGNAL", "USER", "VOLUME", "CROSS_BUILD")
"""Instructions that do not affect the software."""
_INTERPRETER_FOLDERS = frozenset((
    "site-packages", "dist-packages", "venv", ".venv", "env", "virtualenv", "conda", "miniconda", "miniconda3", "miniforge3",
    "mambaforge", "micromamba", ".local", "python",
))  # fmt: skip
"""Environment folders: copying one copies what is installed in it (``COPY --from=build /opt/venv /opt/venv``)."""


def read_dockerfile(
    path: str, text: str, arguments: Mapping[str, str] = EMPTY, target: str | None = None
) -> tuple[Listing, ...]:
    """Return one listing per deployed stage: the last one, and each that no other stage builds on.

    ``arguments`` are build arguments (``--build-arg``), ``target`` is the stage to build. Raises :class:`InputError`
    with the line for what Docker would reject too: no ``FROM``, an unknown instruction, an unfinished here-document.
    """
    reader = _Reader(path, parse_dockerfile(path, text), arguments)
    reader.read()
    stages = reader.deployed(target)
    return tuple(reader.listing(stage, several=len(stages) > 1) for stage in stages)


class _Reader:
    """Applies the instructions to the stages, in order."""

    def __init__(self, path: str, dockerfile: Dockerfile, arguments: Mapping[str, str]) -> None:
        self.path = path
        self.dockerfile = dockerfile
        self.given = arguments
        self.globals: dict[str, str] = {}
        self.stages: list[Stage] = []
        self.context = BuildContext(path)

    def read(self) -> None:
        """Apply every instruction."""
        for instruction in self.dockerfile.instructions:
            if instruction.name == "FROM":
                self._from(instruction)
            elif self.stages:
                self._apply(self.stages[-1], instruction)
            elif instruction.name == "ARG":
                for name, default in self._values(instruction, self.globals):
                    value = self.given.get(name, default)
                    if value is not None and not unresolved(value) and len(self.globals) < 1000:
                        self.globals[name] = value
            elif not self.dockerfile.template:
                raise InputError(f"expected FROM, not {excerpt(instruction.name, 30)}", self.path, instruction.line)
        if not self.stages:
            raise InputError("expected a Dockerfile with at least one FROM", self.path, 1)

    def _from(self, instruction: Instruction) -> None:
        words = [word.value for word in written_words(instruction.text)]
        if not words or len(self.stages) >= _MOST_STAGES:
            wanted = "an image after FROM" if not words else f"at most {_MOST_STAGES} stages"
            raise InputError(f"expected {wanted}", self.path, instruction.line)
        if len(words) != 1 and (len(words) != 3 or words[1].upper() != "AS") and not self.dockerfile.template:
            raise InputError("expected FROM IMAGE or FROM IMAGE AS NAME", self.path, instruction.line)
        image = substituted(words[0], self.globals, self.dockerfile.escape)
        name = words[2].lower() if len(words) > 2 and words[1].upper() == "AS" else None
        parent = self._stage(image)
        stage = Stage(self.path, len(self.stages), name, instruction.line, self.context, parent)
        self.stages.append(stage)
        platform = substituted(instruction.flag("platform") or "", self.globals)
        if platform:  # linux/arm64
            stage.machine = MACHINES.get(platform.partition("/")[2].partition("/")[0])
        if parent is None:
            stage.start(image)
            if unresolved(image):
                stage.note(instruction.line, f"the base image {image} is only known at build time")
            return
        parent.used = True
        for trigger in parent.triggers:
            self._apply(stage, trigger)

    def _stage(self, name: str) -> Stage | None:
        """Return an earlier stage by name or number."""
        for stage in reversed(self.stages):
            if stage.name == name.lower():
                return stage
        number = int(name) if name.isascii() and name.isdecimal() and len(name) < 5 else len(self.stages)
        return self.stages[number] if number < len(self.stages) else None

    def _apply(self, stage: Stage, instruction: Instruction) -> None:
        name, known, escape = instruction.name, stage.known(), self.dockerfile.escape
        if name == "RUN":
            stage.files.mounts = self._mounts(stage, instruction)
            Run(stage, instruction).read()
        elif name == "ENV":
            for key, value in self._values(instruction, known):
                if value is not None:
                    stage.set(key, value)
        elif name == "ARG":
            for key, default in self._values(instruction, known):
                stage.declare(key, default, self.globals, self.given)
        elif name in ("COPY", "ADD"):
            stage.compiler = "" if "cuda" in instruction.text else stage.compiler
            self._copy(stage, instruction)
        elif name == "WORKDIR":
            stage.files.workdir = stage.files.place(substituted(instruction.text, known, escape))
        elif name == "CMD":
            stage.command, stage.own_command, stage.starter = _started(instruction), True, instruction
        elif name == "ENTRYPOINT":
            stage.entrypoint, stage.starter = _started(instruction), instruction
            stage.command = stage.command if stage.own_command else None
        else:
            self._other(stage, instruction)

    def _values(self, instruction: Instruction, known: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
        """Yield the variables of an ``ARG`` or ``ENV`` with their values; ``None`` for one without a value."""
        for each in instruction.settings():
            yield each.name, None if each.value is None else substituted(each.value, known, self.dockerfile.escape)

    def _other(self, stage: Stage, instruction: Instruction) -> None:
        if instruction.name == "ONBUILD":
            name, _, text = instruction.text.partition(" ")
            if len(stage.triggers) >= _MOST_TRIGGERS:
                raise InputError(f"expected at most {_MOST_TRIGGERS} ONBUILD in a stage", self.path, instruction.line)
            stage.triggers.append(replace(instruction, name=name.upper(), text=text.strip(), words=json_words(text)))
        elif instruction.name == "SHELL":
            words = instruction.words or ()
            stage.other_shell = bool(words) and not any(program_name(word) in _SHELLS for word in words)
        elif instruction.name in _NOTHING:
            return
        elif self.dockerfile.template or "docker/dockerfile" not in (self.dockerfile.syntax or "docker/dockerfile"):
            stage.not_read(instruction.line, f"{excerpt(instruction.name, 30)} is an unknown instruction")
        else:
            raise InputError(
                f"expected an instruction such as FROM or RUN, not {excerpt(instruction.name, 30)!r}",
                self.path,
                instruction.line,
            )

    def _mounts(self, stage: Stage, instruction: Instruction) -> list[Copied]:
        """Return the bind mounts of the build context in a RUN."""
        found: list[Copied] = []
        for flag in instruction.flags:
            if not flag.startswith("--mount="):
                continue
            options = dict(each.partition("=")[::2] for each in flag[8:].strip("\"'").split(","))
            other = self._stage(options["from"]) if "from" in options else None
            if other is not None:
                other.used = True
            if options.get("type", "bind") != "bind" or "from" in options:
                continue
            target = options.get("target") or options.get("dst") or options.get("destination") or "."
            source = _in_context(options.get("source") or options.get("src") or ".")
            self.context.add_sources([source])
            found.append(Copied((substituted(source, stage.known()),), stage.files.place(substituted(target, stage.known()))))
        return found

    def _copy(self, stage: Stage, instruction: Instruction) -> None:
        known, escape = stage.known(), self.dockerfile.escape
        text = without_documents(instruction.text) if instruction.documents else instruction.text
        words = instruction.words if instruction.words is not None else [word.value for word in written_words(text)]
        *sources, target = [substituted(word, known, escape) for word in words] or [""]
        place = stage.files.place(target)
        for document in instruction.documents:
            stage.files.documents[place] = document
        origin = instruction.flag("from")
        if origin is not None:
            self._copy_stage(stage, self._stage(substituted(origin, known, escape)), sources, place, instruction.line)
            return
        if stage.system == "scratch" and any("://" in source and ".git" in source for source in sources):
            # FROM scratch with the repository itself is a placeholder for a build context
            stage.files.copies.append(Copied((".",), place))
        stage.download([*(source for source in sources if "://" in source), place])
        here = tuple(_in_context(source) for source in sources if "://" not in source)
        if here:
            self.context.add_sources(here)
            stage.files.copies.append(Copied(here, place))

    def _copy_stage(self, stage: Stage, other: Stage | None, sources: Sequence[str], place: str, line: int) -> None:
        """``COPY --from``: copy the other stage's build context files, and its installs along with an environment folder."""
        if other is None:
            return
        other.used = True
        origins = [
            each for source in sources for each in self.context.sources(other.files.place(source, "/"), other.files.copies)
        ]
        if origins:
            stage.files.copies.append(Copied(tuple(origins), place))
        places = [other.files.place(source, "/") for source in sources]
        has_environment = any(_contains(place, file) for place in places for file in other.project_files)
        if has_environment or any(map(_is_environment, sources)):
            stage.installs.take(other.installs)
            stage.files.notes.update(other.files.notes)
            stage.files.unread.update(other.files.unread)
            stage.files.elsewhere.update(other.files.elsewhere)
        elif other.has_installed:
            name, copied = other.name or f"stage {other.number}", excerpt(", ".join(sources), 80)
            stage.note(line, f"what {excerpt(name, 40)} installs was not read: only {copied} is copied")

    def deployed(self, target: str | None) -> list[Stage]:
        """Return the deployed stages in file order."""
        if target is not None:
            stage = self._stage(target)
            if stage is None:
                raise InputError(f"expected a stage named {target!r}", self.path)
            return [stage]
        *others, last = self.stages
        relevant = [each for each in others if each.installs.entries() or each.installs.locks or each.files.unread]
        return [*(stage for stage in relevant if not stage.used), last]

    def listing(self, stage: Stage, *, several: bool) -> Listing:
        if stage.starter is not None:
            Run(stage, stage.starter).read_start([*(stage.entrypoint or ()), *(stage.command or ())])
        for trigger in stage.triggers:
            if trigger.name == "RUN" and mentions_install(trigger.text):
                stage.not_read(trigger.line, "what ONBUILD installs in the images built on this one was not read")
        entries, edges = stage.installs.listed()
        workload, variables = self._started(stage)
        kept = {name: value for name, value in variables.items() if value and not unresolved(value) and not is_secret(name)}
        stack = stage.stack or Environment()
        context = Environment(
            python=stage.installs.python, os=stack.os, machine=stage.machine, glibc=stack.glibc, cuda_toolkit=stage.toolkit,
            variables=kept or None, workload=workload,
        )  # fmt: skip
        if self.dockerfile.template:
            stage.note(1, "a template; all branches of its conditions were read")
        return Listing(
            self.path, "dockerfile", entries, edges, context=context,
            label=(stage.name or f"stage {stage.number}") if several else None,
            notes=tuple(map(printable, stage.files.notes)), unread=tuple(map(printable, stage.files.unread)),
            elsewhere=tuple(map(printable, stage.files.elsewhere)), closed=stage.closed and not stage.files.unread,
            loose=tuple(stage.files.loose), branches=stage.branches, indexes=stage.installs.indexes(),
            together=stage.installs.together(), stated=frozenset(pin for each in self.stages for pin in each.installs.stated()),
        )  # fmt: skip

    def _started(self, stage: Stage) -> tuple[Workload | None, dict[str, str]]:
        """Return the workload that the container starts, and its variables including those that its command sets."""
        options_only = stage.entrypoint is None and stage.command is not None and stage.command[0].startswith("-")
        launch = started(
            stage.server if options_only else stage.entrypoint, stage.command, stage.variables, stage.files.workdir,
            lambda name: self.context.find(stage.files.place(name), stage.files.copies),
        )  # fmt: skip
        if launch is None:
            return None, stage.variables
        for note in launch.notes:
            stage.note(stage.line, note)
        return launch.workload, {**stage.variables, **launch.variables}


def _started(instruction: Instruction) -> tuple[str, ...] | None:
    """Return the words of a CMD or an ENTRYPOINT; the shell form becomes ``sh -c``. ``None`` for an empty one."""
    if instruction.words is not None:
        return instruction.words or None
    return ("sh", "-c", instruction.text)


def _in_context(source: str) -> str:
    """Return a path without leading ``../``, which BuildKit drops: nothing above the context is reachable."""
    parts = source.lstrip("/").split("/")
    while parts and parts[0] in (".", ".."):
        parts = parts[1:]
    return "/".join(parts) or "."


def _contains(folder: str, file: str) -> bool:
    """Whether a copied folder contains the project of a lock file, or is its environment."""
    project = posixpath.dirname(file)
    return folder != "/" and (project == folder or project.startswith(f"{folder}/") or folder == f"{project}/.venv")


def _is_environment(source: str) -> bool:
    parts = source.strip("/").split("/")
    return not _INTERPRETER_FOLDERS.isdisjoint(parts) or parts in (["usr", "local"], ["usr", "local", "lib"], ["install"])


class DockerfileFormat(InstallFormat):
    """A Dockerfile: one listing per deployed stage."""

    kind = "dockerfile"
    apply = "docker build --file {path} {folder}"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return read_dockerfile(path, text)

    def collect(self, script: InstallScript) -> None:
        read_commands(script)
