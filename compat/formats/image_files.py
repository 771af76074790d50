"""Files other than Dockerfiles that say how an image is built: cog.yaml, devcontainer.json, Singularity and Apptainer."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from compat.errors import InputError
from compat.formats.edit.changes import Change, Statement, requirement_for
from compat.formats.edit.dispatch import Span, edit_spans
from compat.formats.edit.files import Edit, Mapped, Replacement, joined, line_around, line_end
from compat.formats.include import NotRead
from compat.formats.installs.command import install_of
from compat.formats.installs.edit import InstallScript
from compat.formats.installs.files import InstallFormat, Opened
from compat.formats.installs.words import Install
from compat.formats.jobs import Job, JobFile, Placed, Script, check_size, is_known, known_version
from compat.formats.listing import Listing
from compat.model import Environment
from compat.syntax.json import parse_json
from compat.syntax.yaml import Document, Table, Value


class Cog(InstallFormat):
    """A cog.yaml; :class:`InputError` for invalid YAML and for values of a wrong type."""

    kind = "cog"
    apply = "cog build"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return (_CogBuild(path, text).listing(self.kind),)

    def collect(self, script: InstallScript) -> None:
        build = _CogBuild(script.path, script.text)
        build.file.edited(script, build.commands())

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        """Edit the packages, then the commands; a new requirement becomes a package."""
        build = _CogBuild(path, self.decode(path, content))
        run = {entry.distribution.name for listing in self.listings(path, content) for entry in listing.entries
               if entry.file is None} - {each.found.name for each in build.statements()}  # fmt: skip
        own = [change for change in changes if change.name not in run]
        edits = edit_spans(self, path, content, own, list(build.statements()), build.addition) if own else ()
        after = next((each.after for each in edits if each.path == path), content)
        others = [change for change in changes if change.name in run]
        if not others:
            return edits
        edited = super().edit(path, after, others, depth)
        final = next((each.after for each in edited if each.path == path), after)
        return (Edit(path, content, final), *(each for each in (*edits, *edited) if each.path != path))


class _CogBuild:
    """The ``build`` table of a cog.yaml."""

    def __init__(self, path: str, text: str) -> None:
        self.file = JobFile(path, text, "a cog.yaml")
        self.document = next(iter(self.file.documents()), None) or Document("", path)
        self._table: Table = self.document.table(self.document.table(self.document.root, "the file").get("build"), "build")

    def packages(self) -> list[Value]:
        return self.document.items(self._table.get("python_packages"), "python_packages")

    def commands(self) -> list[Value]:
        """Return the shell text of ``run``: texts, or tables with a ``command``."""
        found = []
        for each in self.document.items(self._table.get("run"), "run"):
            value = self.document.table(each, "a command").get("command") if each.is_table else each
            found += [value] if value is not None and value.is_text else []
        return found

    def listing(self, kind: str) -> Listing:
        document = self.document
        job = Job(self.file.path)
        for each in self.packages():
            install = _installed(document.needed_text(each, "a package", each))
            if install is not None:
                job.step(install, each.line)
        requirements = self._table.get("python_requirements")
        if requirements is not None and (name := document.text(requirements, "python_requirements")):
            job.requirements(name, requirements.line)
        for each in self.commands():
            job.run(Script(tuple(self.file.placed(each))))
        python, toolkit = (document.text(self._table.get(key), key) for key in ("python_version", "cuda"))
        context = Environment(os="linux", python=known_version(python), cuda_toolkit=known_version(toolkit))
        return job.listing(kind, context=context)

    def statements(self) -> Iterator[Statement[Span | None]]:
        """Yield the packages with their places; one may be followed by options of pip."""
        for each in self.packages():
            text = self.document.text(each, "a package") or ""
            install = _installed(text)
            value = text.partition(" #")[0].partition(" -")[0].strip()
            placed = self.file.placed(each)
            offset = placed[0].offset if len(placed) == 1 else None
            for found in () if install is None else install.requirements[:1]:
                span = None
                if offset is not None and self.file.text.startswith(value, offset):
                    before = self.file.text[offset - 1 : offset]
                    quote = before if before in ("'", '"') else ""
                    span = Span(offset, offset + len(value), value, quote, self._line_of(offset))
                yield Statement(found, self.file.path, each.line, span)

    def _line_of(self, offset: int) -> tuple[int, int] | None:
        """Return the line of a list item; ``None`` for a list on one line."""
        start, end = line_around(self.file.text, offset)
        return (start, end) if self.file.text[start:offset].strip().rstrip("'\"").strip() == "-" else None

    def addition(self, change: Change) -> Replacement | None:
        """Return the insertion of a package after the last one; ``None`` unless each is on a separate line."""
        last = list(self.statements())[-1:]
        span = last[0].place if last else None
        if span is None or span.gone is None:
            return None
        line = self.file.text[span.gone[0] : span.start]
        new = f"{line}{requirement_for(change)}{span.quote}"
        text = self.file.text
        at = span.gone[1]
        return (at, at, f"{new}{line_end(text)}") if text[at - 1 : at] == "\n" else (at, at, f"{line_end(text)}{new}")


def _installed(text: str) -> Install | None:
    """Return what a line of ``python_packages`` installs, as pip reads it in a requirements file: options may follow."""
    wanted, *options = text.partition(" #")[0].replace(" -", "\n-").split("\n")
    words = [word for option in options for word in option.replace("=", " ", 1).split()]
    return install_of(["pip", "install", *words, wanted.strip()], {}) if wanted.strip() else None


_STRING_OR_REST = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)
_LIFECYCLE_COMMANDS = ("initializeCommand", "onCreateCommand", "updateContentCommand", "postCreateCommand", "postStartCommand")
"""In execution order; the first runs outside of the container."""
_PLAIN_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+")


class Devcontainer(InstallFormat):
    """A development container; :class:`InputError` for invalid JSON with comments and for values of a wrong type."""

    kind = "devcontainer"
    apply = "devcontainer up --config {path}"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        file = _DevcontainerFile(path, text)
        job = Job(path, image=file.text("image"), line=file.line("image"))
        for script in file.scripts():
            job.run(Script((script,)))
        build, compose = file.root.get("build"), file.root.get("dockerComposeFile")
        dockerfile = file.root.get("dockerFile") or (build.get("dockerfile") if isinstance(build, dict) else None)
        for other in (dockerfile, *(compose if isinstance(compose, list) else [compose])):
            if other:
                job.files.not_here(path, f"is built from {other}: check that one too")
        job.note_image()
        python, toolkit = file.feature("python", "version"), file.feature("nvidia-cuda", "cudaVersion")
        context = Environment(os="linux", python=python, cuda_toolkit=toolkit)
        variables = {**file.variables("containerEnv"), **file.variables("remoteEnv")}
        return (job.listing(self.kind, context=context, variables=variables),)

    def collect(self, script: InstallScript) -> None:
        for each in _DevcontainerFile(script.path, script.text).scripts():
            if each.offset is not None:
                script.read(Mapped(each.text, range(each.offset, each.offset + len(each.text))), '"')


class _DevcontainerFile:
    """The object in the file, and the positions of its keys and strings."""

    def __init__(self, path: str, text: str) -> None:
        check_size(path, text, "a devcontainer.json")
        self.path = path
        # blank out the byte order mark, comments and trailing commas, so that all offsets stay the same
        text = f" {text[1:]}" if text.startswith("\ufeff") else text
        self.plain = _STRING_OR_REST.sub(_blanked, text)
        root = parse_json(self.plain, path)
        if not isinstance(root, dict):
            raise InputError("expected a JSON object, as in every devcontainer.json", path, 1)
        self.root: dict[str, object] = root

    def wrong(self, key: str, expected: str) -> InputError:
        return InputError(f"expected {key} to be {expected}", self.path, self.line(key))

    def line(self, key: str) -> int:
        """Return the line of a key, or the first line if it is not found."""
        found = re.search(rf'"{re.escape(key)}"\s*:', self.plain)
        return 1 if found is None else self.plain.count("\n", 0, found.start()) + 1

    def text(self, key: str) -> str | None:
        value = self.root.get(key)
        if value is not None and not isinstance(value, str):
            raise self.wrong(key, "a string")
        return value

    def table(self, key: str) -> dict[str, object]:
        value = self.root.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return value

    def variables(self, key: str) -> dict[str, str]:
        return {name: value for name, value in self.table(key).items() if isinstance(value, str) and is_known(value)}

    def feature(self, name: str, option: str) -> str | None:
        """Return the version requested from a feature, if it is a single one."""
        for feature, options in self.table("features").items():
            if feature.partition(":")[0].rpartition("/")[2] == name:
                value = options.get(option) if isinstance(options, dict) else options
                return value if isinstance(value, str) and _PLAIN_VERSION.fullmatch(value) else None
        return None

    def scripts(self) -> Iterator[Placed]:
        """Yield the lifecycle commands with their lines; a list of words is one command."""
        for key in _LIFECYCLE_COMMANDS[1:]:
            value = self.root.get(key)
            for each in value.values() if isinstance(value, dict) else [value]:
                if isinstance(each, str):
                    at = self.plain.find(f'"{each}"', self.plain.find(f'"{key}"'))
                    if at < 0:  # written with escapes
                        yield Placed(self.line(key), each, None)
                    else:
                        yield Placed(self.plain.count("\n", 0, at) + 1, each, at + 1)
                elif isinstance(each, list) and all(isinstance(word, str) for word in each):
                    from shlex import join

                    yield Placed(self.line(key), join(each), None)
                elif each is not None:
                    raise self.wrong(key, "a string, a list of words or an object of them")


def _blanked(found: re.Match[str]) -> str:
    text = found[0]
    return text if text[0] == '"' else re.sub(r"[^\n]", " ", text)


_LISTS_OF_PACKAGES = (".txt", ".in", ".toml", ".lock", ".yml", ".yaml")
"""Endings of the copied files that list packages."""
_MOST_FILES = 100


class Singularity(InstallFormat):
    """A definition file; each stage is a listing."""

    kind = "singularity"
    apply = "apptainer build image.sif {path}"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return tuple(stage.listing(self.kind) for stage in _singularity_stages(path, text))

    def collect(self, script: InstallScript) -> None:
        for stage in _singularity_stages(script.path, script.text):
            lines = [each for section in stage.scripts("post") for each in section]
            pieces = [(f"{each.text}\n", each.offset) for each in lines if each.offset is not None]
            script.read(joined(pieces))


class _SingularityStage:
    """The header and the sections of one stage."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.header: dict[str, tuple[str, int]] = {}
        self.sections: list[tuple[str, list[Placed]]] = []

    def scripts(self, name: str) -> Iterator[list[Placed]]:
        return (lines for section, lines in self.sections if section == name)

    def listing(self, kind: str) -> Listing:
        image, line = self.header.get("from", ("", 1))
        remote = self.header.get("bootstrap", ("docker", 1))[0].lower() in ("docker", "docker-daemon", "oras")
        job = Job(self.path, image=image if remote and image else None, line=line)
        # %files copies lists of packages into the image
        copies = [each.text.split() for lines in self.scripts("files") for each in lines]
        for words in copies[:_MOST_FILES]:
            if not words or not words[0].endswith(_LISTS_OF_PACKAGES):
                continue
            try:
                path, content = job.folders.open(words[0], None, "%files")
            except NotRead:
                continue
            target = words[-1]
            base = posixpath.basename(words[0] if target.endswith("/") else target)
            for each in {base, posixpath.basename(words[0])}:
                job.files.written[each] = Opened(path, content)
        for name in ("post", "environment", "runscript", "startscript"):
            for lines in self.scripts(name):
                job.run(Script(tuple(lines)))
        job.start_last_command(only_jobs=True)
        if remote:
            job.note_image()
        elif image:
            job.note(f"the contents of the base image {image} are unknown")
        return job.listing(
            kind, label=self.header.get("stage", (None, 1))[0], context=Environment(os="linux"), variables=job.exported
        )


def _singularity_stages(path: str, text: str) -> list[_SingularityStage]:
    """Split a definition file into stages; a second ``Bootstrap:`` begins another one."""
    check_size(path, text, "a Singularity or Apptainer definition file")
    found = [_SingularityStage(path)]
    section: list[Placed] | None = None
    offset = 0
    for number, whole in enumerate(text.splitlines(keepends=True), 1):
        line, start = whole.rstrip("\r\n"), offset
        offset += len(whole)
        key, colon, value = line.partition(":")
        words = line.split()
        if words and words[0].startswith("%") and line.startswith("%") and words[0][1:].isalpha():
            section = []
            found[-1].sections.append((words[0][1:].lower(), section))
        elif colon and key.strip().lower() == "bootstrap" and line[:1].strip():
            if found[-1].header or found[-1].sections:
                found.append(_SingularityStage(path))
            section = None
            found[-1].header["bootstrap"] = (value.partition("#")[0].strip(), number)
        elif section is None:
            if colon and not line.lstrip().startswith("#"):
                found[-1].header[key.strip().lower()] = (value.partition(" #")[0].strip(), number)
        else:
            section.append(Placed(number, line, start))
    return found
