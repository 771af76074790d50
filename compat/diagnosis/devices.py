"""What is known of the GPU, and of torch's CUDA, in explanations of messages that name neither."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from compat.checks.gpu_code import JETSON
from compat.checks.rocm_code import override_for
from compat.checks.torch_build import major, stack_of
from compat.diagnosis.torch_wheels import for_gpu
from compat.model import Fix
from compat.tables.builds import open_code_tables
from compat.tables.hardware import branch_for

if TYPE_CHECKING:
    from compat.model import Accelerator
    from compat.rules.facts import Facts


_SUFFIXED = ("nvidia-cudnn", "nvidia-nccl", "nvidia-cusparselt", "nvidia-nvshmem")
"""Distributions whose name has ``-cu13`` for CUDA 13; the others have no suffix since."""


def only_kind(facts: Facts) -> Accelerator | None:
    """Return one of the visible GPUs if all are alike, by name and capability."""
    devices = facts.accelerators() or ()
    alike = len({(each.name, each.compute_capability, each.gfx) for each in devices}) == 1
    known = alike and (devices[0].name or devices[0].compute_capability or devices[0].gfx)
    return devices[0] if known else None


def torch_for_device(device: Accelerator, facts: Facts) -> tuple[Fix, ...]:
    """Return a torch with code for the GPU."""
    capability = device.compute_capability
    if capability in JETSON:
        return (Fix("source-install", "torch", "", "NVIDIA's wheel for the JetPack release of this Jetson"),)
    return for_gpu(f"sm_{capability.replace('.', '')}", facts) if capability else ()


def driver_of(spec: str, facts: Facts) -> Iterator[Fix]:
    """Yield the driver that an image with ``cuda>=12.4`` asks for: one that supports that CUDA itself."""
    cuda = spec.lstrip("<>= ")
    branch = branch_for(cuda, windows=facts.value("os") == "windows" or facts.value("platform") in ("wsl1", "wsl2"))
    text = "install a newer driver on the machine (the host, not the container)"
    yield Fix(
        "driver", None, f">={branch}" if branch else None, f"{text}: branch {branch} supports CUDA {cuda}" if branch else text
    )


def overrides(device: Accelerator) -> Iterator[Fix]:
    """Yield the variable that makes ROCm treat the GPU as the one of its generation that wheels have code for."""
    found = override_for(device.gfx or "")
    if found is not None:
        yield found


def cuda_wheel(name: str, facts: Facts) -> str:
    """Return the distribution of a CUDA library for the CUDA of the installed torch; CUDA 12 if that is unknown."""
    cuda = _cuda_of_torch(facts)
    if cuda == 13:
        return f"{name}-cu13" if name in _SUFFIXED else name
    return f"{name}-cu{cuda or 12}"


def _cuda_of_torch(facts: Facts) -> int | None:
    flavour = stack_of(facts, open_code_tables()).flavour.numbered
    if flavour is not None:
        return major(flavour)
    copies = facts.package("torch")
    stated = str(copies[0].extra.get("cuda") or "") if isinstance(copies, list) else ""
    if stated[:1].isdecimal():
        return major(stated)
    names = [each.name for each in facts.environment.distributions or () if each.name.startswith("nvidia-")]
    endings = {int(name[-2:]) for name in names if name[-5:-2] == "-cu" and name[-2:].isdecimal()}
    return endings.pop() if len(endings) == 1 else None
