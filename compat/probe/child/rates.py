"""What the device really does, beside what its maker says: products and copies a second, and its state from NVML.

Rates are medians of CUDA events around work that is queued ahead, after a warm-up: TFLOP/s of a product of 8192² bfloat16
matrices (2·n³ operations), GB/s of a copy of a gibibyte (read and written). A card well cooled and powered reaches 50 to
90 % of its datasheet's dense figure in the first and 80 to 93 % in the second; below 35 % and 60 % something is in the way.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from . import nvml
from .job import Job, NotHere, Probe, Verdict, failed, passed

LEAST_TFLOPS, LEAST_GB_S = 0.35, 0.6
"""Shares of the maker's figure below which a rate is a finding."""


def probes(job: Job) -> Iterator[Probe]:
    yield "matmul-rate", partial(matmul_rate, job)
    yield "copy-rate", partial(copy_rate, job)
    yield "state", partial(nvml.state, job)


def matmul_rate(job: Job) -> Verdict:
    """TFLOP/s of bfloat16 products (float16 where the card has no bfloat16 units)."""
    _needed(job)
    size = 4096 if job.quick else 8192
    tflops = measured_tflops(job.device, size)
    return _held(job, "tflops", tflops, LEAST_TFLOPS, "TFLOP/s")


def copy_rate(job: Job) -> Verdict:
    """GB/s of a copy within the device's memory, bytes read and bytes written."""
    _needed(job)
    return _held(job, "gb_s", measured_gb_s(job.device, 2**28 if job.quick else 2**30), LEAST_GB_S, "GB/s")


def measured_tflops(device: str, size: int) -> float:
    """Rate of a square product; operations by the median time of twelve."""
    modern = torch.version.hip is not None or torch.cuda.get_device_capability(device) >= (8, 0)
    dtype = torch.bfloat16 if modern else torch.float16
    a, b = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    out = torch.empty_like(a)
    return 2 * size**3 / median_seconds(device, lambda: torch.matmul(a, b, out=out)) / 1e12


def measured_gb_s(device: str, bytes_each: int) -> float:
    """Rate of a copy: bytes read and written by the median time."""
    bytes_each = min(bytes_each, torch.cuda.mem_get_info(device)[0] // 4)
    source = torch.randint(0, 255, (bytes_each,), dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * bytes_each / median_seconds(device, lambda: target.copy_(source)) / 1e9


def median_seconds(device: str, work: Callable[[], Any], times: int = 12, warm: int = 5) -> float:
    """The median time of a piece of work on the device, by events queued around each."""
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


def _needed(job: Job) -> None:
    if not job.on_cuda:
        raise NotHere("no accelerator")


def _held(job: Job, key: str, rate: float, least: float, unit: str) -> Verdict:
    name = torch.cuda.get_device_name(job.device)
    row = peak_of(name, job.values.get("peaks", []))
    measured: dict[str, Any] = {key: round(rate, 1), "device": name}
    if row is None:
        return passed(measured, why=f"{rate:.0f} {unit}; the table has no figure for a {name!r}")
    share = rate / row[key]
    measured["of_peak"] = round(share, 3)
    bound = {"of_peak": least, "peak": row[key], "source": row["source"]}
    if not share >= least:
        return failed(
            f"this {row['name']} runs at {share:.0%} of a {row['name']}: {rate:.0f} {unit} of {row[key]:g}", measured, bound
        )
    return passed(measured, bound)


def peak_of(name: str, rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The row for a device's name: the whole name, or its beginning where a row stands for several memory sizes."""
    said = _plain(name)
    for row in rows:
        pattern = _plain(row["pattern"])
        if said == pattern or (not row["memory_gb"] and said.startswith(pattern)):
            return row
    return None


def _plain(name: str) -> str:
    name = name.lower().strip()
    return name[len("nvidia ") :] if name.startswith("nvidia ") else name
