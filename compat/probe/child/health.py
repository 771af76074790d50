"""An accelerator's measured rates compared with the vendor's figures, and its state according to NVML.

Rates are medians of CUDA events around work that is queued ahead, after a warm-up: TFLOP/s of a product of 8192² bfloat16
matrices (2·n³ operations), GB/s of a copy of a gibibyte (read and written). A card well cooled and powered reaches 50 to
90 % of its datasheet's dense figure in the first and 80 to 93 % in the second; below 35 % and 60 % something is in the way.
"""

from __future__ import annotations

import importlib.util
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import torch

from .job import Job, NotHere, Probe, Verdict, failed, passed

LEAST_TFLOPS, LEAST_GB_S = 0.35, 0.6
"""Shares of the maker's figure below which a rate is a finding."""
SLOWED = {
    0x8: "the hardware throttles it (heat, power supply, or a brake signal)",
    0x20: "the driver throttles it: too hot",
    0x40: "the hardware throttles it: too hot",
    0x80: "the power supply's brake signal throttles it",
}
"""Bits of the clocks' event reasons that no healthy card shows; the power cap (0x4) is part of a normal full load."""
LEAST_POWER = 0.75
"""Share of the default power limit below which a cap is a finding."""


def probes(job: Job) -> Iterator[Probe]:
    yield "matmul-rate", partial(matmul_rate, job)
    yield "copy-rate", partial(copy_rate, job)
    yield "state", partial(state, job)


def matmul_rate(job: Job) -> Verdict:
    """Test the TFLOP/s of bfloat16 matmuls (float16 if the card has no bfloat16 units)."""
    job.needs_accelerator()
    return judged_rate(job, "tflops", measured_tflops(job.device, 4096 if job.quick else 8192), LEAST_TFLOPS, "TFLOP/s")


def copy_rate(job: Job) -> Verdict:
    """Test the GB/s of a copy within device memory, counting bytes read and written."""
    job.needs_accelerator()
    return judged_rate(job, "gb_s", measured_gb_s(job.device, 2**28 if job.quick else 2**30), LEAST_GB_S, "GB/s")


def measured_tflops(device: str, size: int) -> float:
    """Return the TFLOP/s of a square matmul, by the median time."""
    modern = torch.version.hip is not None or torch.cuda.get_device_capability(device) >= (8, 0)
    dtype = torch.bfloat16 if modern else torch.float16
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    out = torch.empty_like(a)
    return 2 * size**3 / median_seconds(device, lambda: torch.matmul(a, b, out=out)) / 1e12


def measured_gb_s(device: str, bytes_each: int) -> float:
    """Return the GB/s of a copy, counting reads and writes, by the median time."""
    bytes_each = min(bytes_each, torch.cuda.mem_get_info(device)[0] // 4)
    source = torch.randint(0, 255, (bytes_each,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * bytes_each / median_seconds(device, lambda: target.copy_(source)) / 1e9


def median_seconds(device: str, work: Callable[[], object], times: int = 12, warm: int = 5) -> float:
    """Return the median time of an operation on the device in seconds, by events queued around each call."""
    with torch.cuda.device(device):
        for _ in range(warm):
            work()
        events = []
        for _ in range(times):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            work()
            end.record()
            events.append((begin, end))
        torch.cuda.synchronize(device)
        return statistics.median(begin.elapsed_time(end) for begin, end in events) / 1e3


def judged_rate(job: Job, key: str, rate: float, least: float, unit: str) -> Verdict:
    """Return the verdict on a rate, which passes if the table has no figure for the card."""
    name = torch.cuda.get_device_name(job.device)
    row = peak_of(name, job.values.get("peaks", []))
    measured: dict[str, object] = {key: round(rate, 1), "device": name}
    if row is None:
        return passed(measured, why=f"{rate:.0f} {unit}; the table has no figure for a {name!r}")
    share = rate / row[key]
    measured["of_peak"] = round(share, 3)
    bound = {"of_peak": least, "peak": row[key], "source": row["source"]}
    if not share >= least:
        why = f"this {row['name']} runs at {share:.0%} of a {row['name']}: {rate:.0f} {unit} of {row[key]:g}"
        return failed(why, measured, bound)
    return passed(measured, bound)


def peak_of(name: str, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the row for a device name: an exact match, or a prefix if a row covers several memory sizes."""
    name = name.lower().strip().removeprefix("nvidia ")
    for row in rows:
        pattern = row["pattern"].lower().strip().removeprefix("nvidia ")
        if name == pattern or (not row["memory_gb"] and name.startswith(pattern)):
            return row
    return None


# --- The state of an NVIDIA device by NVML: clocks and throttling, memory errors, MIG, power


def state(job: Job) -> Verdict:
    """Check the device's NVML state under load."""
    job.needs_accelerator()
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


def load(job: Job) -> ModuleType:
    """Import ``pynvml`` from this interpreter, or else from ``compat``'s, whose path is in the job."""
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


def _work(device: str) -> None:
    """Queue a quarter of a second of matmuls, adjusted to the card's speed, so that clocks are those under load."""
    a = torch.randn(4096, 4096, device=device, dtype=torch.float16)
    for _ in range(2):  # the first also loads the library
        torch.cuda.synchronize(device)
        began = time.perf_counter()
        torch.matmul(a, a)
        torch.cuda.synchronize(device)
    for _ in range(math.ceil(0.25 / (time.perf_counter() - began))):
        torch.matmul(a, a)


def _handle(bindings: ModuleType, device: str) -> object:
    """Return the card's NVML handle by UUID, since torch and NVML may number devices differently."""
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    if uuid is None and os.environ.get("CUDA_VISIBLE_DEVICES"):
        raise NotHere("this torch does not provide the device's UUID, and CUDA_VISIBLE_DEVICES renumbers the devices")
    try:
        if uuid is None:
            return bindings.nvmlDeviceGetHandleByIndex(torch.device(device).index or 0)
        text = str(uuid)
        return bindings.nvmlDeviceGetHandleByUUID((text if text.startswith(("GPU-", "MIG-")) else f"GPU-{text}").encode())
    except bindings.NVMLError as problem:
        raise NotHere(f"NVML does not know this device: {problem}") from None


def read(bindings: ModuleType, handle: object) -> dict[str, Any]:
    """Return the NVML values of the device, without those it does not support."""
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


def _ask(bindings: ModuleType, function: str, *arguments: object) -> object:
    call = getattr(bindings, function, None)
    if call is None:
        return None
    try:
        return call(*arguments)
    except bindings.NVMLError:
        return None


def judged(found: dict[str, Any]) -> Verdict:
    """Return the verdict: a healthy card is not throttled, has no memory errors, and no reduced power limit."""
    problems: list[str] = []
    fix = None
    for bit, text in SLOWED.items():
        if found.get("clock_reasons", 0) & bit:
            known = "sm_mhz" in found and "sm_mhz_most" in found
            problems.append(text + (f" ({found['sm_mhz']} of {found['sm_mhz_most']} MHz)" if known else ""))
    if found.get("ecc_uncorrected"):
        problems.append(f"{found['ecc_uncorrected']} memory errors that ECC could not correct since the driver was loaded")
    rows = found.get("remapped_rows")
    if rows is not None and len(rows) >= 4 and (rows[2] or rows[3]):
        replaced = "could not be remapped: the card has to be replaced"
        problems.append(f"rows of its memory {replaced if rows[3] else 'wait to be remapped: the card has to be reset'}")
    limit, default = found.get("power_limit_mw"), found.get("power_default_mw")
    if limit and default and limit < LEAST_POWER * default:
        problems.append(f"its power is limited to {limit / 1000:.0f} W of {default / 1000:.0f} W")
        fix = f"nvidia-smi -pl {default // 1000}"
    if problems:
        return failed("; ".join(problems), found, {"power": LEAST_POWER}, fix=fix)
    return passed(found)
