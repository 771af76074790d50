"""SkyPilot and dstack tasks: the GPUs they request, their setup, and the job they run. The GPUs of cloud instance types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from compat.formats.installs.edit import InstallScript
from compat.formats.installs.files import InstallFormat
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
        scheduler: Mapping[str, int | None], context: Environment,
    ) -> Listing:  # fmt: skip
        """Return what the task installs and starts; ``scheduler`` are the variables of the scheduler, ``None`` if unknown."""
        known = {name: str(number) for name, number in scheduler.items() if number is not None}
        job = Job(self.file.path, image=image)
        for script in scripts:
            job.run(Script(tuple(self.file.placed(script))), {**known, **variables})
        job.start_last_command(variables, known)
        job.note_image()
        return job.listing(kind, label=self.text("name"), context=context, variables=variables)


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
    expected = "a SkyPilot task"

    def listing(self, task: _Task) -> Listing:
        resources = task.document.inner(task.root.get("resources"), "resources")
        image = task.document.text(resources.get("image_id"), "image_id") or ""
        gpus = _sky_devices(task, resources.get("accelerators"))
        if "accelerators" not in resources:
            on = gpus_of_instance(task.document.text(resources.get("instance_type"), "instance_type"))
            gpus = None if on is None else devices(*on)
        nodes, each = count_of(task.text("num_nodes") or "1"), len(gpus or ()) or None
        scheduler = {"SKYPILOT_NUM_NODES": nodes, "SKYPILOT_NUM_GPUS_PER_NODE": each}
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
    expected = "a dstack task"

    def listing(self, task: _Task) -> Listing:
        kind = task.text("type")
        if kind not in ("task", "service", "dev-environment"):
            raise task.document.wrong(
                f"expected the type task, service or dev-environment, not {kind!r}", task.root.get("type")
            )
        resources = task.document.inner(task.root.get("resources"), "resources")
        gpus = _dstack_devices(task, resources.get("gpu"))
        nodes, each = count_of(task.text("nodes") or "1"), len(gpus or ()) or None
        scheduler = {"DSTACK_NODES_NUM": nodes, "DSTACK_GPUS_PER_NODE": each}
        return task.listing(
            self.kind, task.text("image"), self.scripts(task), task.variables("env"), scheduler,
            Environment(os="linux", accelerators=gpus, python=known_version(task.text("python"))),
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


# --- The GPUs of instance types, from the names that AWS (accelerated computing instances), Google Cloud (accelerator-optimized
# machines) and Azure (NC and ND series) document. Only types whose name decides model and number of GPUs, for training and
# serving; types with a fraction of a GPU are left out.


_ONE_TO_EIGHT = {
    **dict.fromkeys(("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge"), 1), "12xlarge": 4, "24xlarge": 4, "48xlarge": 8,
}  # fmt: skip
_A100, _A100_80, _V100, _V100_32 = "A100-40GB", "A100-80GB", "V100-16GB", "V100-32GB"

_AWS = {
    "p3": (_V100, {"2xlarge": 1, "8xlarge": 4, "16xlarge": 8}), "p3dn": (_V100_32, {"24xlarge": 8}),
    "p4d": (_A100, {"24xlarge": 8}), "p4de": (_A100_80, {"24xlarge": 8}), "p5": ("H100", {"4xlarge": 1, "48xlarge": 8}),
    "p5e": ("H200", {"48xlarge": 8}), "p5en": ("H200", {"48xlarge": 8}), "p6-b200": ("B200", {"48xlarge": 8}),
    "g4dn": ("T4", {**dict.fromkeys(("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge"), 1), "12xlarge": 4, "metal": 8}),
    "g5": ("A10G", _ONE_TO_EIGHT), "g6": ("L4", _ONE_TO_EIGHT), "g6e": ("L40S", _ONE_TO_EIGHT),
}  # fmt: skip
"""Family → GPU, and the number of GPUs by size."""

_GOOGLE = {
    "a2-highgpu": _A100, "a2-megagpu": _A100, "a2-ultragpu": _A100_80, "a3-highgpu": "H100", "a3-megagpu": "H100",
    "a3-ultragpu": "H200", "a4-highgpu": "B200",
}  # fmt: skip
"""Family → GPU; the last part of the name is their number (``a2-highgpu-8g``)."""

_WHOLE = {
    **{f"g2-standard-{size}": ("L4", 1) for size in (4, 8, 12, 16, 32)},
    "g2-standard-24": ("L4", 2), "g2-standard-48": ("L4", 4), "g2-standard-96": ("L4", 8),
    "standard_nc6s_v3": (_V100, 1), "standard_nc12s_v3": (_V100, 2), "standard_nc24s_v3": (_V100, 4),
    "standard_nc24rs_v3": (_V100, 4), "standard_nd40rs_v2": (_V100_32, 8), "standard_nc4as_t4_v3": ("T4", 1),
    "standard_nc8as_t4_v3": ("T4", 1), "standard_nc16as_t4_v3": ("T4", 1), "standard_nc64as_t4_v3": ("T4", 4),
    "standard_nc24ads_a100_v4": (_A100_80, 1), "standard_nc48ads_a100_v4": (_A100_80, 2),
    "standard_nc96ads_a100_v4": (_A100_80, 4), "standard_nc40ads_h100_v5": ("H100 NVL", 1),
    "standard_nc80adis_h100_v5": ("H100 NVL", 2), "standard_nd96asr_v4": (_A100, 8),
    "standard_nd96amsr_a100_v4": (_A100_80, 8), "standard_nd96isr_h100_v5": ("H100", 8),
    "standard_nd96isr_h200_v5": ("H200", 8), "standard_nd96isr_mi300x_v5": ("MI300X", 8),
}  # fmt: skip


def gpus_of_instance(name: str | None) -> tuple[str, int] | None:
    """Return the GPU and the number of GPUs of an instance type (``p4d.24xlarge``); ``None`` if it is not known."""
    name = (name or "").lower().removeprefix("ml.")
    if name in _WHOLE:
        return _WHOLE[name]
    family, dot, size = name.partition(".")
    if dot:
        gpu, counts = _AWS.get(family, ("", {}))
        return (gpu, counts[size]) if size in counts else None
    family, _, number = name.rpartition("-")
    digits = number.removesuffix("g")
    known = family in _GOOGLE and digits in ("1", "2", "4", "8", "16") and number != digits
    return (_GOOGLE[family], int(digits)) if known else None
