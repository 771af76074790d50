"""The state of an NVIDIA device by NVML: clocks and what holds them back, memory errors, MIG, power."""

from __future__ import annotations

import importlib.util
import math
import os
import sys
import time
from typing import Any

import torch

from .job import Job, NotHere, Verdict, failed, passed

SLOWED = {
    0x8: "the hardware slows it down (heat, power supply, or a brake signal)",
    0x20: "the driver slows it down: too hot",
    0x40: "the hardware slows it down: too hot",
    0x80: "the power supply's brake signal slows it down",
}
"""Bits of the clocks' event reasons that no healthy card shows; the power cap (0x4) is part of a normal full load."""
LEAST_POWER = 0.75
"""Share of the default power limit below which a cap is a finding."""


def load(job: Job) -> Any:
    """``pynvml`` of this interpreter, or the one of ``compat``'s own, whose path the job names."""
    try:
        import pynvml

        return pynvml
    except ImportError:
        pass
    path = job.values.get("pynvml")
    if not path or not os.path.exists(path):
        raise NotHere("nvidia-ml-py is not installed")
    spec = importlib.util.spec_from_file_location("pynvml", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pynvml"] = module
    spec.loader.exec_module(module)
    return module


def state(job: Job) -> Verdict:
    """What NVML says of the device while it works."""
    if not job.on_cuda:
        raise NotHere("no accelerator")
    if torch.version.hip is not None:
        raise NotHere("NVML knows NVIDIA's devices only")
    bindings = load(job)
    try:
        bindings.nvmlInit()
    except bindings.NVMLError as problem:
        raise NotHere(f"NVML: {problem}") from None
    try:
        handle = _handle(bindings, job.device)
        _work(job.device)
        found = read(bindings, handle)
        torch.cuda.synchronize(job.device)
    finally:
        bindings.nvmlShutdown()
    return judged(found)


def _work(device: str) -> None:
    """A quarter of a second of products in the queue, however fast the card, so that clocks are those of a working one."""
    a = torch.randn(4096, 4096, device=device, dtype=torch.float16)
    for _ in range(2):  # the first also loads the library
        torch.cuda.synchronize(device)
        began = time.perf_counter()
        torch.matmul(a, a)
        torch.cuda.synchronize(device)
    for _ in range(math.ceil(0.25 / (time.perf_counter() - began))):
        torch.matmul(a, a)


def _handle(bindings: Any, device: str) -> Any:
    """The same card by its UUID; torch and NVML may count differently."""
    properties = torch.cuda.get_device_properties(device)
    uuid = getattr(properties, "uuid", None)
    if uuid is None and os.environ.get("CUDA_VISIBLE_DEVICES"):
        raise NotHere("this torch does not tell the device's UUID, and CUDA_VISIBLE_DEVICES renumbers the devices")
    try:
        if uuid is None:
            return bindings.nvmlDeviceGetHandleByIndex(torch.device(device).index or 0)
        text = str(uuid)
        return bindings.nvmlDeviceGetHandleByUUID((text if text.startswith(("GPU-", "MIG-")) else f"GPU-{text}").encode())
    except bindings.NVMLError as problem:
        raise NotHere(f"NVML does not know this device: {problem}") from None


def read(bindings: Any, handle: Any) -> dict[str, Any]:
    """What the device answers; what it does not is left out."""
    uncorrected, volatile, sm, memory = 1, 0, 1, 2
    questions: dict[str, tuple[Any, ...]] = {
        "name": ("nvmlDeviceGetName",),
        "sm_mhz": ("nvmlDeviceGetClockInfo", sm),
        "sm_mhz_most": ("nvmlDeviceGetMaxClockInfo", sm),
        "memory_mhz": ("nvmlDeviceGetClockInfo", memory),
        "memory_mhz_most": ("nvmlDeviceGetMaxClockInfo", memory),
        "temperature": ("nvmlDeviceGetTemperature", 0),
        "power_limit_mw": ("nvmlDeviceGetEnforcedPowerLimit",),
        "power_default_mw": ("nvmlDeviceGetPowerManagementDefaultLimit",),
        "ecc_uncorrected": ("nvmlDeviceGetTotalEccErrors", uncorrected, volatile),
        "remapped_rows": ("nvmlDeviceGetRemappedRows",),
        "mig": ("nvmlDeviceGetMigMode",),
    }
    found: dict[str, Any] = {}
    for key, (function, *arguments) in questions.items():
        answer = _ask(bindings, function, handle, *arguments)
        if answer is not None:
            found[key] = answer.decode() if isinstance(answer, bytes) else answer
    for function in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
        reasons = _ask(bindings, function, handle)
        if reasons is not None:
            found["clock_reasons"] = reasons
            break
    return found


def _ask(bindings: Any, function: str, *arguments: Any) -> Any:
    call = getattr(bindings, function, None)
    if call is None:
        return None
    try:
        return call(*arguments)
    except bindings.NVMLError:
        return None


def judged(found: dict[str, Any]) -> Verdict:
    """The verdict on what NVML said: a healthy card is not slowed down, has no memory errors and the power it is made for."""
    problems: list[tuple[str, str | None]] = []
    for bit, text in SLOWED.items():
        if found.get("clock_reasons", 0) & bit:
            clock = (
                f" ({found['sm_mhz']} of {found['sm_mhz_most']} MHz)" if "sm_mhz" in found and "sm_mhz_most" in found else ""
            )
            problems.append((f"{text}{clock}", None))
    if found.get("ecc_uncorrected"):
        problems.append(
            (f"{found['ecc_uncorrected']} memory errors that ECC could not correct since the driver was loaded", None)
        )
    rows = found.get("remapped_rows")
    if rows is not None and len(rows) >= 4 and (rows[2] or rows[3]):
        what = (
            "could not be remapped: the card has to be replaced" if rows[3] else "wait to be remapped: the card has to be reset"
        )
        problems.append((f"rows of its memory {what}", None))
    limit, default = found.get("power_limit_mw"), found.get("power_default_mw")
    if limit and default and limit < LEAST_POWER * default:
        problems.append(
            (f"its power is capped at {limit / 1000:.0f} W of {default / 1000:.0f} W", f"nvidia-smi -pl {default // 1000}")
        )
    if problems:
        fix = next((each for _, each in problems if each), None)
        return failed("; ".join(text for text, _ in problems), found, {"power": LEAST_POWER}, fix=fix)
    return passed(found)
