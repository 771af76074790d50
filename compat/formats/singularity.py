"""Definition files of Singularity and Apptainer: the base image, ``%post``, ``%environment`` and ``%runscript``."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.formats.include import NotRead
from compat.formats.installs.files import InstallFormat, Opened
from compat.formats.jobs import Job, Placed, Script, check_size
from compat.formats.listing import Listing
from compat.model import Environment

if TYPE_CHECKING:
    from compat.formats.installs.edit import InstallScript


_LISTS = (".txt", ".in", ".toml", ".lock", ".yml", ".yaml")
"""Endings of the copied files that list packages."""
_MOST_FILES = 100


class Singularity(InstallFormat):
    """A definition file; each stage is a listing."""

    kind = "singularity"
    apply = "apptainer build image.sif {path}"

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return tuple(stage.listing(self.kind) for stage in _stages(path, text))

    def collect(self, script: InstallScript) -> None:
        from compat.formats.edit.files import joined

        for stage in _stages(script.path, script.text):
            lines = [each for section in stage.scripts("post") for each in section]
            pieces = [(f"{each.text}\n", each.offset) for each in lines if each.offset is not None]
            script.read(joined(pieces))


class _Stage:
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
        self._copy(job)
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

    def _copy(self, job: Job) -> None:
        """Make the lists of packages known that ``%files`` copies into the image."""
        copies = [each.text.split() for lines in self.scripts("files") for each in lines]
        for words in copies[:_MOST_FILES]:
            if not words or not words[0].endswith(_LISTS):
                continue
            try:
                path, content = job.folders.open(words[0], None, "%files")
            except NotRead:
                continue
            target = words[-1]
            name = posixpath.basename(words[0] if target.endswith("/") else target)
            for each in {name, posixpath.basename(words[0])}:
                job.files.written[each] = Opened(path, content)


def _stages(path: str, text: str) -> list[_Stage]:
    """Split a definition file into stages; a second ``Bootstrap:`` begins another one."""
    check_size(path, text, "a definition file of Singularity or Apptainer")
    found = [_Stage(path)]
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
                found.append(_Stage(path))
            section = None
            found[-1].header["bootstrap"] = (value.partition("#")[0].strip(), number)
        elif section is None:
            if colon and not line.lstrip().startswith("#"):
                found[-1].header[key.strip().lower()] = (value.partition(" #")[0].strip(), number)
        else:
            section.append(Placed(number, line, start))
    return found
