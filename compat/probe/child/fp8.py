"""Products of fp8 numbers (e4m3), as serving and training use them: ``torch._scaled_mm``."""

from __future__ import annotations

from typing import Any

import torch

from .freivalds import wrong_integer
from .job import Job, NotHere, Verdict, failed, passed
from .matrices import integers
from .rounding import EXACT

_SHAPES = ((128, 256, 128), (64, 512, 192), (16, 128, 32))


def product(job: Job) -> Verdict:
    """Whole numbers small enough to be exact in e4m3, in the sums and in bf16: the product has to be exact to the bit."""
    dtype = getattr(torch, "float8_e4m3fn", None)
    multiply: Any = getattr(torch, "_scaled_mm", None)
    if dtype is None or multiply is None:
        raise NotHere("this torch has no fp8")
    if not job.on_cuda:
        raise NotHere("no accelerator: fp8 products are hardware's")
    if torch.version.hip is None and torch.cuda.get_device_capability(job.device) < (8, 9):
        raise NotHere("this device has no fp8: it came with compute capability 8.9")
    generator = torch.Generator().manual_seed(job.seed)
    one = torch.ones((), device=job.device)
    for m, k, n in _SHAPES:
        left, right = (each[0] for each in integers(torch.bfloat16, 1, m, k, n, generator))
        a = left.float().to(dtype).to(job.device)
        b = right.float().to(dtype).to(job.device).t().contiguous().t()  # column-major, as the hardware wants it
        result = multiply(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        result = result[0] if isinstance(result, tuple) else result  # torch 2.4 and before also gave the largest value
        wrong = wrong_integer(left, right, result.cpu(), generator)
        if wrong:
            why = (f"{m}×{k}×{n}: element [{wrong['row']}, {wrong['column']}] is {wrong['got']:g}; "
                   f"exact arithmetic gives {wrong['exact']:g}")  # fmt: skip
            return failed(why, {"error": abs(wrong["got"] - wrong["exact"])}, {"error": 0})
    return passed({"products": len(_SHAPES), "wrong_elements": 0}, {"wrong_elements": 0, "sums_below": EXACT[torch.bfloat16]})
