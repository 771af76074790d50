"""File formats: the base class of a format, the registered formats, and how the format of a file is detected."""

from __future__ import annotations

import os

from compat.errors import InputError
from compat.files import content_of, decode_utf8, pending
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence
    from typing import ClassVar

    from compat.formats.edit.changes import Change
    from compat.formats.edit.files import Edit
    from compat.formats.edit.installer import Installer
    from compat.formats.listing import Listing


@record(frozen=True)
class Commands:
    """Shell commands, in order. ``lock`` updates the lock file to match the edited file and changes nothing else, ``install``
    changes the environment, ``rollback`` restores the previously installed releases.
    """

    lock: tuple[str, ...] = ()
    install: tuple[str, ...] = ()
    rollback: tuple[str, ...] = ()


@record(frozen=True)
class Relocking:
    """The uv command that makes a lock again: ``words`` after ``uv``, run in ``folder``, "" for the current one.

    It reads only ``files``, relative to the folder: a file, or a directory with a project, of which it reads the metadata.
    """

    words: tuple[str, ...]
    files: tuple[str, ...]
    folder: str = ""


class Format:
    """A file format. Subclasses override what differs; instances are stateless."""

    kind: ClassVar[str] = ""
    """As in :attr:`Listing.kind`; the file name if it is fixed."""
    sources: ClassVar[tuple[str, ...]] = ()
    """For a lock file: the names of its possible source files. The one next to it is edited instead of the lock."""
    add: ClassVar[str | None] = None
    """The command that changes one requirement of the project and locks it; ``None``: findings suggest pip."""
    add_from: ClassVar[str | None] = None
    """The same from another index, by ``{what}``, its ``{url}`` and a ``{name}`` for it; ``None``: findings suggest pip."""
    add_conda: ClassVar[str | None] = None
    """The same for a package of conda."""
    remove: ClassVar[str | None] = None
    """The command that takes one requirement out of the project and locks it."""
    lists_packages: ClassVar[bool] = True
    """Whether it lists packages (a lock file, requirements) rather than install commands (a program, stages)."""
    says_build: ClassVar[bool] = False
    """Whether it can express that a release is built from source although wheels exist."""
    apply: ClassVar[str] = ""
    """The command that applies the edited file; ``{path}`` and ``{folder}`` are the file and its folder, quoted."""
    by_hand: ClassVar[str | None] = None
    """What to do instead if the file cannot be edited."""

    @property
    def installs_elsewhere(self) -> bool:
        """Whether ``apply`` installs in an image or an environment of its own, which has none of the shell's variables."""
        return bool(self.apply) and not self.apply.startswith("bash ")

    def decode(self, path: str, content: bytes) -> str:
        """Return the text of a file; :class:`InputError` if it cannot be decoded."""
        if b"\0" in content:  # another encoding, or no text: words with NUL bytes between them would match nothing
            raise InputError("has a NUL byte: expected UTF-8 text", path, content.count(b"\n", 0, content.index(b"\0")) + 1)
        return decode_utf8(path, content)

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        """Return what the file lists: one listing, or one for each stage or service.

        :class:`InputError` names file, line and what was expected. Nothing is executed, and only files that this one
        includes from its own project are opened.
        """
        raise NotImplementedError

    def listings(self, path: str, content: bytes) -> tuple[Listing, ...]:
        """Return what the content lists; :class:`InputError` also if a listing exceeds the limits."""
        from compat.formats.listing import within_limits  # not needed for a described environment

        text = self.decode(path, content)
        found = tuple(map(within_limits, self.read(path, text)))
        if b"==" not in content or (lines := self.commands_in(path, text)) is None:
            return found
        from compat.formats.pins import with_loose

        return with_loose(path, self.kind, lines, found)

    def commands_in(self, path: str, text: str) -> Iterable[tuple[int, str]] | None:
        """Return the numbered lines in which a pin is one of something that is installed; ``None`` if all pins are read."""
        return None

    def source_of(self, path: str) -> str:
        """Return the path of the file that a lock file is made from; :class:`InputError` if none exists next to it."""
        for name in self.sources:
            found = os.path.join(os.path.dirname(path), name)
            if os.path.isfile(found):
                return found
        raise InputError(f"is a lock file, which compat does not edit: expected {' or '.join(self.sources)} next to it", path)

    def edit(self, path: str, content: bytes, changes: Sequence[Change], depth: int = 0) -> tuple[Edit, ...]:
        """Return the edits that write ``changes`` into the file and its includes; ``depth`` is the include depth.

        :class:`InputError` for a change that cannot be written safely. The caller ensures that there is a change.
        """
        raise InputError(f"cannot be edited{f': {self.by_hand}' if self.by_hand else ''}", path)

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        """Return the commands to run after the edit; ``install`` is empty if ``pip`` has to install package by package."""
        if not self.apply:
            return Commands()
        return Commands((), (self.apply.format(path=pip.quoted(path), folder=pip.quoted(os.path.dirname(path) or ".")),))

    def relocking(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Relocking | None:
        """Return the command that makes this lock again from its source; ``None`` if uv does not make it."""
        return None


class ProjectLock(Format):
    """A lock file that one tool writes for a project."""

    sync: ClassVar[str] = ""
    """The command that installs the lock."""
    update: ClassVar[str] = ""
    """The command that locks the distributions whose names follow."""
    relock: ClassVar[str] = ""
    """The command that locks the project if distributions are only removed."""

    def lock(self, changes: Sequence[Change], pip: Installer) -> str:
        """Return the command that locks the edited project, run in its folder; only ``changes`` move."""
        names = " ".join(change.name for change in changes if change.after is not None)
        return f"{self.update} {names}" if names else self.relock

    def commands(self, path: str, content: bytes, changes: Sequence[Change], pip: Installer) -> Commands:
        here = pip.in_folder_of(path)
        return Commands((here + self.lock(changes, pip),), (here + self.sync,))


class Described(Format):
    """A described environment, which has no listing. It is read by ``described.py``, and not as a file of a project."""

    kind = "described"
    lists_packages = False

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        raise InputError("is a described environment: pass it with --environment", path)


# --- The registered formats, and detection: by file name, and by content if the name is not enough.


LIMIT = 64 * 1024 * 1024
"""Bytes; the largest file that is read (the largest real lock is 3 MB)."""


@record(frozen=True)
class Registered:
    """A format that is not imported yet, so that start-up imports only the one it needs.

    ``kind`` is the class's :attr:`Format.kind`, ``place`` its module and name. ``names`` are lower-case patterns in which
    ``*`` matches anything. A file of another name has this format if its content contains all ``marks`` or, in YAML, its
    top-level keys include all of one of ``keys``; ``shebang`` is a part of the first line. ``program`` is the tool that writes
    the lock.
    """

    kind: str
    place: str
    names: tuple[str, ...]
    marks: tuple[bytes, ...] = ()
    keys: tuple[bytes, ...] = ()
    shebang: bytes = b""
    program: str | None = None

    @property
    def is_lock(self) -> bool:
        """Whether it is a lock file."""
        return "lock" in self.kind

    def is_called(self, name: str) -> bool:
        """Whether a file has one of its plain names, without a prefix or an infix (``uv.lock``, not ``old.uv.lock``)."""
        return any(name.lower() == pattern.lstrip("*") for pattern in self.names)

    def load(self) -> Format:
        """Import the module and return the format."""
        from importlib import import_module

        module, _, name = self.place.partition(":")
        found: Format = getattr(import_module(f"compat.formats.{module}"), name)()
        return found


FORMATS = (
    Registered("uv.lock", "locks.uv:UvLock", ("*uv.lock", "*.py.lock"), program="uv"),
    Registered("poetry.lock", "locks.poetry:PoetryLock", ("*poetry.lock",),
               (b"\n[[package]]", b"content-hash"), program="poetry"),
    Registered("pdm.lock", "locks.pdm:PdmLock", ("*pdm.lock",), (b"\n[[package]]", b"content_hash"), program="pdm"),
    Registered("Pipfile.lock", "project.pipfile:PipfileLock", ("*pipfile.lock",),
               (b'"_meta"', b'"pipfile-spec"'), program="pipenv"),
    Registered("pixi.lock", "conda_lock:PixiLock", ("*pixi.lock",), (b"\nenvironments:", b"\npackages:"),
               (b"environments packages",), program="pixi"),
    Registered("pylock.toml", "locks.pylock:Pylock", ("*pylock.toml", "*pylock.*.toml")),
    Registered("conda-lock.yml", "conda_lock:CondaLock", ("*conda-lock.yml", "*conda-lock.yaml"),
               keys=(b"package metadata",)),
    Registered("gitlab", "ci:GitLab", ("*gitlab-ci*.yml", "*gitlab-ci*.yaml")),
    Registered("cog", "image_files:Cog", ("*cog.yaml", "*cog.yml")),
    Registered("compose", "docker.compose:Compose", ("compose*.yml", "compose*.yaml", "*compose.yml", "*compose.yaml",
               "*docker-compose*.yml", "*docker-compose*.yaml", "*compose.*.yml", "*compose.*.yaml"), keys=(b"services",)),
    Registered("kubernetes", "kubernetes:Kubernetes", (), keys=(b"apiVersion kind",)),
    Registered("kubernetes", "kubernetes:HelmValues",
               ("values*.yaml", "values*.yml", "*-values.yaml", "*-values.yml", "*_values.yaml", "*.values.yaml")),
    Registered("skypilot", "cloud:SkyPilot", (), keys=(b"resources run", b"setup run")),
    Registered("dstack", "cloud:Dstack", (), keys=(b"type commands", b"type resources")),
    Registered("training", "training:TrainingConfig", (),
               keys=(b"base_model datasets", b"model_name_or_path stage", b"model_name_or_path dataset_name",
                     b"actor_rollout_ref", b"tokenizer checkpointer", b"model dataset train_type",
                     b"model dataset tuner_type", b"model dataset rlhf_type", b"model_name_or_path template",
                     b"data model optim trainer")),
    Registered("workflow", "ci:Workflow", (), keys=(b"on jobs",)),
    Registered("environment.yml", "conda_environment:CondaEnvironment", (), keys=(b"dependencies",)),
    Registered("devcontainer", "image_files:Devcontainer", ("*devcontainer.json",)),
    Registered("pyproject", "project.pyproject:Pyproject", ("*pyproject.toml",)),
    Registered("pixi.toml", "project.pixi:Pixi", ("*pixi.toml",)),
    Registered("setup.cfg", "setuptools.setup_cfg:SetupCfg", ("setup.cfg",)),
    Registered("tox", "test_runners:Tox", ("tox.ini",)),
    Registered("makefile", "scripts:Makefile", ("makefile", "gnumakefile", "*.mk")),
    Registered("Pipfile", "project.pipfile:Pipfile", ("pipfile",)),
    Registered("requirements", "requirements.file:Requirements", ("*.txt", "*.in", "*.pip")),
    Registered("notebook", "notebook:Notebook", ("*.ipynb",), (b'"cells"', b'"nbformat"')),
    Registered("shell", "scripts:ShellScript", ("*.sh", "*.bash", "*.slurm", "*.sbatch"), shebang=b"sh"),
    Registered("nox", "test_runners:Nox", ("noxfile.py",)),
    Registered("setup.py", "setuptools.setup_py:SetupPy", ("setup.py",)),
    Registered("script", "project.inline:PythonScript", ("*.py",), shebang=b"python"),
    Registered("singularity", "image_files:Singularity", ("*.def", "singularity", "singularity.*", "apptainer", "apptainer.*")),
    Registered("dockerfile", "docker.dockerfile:DockerfileFormat",
               ("*dockerfile", "*containerfile", "dockerfile*", "containerfile*")),
)  # fmt: skip
_CONDA_LIST = Registered("conda list", "conda_environment:CondaList", ())
"""A text file of conda packages, which is named like requirements."""
_CONDA_MARKS = (b"conda create --name <env> --file <this file>", b"\npython=")
_PLAIN_LOCK = Registered("uv.lock", "locks.uv:UvLock", (), (b"\n[[package]]",))
"""A TOML lock without another tool's marks."""
_DESCRIBED = Registered("described", "registry:Described", ())
_NAMED_REQUIREMENTS = Registered("requirements", "requirements.file:Requirements", ("*requirements*", "*constraints*"))
"""The fallback: a name such as ``requirements`` or ``constraints.lock``."""
PROGRAMS = {each.program: each.kind for each in FORMATS if each.program}
"""Programs that lock a project → the names of their lock files."""


def format_of(path: str, content: bytes) -> Format:
    """Return the format of a file; :class:`InputError` if it is unknown."""
    name = path.replace("\\", "/").rpartition("/")[2].lower()
    found = next((each for each in FORMATS if any(_fits(name, pattern) for pattern in each.names)), None)
    found = found or _by_content(path, name, content)
    if found is not None and found.kind == "requirements" and _lists_conda(content):
        found = _CONDA_LIST
    if found is None:
        raise InputError(
            "unrecognized file type; expected a lock file, requirements, pyproject.toml, environment.yml, Dockerfile, compose "
            "file, notebook, script or described environment (a log or an issue: compat diagnose FILE)", path,
        )  # fmt: skip
    return found.load()


def _lists_conda(content: bytes) -> bool:
    """Whether a text lists conda packages: with conda's header, or with a Python, which no installer of pip's takes from it."""
    header, python = _CONDA_MARKS
    at = (b"\n" + content).find(python)
    return header in content[:1000] or (at >= 0 and (b"\n" + content)[at + len(python)] in b"0123456789")


def format_named(kind: str) -> Format:
    return next(each for each in (*FORMATS, _DESCRIBED, _CONDA_LIST) if each.kind == kind).load()


def lock_next_to(path: str) -> Registered | None:
    """Return the format of the lock file next to ``path`` that can be made from a file of this name, or ``None``."""
    folder, name = os.path.split(path)
    return next(
        (each for each in FORMATS if os.path.isfile(os.path.join(folder, each.kind)) and name in each.load().sources), None
    )


def _fits(name: str, pattern: str) -> bool:
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    *middle, last = rest
    if len(name) < len(first) + len(last) or not name.startswith(first) or not name.endswith(last):
        return False
    return all(part in name[len(first) : len(name) - len(last)] for part in middle)


def _by_content(path: str, name: str, content: bytes) -> Registered | None:
    content = content.removeprefix(b"\xef\xbb\xbf")
    if name.endswith((".yml", ".yaml")):
        keys = {line.partition(b":")[0].strip(b"'\"") for line in content.splitlines() if line[:1].strip() and b":" in line}
        found = next((each for each in FORMATS if any(keys.issuperset(some.split()) for some in each.keys)), None)
        if keys.issuperset((b"apiVersion", b"name", b"version")):
            raise InputError(
                "is the Chart.yaml of a Helm chart: its dependencies are charts, not packages; check what it renders: "
                "helm template . > rendered.yaml", path,
            )  # fmt: skip
        if found is None:
            refuse_launch_keys(path, {key.decode("utf-8", "replace") for key in keys})
        return found
    is_named_json = name.endswith(".json")
    # templates start with {{ or {%
    is_json = is_named_json or (content.lstrip()[:1] == b"{" and content.lstrip()[1:].lstrip()[:1] in (b'"', b"}"))
    for each in (*FORMATS, _PLAIN_LOCK):
        if each.marks and each.marks[0].startswith(b'"') == is_json and all(mark in content for mark in each.marks):
            return each
    if is_json:
        refuse_launch_json(path, content)
        from compat.model import Environment

        known = any(f'"{key}"'.encode() in content for key in ("schema", *Environment.__match_args__))
        return _DESCRIBED if is_named_json or known else None
    first = content[:200].split(b"\n", 1)[0]
    if first.startswith(b"#!"):
        return next((each for each in FORMATS if each.shebang and each.shebang in first), None)
    return _NAMED_REQUIREMENTS if any(_fits(name, pattern) for pattern in _NAMED_REQUIREMENTS.names) else None


def read_listings(path: str) -> tuple[Listing, ...]:
    """Read a file; see :meth:`Format.read`."""
    content = read_content(path)
    return format_of(path, content).listings(path, content)


def read_content(path: str) -> bytes:
    """Return the content of a regular file; :class:`InputError` if it is larger than :data:`LIMIT` bytes."""
    return pending[path] if path in pending else content_of(path, LIMIT)


# --- Launcher configurations passed as files to check: they describe how a job starts, not what is installed.


_LAUNCH_KEYS = (b'"compute_environment"', b'"distributed_type"', b'"zero_optimization"', b'"train_batch_size"',
          b'"train_micro_batch_size_per_gpu"')  # fmt: skip
_DEEPSPEED_KEYS = ("fp16", "bf16", "optimizer", "scheduler", "gradient_clipping", "zero_allow_untested_optimizer")


def refuse_launch_keys(path: str, keys: Container[str]) -> None:
    """Raise :class:`InputError` with the command to pass instead if the top-level keys are those of a launcher."""
    if "compute_environment" in keys or ("distributed_type" in keys and "num_processes" in keys):
        raise _is_configuration(path, "an accelerate configuration", f"accelerate launch --config_file {path} train.py")
    counts = "train_batch_size" in keys and any(key in keys for key in _DEEPSPEED_KEYS)
    if "zero_optimization" in keys or "train_micro_batch_size_per_gpu" in keys or counts:
        raise _is_configuration(path, "a DeepSpeed configuration", f"deepspeed train.py --deepspeed {path}")


def refuse_launch_json(path: str, content: bytes) -> None:
    """Call :func:`refuse_launch_keys` for JSON content; content that is not valid JSON is left to its reader."""
    if not any(mark in content for mark in _LAUNCH_KEYS):
        return
    from compat.syntax.json import parse_json

    try:
        document = parse_json(content.decode("utf-8", "replace"), path)
    except InputError:
        return
    if isinstance(document, dict):
        refuse_launch_keys(path, document)


def _is_configuration(path: str, what: str, command: str) -> InputError:
    return InputError(
        f"is {what}: it describes how a job starts, not what is installed; pass the command that uses it: "
        f"compat check uv.lock -- {command}", path
    )  # fmt: skip
