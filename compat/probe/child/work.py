"""The job of a child process: imports torch, reports the stack, and runs the groups in order."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from .job import Job, could_not_run, described, failed, read_job

MODULES = {"triton": "triton_compiler"}
"""Group → the module here whose ``probes(job)`` lists its probes, if it has another name than the group."""
NO_TORCH, BROKEN_TORCH, NO_DEVICE = 93, 94, 95
"""Exit codes of a process that could not run any probe."""


def main(job_file: str) -> int:
    """Run the job; returns 0 unless torch or the device is unusable."""
    job = read_job(job_file)
    if "rank" in job.values:  # one of several processes of a group
        rank = importlib.import_module("compat_probe." + job.values["rank"])
        code: int = rank.rank_main(job)
        return code
    try:
        import torch
    except ModuleNotFoundError as missing:
        if missing.name == "torch":
            job.record("torch", status="missing")
            return NO_TORCH
        job.record("torch", status="broken", why=described(missing), library=missing.name)
        return BROKEN_TORCH
    except Exception as problem:  # a library that cannot be loaded, a truncated file, a missing symbol
        job.record("torch", status="broken", why=described(problem))
        return BROKEN_TORCH
    if not hasattr(torch, "matmul"):  # a folder named torch without the package
        job.record("torch", status="broken", why="the folder 'torch' that Python finds is not torch's package")
        return BROKEN_TORCH
    job.record("hello", **stack(torch))
    if job.on_cuda and not _device_is_there(torch, job):
        return NO_DEVICE
    torch.manual_seed(job.seed)
    for group in job.values["groups"]:
        try:
            module = importlib.import_module("compat_probe." + MODULES.get(group, group))
        except ImportError as problem:
            job.record("result", probe=f"{group}/import", seconds=0.0, **failed(described(problem)))
            continue
        job.run(group, module.probes(job))
    job.record("end")
    return 0


def _device_is_there(torch: ModuleType, job: Job) -> bool:
    """Return whether torch can use the device; if not, report the reason as a result."""
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        verdict = could_not_run("this torch is a CPU-only build", cpu_only=True)
        job.record("result", probe="torch/device", seconds=0.0, **verdict)
        return False
    try:
        torch.cuda.init()
        count = torch.cuda.device_count()
        index = torch.device(job.device).index or 0
        if index < count:
            torch.cuda.set_device(index)  # Triton, and most kernels of other packages, run on the current device
            torch.zeros(1, device=job.device).cpu()
            return True
        seen = f"torch sees {count} device{'' if count == 1 else 's'}"
        verdict = failed(f"{seen}, but the driver shows more: {job.device} is not among them")
    except Exception as problem:
        verdict = failed(described(problem))
    job.record("result", probe="torch/device", seconds=0.0, **verdict)
    return False


def stack(torch: ModuleType) -> dict[str, object]:
    """Return the versions of Python, torch and CUDA or ROCm, and the names of the devices."""
    found: dict[str, object] = {
        "python": ".".join(map(str, sys.version_info[:3])),
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda,
        "hip": getattr(torch.version, "hip", None),
        "threads": torch.get_num_threads(),
        "file": getattr(torch, "__file__", None),
    }
    if found["cuda"] or found["hip"]:
        try:
            found["devices"] = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
        except Exception as problem:
            found["devices"], found["devices_why"] = [], described(problem)
    else:
        found["devices"] = []
    return found
