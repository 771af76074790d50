"""What a container starts (``ENTRYPOINT`` and ``CMD``) → workload; only files of the build context are opened."""

from __future__ import annotations

import posixpath

from compat.environment import Workload
from compat.errors import InputError
from compat.read.workload.command import Reading, read_with
from compat.read.workload.wrappers import program_name
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compat.read.workload.launch import Launch

_IN_IMAGE = "image:"
"""Stands in front of paths that are not in the build context, so that no file of this machine is meant."""
_INIT = ("tini", "dumb-init", "catatonit", "docker-init")


class _ImageReading(Reading):
    """A reading that looks for files where the build context has them, and nowhere else."""

    def __init__(self, variables: Mapping[str, str], workdir: str, find: Callable[[str], str | None]) -> None:
        super().__init__(workdir, variables)
        self.lenient = True
        self._find = find

    def path(self, name: str) -> str:
        if name.startswith(_IN_IMAGE):
            return name
        folder = self.directory.removeprefix(_IN_IMAGE)
        place = posixpath.normpath(posixpath.join(folder, name))
        return self._find(place) or f"{_IN_IMAGE}{place}"


def started(
    entrypoint: tuple[str, ...] | None, command: tuple[str, ...] | None, variables: Mapping[str, str], workdir: str,
    find: Callable[[str], str | None],
) -> Launch | None:  # fmt: skip
    """What the two start together; ``None`` where that is no job. ``find`` maps a path in the image to one here."""
    words = _without_init([*(entrypoint or ()), *(command or ())])
    if not words or any("\0" in word for word in words):
        return None
    try:
        launch = read_with(_ImageReading(variables, workdir, find), words)
    except InputError:
        return None
    workload = launch.workload
    if workload.script is not None and workload.script.startswith(_IN_IMAGE):
        workload = replace(workload, script=None)  # it was not read
    if workload == Workload(origins=workload.origins):
        return None
    notes = tuple(note for note in launch.notes if _IN_IMAGE not in note)
    return replace(launch, workload=workload, notes=notes)


def _without_init(words: list[str]) -> list[str]:
    """A command without the program that only reaps its children: ``tini -- …``."""
    if not words or program_name(words[0]) not in _INIT:
        return words
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 1
        if words[at - 1] == "--":
            break
    return words[at:]
