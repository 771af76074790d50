"""SkyPilot and dstack tasks: the GPUs they request, their setup, and the job they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from compat.formats.installs.edit import InstallScript
from compat.formats.installs.files import InstallFormat
from compat.formats.instances import gpus_of_instance
from compat.formats.jobs import Job, JobFile, Script, count_of, devices, is_known, known_version, variables_of
from compat.formats.listing import Listing
from compat.model import Accelerator, Environment
from compat.syntax.yaml import Document, Value


class _Task:
    """A task being converted to a listing: shell text, variables, GPUs, and what the scheduler sets."""

    def __init__(self, file: JobFile, document: Document) -> None:
        self.file = file
        self.document = document
        self.root = document.table(document.root, "the task")

    def text(self, key: str) -> str | None:
        return self.document.text(self.root.get(key), key)

    def variables(self, key: str) -> dict[str, str]:
        """Parse a table of variables or a list of ``NAME=value``; those without a value are set at launch and omitted."""
        value = self.root.get(key)
        if value is None or not value.is_list:
            return variables_of(self.document, value, key)
        words = [self.document.text(each, "a variable") or "" for each in self.document.items(value, key)]
        return {name: text for name, _, text in (word.partition("=") for word in words) if is_known(text)}

    def listing(
        self, kind: str, image: str | None, scripts: Sequence[Value], variables: Mapping[str, str],
        scheduler: Mapping[str, str], context: Environment,
    ) -> Listing:  # fmt: skip
        """Return what the task installs and starts."""
        job = Job(self.file.path, image=image)
        for script in scripts:
            job.run(Script(tuple(self.file.placed(script))), {**scheduler, **variables})
        job.start_last_command(variables, scheduler)
        job.note_image()
        return job.listing(kind, label=self.text("name"), context=context, variables=variables)


def _numbers(known: Mapping[str, int | None]) -> dict[str, str]:
    """Return the scheduler's variables whose values are known."""
    return {name: str(number) for name, number in known.items() if number is not None}


class _TaskFormat(InstallFormat):
    """A file of tasks."""

    expected: ClassVar[str]

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        return tuple(map(self.listing, self._tasks(path, text)))

    def collect(self, script: InstallScript) -> None:
        for task in self._tasks(script.path, script.text):
            task.file.edited(script, self.scripts(task))

    def _tasks(self, path: str, text: str) -> list[_Task]:
        """Return the tasks of a file; a first document with only a name names the whole file."""
        file = JobFile(path, text, self.expected)
        tasks = [_Task(file, document) for document in file.documents()]
        return [task for task in tasks if len(tasks) == 1 or task.root.keys() - {"name", "execution"}]

    def listing(self, task: _Task) -> Listing:
        raise NotImplementedError

    def scripts(self, task: _Task) -> list[Value]:
        """Return the shell text that a task runs, in order."""
        raise NotImplementedError


class SkyPilot(_TaskFormat):
    """A SkyPilot task, or a sequence of them; :class:`InputError` for values of a wrong type."""

    kind = "skypilot"
    apply = "sky launch {path}"
    expected = "a task of SkyPilot"

    def listing(self, task: _Task) -> Listing:
        resources = task.document.inner(task.root.get("resources"), "resources")
        image = task.document.text(resources.get("image_id"), "image_id") or ""
        gpus = _sky_devices(task, resources.get("accelerators"))
        if "accelerators" not in resources:
            on = gpus_of_instance(task.document.text(resources.get("instance_type"), "instance_type"))
            gpus = None if on is None else devices(*on)
        nodes, each = count_of(task.text("num_nodes") or "1"), len(gpus or ()) or None
        scheduler = _numbers({"SKYPILOT_NUM_NODES": nodes, "SKYPILOT_NUM_GPUS_PER_NODE": each})
        return task.listing(
            self.kind, image.removeprefix("docker:") if image.startswith("docker:") else None, self.scripts(task),
            task.variables("envs"), scheduler, Environment(os="linux", accelerators=gpus),
        )  # fmt: skip

    def scripts(self, task: _Task) -> list[Value]:
        return [task.root[key] for key in ("setup", "run") if key in task.root and task.root[key].is_text]


def _sky_devices(task: _Task, value: Value | None) -> tuple[Accelerator, ...] | None:
    """Parse ``A100-80GB:8`` or ``{A100-80GB: 8}``; ``None`` if there are alternatives."""
    if value is None or value.is_null:
        return None
    if value.is_table:
        counts = task.document.table(value, "accelerators")
        # {A100:8} without a space is a name without a value
        pairs = [
            (name.partition(":")[0], task.document.text(each, name) or name.partition(":")[2] or "1")
            for name, each in counts.items()
        ]
    else:
        items = task.document.items(value, "accelerators") if value.is_list else [value]
        words = [(task.document.text(each, "an accelerator") or "").partition(":") for each in items]
        pairs = [(name, count or "1") for name, _, count in words]
    if len(pairs) != 1 or not is_known(pairs[0][0]) or pairs[0][0].lower().startswith("tpu"):
        return None
    return devices(pairs[0][0], count_of(pairs[0][1]))


class Dstack(_TaskFormat):
    """A dstack task, service or development environment; :class:`InputError` for another type of configuration."""

    kind = "dstack"
    apply = "dstack apply --file {path}"
    expected = "a task of dstack"

    def listing(self, task: _Task) -> Listing:
        kind = task.text("type")
        if kind not in ("task", "service", "dev-environment"):
            raise task.document.wrong(
                f"expected the type task, service or dev-environment, not {kind!r}", task.root.get("type")
            )
        resources = task.document.inner(task.root.get("resources"), "resources")
        gpus = _dstack_devices(task, resources.get("gpu"))
        nodes, each = count_of(task.text("nodes") or "1"), len(gpus or ()) or None
        scheduler = _numbers({"DSTACK_NODES_NUM": nodes, "DSTACK_GPUS_PER_NODE": each})
        python = task.text("python")
        return task.listing(
            self.kind, task.text("image"), self.scripts(task), task.variables("env"), scheduler,
            Environment(os="linux", accelerators=gpus, python=known_version(python)),
        )  # fmt: skip

    def scripts(self, task: _Task) -> list[Value]:
        return [each for key in ("init", "commands") for each in task.document.items(task.root.get(key), key) if each.is_text]


def _dstack_devices(task: _Task, value: Value | None) -> tuple[Accelerator, ...] | None:
    """Parse ``A100:80GB:2`` or a table of ``name`` and ``count``; ``None`` for a range, alternatives, or only a memory size."""
    if value is None or value.is_null or value.is_list:
        return None
    if value.is_table:
        table = task.document.inner(value, "gpu")
        one = {key: task.document.text(each, key) for key, each in table.items() if each.is_text}
        return devices(one.get("name"), None if "count" in table and "count" not in one else count_of(one.get("count") or "1"))
    names, counts = [], []
    for word in (task.document.text(value, "gpu") or "").split(":"):
        if word.isdecimal() or ".." in word:
            counts.append(word)
        elif not word.upper().endswith("GB") and word.lower() not in ("nvidia", "amd"):
            names.append(word)
    known = len(names) == 1 and "," not in names[0]
    return devices(names[0] if known else None, count_of(counts[0] if counts else "1"))
