"""``torch.compile`` with dynamic shapes: one compiled matmul for many shapes, and mismatched shapes rejected."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial

import torch

from .job import Job, NotHere, Probe, Verdict, described, failed, passed
from .matrices import integers, reals, wrong_integer, wrong_real

_ROWS = (64, 127, 200, 33)
"""Numbers of rows that one compiled function is called with in turn."""


def probes(job: Job) -> Iterator[Probe]:
    yield "compile-fp32", partial(dynamic, job, torch.float32)
    yield "compile-bf16", partial(dynamic, job, torch.bfloat16)
    yield "compile-refusal", partial(refusal, job)


def needed(job: Job | None) -> None:
    """Raise :class:`NotHere` if torch.compile is missing, or its C++ compiler on the CPU."""
    if not hasattr(torch, "compile"):
        raise NotHere("this torch has no torch.compile")
    if job is not None and job.on_cuda:
        return  # anything missing from Triton there is a finding
    if not any(shutil.which(name) for name in (os.environ.get("CXX") or "g++", "g++", "clang++")):
        raise NotHere("torch.compile needs a C++ compiler for the CPU (g++, or $CXX), and none is on PATH")


def dynamic(job: Job, dtype: torch.dtype) -> Verdict:
    """Test a function compiled with ``dynamic=True`` for several row counts: bit-exact integers, and reals within the bound."""
    needed(job)
    generator = torch.Generator().manual_seed(job.seed)
    function = _fresh(_product)
    k, n, worst = 192, 80, 0.0
    for rows in _ROWS:
        left, right = (each[0].to(dtype) for each in integers(dtype, 1, rows, k, n, generator))
        result = function(left.to(job.device), right.t().contiguous().to(job.device)).cpu()
        wrong = wrong_integer(left, right, result - 1, generator)
        if wrong is None:
            left, right = (each[0].to(dtype) for each in reals(1, rows, k, n, generator))
            a, b = left.to(job.device), right.t().contiguous().to(job.device)
            share, wrong = wrong_real(left, right, _bare(job)(a, b).cpu(), generator, split=2)
            worst = max(worst, share)
        if wrong:
            name = f"compiled, {rows}×{k}×{n}"
            why = f"{name}: element {list(wrong.at)} is {wrong.got:g}; exact arithmetic gives {wrong.exact:g}"
            return failed(why, {"error": wrong.error}, {"error": wrong.bound})
    return passed({"shapes": len(_ROWS), "residual_of_bound": round(worst, 4)}, {"residual_of_bound": 1})


def refusal(job: Job) -> Verdict:
    """Test that mismatched inner dimensions (320 and 48, as in the GRPO bug with Mistral) are rejected during tracing."""
    needed(job)
    a = torch.ones(17, 320, device=job.device)
    b = torch.ones(48, 64, device=job.device)
    try:
        result = _fresh(_product)(a, b)
    except Exception as refused:
        return passed({"refused": described(refused)[:200]})
    return failed(f"compiled, 17×320 times 64×48 gave a result of shape {tuple(result.shape)}; the inner dimensions differ")


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return torch.matmul(a, b.t()) + 1


_Kernel = Callable[..., torch.Tensor]
_compiled: dict[str, _Kernel] = {}


def _bare(job: Job) -> _Kernel:
    """Return a single matmul, compiled once per process."""
    if job.device not in _compiled:
        _compiled[job.device] = _fresh(lambda a, b: torch.matmul(a, b.t()))
    return _compiled[job.device]


def compiler(function: _Kernel) -> _Kernel:
    """Return the compiled function; raises :class:`NotHere` without a compiler."""
    needed(None)
    return _fresh(function)


def _fresh(function: _Kernel) -> _Kernel:
    return torch.compile(function, dynamic=True, fullgraph=True)
