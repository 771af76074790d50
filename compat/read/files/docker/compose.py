"""Compose files → one listing for each service that runs on GPUs, with the stack its image names and what it starts."""

from __future__ import annotations

from compat.environment import Environment, Workload
from compat.errors import InputError
from compat.read.files.declared_variables import without_secrets
from compat.read.files.docker.base_images import known_stack
from compat.read.files.docker.compose_devices import Devices, devices_of
from compat.read.files.docker.compose_text import extended, interpolated, variables_of, words_of
from compat.read.files.docker.dockerfile_workload import started
from compat.read.files.listing import Entry, Listing
from compat.read.yaml_nodes import Document
from compat.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compat.read.files.docker.compose_text import Service
    from compat.read.workload.launch import Launch
    from compat.read.yaml_nodes import Value

_SERVERS = {"vllm/vllm-openai": ("vllm", "serve")}
"""Images whose entry point is a server that compat knows: a service gives only its options."""
_LAUNCHERS = ("accelerate", "torchrun", "deepspeed", "ray")
_MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
_MOST = 1000
_LONGEST = 500
"""Services of a file, characters of an image's name."""
_NOTHING = "no service asks for a GPU, names an image that compat knows or starts a job that it knows"


def read_compose(path: str, text: str) -> tuple[Listing, ...]:
    """The listings of the services worth judging, an empty one where there is none; ``label`` is the service.

    Raises :class:`InputError` for text that is no YAML and a value of the wrong type. Only the text is read: a service
    that extends one of another file is in ``unread``, and a file that a service is built from in ``notes``.
    """
    document = Document(text, path)
    root = document.table(document.root, "the file")
    if "services" not in root:
        raise InputError("expected the 'services' of a compose file", path, 1)
    services = document.table(root["services"], "services")
    if len(services) > _MOST:
        raise InputError(f"has more than {_MOST} services", path, root["services"].line)
    outside = _includes(document, root.get("include"))
    found = [each for name in services if (each := _Service(document, services, name).listing()) is not None]
    if not found:
        return (Listing(path, "compose", notes=(_NOTHING,), unread=outside),)
    return tuple(replace(each, unread=(*each.unread, *outside)) for each in found)


def _includes(document: Document, value: Value | None) -> tuple[str, ...]:
    """What the file includes, as ``unread``: other files may hold the services that matter."""
    items = [value] if value is not None and value.is_text else document.items(value, "include")
    return tuple(f"{document.file}:{each.line}: include was not read" for each in items)


class _Service:
    """One service on its way to a listing."""

    def __init__(self, document: Document, services: Service, name: str) -> None:
        self.document = document
        self.name = name
        self.unread: list[str] = []
        self.notes: list[str] = []
        self.values = extended(document, services, name, self.unread)

    def listing(self) -> Listing | None:
        """What is known of the service; ``None`` where nothing of it can be judged."""
        document, values = self.document, self.values
        where = f"services.{self.name}"
        image = interpolated(document.text(values.get("image"), f"{where}.image") or "")[:_LONGEST]
        # the tag of an image that is built here is the project's own
        stack = known_stack(image) if image and "$" not in image and "build" not in values else Environment()
        variables = variables_of(document, values.get("environment"), f"{where}.environment")
        devices = devices_of(document, values, variables, where)
        launch = self._launch(image, variables)
        if not (devices.asked or stack.distributions or (launch is not None and _is_job(launch.workload))):
            return None
        self._remark(image, stack)
        line = values["image"].line if "image" in values else None
        return Listing(
            document.file, "compose", tuple(Entry(each, line) for each in stack.distributions or ()), label=self.name,
            context=self._context(stack, variables, devices, launch), notes=tuple(self.notes), unread=tuple(self.unread),
        )  # fmt: skip

    def _launch(self, image: str, variables: dict[str, str]) -> Launch | None:
        where = f"services.{self.name}"
        entrypoint = words_of(self.document, self.values.get("entrypoint"), f"{where}.entrypoint")
        command = words_of(self.document, self.values.get("command"), f"{where}.command")
        server = next((words for name, words in _SERVERS.items() if _repository(image).endswith(name)), None)
        if entrypoint is None and server is not None:
            entrypoint = server
        launch = started(entrypoint, command, variables, "", lambda _: None)
        self.notes += launch.notes if launch is not None else ()
        return launch

    def _context(
        self, stack: Environment, variables: dict[str, str], devices: Devices, launch: Launch | None
    ) -> Environment:  # fmt: skip
        known = without_secrets({**variables, **(launch.variables if launch is not None else {})})
        platform = interpolated(self.document.text(self.values.get("platform"), f"services.{self.name}.platform") or "")
        system, _, machine = platform.partition("/")
        return replace(
            stack, distributions=None, os=system if system in ("linux", "windows") else stack.os or "linux",
            machine=_MACHINES.get(machine.partition("/")[0]), accelerators=devices.accelerators, variables=known or None,
            workload=launch.workload if launch is not None else None,
        )  # fmt: skip

    def _remark(self, image: str, stack: Environment) -> None:
        where = f"service {self.name}"
        if "build" in self.values:
            self.notes.append(f"{where} is built from a Dockerfile: check that one too")
        elif not image:
            self.notes.append(f"{where} names no image")
        elif "$" in image:
            self.notes.append(f"{where}: the image {image} depends on a variable")
        elif not stack.distributions:
            self.notes.append(f"{where}: what is in the image {image} is not known")
        if "env_file" in self.values:
            self.notes.append(f"{where}: its env_file was not read")


def _repository(image: str) -> str:
    """An image without its tag and digest."""
    name = image.partition("@")[0]
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}"


def _is_job(workload: Workload) -> bool:
    """Whether it is one that rules speak of: any web server is a script that plain python starts."""
    return workload.task is not None or workload.trainer is not None or workload.launcher in _LAUNCHERS
