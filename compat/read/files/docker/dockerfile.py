"""Dockerfile and Containerfile → what its stages install, on which base, with which variables, and what they start.

Nothing is built or run. Versions come from what the file itself says: install commands with Docker's and the shell's
variables filled in, the tags of base images, and requirements, projects and lock files of the build context.
"""

from __future__ import annotations

from compat.environment import EMPTY, Environment
from compat.errors import InputError, printable
from compat.read.files.docker.build_context import BuildContext, Copied
from compat.read.files.docker.dockerfile_run import Run
from compat.read.files.docker.dockerfile_stage import Stage
from compat.read.files.docker.dockerfile_text import json_words, parse_dockerfile, without_documents, words_of
from compat.read.files.docker.dockerfile_variables import declared, pairs, substituted, unresolved
from compat.read.files.installs.lock_install import combined
from compat.read.files.listing import Listing
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compat.environment import Workload
    from compat.read.files.docker.dockerfile_text import Dockerfile, Instruction

_MOST_STAGES = 200
_MOST_TRIGGERS = 20
_NOTHING = ("EXPOSE", "HEALTHCHECK", "LABEL", "MAINTAINER", "STOPSIGNAL", "USER", "VOLUME", "CROSS_BUILD")
"""Instructions that say nothing about the software."""
_INTERPRETER_FOLDERS = frozenset((
    "site-packages", "dist-packages", "venv", ".venv", "env", "virtualenv", "conda", "miniconda", "miniconda3", "miniforge3",
    "mambaforge", "micromamba", ".local", "python",
))  # fmt: skip
"""Folders whose copy brings what is installed in them: ``COPY --from=build /opt/venv /opt/venv``."""


def read_dockerfile(
    path: str, text: str, arguments: Mapping[str, str] = EMPTY, target: str | None = None
) -> tuple[Listing, ...]:
    """One listing a stage that is deployed: the last one, and each that no other stage is made from.

    ``arguments`` are build arguments (``--build-arg``), ``target`` is the stage that is built. Raises :class:`InputError`
    naming the line for what Docker would not take either: no ``FROM``, an unknown instruction, an unfinished here-document.
    """
    reader = _Reader(path, parse_dockerfile(path, text), arguments)
    reader.read()
    stages = reader.deployed(target)
    return tuple(reader.listing(stage, several=len(stages) > 1) for stage in stages)


class _Reader:
    """The instructions in order, applied to the stages."""

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
                for name, default in declared(instruction.text, self.globals, self.dockerfile.escape):
                    value = self.given.get(name, default)
                    if value is not None and not unresolved(value) and len(self.globals) < 1000:
                        self.globals[name] = value
            elif not self.dockerfile.template:
                raise InputError(f"expected FROM, not {instruction.name[:30]}", self.path, instruction.line)
        if not self.stages:
            raise InputError("expected a Dockerfile with at least one FROM", self.path, 1)

    def _from(self, instruction: Instruction) -> None:
        words = [word for word, _, _ in words_of(instruction.text)]
        if not words or len(self.stages) >= _MOST_STAGES:
            wanted = "an image behind FROM" if not words else f"at most {_MOST_STAGES} stages"
            raise InputError(f"expected {wanted}", self.path, instruction.line)
        image = substituted(words[0], self.globals, self.dockerfile.escape)
        name = words[2].lower() if len(words) > 2 and words[1].upper() == "AS" else None
        parent = self._stage(image)
        stage = Stage(self.path, len(self.stages), name, instruction.line, parent)
        self.stages.append(stage)
        platform = substituted(instruction.flag("platform") or "", self.globals)
        if platform:
            stage.on_platform(platform)
        if parent is None:
            stage.start(image)
            if unresolved(image):
                stage.note(instruction.line, f"the base image {image} is only known when it is built")
            return
        parent.used = True
        for trigger in parent.triggers:
            self._apply(stage, trigger)

    def _stage(self, name: str) -> Stage | None:
        """An earlier stage by its name, or by its number."""
        for stage in reversed(self.stages):
            if stage.name == name.lower():
                return stage
        number = int(name) if name.isascii() and name.isdigit() and len(name) < 5 else len(self.stages)
        return self.stages[number] if number < len(self.stages) else None

    def _apply(self, stage: Stage, instruction: Instruction) -> None:
        name, known, escape = instruction.name, stage.known(), self.dockerfile.escape
        if name == "RUN":
            Run(stage, instruction, self.context, self._mounts(stage, instruction)).read(instruction)
        elif name == "ENV":
            for key, value in pairs(instruction.text, known, escape):
                stage.set(key, value)
        elif name == "ARG":
            for key, default in declared(instruction.text, known, escape):
                stage.declare(key, default, self.globals, self.given)
        elif name in ("COPY", "ADD"):
            self._copy(stage, instruction)
        elif name == "WORKDIR":
            stage.workdir = stage.place(substituted(instruction.text, known, escape))
        elif name == "CMD":
            stage.command, stage.own_command = _started(instruction), True
        elif name == "ENTRYPOINT":
            stage.entrypoint = _started(instruction)
            stage.command = stage.command if stage.own_command else None
        else:
            self._other(stage, instruction)

    def _other(self, stage: Stage, instruction: Instruction) -> None:
        if instruction.name == "ONBUILD":
            name, _, text = instruction.text.partition(" ")
            if len(stage.triggers) >= _MOST_TRIGGERS:
                raise InputError(f"expected at most {_MOST_TRIGGERS} ONBUILD in a stage", self.path, instruction.line)
            stage.triggers.append(replace(instruction, name=name.upper(), text=text.strip(), words=json_words(text)))
        elif instruction.name == "SHELL" or instruction.name in _NOTHING:
            return
        elif self.dockerfile.template or self._other_syntax():
            stage.not_read(instruction.line, f"{instruction.name[:30]} is no instruction that is known")
        else:
            raise InputError(
                f"expected an instruction such as FROM or RUN, not {instruction.name[:30]!r}", self.path, instruction.line
            )

    def _other_syntax(self) -> bool:
        syntax = self.dockerfile.syntax
        return syntax is not None and "docker/dockerfile" not in syntax

    def _mounts(self, stage: Stage, instruction: Instruction) -> list[Copied]:
        """The bind mounts of the build context that a RUN has."""
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
            source = options.get("source") or options.get("src") or "."
            self.context.wants([source])
            found.append(Copied((substituted(source, stage.known()),), stage.place(substituted(target, stage.known()))))
        return found

    def _copy(self, stage: Stage, instruction: Instruction) -> None:
        known, escape = stage.known(), self.dockerfile.escape
        text = without_documents(instruction.text) if instruction.documents else instruction.text
        words = instruction.words if instruction.words is not None else [word for word, _, _ in words_of(text)]
        *sources, target = [substituted(word, known, escape) for word in words] or [""]
        place = stage.place(target)
        for document in instruction.documents:
            stage.documents[place] = (document.text, document.line)
        origin = instruction.flag("from")
        if origin is not None:
            self._copy_stage(stage, self._stage(substituted(origin, known, escape)), sources, place)
            return
        if stage.system == "scratch" and any("://" in source and ".git" in source for source in sources):
            # FROM scratch with the repository itself is there to be replaced by a build context
            stage.copies.append(Copied((".",), place))
        here = tuple(source for source in sources if "://" not in source)
        if here:
            self.context.wants(here)
            stage.copies.append(Copied(here, place))

    def _copy_stage(self, stage: Stage, other: Stage | None, sources: Sequence[str], place: str) -> None:
        """``COPY --from``: files the other stage has from the build context; with an environment's folder all it installed."""
        if other is None:
            return
        other.used = True
        origins = [each for source in sources for each in self.context.sources(other.place(source, "/"), other.copies)]
        if origins:
            stage.copies.append(Copied(tuple(origins), place))
        if not any(_is_environment(source) for source in sources):
            return
        for entry in other.installed.entries():
            stage.installed.add(entry)
        stage.locks.update(other.locks)
        stage.gone |= other.gone
        stage.notes.update(other.notes)
        stage.unread.update(other.unread)
        stage.python = stage.python or other.python

    def deployed(self, target: str | None) -> list[Stage]:
        """The stages that listings are made of, in the order of the file."""
        if target is not None:
            stage = self._stage(target)
            if stage is None:
                raise InputError(f"expected a stage named {target!r}", self.path)
            return [stage]
        *others, last = self.stages
        return [*(stage for stage in others if not stage.used and _says_something(stage)), last]

    def listing(self, stage: Stage, *, several: bool) -> Listing:
        """What a stage has become."""
        entries, edges = combined(list(stage.locks.values()), stage.installed.entries(), stage.gone)
        workload, variables = self._started(stage)
        kept = {name: value for name, value in variables.items() if value and not unresolved(value) and not _is_secret(name)}
        stack = stage.stack or Environment()
        context = Environment(
            python=stage.python, os=stack.os, machine=stage.machine, glibc=stack.glibc, cuda_toolkit=stage.toolkit,
            variables=kept or None, workload=workload,
        )  # fmt: skip
        if self.dockerfile.template:
            stage.note(1, "a template; what its conditions leave out was read as well")
        return Listing(
            self.path, "dockerfile", entries, edges, context=context,
            label=(stage.name or f"stage {stage.number}") if several else None,
            notes=tuple(map(printable, stage.notes)), unread=tuple(map(printable, stage.unread)),
        )  # fmt: skip

    def _started(self, stage: Stage) -> tuple[Workload | None, dict[str, str]]:
        """The workload that the container starts, and its variables with those that its command sets."""
        from compat.read.files.docker.dockerfile_workload import started

        launch = started(
            stage.entrypoint, stage.command, stage.variables, stage.workdir,
            lambda name: self.context.find(stage.place(name), stage.copies),
        )  # fmt: skip
        if launch is None:
            return None, stage.variables
        for note in launch.notes:
            stage.note(stage.line, note)
        return launch.workload, {**stage.variables, **launch.variables}


def _started(instruction: Instruction) -> tuple[str, ...] | None:
    """The words of a CMD or an ENTRYPOINT; the shell form is text for ``sh -c``. ``None`` for an empty one."""
    if instruction.words is not None:
        return instruction.words or None
    return ("sh", "-c", instruction.text)


def _is_environment(source: str) -> bool:
    parts = source.strip("/").split("/")
    return not _INTERPRETER_FOLDERS.isdisjoint(parts) or parts in (["usr", "local"], ["usr", "local", "lib"], ["install"])


def _says_something(stage: Stage) -> bool:
    return bool(stage.installed.entries() or stage.locks or stage.unread)


def _is_secret(name: str) -> bool:
    from compat.read.workload.command import is_secret

    return is_secret(name)
