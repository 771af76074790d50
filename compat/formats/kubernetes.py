"""Kubernetes manifests: the containers of Jobs, Deployments, PyTorchJobs, TrainJobs, Ray and LeaderWorkerSets.

Every pod template is found by its ``containers``, whatever the resource. There is one listing for each container that
requests GPUs, has a known image, or installs or starts something; files in the image are not taken from the project.
The values of a Helm chart are read by what they are named in nearly all charts, and in that of vLLM's production stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from compat.errors import InputError
from compat.formats.cloud import gpus_of_instance
from compat.formats.edit.files import Mapped
from compat.formats.installs.edit import InstallScript
from compat.formats.installs.files import InstallFormat
from compat.formats.jobs import (
    Argument,
    Job,
    JobFile,
    count_of,
    devices,
    is_known,
    script_of,
    texts_of,
    unread_installs,
    variables_of,
)
from compat.formats.listing import Listing
from compat.model import Accelerator, Environment
from compat.records import record, replace
from compat.syntax.shell import Word
from compat.syntax.yaml import Document, Table, Value
from compat.workload.wrappers import split_words

_GPUS = {"nvidia.com/gpu": "nvidia", "amd.com/gpu": "amd"}
_INSTANCE = "node.kubernetes.io/instance-type"
_PRODUCTS = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "amd.com/gpu.product-name")
"""Node labels that name the GPU."""
_CONTAINERS = ("initContainers", "containers")
_DEEPEST = 12
_MOST = 500
"""Containers of a file."""
_NOTHING = "no container requests a GPU, uses a known image or starts a known job"


@record(frozen=True)
class Container:
    """A container, its pod, and what the enclosing resource specifies about its processes."""

    label: str
    table: Table
    line: int
    pod: Table
    inherited: Mapping[str, str]
    """Variables that the resource's controller sets in the container."""


class Kubernetes(InstallFormat):
    """Kubernetes manifests; :class:`InputError` for invalid YAML and for values of a wrong type."""

    kind = "kubernetes"
    apply = "kubectl apply --filename {path}"

    def resource(self, file: JobFile, document: Document) -> _Resource:
        return _Resource(file, document)

    def read(self, path: str, text: str) -> tuple[Listing, ...]:
        file = JobFile(path, text, "manifests of Kubernetes")
        found = [each for document in file.documents() for each in self.resource(file, document).listings()]
        notes = (f"{path}: a template: the values it is rendered with are unknown",) if file.template else ()
        if not found:
            return (Listing(path, self.kind, notes=(*notes, f"{path}: {_NOTHING}"), unread=unread_installs(path, text)),)
        return tuple(replace(each, notes=(*notes, *each.notes)) for each in found)

    def collect(self, script: InstallScript) -> None:
        file = JobFile(script.path, script.text, "manifests of Kubernetes")
        for document in file.documents():
            resource = self.resource(file, document)
            for container in resource.containers():
                words = [each for key in ("command", "args") for each in _words(document, container.table, key) or ()]
                found = script_of(words)
                file.edited(script, [] if found is None else [found.value])
            _RayEnvironment(file, document, resource.kind, resource.spec).edited(script)


class _Resource:
    """One document: a resource and its containers."""

    def __init__(self, file: JobFile, document: Document) -> None:
        self.file = file
        self.document = document
        self.root = document.table(document.root, "the document")
        self.kind = document.text(self.root.get("kind"), "kind") or ""
        metadata = document.table(self.root.get("metadata"), "metadata")
        name = document.text(metadata.get("name"), "metadata.name") or document.text(metadata.get("generateName"), "the name")
        self.name = f"{self.kind} {(name or '').rstrip('-')}".strip() if is_known(name) else self.kind
        self.spec = document.inner(self.root.get("spec"), "spec")

    def containers(self) -> Iterator[Container]:
        """Yield every container of the resource, labelled by its position."""
        if self.kind in ("ConfigMap", "Secret", "CustomResourceDefinition"):
            return
        inherited = self._distributed()
        if self.kind == "TrainJob":
            trainer = self.document.inner(self.spec.get("trainer"), "spec")
            if trainer:
                yield Container(self.name, trainer, self.spec["trainer"].line, {}, inherited)
        waiting: list[tuple[Table, str, int]] = [(self.root, "", 0)]
        count = 0
        while waiting:
            table, role, depth = waiting.pop(0)
            for key in _CONTAINERS:
                own = table.get(key)
                items = self.document.items(own, key) if own is not None and own.is_list else []
                for item in items:
                    count += 1
                    if count > _MOST:
                        raise self.document.wrong(f"has more than {_MOST} containers", item)
                    inside = self.document.table(item, "a container")
                    name = self.document.text(inside.get("name"), "the name of a container") if len(items) > 1 else None
                    kind = "init" if key == "initContainers" else None
                    yield Container(" ".join(filter(None, (self.name, role, kind, name))), inside, item.line, table, inherited)
            if depth < _DEEPEST:
                waiting += [(inner, f"{role} {word}".strip(), depth + 1) for inner, word in self._below(table)]

    def _below(self, table: Table) -> Iterator[tuple[Table, str]]:
        """Yield the tables nested in a table, each with a distinguishing word."""
        for key, value in table.items():
            items = [value] if value.is_table else self.document.items(value, key) if value.is_list else []
            for item in items:
                if item.is_table:
                    inner = self.document.table(item, key)
                    group = inner.get("groupName") or (inner.get("name") if key == "replicatedJobs" else None)
                    named = self.document.text(group, "a name") if group is not None and group.is_text else None
                    yield inner, named or _ROLES.get(key, key if key in _REPLICAS else "")

    def _distributed(self) -> dict[str, str]:
        """Return the variables that the controller of a PyTorchJob or a TrainJob sets for torchrun."""
        document, spec = self.document, self.spec
        if self.kind == "TrainJob":
            trainer = document.inner(spec.get("trainer"), "spec")
            counts = (
                document.text(trainer.get("numNodes"), "numNodes"),
                document.text(trainer.get("numProcPerNode"), "the number"),
            )
        elif self.kind == "PyTorchJob":
            pods = document.inner(spec.get("pytorchReplicaSpecs"), "spec")
            replicas = [document.inner(each, "spec") for each in pods.values()]
            numbers = [count_of(document.text(each.get("replicas"), "replicas") or "1") for each in replicas]
            total = None if None in numbers else str(sum(each for each in numbers if each is not None))
            counts = (total, document.text(spec.get("nprocPerNode"), "nprocPerNode"))
        else:
            return {}
        found = zip(("PET_NNODES", "PET_NPROC_PER_NODE"), counts)
        return {name: value for name, value in found if value is not None and is_known(value)}

    def listings(self) -> Iterator[Listing]:
        """Yield the relevant containers as listings."""
        shared = _RayEnvironment(self.file, self.document, self.kind, self.spec)
        for container in self.containers():
            listing = self._listing(container, shared)
            if listing is not None:
                yield listing

    def _listing(self, container: Container, shared: _RayEnvironment) -> Listing | None:
        document, table = self.document, container.table
        image = document.text(table.get("image"), "image") or None
        line = table["image"].line if "image" in table else container.line
        place = f"{self.file.path}:{container.line}"
        job = Job(self.file.path, image=image, line=line, here=False, where=f"{place}: {container.label}")
        variables = {**_variables(document, table.get("env")), **shared.variables}
        entrypoint, command = _words(document, table, "command"), _words(document, table, "args")
        job.run_words(self.file, [*(entrypoint or ()), *(command or ())], variables)
        shared.into(job)
        known = {**variables, **container.inherited}
        if shared.entrypoint is None:
            job.start_container(place, texts_of(entrypoint), texts_of(command), known)
        else:
            with suppress(InputError):  # unbalanced quotes
                job.start_container(place, ("ray", "job", "submit", "--", *split_words(shared.entrypoint)), None, known)
        accelerators = self._devices(container)
        if not (accelerators or job.is_relevant):
            return None
        if image is None:
            job.note("no image is named")
        job.note_image()
        context = Environment(os="linux", accelerators=accelerators)
        return job.listing("kubernetes", label=container.label, context=context, variables=variables)

    def _devices(self, container: Container) -> tuple[Accelerator, ...] | None:
        """Return the GPUs of one container; ``None`` if unknown."""
        document = self.document
        resources = document.table(container.table.get("resources") or container.table.get("resourcesPerNode"), "resources")
        for key in ("limits", "requests"):
            asked = document.table(resources.get(key), f"resources.{key}")
            for name, vendor in _GPUS.items():
                if name in asked:
                    return devices(self._product(container.pod), count_of(document.text(asked[name], name)), vendor)
        return None

    def _product(self, pod: Table) -> str | None:
        """Return the GPU model of the nodes a pod is restricted to, if it is a single one."""
        document = self.document
        labels = document.table(pod.get("nodeSelector"), "nodeSelector")
        for label in _PRODUCTS:
            if label in labels:
                return _gpu_name(document.text(labels[label], label))
        if _INSTANCE in labels and (on := gpus_of_instance(document.text(labels[_INSTANCE], _INSTANCE))) is not None:
            return on[0]
        found: list[str | None] = []
        needed = pod
        for part in ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"):
            needed = document.inner(needed.get(part), "spec")
        for term in document.items(needed.get("nodeSelectorTerms"), "nodeSelectorTerms"):
            for each in document.items(document.table(term, "a term").get("matchExpressions"), "matchExpressions"):
                expression = document.table(each, "an expression")
                key = document.text(expression.get("key"), "a key")
                if key in _PRODUCTS and document.text(expression.get("operator"), "an operator") == "In":
                    found += [document.text(value, "a value") for value in document.items(expression.get("values"), "values")]
        return _gpu_name(found[0]) if len(set(found)) == 1 else None


class HelmValues(Kubernetes):
    """The values of a Helm chart: tables that name an image, with the GPUs, variables and command next to it."""

    apply = "helm upgrade RELEASE CHART --values {path}"

    def resource(self, file: JobFile, document: Document) -> _Resource:
        return (_Resource if document.inner(document.root, "the values").keys() >= {"apiVersion", "kind"} else _Values)(
            file, document
        )


class _Values(_Resource):
    """The values of a chart, in which a container is a table with an image, or with GPUs for the image above it."""

    def containers(self) -> Iterator[Container]:
        waiting: list[tuple[Table, str, Value | None, int]] = [(self.root, "", None, 0)]
        found = 0
        while waiting:
            table, label, above, depth = waiting.pop(0)
            if (enabled := table.get("enabled")) is not None and enabled.is_text and enabled.content == "false":
                continue
            resources = self._resources(table)
            image = self._image(table)
            if image is not None or (above is not None and resources is not None):
                found += 1
                if found > _MOST:
                    raise self.document.wrong(f"has more than {_MOST} images", image)
                yield self._container(table, label, image or above, resources)
            if depth < _DEEPEST:
                inside = [(each, key) for key, value in table.items() if key != "image" for each in self._tables(key, value)]
                waiting += [(each, self._label(each, label, key), image or above, depth + 1) for each, key in inside]

    def _tables(self, key: str, value: Value) -> Iterator[Table]:
        items = [value] if value.is_table else self.document.items(value, key) if value.is_list else []
        return (self.document.table(each, key) for each in items if each.is_table)

    def _label(self, table: Table, above: str, key: str) -> str:
        name = table.get("name")
        return str(name.content) if name is not None and name.is_text else f"{above} {key}".strip()

    def _image(self, table: Table) -> Value | None:
        """Return the image that a table names as a text, as repository and tag, or as a table of them."""
        image = table.get("image")
        if image is not None and image.is_text:
            return image
        parts = table if image is None else self.document.inner(image, "image")
        registry, repository, tag = (parts.get(key) for key in ("registry", "repository", "tag"))
        if repository is None or not repository.is_text or (image is None and tag is None):
            return None
        name = "/".join(
            str(each.content) for each in (registry, repository) if each is not None and each.is_text and each.content
        )
        return repository.as_text(f"{name}:{tag.content}" if tag is not None and tag.is_text and tag.content else name)

    def _resources(self, table: Table) -> Value | None:
        """Return the resources of a table that ask for GPUs."""
        asked = table.get("requestGPU")
        if asked is not None and asked.is_text:
            kind = table.get("requestGPUType")
            name = str(kind.content) if kind is not None and kind.is_text else "nvidia.com/gpu"
            return asked.as_table({"limits": asked.as_table({name: asked})})
        resources = table.get("resources")
        limits = self.document.inner(resources, "resources").values()
        return resources if any(_GPUS.keys() & self.document.inner(each, "limits").keys() for each in limits) else None

    def _container(self, table: Table, label: str, image: Value | None, resources: Value | None) -> Container:
        inside = self.document.inner(table.get("image"), "image")
        parts: Table = {
            key: value for key in ("command", "args", "env") if (value := table.get(key, inside.get(key))) is not None
        }
        if "env" in parts and not parts["env"].is_list:
            parts["env"] = self._listed(self.document.inner(parts["env"], "env"), parts["env"])
        if image is not None:
            parts["image"] = image
        if resources is not None:
            parts["resources"] = resources
        parts.update(self._vllm(table))
        line = image.line if image is not None else 1
        return Container(label or self.file.path.rpartition("/")[2], parts, line, table, {})

    def _listed(self, variables: Table, where: Value) -> Value:
        pairs = [{"name": where.as_text(name), "value": value} for name, value in variables.items() if value.is_text]
        return where.as_list([where.as_table(each) for each in pairs])

    def _vllm(self, table: Table) -> Table:
        """Return command and variables of a model in the chart of vLLM's production stack."""
        model = table.get("modelURL")
        if model is None or not model.is_text:
            return {}
        settings = self.document.inner(table.get("vllmConfig"), "vllmConfig")
        words = [model.as_text("vllm"), model.as_text("serve"), model]
        for key, flag in _VLLM_FLAGS.items():
            if (value := settings.get(key)) is not None and value.is_text:
                words += [value.as_text(flag), value]
        extra = settings.get("extraArgs")
        words += [each for each in self.document.items(extra, "extraArgs") if each.is_text] if extra and extra.is_list else []
        found: Table = {"command": model.as_list(words)}
        if (old := settings.get("v0")) is not None and str(old.content) == "1":
            found["env"] = self._listed({"VLLM_USE_V1": old.as_text("0")}, old)
        return found


_VLLM_FLAGS = {
    "tensorParallelSize": "--tensor-parallel-size", "pipelineParallelSize": "--pipeline-parallel-size",
    "dtype": "--dtype", "maxModelLen": "--max-model-len", "maxNumSeqs": "--max-num-seqs",
}  # fmt: skip
_ROLES = {"headGroupSpec": "head", "leaderTemplate": "leader", "workerTemplate": "worker"}
_REPLICAS = ("Master", "Worker", "Launcher", "Chief", "PS", "predictor", "transformer")
"""Table keys that distinguish their pods."""


class _RayEnvironment:
    """What a RayJob or a RayService makes Ray install and start in its cluster: ``runtimeEnvYAML``, ``serveConfigV2``."""

    def __init__(self, file: JobFile, document: Document, kind: str, spec: Table) -> None:
        self.entrypoint = document.text(spec.get("entrypoint"), "entrypoint") if kind == "RayJob" else None
        self.variables: dict[str, str] = {}
        self._requirements: list[tuple[str, int]] = []
        self._file = file
        self._notes: list[str] = []
        for key in ("runtimeEnvYAML", "serveConfigV2"):
            value = spec.get(key)
            if kind in ("RayJob", "RayService") and value is not None and value.is_text:
                lines = [each.number for each in file.placed(value)]
                try:
                    self._read(Document(str(value.content), file.path), lines, key)
                except InputError as problem:
                    line = lines[min(problem.line, len(lines)) - 1] if problem.line else value.line
                    raise InputError(f"{key}: {problem.message}", file.path, line) from None

    def _read(self, inner: Document, lines: Sequence[int], key: str) -> None:
        root = inner.table(inner.root, key)
        tables = [root]
        if key == "serveConfigV2":
            applications = [inner.table(each, "an application") for each in inner.items(root.get("applications"), key)]
            tables = [inner.table(each.get("runtime_env"), "runtime_env") for each in applications]
        for table in tables:
            self.variables.update(variables_of(inner, table.get("env_vars"), "env_vars"))
            pip = table.get("pip") or table.get("uv")
            if pip is not None and pip.is_table:
                pip = inner.table(pip, "pip").get("packages")
            if pip is not None and pip.is_text:
                self._notes.append(f"runtime_env installs {inner.text(pip, 'pip')}, which was not read")
                continue
            for each in inner.items(pip, "pip"):
                self._requirements.append((inner.text(each, "a requirement") or "", lines[min(each.line, len(lines)) - 1]))
            for other in ("conda", "image_uri", "container"):
                if other in table:
                    self._notes.append(f"the {other} of a runtime_env was not read")

    def into(self, job: Job) -> None:
        """Add what is installed to a container of the cluster."""
        for text, line in self._requirements:
            job.install(text, line)
        for note in self._notes:
            job.files.note(job.path, note)

    def edited(self, script: InstallScript) -> None:
        """Pass the requirements with their positions to the editor of install commands."""
        mapped = Mapped(self._file.text, range(len(self._file.text)))
        for text, line in self._requirements:
            at = self._file.find(text, line)
            if at is not None:
                words = [Word("pip", at, at), Word("install", at, at), Word(text, at, at + len(text), ((at, at + len(text)),))]
                script.read_words(mapped, words)


def _gpu_name(label: str | None) -> str | None:
    """Return the common name of a GPU such as ``NVIDIA-A100-SXM4-80GB-SHARED``."""
    return label.removesuffix("-SHARED").replace("-", " ") if label is not None and is_known(label) else None


def _words(document: Document, table: Table, key: str) -> list[Argument] | None:
    """Return the words of ``command`` or ``args``; a plain string, which few resources allow, is one word."""
    value = table.get(key)
    if value is None or value.is_null:
        return None
    items = document.items(value, key) if value.is_list else [value]
    return [Argument(document.text(each, f"a word of {key}") or "", each) for each in items]


def _variables(document: Document, value: Value | None) -> dict[str, str]:
    """Parse ``env``, a list of name and value; references (``valueFrom``) are omitted."""
    found: dict[str, str] = {}
    for each in document.items(value, "env"):
        table = document.table(each, "a variable")
        name, text = document.text(table.get("name"), "the name of a variable"), table.get("value")
        if name and text is not None and is_known(written := document.text(text, f"the value of {name}")):
            found[name] = written or ""
    return found
