"""Containers that shell commands start: ``docker run IMAGE …``, and the images that Slurm and Apptainer run a job in.

``docker run`` starts a job of its own, with nothing of the machine but its GPUs. ``srun --container-image`` and ``apptainer
exec docker://…`` run the command behind them, in the project's folder, on the packages of the image.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compat.errors import InputError
from compat.formats.jobs import Job, Placed, Script, count_of, devices, is_known
from compat.formats.listing import Listing
from compat.model import Accelerator, Environment
from compat.records import record, replace
from compat.syntax.shell_commands import ShellCommand
from compat.workload.wrappers import CONTAINERS, assignment, handed_to_shell, program_name, split_words, take_options, unwrapped

_FLAGS = frozenset((
    "d", "detach", "i", "interactive", "t", "tty", "rm", "init", "privileged", "P", "publish_all", "read_only", "q", "quiet",
    "no_healthcheck", "oom_kill_disable", "sig_proxy", "disable_content_trust", "replace", "it", "ti", "dit", "itd", "dt", "td",
    "di", "id", "tid", "idt",
))  # fmt: skip
"""The options of ``docker run`` that take no value, and how the short ones are combined."""
_GLOBAL = frozenset(("context", "c", "config", "host", "H", "log_level", "l"))
_APPTAINER = ("apptainer", "singularity")
_MOST = 50
"""Containers of a file."""


@record(frozen=True)
class Container:
    """A container that a command starts: image, entry point (``None``: the image's own), command, and what it is given."""

    image: str
    entrypoint: tuple[str, ...] | None
    command: tuple[str, ...]
    variables: dict[str, str]
    gpus: tuple[Accelerator, ...] | None
    default_memory: bool = False
    """Whether the size of its shared memory (/dev/shm) is Docker's default of 64 MiB."""


def started_container(words: Sequence[str]) -> Container | None:
    """Return the container that a command starts with ``docker run`` or the like; ``None`` for any other command."""
    try:
        rest = unwrapped(words, {})
    except InputError:
        return None
    if not rest or program_name(rest[0]) not in CONTAINERS:
        return None
    _, rest = take_options(rest[1:], valued=_GLOBAL)
    rest = rest[1:] if rest[:1] == ["container"] else rest
    if rest[:1] not in (["run"], ["create"]):
        return None
    options, rest = take_options(rest[1:], flags=_FLAGS)
    if not rest:
        return None
    given = dict(options)
    entrypoint = given.get("entrypoint")
    variables = dict(found for name, value in options if name in ("e", "env") and (found := assignment(value)))
    asked = given.get("gpus", "").strip("\"'")
    mounts = (value for name, value in options if name in ("v", "volume", "mount", "tmpfs"))
    sized = bool({"shm_size", "ipc"} & given.keys()) or any("/dev/shm" in each or not is_known(each) for each in mounts)
    return Container(
        rest[0], None if entrypoint is None else tuple(_split(entrypoint)), tuple(rest[1:]),
        {name: value for name, value in variables.items() if is_known(value)}, devices(None, count_of(asked) or None, "nvidia"),
        not sized and all("$" not in name for name, _ in options),
    )  # fmt: skip


def _split(text: str) -> list[str]:
    try:
        return split_words(text)
    except InputError:
        return [text]


def image_of_job(commands: Sequence[tuple[ShellCommand, int]], stated: str = "") -> tuple[str | None, int]:
    """Return the image that a script runs its last job in, with the line; ``None`` if it is the machine, or the image unknown.

    ``stated`` is the image that the batch script itself requests.
    """
    found: tuple[str | None, int] = (_reference(stated) if stated else None, 1)
    for command, line in commands:
        image = _around(command.words)
        if image:
            found = _reference(image), line
    return found


def _around(words: Sequence[str]) -> str:
    """Return the image that a command names for the command behind it: pyxis' option of srun, or an operand of Apptainer."""
    for at, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == "--container-image" and any(program_name(each) == "srun" for each in words[:at]):
            return value if equals else "".join(words[at + 1 : at + 2])
        if program_name(word) in _APPTAINER and words[at + 1 : at + 2] in (["exec"], ["run"]):
            return next((each for each in words[at + 2 :] if each.startswith("docker://")), "")
    return ""


def _reference(image: str) -> str | None:
    """Return an image as Docker names it: pyxis writes ``registry#name``; ``None`` for a file, or a name known at run time."""
    text = image.removeprefix("docker://").replace("#", "/")
    return None if not is_known(text) or text.endswith((".sqsh", ".sif")) or text.startswith(("/", ".")) else text


def container_listings(host: Job, kind: str) -> Iterator[Listing]:
    """Yield a listing for each container that the commands of a job start, if its image is known or it trains or serves.

    What it installs is then no longer among what the job leaves unread.
    """
    number = 0
    for command, line in host.commands:
        container = started_container(command.words)
        if container is None or number >= _MOST:
            continue
        number += 1
        place = f"{host.path}:{line}"
        job = _job_in(container, host.path, line, place)
        if not job.is_relevant:
            continue
        host.files.elsewhere = {each: None for each in host.files.elsewhere if not each.startswith(f"{place}: ")}
        context = Environment(os="linux", accelerators=container.gpus)
        yield job.listing(kind, label=f"container on line {line}", context=context, variables=container.variables)


def _job_in(container: Container, path: str, line: int, place: str) -> Job:
    """Return the job that a container runs, given the commands it executes."""
    job = Job(path, image=container.image, line=line, here=False, where=place)
    text = handed_to_shell([*(container.entrypoint or ()), *container.command])
    if text is not None:
        job.run(Script(tuple(Placed(line, each, None) for each in text.split("\n"))), container.variables)
    job.start_container(
        place, container.entrypoint, container.command, container.variables, default_memory=container.default_memory
    )
    job.note_image()
    return job


_COMMAND = "the command"


def in_container(environment: Environment, words: Sequence[str]) -> tuple[str, Environment, tuple[str, ...]] | None:
    """Return the image that a command such as ``docker run IMAGE`` starts on a machine, what it runs there, and notes.

    ``None`` if it starts no container. The packages, Python and variables are those of the image and the command; the GPUs, the
    driver and the processor those of ``environment``.
    """
    container = started_container(words)
    if container is None:
        return None
    listing = _job_in(container, _COMMAND, 1, _COMMAND).listing("shell", context=Environment(os="linux"))
    copies = tuple(entry.distribution for entry in listing.entries)
    context = listing.context
    gpus = environment.accelerators
    if gpus is not None and container.gpus is not None:
        gpus = gpus[: len(container.gpus)]
    found = replace(
        environment, python=context.python, os="linux", platform=None, glibc=context.glibc, cuda_toolkit=context.cuda_toolkit,
        distributions=copies or None, distributions_complete=False, folders=None, workload=context.workload,
        variables={**container.variables, **(context.variables or {})} or None,
        accelerators=gpus,
    )  # fmt: skip
    return container.image, found, (*listing.notes, *listing.elsewhere, *listing.unread)
