"""NVIDIA devices through NVML, the driver's own library, as ``nvidia-ml-py`` binds it (module ``pynvml``).

No CUDA context is created. A value that one device does not report is unknown for that device only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from compat.machine.system import MISMATCHED, NOT_LOADED, Hardware
from compat.model import Accelerator


class Nvml(Protocol):
    """The used part of ``pynvml``; other functions are looked up by name, since old bindings lack some."""

    NVMLError: type[Exception]

    def nvmlInit(self) -> object: ...  # noqa: N802
    def nvmlShutdown(self) -> object: ...  # noqa: N802


_LIBRARY_NOT_FOUND = 12
_STATES = {9: NOT_LOADED, 18: MISMATCHED}
"""``NVML_ERROR_DRIVER_NOT_LOADED`` and ``NVML_ERROR_LIB_RM_VERSION_MISMATCH``."""


def load() -> Nvml | None:
    """Import the bindings; ``None`` if they are not installed. Costs about 20 ms: call it only if there is a driver."""
    try:
        import pynvml
    except ImportError:
        return None
    bindings: Nvml = pynvml
    return bindings


def read_nvml(nvml: Nvml) -> Hardware:
    """Read the driver, its highest CUDA, and every device that responds; ``accelerators`` is ``None`` if NVML failed."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as problem:
        code = getattr(problem, "value", None)
        if code == _LIBRARY_NOT_FOUND:
            return Hardware(notes=("NVML was not found: libnvidia-ml.so.1 (nvml.dll) is not on the library path.",))
        state = _STATES.get(code) if isinstance(code, int) else None
        return Hardware(driver_state=state, notes=() if state else (f"NVML cannot be used: {problem}.",))
    try:
        driver = _text(_ask(nvml, "nvmlSystemGetDriverVersion"))
        cuda = _ask(nvml, "nvmlSystemGetCudaDriverVersion_v2")
        if cuda is None:
            cuda = _ask(nvml, "nvmlSystemGetCudaDriverVersion")
        driver_cuda = f"{cuda // 1000}.{cuda % 1000 // 10}" if isinstance(cuda, int) and cuda >= 1000 else None
        count = _ask(nvml, "nvmlDeviceGetCount")
        if not isinstance(count, int):
            return Hardware(driver=driver, driver_cuda=driver_cuda, notes=("NVML did not report the number of devices.",))
        notes: list[str] = []
        devices = tuple(device for index in range(count) for device in _device(nvml, index, notes))
        if not count:
            notes.append("The NVIDIA driver is loaded but shows no device.")
        return Hardware(accelerators=devices, driver=driver, driver_cuda=driver_cuda, notes=tuple(notes))
    finally:
        _ask(nvml, "nvmlShutdown")


def _device(nvml: Nvml, index: int, notes: list[str]) -> tuple[Accelerator, ...]:
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)  # type: ignore[attr-defined]
    except nvml.NVMLError as problem:
        notes.append(f"NVIDIA device {index} has no handle and is ignored: {problem}.")
        return ()
    capability = _pair(_ask(nvml, "nvmlDeviceGetCudaComputeCapability", handle))
    whole = Accelerator(
        vendor="nvidia",
        name=_text(_ask(nvml, "nvmlDeviceGetName", handle)),
        compute_capability=None if capability is None else f"{capability[0]}.{capability[1]}",
        memory_mib=_memory(nvml, handle),
        extra=_identity(nvml, handle),
    )
    mode = _pair(_ask(nvml, "nvmlDeviceGetMigMode", handle))
    if mode is None or mode[0] != 1:
        return (whole,)
    instances = tuple(_instances(nvml, handle, whole))
    notes.append(
        f"NVIDIA device {index} is split by MIG into {len(instances)} instances; each process uses one of them."
        if instances
        else f"NVIDIA device {index} has MIG enabled but no instance: no job can use it."
    )
    return instances


def _instances(nvml: Nvml, handle: object, whole: Accelerator) -> Iterator[Accelerator]:
    """Yield the MIG instances of a device: their own name, memory and UUID, with the device's capability."""
    count = _ask(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle)
    for index in range(count if isinstance(count, int) else 0):
        instance = _ask(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, index)
        if instance is None:
            continue  # an unused slot
        extra = {"mig": True, **_identity(nvml, instance)}
        if "uuid" in whole.extra:
            extra["parent"] = whole.extra["uuid"]
        yield Accelerator(
            vendor="nvidia",
            name=_text(_ask(nvml, "nvmlDeviceGetName", instance)) or whole.name,
            compute_capability=whole.compute_capability,
            memory_mib=_memory(nvml, instance),
            extra=extra,
        )


def _memory(nvml: Nvml, handle: object) -> int | None:
    """Return memory in MiB. Unified memory (Jetson, GB10) reports "not supported", some drivers 0: ``None`` for both."""
    total = getattr(_ask(nvml, "nvmlDeviceGetMemoryInfo", handle), "total", None)
    return total >> 20 or None if isinstance(total, int) else None


def _identity(nvml: Nvml, handle: object) -> dict[str, object]:
    uuid = _text(_ask(nvml, "nvmlDeviceGetUUID", handle))
    return {} if uuid is None else {"uuid": uuid}


def _ask(nvml: Nvml, function: str, *arguments: object) -> object:
    """Call one NVML function; ``None`` if the function, the driver or the bindings do not support it."""
    try:
        return getattr(nvml, function)(*arguments)
    except (nvml.NVMLError, AttributeError, ValueError):  # ValueError: text that is not UTF-8
        return None


def _text(value: object) -> str | None:
    """Convert to text: bindings up to version 11 return bytes, later ones strings."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return value.strip() or None if isinstance(value, str) else None


def _pair(value: object) -> tuple[int, int] | None:
    if isinstance(value, (list, tuple)) and len(value) == 2 and all(isinstance(part, int) for part in value):
        return value[0], value[1]
    return None
