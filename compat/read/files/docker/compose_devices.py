"""How a compose service asks for GPUs: ``deploy``, ``gpus``, ``runtime: nvidia`` and the container toolkit's variables."""

from __future__ import annotations

from compat.environment import Accelerator
from compat.read.files.docker.compose_text import interpolated
from compat.records import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from compat.read.files.docker.compose_text import Service
    from compat.read.yaml_nodes import Document, Value

_MOST = 1024
"""GPUs; no machine has more."""
_VISIBLE = "NVIDIA_VISIBLE_DEVICES"
_NONE = ("none", "void", "")


@record(frozen=True)
class Devices:
    """``asked``: the service runs on GPUs; ``accelerators`` are those, ``None`` where their number is not known."""

    asked: bool
    accelerators: tuple[Accelerator, ...] | None = None


def devices_of(document: Document, service: Service, variables: Mapping[str, str], where: str) -> Devices:
    """The GPUs of a service; :class:`InputError` for a count that is none and a value of the wrong type."""
    requests = [*_reserved(document, service.get("deploy"), where), *_given(document, service.get("gpus"), where)]
    counts = [count for each in requests if (count := _count(document, each, where)) is not None]
    if counts:
        return _devices(None if "all" in counts else sum(each for each in counts if isinstance(each, int)))
    visible = variables.get(_VISIBLE)
    runtime = document.text(service.get("runtime"), f"{where}.runtime")
    if runtime == "nvidia" or (visible is not None and visible not in _NONE):
        if visible is None or visible == "all":
            return _devices(None)
        return _devices(0 if visible in _NONE else visible.count(",") + 1)
    amd = any(_is_amd(document, each, where) for each in document.items(service.get("devices"), f"{where}.devices"))
    return Devices(asked=amd or bool(variables.get("CUDA_VISIBLE_DEVICES")))


def _devices(count: int | None) -> Devices:
    known = None if count is None or count > _MOST else (Accelerator(vendor="nvidia"),) * count
    return Devices(asked=True, accelerators=known)


def _reserved(document: Document, deploy: Value | None, where: str) -> list[Service]:
    value = deploy
    for key in ("resources", "reservations", "devices"):
        value = document.table(value, f"{where}.deploy").get(key)
        if value is None:
            return []
    items = document.items(value, f"{where}.deploy.resources.reservations.devices")
    return [document.table(each, "a reserved device") for each in items]


def _given(document: Document, gpus: Value | None, where: str) -> list[Service]:
    """``gpus: all`` or a list of requests."""
    if gpus is not None and gpus.is_text:
        return [{"count": gpus}]
    return [document.table(each, f"an item of {where}.gpus") for each in document.items(gpus, f"{where}.gpus")]


def _count(document: Document, request: Service, where: str) -> int | str | None:
    """How many GPUs are asked for: a number or ``"all"``; ``None`` for another device."""
    driver = document.text(request.get("driver"), f"the driver of a device of {where}")
    if driver not in (None, "", "nvidia"):
        return None
    capabilities = request.get("capabilities")
    if capabilities is not None and not _is_gpu(document, capabilities, where):
        return None
    ids = request.get("device_ids")
    if ids is not None and not ids.is_null:
        return len(document.items(ids, f"the device_ids of {where}"))
    text = interpolated(document.text(request.get("count"), f"the count of a device of {where}") or "all")
    if text in ("all", "-1") or "$" in text:
        return "all"
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise document.wrong(f"{where}: expected a number of GPUs or 'all', not {text[:40]!r}", request["count"])
    return int(text)


def _is_gpu(document: Document, value: Value, where: str) -> bool:
    """Whether ``capabilities`` (a list, or a list of lists) say so."""
    words: list[str | None] = []
    for each in document.items(value, f"the capabilities of {where}"):
        inner = document.items(each, f"the capabilities of {where}") if each.is_list else [each]
        words += [document.text(word, f"a capability of {where}") for word in inner]
    return "gpu" in words or "nvidia" in words or "compute" in words


def _is_amd(document: Document, value: Value, where: str) -> bool:
    """Whether a device is the one that ROCm needs."""
    return value.is_text and (document.text(value, f"a device of {where}") or "").startswith("/dev/kfd")
